"""Frames of a tree in shared memory, and of one slot used twice without a barrier between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from softmax_lab import lane_art as art
from softmax_lab.frames import lane_list
from softmax_lab.svg import Svg, drawing, text

HEIGHT = 236
THREADS = 8
"""Threads of the block in the pictures: they fit side by side."""

TEAM = 4
"""Threads that execute together there, as a warp of 32 does."""

_SIDE, _PITCH, _LEFT = 60, 78, 8
_COMBINE: dict[str, Callable[[float, float], float]] = {"max": max, "sum": float.__add__}
_NOUN = {"max": "maximum", "sum": "sum"}


def rounds(values: Sequence[float], operator: str) -> tuple[tuple[float, ...], ...]:
    """The slots of a tree over `values` at the start and after each round.

    Raises ValueError for a number of values that is no power of two.
    """
    if len(values) < 1 or len(values) & (len(values) - 1):
        raise ValueError(f"a tree halves a power of two of values, got {len(values)}")
    out, half = [tuple(map(float, values))], len(values) // 2
    while half:
        slots = list(out[-1])
        for thread in range(half):
            slots[thread] = _COMBINE[operator](slots[thread], slots[thread + half])
        out.append(tuple(slots))
        half //= 2
    return tuple(out)


def too_early(row: Sequence[float]) -> tuple[float, np.ndarray]:
    """(what the late half of the threads takes for the maximum, the row's results) when the early
    half puts its exponentials into the slots before the late half has read the first of them."""
    x = np.asarray(row, dtype=np.float64)
    top = x.max()
    wrong = float(np.exp(x[0] - top))
    shift = np.where(np.arange(len(x)) < TEAM, top, wrong)
    powers = np.exp(x - shift)
    return wrong, powers / powers.sum()


def tree(row: Sequence[float], operator: str = "max") -> tuple[Svg, ...]:
    """Eight threads with a value each: put into slots, halved, read by all."""
    _eight(row)
    held = rounds(row, operator)
    everyone, all_of_them = list(range(THREADS)), ["live"] * THREADS
    words = "Each thread puts its value into the slot with its own number. Then a barrier."
    frames = [_frame("store", words, (held[0], held[0]), (all_of_them, all_of_them), everyone)]
    half = THREADS // 2
    for before, after in pairwise(held):
        at_work = set(range(half))
        sources = [t + half if t in at_work else None for t in everyone]
        was = ["live" if t < 2 * half else "idle" for t in everyone]
        now = ["live" if t in at_work else "idle" for t in everyone]
        reads = "reads" if half == 1 else "read"
        words = f"Half = {half}: {_threads(at_work)} {reads} the slot {half} further on. "
        words += f"{THREADS - half} threads have nothing to do, and come to the barrier as well."
        frames.append(_frame(f"half = {half}", words, (before, after), (was, now), sources))
        half //= 2
    words = f"Every thread reads slot 0: the {_NOUN[operator]}, {art.fixed(held[-1][0])}."
    first = ["live"] + ["idle"] * (THREADS - 1)
    got = (held[-1][0],) * THREADS
    frames.append(_frame("read", words, (held[-1], got), (first, all_of_them), [0] * THREADS))
    return tuple(frames)


def reuse(row: Sequence[float]) -> tuple[Svg, ...]:
    """The slots used again with no barrier between: half of the threads are late, and read what is
    no maximum any more."""
    _eight(row)
    slots, (wrong, y) = rounds(row, "max")[-1], too_early(row)
    top, late = slots[0], set(range(TEAM, THREADS))
    early = [t for t in range(THREADS) if t not in late]
    powers = [float(np.exp(row[t] - top)) for t in early]
    stored = (*powers, *slots[TEAM:])
    looks = ["live" if t in early else "absent" for t in range(THREADS)]
    words = f"The maximum is in slot 0. {_upper(_threads(set(early)))} read it and go on; "
    words += f"{_threads(late)}, another warp, are held up."
    got = tuple(top if t in early else float("nan") for t in range(THREADS))
    first = ["live"] + ["idle"] * (THREADS - 1)
    frames = [
        _frame(
            "read",
            words,
            (slots, got),
            (first, looks),
            [0 if t in early else None for t in range(THREADS)],
        )
    ]
    words = "They put their sums into the slots, as the second tree wants them: the maximum in "
    words += f"slot 0 is overwritten by {art.fixed(powers[0])}."
    put = tuple(powers[t] if t in early else float("nan") for t in range(THREADS))
    now = ["lost"] + ["live"] * (TEAM - 1) + ["idle"] * TEAM
    mine = [t if t in early else None for t in range(THREADS)]
    frames.append(_frame("store", words, (put, stored), (looks, now), mine))
    words = f"Now {_threads(late)} come, and read {art.fixed(wrong)} for the maximum."
    got = tuple(wrong if t in late else top for t in range(THREADS))
    kinds = ["lost" if t in late else "live" for t in range(THREADS)]
    there = [0 if t in late else None for t in range(THREADS)]
    frames.append(_frame("read", words, (stored, got), (now, kinds), there, lost=late))
    want = np.exp(np.asarray(row, float) - top)
    want /= want.sum()
    words = "The rest is in order, and so the results sum to "
    words += f"{art.fixed(float(y.sum()))}. Above, what they should be; below, what they are."
    pair = tuple(map(float, want)), tuple(map(float, y))
    off = ["lost" if abs(a - b) > 1e-4 else "live" for a, b in zip(*pair, strict=True)]
    frames.append(_frame("results", words, pair, (["live"] * THREADS, off), [None] * THREADS))
    return tuple(frames)


def labels(frames: Sequence[Svg]) -> list[str]:
    """What a slider calls its positions."""
    return [str(k) for k in range(1, len(frames) + 1)]


_ROWS = {
    "store": ("register", "slot"),
    "read": ("slot", "register"),
    "results": ("right", "found"),
}


def _frame(head, words, values, kinds, sources, lost=frozenset()) -> Svg:
    names = _ROWS.get(head, ("slot", "slot"))
    body = [text(_LEFT, 20, head)]
    body += [
        text(_left(t) + _SIDE / 2, 44, str(t), anchor="middle", size=14, muted=True)
        for t in range(THREADS)
    ]
    body.append(text(_left(THREADS), 44, "thread", size=15, muted=True))
    for y, name, shown, looks in zip((52, 164), names, values, kinds, strict=True):
        body.append(text(_left(THREADS), y + 36, name, size=15, muted=True))
        for t, (value, kind) in enumerate(zip(shown, looks, strict=True)):
            body.append(art.register(_left(t), y, _SIDE, _SIDE, kind))
            if kind != "absent":
                word = art.fixed(value, 4)
                middle = _left(t) + _SIDE / 2
                body.append(
                    text(middle, y + 36, word, anchor="middle", size=14, muted=kind == "idle")
                )
    strong = {t for t, source in enumerate(sources) if source is not None} - set(lost)
    body += art.wires(sources, lambda t: _left(t) + _SIDE / 2, 114, 162, strong, lost)
    spoken = ", ".join(
        f"{t} {art.fixed(v)}"
        for t, (v, k) in enumerate(zip(values[1], kinds[1], strict=True))
        if k != "absent"
    )
    return drawing(HEIGHT, head, f"{words} Below, by thread: {spoken}.", body, note=words)


def _left(thread: int) -> float:
    return _LEFT + _PITCH * thread


def _threads(which: set[int]) -> str:
    return lane_list(which).replace("lane", "thread")


def _upper(words: str) -> str:
    return words[0].upper() + words[1:]


def _eight(row: Sequence[float]) -> None:
    if len(row) != THREADS:
        raise ValueError(f"{THREADS} threads hold one value each, got {len(row)}")
