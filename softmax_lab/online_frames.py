"""Frames of the online pass: maximum and sum so far, and what a new maximum does to them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from softmax_lab import online
from softmax_lab.lane_art import fixed, register
from softmax_lab.online import LOWEST, Step
from softmax_lab.prose import html, plain
from softmax_lab.svg import HATCH, LINE, WIDTH, Svg, colour, drawing, rect, text, tint

HEIGHT = 318
MOST = 8
"""Elements of a row that is drawn: a box each."""

_BAR_X, _BAR_Y, _BAR = 8, 270, 34
_OLD, _NEW = "blue", "green"  # what was added before, and what this step adds


def scan(row: Sequence[float], *, start: float = LOWEST, form: str = "branch") -> tuple[Svg, ...]:
    """The start and each step of `online.scan` over a row of 1 to 8 elements.

    `start=-np.inf` is the recurrence as usually printed.
    """
    row = [float(x) for x in row]
    if not 1 <= len(row) <= MOST:
        raise ValueError(f"a scan of 1 to {MOST} elements is drawn, got {len(row)}")
    steps = online.scan(row, start=start, form=form)
    finite = [step.sum for step in steps if math.isfinite(step.sum)]
    scale = (WIDTH - 16) / max([1.0, *finite])
    first = f"Before the first element: m = {_start(start)} and L = 0."
    frames = [_frame(row, None, [], 0.0, (start, 0.0), first, "start", scale)]
    for step in steps:
        frames.append(_step(row, step, scale))
    return tuple(frames)


def labels(frames: Sequence[Svg]) -> list[str]:
    """What a slider over `scan` calls its positions."""
    return ["start", *(f"element {k}" for k in range(1, len(frames)))]


def equation(step: Step) -> str:
    """The step in numbers, as the branch form writes it."""
    x, m, total = fixed(step.x), _start(step.max_before), fixed(step.sum_before)
    if step.rose:
        return f"L = {total} · exp({m} − {_signed(step.x)}) + 1 = {fixed(step.sum)}"
    return f"L = {total} + exp({x} − {_signed(step.max)}) = {fixed(step.sum)}"


def _step(row: list[float], step: Step, scale: float) -> Svg:
    seen = row[: step.index + 1]
    x, before = fixed(step.x), _start(step.max_before)
    if math.isnan(step.sum):
        words = (
            f"{x} is not above {before}, and {x} − {_signed(step.max)} is NaN: so is L, for good."
        )
        if not math.isnan(step.sum_before):
            words = words.replace(": so is L", ". So is the exponential, and L")
        elif step.rose:
            words = f"{x} is above {before}, but NaN times anything is NaN: L stays lost."
        else:
            words = "L is NaN already, and NaN plus anything is NaN."
    elif step.rose and not step.sum_before:
        words = f"{x} is above {before}: the first maximum. There is no sum to rescale yet, L = 1."
    elif step.rose:
        words = (
            f"{x} is above {before}: **a new maximum**. Everything added so far is rescaled by "
            f"exp({before} − {_signed(step.x)}) = {fixed(step.rescale)}; the new element adds 1."
        )
    else:
        added = fixed(step.sum - step.sum_before)
        words = f"{x} is not above {before}: m stays, and L grows by exp({x} − {_signed(step.max)})"
        words += f" = {added}." if math.isfinite(step.x) else " = 0."
    head = equation(step)
    return _frame(row, step, seen, step.rescale, (step.max, step.sum), words, head, scale)


def _frame(row, step, seen, rescale, state, words, head, scale) -> Svg:
    m, total = state
    body = [text(8, 22, "the row, read from left to right")]
    pitch = (WIDTH - 16) / MOST
    for i, x in enumerate(row):
        now = step is not None and i == step.index
        left = 8 + i * pitch
        done = step is not None and i < step.index
        ground = tint(_NEW if now else _OLD) if now or done else "none"
        body.append(
            rect(
                left + 2,
                34,
                pitch - 4,
                44,
                ground,
                "currentColor" if now else LINE,
                stroke_width="3" if now else "1",
            )
        )
        body.append(text(left + pitch / 2, 62, fixed(x), anchor="middle", size=18))
    rose = step is not None and step.rose
    cells = [
        ("maximum m", _start(m), rose),
        ("rescale by", fixed(rescale) if rose and step.sum_before else "–", rose),
        ("sum L", fixed(total), False),
    ]
    for k, (name, value, hot) in enumerate(cells):
        left = 8 + k * 236
        kind = "lost" if value == "NaN" else "live"
        if hot and value != "–":
            body.append(
                rect(left, 120, 228, 40, tint("yellow"), colour("orange"), stroke_width="2.5")
            )
        else:
            body.append(register(left, 120, 228, 40, kind if k != 1 else "idle"))
        body.append(text(left, 112, name, muted=True))
        body.append(text(left + 114, 147, value, anchor="middle", size=18))
    body.append(text(8, 192, head if step is not None else "nothing read yet", size=18))
    label = "L as the sum of its terms exp(x − m)"
    label += "; dashed: L before the rescaling" if rose and step.sum_before else ""
    body.append(text(8, 226, label, muted=True))
    body += _terms(seen, m, total, scale, step)
    spoken = f"m = {_start(m)}, L = {fixed(total)}."
    return drawing(
        HEIGHT,
        f"Online pass: {plain(head)}",
        f"{plain(words)} {spoken}",
        body,
        note=html(words),
    )


def _terms(seen: list[float], m: float, total: float, scale: float, step: Step | None) -> list[str]:
    if math.isnan(total):
        return [
            rect(_BAR_X, _BAR_Y, WIDTH - 16, _BAR, HATCH, colour("vermillion"), stroke_width="2"),
            text(WIDTH / 2, _BAR_Y - 10, "NaN", anchor="middle"),
        ]
    out, at = [], float(_BAR_X)
    if step is not None and step.rose and step.sum_before:
        ghost = step.sum_before * scale if math.isfinite(step.sum_before) else 0
        out.append(
            rect(_BAR_X, _BAR_Y - 24, ghost, 12, "none", "currentColor", stroke_dasharray="4 3")
        )
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        terms = np.exp(np.array(seen, dtype=np.float64) - m) if seen else []
    for i, term in enumerate(terms):
        if term * scale > 0.2:
            out.append(
                rect(
                    at,
                    _BAR_Y,
                    term * scale,
                    _BAR,
                    colour(_NEW if i == len(terms) - 1 else _OLD),
                    "currentColor",
                )
            )
        at += term * scale
    return [*out, f'<path d="M{_BAR_X} {_BAR_Y - 4}v{_BAR + 8}" stroke="currentColor"/>']


def _start(m: float) -> str:
    return "−FLT_MAX" if m == LOWEST else fixed(m)


def _signed(value: float) -> str:
    """A number behind a minus sign."""
    written = _start(value)
    return f"({written})" if written.startswith("−") else written
