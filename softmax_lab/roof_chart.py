"""The roofline chart: performance over arithmetic intensity, under the roofs of each level."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby, pairwise

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from softmax_lab import roofline as model
from softmax_lab.canvas import GRID, INK, LEVEL_INK, canvas, inline
from softmax_lab.labels import Label, Shape, settle, square
from softmax_lab.svg import Svg
from softmax_lab.units import number, scaled

ROW = 23  # user units from one line of words to the next, as large as a phone shows them

Pair = tuple[model.Point, float]
"""A point and how high it stands [FLOP/s]."""


@dataclass(frozen=True)
class Roof:
    """The bandwidth [B/s] of one level, which bounds the points of that level, and where the number
    comes from."""

    label: str
    bandwidth: float
    source: str
    measured: bool = False
    level: str = "DRAM"


def roofline(
    points: Sequence[model.Point],
    roofs: Sequence[Roof],
    peak: float | None,
    peak_source: str,
    *,
    where: str,
    title: str = "Roofline",
) -> Svg:
    """Performance over arithmetic intensity, log-log: `roofs` [B/s], FP32 `peak` [FLOP/s].

    `where` names machine and date. A point without a time is a dashed line up to the lowest roof of
    its level, or of all where its level has none. Without a peak there is no flat roof. A point
    that a log-log chart cannot show (0, infinity, NaN) is left out, and named in the note and in a
    warning.
    """
    if not roofs:
        raise ValueError("a roofline needs at least one roof")
    shown = [point for point in points if not point.flaw]
    left_out = [f"{p.label} at {p.level} ({p.flaw})" for p in points if p.flaw]
    lowest = min(roof.bandwidth for roof in roofs)
    own = {level: [r.bandwidth for r in roofs if r.level == level] for level in model.LEVELS}
    flat = peak or math.inf
    heights = [
        p.flops_per_s or model.attainable(p.intensity, flat, min(own[p.level], default=lowest))
        for p in shown
    ]
    ridges = [model.ridge(peak, roof.bandwidth) for roof in roofs] if peak else [1.0]
    left = min([p.intensity for p in shown] + [min(ridges) / 1000]) / 2
    right = max([p.intensity for p in shown] + [max(ridges) * 3]) * 2
    bottom = min([*heights, left * lowest]) / 4
    top = max([*heights, peak or right * max(roof.bandwidth for roof in roofs)]) * 5

    figure, axes = canvas(440, left=92)
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
    axes.set_xlabel("arithmetic intensity [FLOP/B] at the named level")
    axes.set_ylabel("performance [FLOP/s]")
    for axis, write in (
        (axes.xaxis, number),
        (axes.yaxis, lambda v: scaled(v, "FLOP/s").removesuffix("FLOP/s")),
    ):
        axis.set_major_locator(LogLocator(numticks=8))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda v, _, write=write: write(v)))
    axes.grid(color=GRID, linewidth=0.7)
    ranked = sorted(roofs, key=lambda roof: -roof.bandwidth)
    pairs = sorted(zip(shown, heights, strict=True), key=lambda p: (p[0].label, p[0].intensity))
    taken = [shape for roof in ranked for shape in _draw_roof(axes, roof, flat, (left, right))]
    taken += _draw_points(axes, pairs, bottom) + _edges(axes)
    if peak:
        x, y = axes.transData.transform((right, peak))
        label = f"{scaled(peak, 'FLOP/s')} FP32 peak, {peak_source}"
        taken += _write(axes, [[Label(label, (x - 6, y + 7), "right", "bottom")]], taken)
    for rank, roof in enumerate(ranked):
        above = rank in (0, len(roofs) - 2)
        taken += _write(axes, [_roof_names(axes, roof, flat, (left, right), pairs, above)], taken)
    for _, group in groupby(pairs, key=lambda pair: pair[0].label):
        taken += _write(axes, _point_names(axes, list(group)), taken)

    if left_out:
        warnings.warn("left out of the roofline: " + "; ".join(left_out), stacklevel=2)
    bounds = [f"{roof.label} {scaled(roof.bandwidth, 'B/s')} ({roof.source})" for roof in roofs]
    if peak:
        bounds.append(f"FP32 peak {scaled(peak, 'FLOP/s')} ({peak_source})")
    said = [
        f"{p.label} at {p.level}: {number(p.intensity)} FLOP/B, {scaled(p.flops_per_s, 'FLOP/s')}"
        for p in shown
    ]
    note = [f"{where}.", f"Roofs: {'; '.join(bounds)}.", f"Points: {'; '.join(said) or 'none'}."]
    if left_out:
        note.append(f"Left out: {'; '.join(left_out)}.")
    return inline(figure, title, f"{title}. {' '.join(note)}", escape(" ".join(note)))


def _draw_roof(axes: Axes, roof: Roof, peak: float, ends: tuple[float, float]) -> list[Shape]:
    left, right = ends
    corner = min(peak / roof.bandwidth, right)
    places = [(x, min(peak, x * roof.bandwidth)) for x in (left, corner, right)]
    dashes = "-" if roof.measured else (0, (5, 3))
    axes.plot(*zip(*places, strict=True), color=INK, lw=2, ls=dashes)
    return list(pairwise(map(tuple, axes.transData.transform(places))))


def _draw_points(axes: Axes, pairs: Sequence[Pair], bottom: float) -> list[Shape]:
    taken = []
    for point, height in pairs:
        x, ground = point.intensity, LEVEL_INK[point.level]
        if point.flops_per_s is None:
            axes.plot([x, x], [bottom, height], color=ground, lw=3, ls=(0, (2, 1)))
            taken.append(tuple(map(tuple, axes.transData.transform([(x, bottom), (x, height)]))))
        axes.plot(x, height, "o", ms=13, mfc=ground, mec=INK, mew=1.2)
        taken.append(square(axes.transData.transform((x, height)), 6))
    return taken


def _edges(axes: Axes) -> list[Shape]:
    """The four sides of the chart, over which no word may hang."""
    (x0, y0), (x1, y1) = axes.transAxes.transform([(0, 0), (1, 1)])
    return list(pairwise([(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)]))


def _write(axes: Axes, choices: Sequence[Sequence[Label]], taken: Sequence[Shape]) -> list[Shape]:
    """Draws each label at the best of its places, and says what room they take."""
    labels = settle(choices, taken)
    for label in labels:
        label.draw(axes)
    return [shape for label in labels for shape in label.shapes()]


def _roof_names(
    axes: Axes,
    roof: Roof,
    peak: float,
    ends: tuple[float, float],
    points: Sequence[Pair],
    above: bool,
) -> list[Label]:
    """Places of a roof's name, along its slope: first those where the fewest points are near."""
    left, right = ends
    corner = min(peak / roof.bandwidth, right)
    (x0, y0), (x1, y1) = axes.transData.transform(
        [(left, left * roof.bandwidth), (corner, corner * roof.bandwidth)]
    )
    turn = math.degrees(math.atan2(y1 - y0, x1 - x0))
    words = f"{scaled(roof.bandwidth, 'B/s')} {roof.label}"
    half = (Label(words, (0, 0)).width / 2 + 24) / math.hypot(x1 - x0, y1 - y0)  # of the slope

    def near(share: float) -> int:
        place = left * (corner / left) ** share
        apart = [(p.intensity / place, height / (place * roof.bandwidth)) for p, height in points]
        return sum(abs(math.log10(x)) < 0.75 and abs(math.log10(y)) < 1 for x, y in apart)

    shares = [min(max(each, half), 1 - half) for each in ((0.66, 0.24) if above else (0.7, 0.22))]
    shares = sorted(shares, key=near) + [k / 60 for k in range(1, 60)]
    side = -6 if above else 6
    return [
        Label(
            words,
            (x0 + share * (x1 - x0) + side, y0 + share * (y1 - y0) - side),
            va="bottom" if above else "top",
            turn=turn,
        )
        for share in shares
    ]


