"""Several threads on one row, small enough to follow by hand: who reads what, and the numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softmax_lab import lane_art as art
from softmax_lab import online, reference, shuffle
from softmax_lab.prose import Sentence, Table, html, plain, say
from softmax_lab.svg import Svg, colour, drawing, rect, text, tint
from softmax_lab.units import number

_COLOURS = ("blue", "green", "purple", "yellow")  # none that a level of the memory has
MOST = 8


def reading(row: Sequence[float], threads: int) -> tuple[Svg, ...]:
    """Which thread reads which column at each step: thread t takes columns t, t + threads, …

    One frame a step, with what each thread holds after it. Up to 8 columns and 4 threads.
    """
    row = [float(x) for x in row]
    if not 1 <= threads <= len(_COLOURS) or not 1 <= len(row) <= MOST:
        raise ValueError(
            f"up to {MOST} columns and {len(_COLOURS)} threads are drawn, "
            f"got {len(row)} and {threads}"
        )
    rounds = range(-(-len(row) // threads))
    return tuple(_reading(row, threads, k) for k in rounds)


def _reading(row: list[float], threads: int, k: int) -> Svg:
    seen = row[: (k + 1) * threads]
    held = online.lanes(seen, threads)
    words = (
        f"Step k = {k}: thread t reads column t{f' + {k * threads}' if k else ''}, so neighbours "
        f"read neighbours. "
        f"Each thread's own next column is {threads} further on."
    )
    body = [text(8, 22, "row of this block; below each score, its column")]
    for i, x in enumerate(row):
        now, done = i // threads == k, i // threads < k
        name = _COLOURS[i % threads]
        ground = colour(name) if now else tint(name) if done else "none"
        left = 8 + 88 * i
        body.append(rect(left, 36, 80, 46, "none" if now else ground, colour(name)))
        if now:
            body.append(rect(left, 36, 80, 46, tint(name), colour(name), stroke_width="4"))
        body.append(text(left + 40, 65, art.fixed(x), anchor="middle", size=18))
        body.append(text(left + 40, 101, str(i), anchor="middle", size=14, muted=True))
    for t, (m, total) in enumerate(held):
        left = 8 + 88 * t
        columns = range(t + k * threads, min(len(row), t + k * threads + 1))
        for i in columns:
            path = art.arrow(8 + 88 * i + 40, 110, left + 40, 160)
            body.append(
                f'<path d="{path}" fill="none" stroke="{colour(_COLOURS[t])}" stroke-width="2"/>'
            )
        body.append(rect(left, 164, 80, 72, tint(_COLOURS[t]), colour(_COLOURS[t])))
        body.append(text(left + 40, 192, f"m {art.fixed(m)}", anchor="middle"))
        body.append(text(left + 40, 220, f"L {art.fixed(total)}", anchor="middle", size=15))
        body.append(text(left + 40, 255, f"thread {t}", anchor="middle", size=14, muted=True))
    spoken = "; ".join(
        f"thread {t} holds m = {art.fixed(m)}, L = {art.fixed(total)}"
        for t, (m, total) in enumerate(held)
    )
    return drawing(
        264,
        f"{threads} threads reading, step {k}",
        f"{plain(words)} {spoken}.",
        body,
        note=html(words),
    )


def partials(row: Sequence[float], threads: int) -> Table:
    """Each thread's columns, its (m, L), the factor to the row's maximum, and L corrected by it."""
    held = online.lanes(row, threads)
    corrected = correct(held)
    top = max(m for m, _ in held)
    rows = [
        (
            f"thread {t}",
            ", ".join(art.fixed(x) for x in row[t::threads]),
            art.fixed(m),
            art.fixed(total),
            rf"\(e^{{{art.fixed(m)} - {art.fixed(top)}}}\)",
            art.fixed(alike),
        )
        for t, ((m, total), alike) in enumerate(zip(held, corrected, strict=True))
    ]
    heads = ("", "its scores", "maximum", "denominator", "factor", "corrected")
    return Table(heads, tuple(rows), frozenset({1, 2, 3, 4, 5}))


def correct(pairs: Sequence[tuple[float, float]]) -> tuple[float, ...]:
    """Partial denominators relative to the maximum of all, in float32: L_t · exp(m_t - m)."""
    top = np.float32(max(m for m, _ in pairs))
    with np.errstate(over="ignore", under="ignore"):
        return tuple(float(np.float32(total) * np.exp(np.float32(m) - top)) for m, total in pairs)


def raw_ratio(row: Sequence[float], threads: int) -> float:
    """The threads' denominators added as they are, over the row's."""
    pairs = online.lanes(row, threads)
    return sum(total for _, total in pairs) / sum(correct(pairs))


def raw(row: Sequence[float], threads: int) -> Sentence:
    """What adding the threads' denominators as they are does to the row."""
    pairs, ratio = online.lanes(row, threads), raw_ratio(row, threads)
    wrong, right = sum(total for _, total in pairs), sum(correct(pairs))
    return say(
        "Added as they are, the denominators make **{wrong}** where the row's is **{right}**: "
        "{ratio:×} as much. The results then add up to {total} and not to 1.",
        wrong=art.fixed(wrong),
        right=art.fixed(right),
        ratio=ratio,
        total=float(reference.softmax(row).sum()) / ratio,
    )


def tree(row: Sequence[float], threads: int, operator: str = "sum") -> Sentence:
    """The rounds of the tree over the corrected denominators, or over the maxima, as numbers."""
    pairs = online.lanes(row, threads)
    rounds = shuffle.reduce(
        correct(pairs) if operator == "sum" else [m for m, _ in pairs], operator
    )
    lines = [
        f"({', '.join(art.fixed(each.values[lane]) for lane in each.meaningful)})"
        for each in rounds
        if each.operator
    ]
    first = ", ".join(art.fixed(v) for v in rounds[0].shuffle.before)
    last = lines.pop().strip("()")
    what = {"sum": "sums", "max": "maxima"}[operator]
    return say(
        "The tree of {what}: {steps} → **{last}**.",
        steps=" → ".join([f"({first})", *lines]),
        last=last,
        what=what,
    )


def results(row: Sequence[float]) -> Sentence:
    """The row's softmax."""
    y = ", ".join(art.fixed(float(v)) for v in reference.softmax(row))
    return say("Divided by it, the row becomes {y}.", y=y)


def rises(row: Sequence[float], threads: int) -> Sentence:
    """How often running maxima rise, one walk over the row against one a thread."""
    x = np.asarray([row], dtype=np.float32)
    return say(
        "On this row one thread meets {one} new maxima, {n} threads meet {many} together, for each "
        "starts anew.",
        one=number(online.updates(x)),
        n=threads,
        many=number(online.updates(x, threads)),
    )
