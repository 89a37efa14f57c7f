"""One row of scores, and what a softmax with and without the shift makes of it, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softmax_lab import reference
from softmax_lab.lane_art import fixed
from softmax_lab.prose import html, plain
from softmax_lab.svg import HATCH, LINE, Svg, colour, drawing, rect, text
from softmax_lab.units import percent

HEIGHT = 330
MOST = 4
"""Scores of a row that is drawn."""

_PANEL, _BASE, _TALL = 344, 236, 130  # width of a panel, foot and height of its bars


def frame(x: Sequence[float], without: Sequence[float], shifted: Sequence[float]) -> Svg:
    """A row of 1 to 4 finite float32 scores and its results (as many each), side by side."""
    x = np.asarray(x, np.float32)
    if (
        not 1 <= x.size <= MOST
        or not np.isfinite(x).all()
        or not x.size == len(without) == len(shifted)
    ):
        raise ValueError(
            f"a frame draws 1 to {MOST} finite scores and as many results, got {x.size}"
        )
    with np.errstate(over="ignore", under="ignore"):
        powers = np.exp(x), np.exp(x - x.max())
        totals = [each.sum(dtype=np.float32) for each in powers]
    exact = reference.softmax(x)
    body = [text(8, 24, "scores: " + ",  ".join(fixed(float(v), 2) for v in x), size=18)]
    panels = (("without the shift", "exp(x)", without), ("with the shift", "exp(x − m)", shifted))
    for k, (title, term, y) in enumerate(panels):
        body += _panel(8 + k * (_PANEL + 16), f"{title}: {term}", powers[k], totals[k], y)
    words = f"Without the shift: {verdict(without, exact)} With it: {verdict(shifted, exact)}"
    told = "; ".join(
        f"{title} {', '.join(fixed(float(v), 3) for v in y)}" for title, _, y in panels
    )
    said = f"Scores {', '.join(fixed(float(v), 2) for v in x)}. Results {told}. {plain(words)}"
    return drawing(HEIGHT, "A row with and without the shift", said, body, note=html(words))


def verdict(y: Sequence[float], exact: np.ndarray) -> str:
    """What is wrong with the results of one row, in a sentence."""
    y = np.asarray(y, np.float64)
    if np.isnan(y).all():
        return "**NaN throughout.**"
    if np.isnan(y).any():
        return "**NaN, and zeros for the rest.**"
    if not y.any():
        return "**zeros only, and no NaN to warn anybody.**"
    off = float(np.abs(y / exact - 1).max())
    if off > 1e-5:
        return f"numbers, and **wrong by up to {percent(off)}**."
    return "right."


def power(value: float) -> str:
    """A power of e in few characters, however large or small."""
    if value == 0 or 0.01 <= value < 1000 or not np.isfinite(value):
        return fixed(value, 2)
    return f"{value:.1e}".replace("e+", "e").replace("-", "−")


def _panel(left: float, title: str, powers, total, y) -> list[str]:
    pitch = _PANEL / len(y)
    out = [text(left, 56, title, muted=True)]
    out.append(rect(left, 66, _PANEL, _BASE - 66, "none", LINE))
    for i, value in enumerate(map(float, y)):
        middle = left + (i + 0.5) * pitch
        if np.isnan(value):
            size = 0.56 * pitch, _TALL
            out.append(
                rect(
                    middle - size[0] / 2,
                    _BASE - _TALL,
                    *size,
                    HATCH,
                    colour("vermillion"),
                    stroke_width="2",
                )
            )
        else:
            height = min(max(value, 0.0), 1.0) * _TALL
            out.append(
                rect(middle - 0.28 * pitch, _BASE - height, 0.56 * pitch, height, colour("blue"))
            )
        top = _BASE - (_TALL if np.isnan(value) else min(max(value, 0), 1) * _TALL) - 8
        out.append(text(middle, top, fixed(value, 3), anchor="middle"))
        out.append(text(middle, _BASE + 26, power(float(powers[i])), anchor="middle", size=15))
    out.append(text(left, _BASE + 54, "powers above, their sum:", muted=True, size=15))
    out.append(text(left + _PANEL, _BASE + 54, power(float(total)), anchor="end", size=18))
    return out