def _point_names(axes: Axes, pairs: Sequence[Pair]) -> list[list[Label]]:
    """Places of what stands at the points of one kernel: their levels, then its name and speed.

    Levels stand below their points or above them, further off on a thin line; the name beside the
    last of them, or in a line of its own.
    """
    (left, low), (right, high) = axes.transAxes.transform([(0, 0), (1, 1)])
    found, places = [], [tuple(axes.transData.transform((p.intensity, h))) for p, h in pairs]
    for (point, _), (x, y) in zip(pairs, places, strict=True):
        beside = [Label(point.level, (x + 12, y - 23), "left")] * (point.flops_per_s is None)
        rows = [
            Label(point.level, (x + shift, y - 13 - ROW * k), ha, "top", above=y - 8 if k else None)
            for k in range(3)
            for ha, shift in (("center", 0), ("left", -5), ("right", 5))
        ]  # fmt: skip
        found.append([*beside, *rows[:1], Label(point.level, (x, y + 12), va="bottom"), *rows[1:]])
    (last, _), (x, y) = pairs[-1], places[-1]
    words = f"{last.label}, {scaled(last.flops_per_s, 'FLOP/s')}"
    half = 0.5 * Label(words, (0, 0)).width + 8
    middle = sum(x for x, _ in places) / len(places)
    lines = [
        Label(
            words, (min(max(middle + shift, left + half), right - half), y + side * (14 + ROW * k))
        )
        for k in range(1, 7)
        for side in (-1, 1)
        for shift in (0, 30, 60, 90, 120)
    ]
    beside = [
        Label(words, (x + 12 * side, y - ROW * k), "left" if side > 0 else "right")
        for k in range(7)
        for side in (1, -1)
    ]
    ranked = beside + lines if last.flops_per_s is None else beside[:2] + lines + beside[2:]
    found.append([label for label in ranked if low + 12 < label.at[1] < high - 12] or beside)
    return found
