"""How often a running maximum rises: a row as dots, its maximum as a staircase, R beside H_N."""

from __future__ import annotations

import numpy as np

from softmax_lab import online, reference
from softmax_lab.prose import html, plain
from softmax_lab.svg import LINE, WIDTH, Svg, colour, drawing, text
from softmax_lab.units import fill, number

ORDERS = {
    "random": "normal",
    "rising": "rising",
    "falling": "falling",
    "constant": "constant",
}
"""Orders of a row's scores, by the name of the input (`reference.inputs`) that has it."""

MOST = 4096
"""Longest row that is drawn [elements]: a dot each."""

HEIGHT = 290
_LEFT, _RIGHT, _TOP, _BOTTOM = 8, WIDTH - 8, 40, 250


def climb(order: str, cols: int) -> Svg:
    """One row of `cols` scores in that order, its running maximum, and how often it rises.

    Raises ValueError for an order that is not one of `ORDERS`, and for rows too long to draw.
    """
    if order not in ORDERS:
        raise ValueError(f"an order is one of {', '.join(ORDERS)}; got {order!r}")
    if not 1 <= cols <= MOST:
        raise ValueError(f"rows of 1 to {MOST} columns are drawn, got {cols}")
    x = reference.inputs(ORDERS[order], 1, cols)[0]
    where = np.flatnonzero(online.rises(x[None, :])[0])
    top = np.maximum.accumulate(x)
    low, high = float(x.min()), float(x.max())
    span = (high - low) or 1.0
    step = (_RIGHT - _LEFT) / cols

    def down(value: float) -> float:
        return _BOTTOM - 8 - (value - low) / span * (_BOTTOM - _TOP - 16)

    dots = "".join(f"M{_LEFT + step * (k + 0.5):.1f} {down(v):.1f}h0" for k, v in enumerate(x))
    ends = [*where[1:], cols]  # a step of the staircase goes on to the next rise, or to the end
    stairs = "".join(
        f"V{down(top[k]):.1f}H{_LEFT + step * end:.1f}" for k, end in zip(where, ends, strict=True)
    )
    width = min(8.0, max(2.0, 0.6 * step))
    words = fill(
        "{order}, {n} scores: the maximum rises **{r}** time{s}. In random order {h} are expected "
        "(the harmonic number), and it could be anything from 1 to {n}.",
        order=order.capitalize(),
        n=cols,
        r=len(where),
        s="" if len(where) == 1 else "s",
        h=online.harmonic(cols),
    )
    body = [
        text(_LEFT, 24, "scores from left to right, and their maximum so far"),
        f'<path d="M{_LEFT} {_BOTTOM}H{_RIGHT}" stroke="{LINE}"/>',
        f'<path d="{dots}" fill="none" stroke="{colour("blue")}" stroke-width="{width:.1f}" '
        f'stroke-linecap="round"/>',
        f'<path d="M{_LEFT} {down(top[0]):.1f}{stairs}" fill="none" '
        f'stroke="{colour("green")}" stroke-width="2.5"/>',
        text(_LEFT, 274, "column 0", size=14, muted=True),
        text(_RIGHT, 274, f"column {number(cols - 1)}", anchor="end", size=14, muted=True),
    ]
    return drawing(HEIGHT, f"Rises of a row, {order}", plain(words), body, note=html(words))
