"""The roofline chart: performance over arithmetic intensity, under the roofs of each level."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from softmax_lab import roofline as model
from softmax_lab.canvas import FONT, GRID, INK, LEVEL_INK, canvas, inline
from softmax_lab.svg import Svg
from softmax_lab.units import number, scaled


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
    for rank, roof in enumerate(sorted(roofs, key=lambda roof: -roof.bandwidth)):
        above = rank in (0, len(roofs) - 2)
        _draw_roof(axes, roof, flat, (left, right), list(zip(shown, heights, strict=True)), above)
    if peak:
        label = f"{scaled(peak, 'FLOP/s')} FP32 peak, {peak_source}"
        axes.annotate(
            label, (right, peak), (-6, 7), textcoords="offset points", ha="right", fontsize=FONT
        )
    _draw_points(axes, shown, heights, bottom)

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


def _draw_roof(
    axes: Axes,
    roof: Roof,
    peak: float,
    ends: tuple[float, float],
    points: Sequence[tuple[model.Point, float]],
    above: bool,
) -> None:
    """A roof and its name, which stands where the fewest points are near."""
    left, right = ends
    corner = min(peak / roof.bandwidth, right)
    start, top = left * roof.bandwidth, corner * roof.bandwidth
    dashes = "-" if roof.measured else (0, (5, 3))
    axes.plot(
        [left, corner, right],
        [start, top, min(peak, right * roof.bandwidth)],
        color=INK,
        lw=2,
        ls=dashes,
    )
    (x0, y0), (x1, y1) = axes.transData.transform([(left, start), (corner, top)])
    turn = math.degrees(math.atan2(y1 - y0, x1 - x0))
    words = f"{scaled(roof.bandwidth, 'B/s')} {roof.label}"
    half = 0.25 * FONT * len(words) / (x1 - x0)  # of the words, over the slope's length

    def near(share: float) -> int:
        place = left * (corner / left) ** share
        apart = [(p.intensity / place, height / (place * roof.bandwidth)) for p, height in points]
        return sum(abs(math.log10(x)) < 0.75 and abs(math.log10(y)) < 1 for x, y in apart)

    shares = (0.66, 0.24) if above else (0.7, 0.22)
    share = min((min(max(each, half), 1 - half) for each in shares), key=near)
    place = left * (corner / left) ** share
    axes.annotate(
        words,
        (place, place * roof.bandwidth),
        (-6, 6) if above else (6, -6),
        textcoords="offset points",
        rotation=turn,
        rotation_mode="anchor",
        ha="center",
        va="bottom" if above else "top",
        fontsize=FONT,
    )


def _draw_points(
    axes: Axes, points: Sequence[model.Point], heights: Sequence[float], bottom: float
) -> None:
    """Level names stand under the points; kernel and speed once, beside the last of them."""
    pairs = sorted(
        zip(points, heights, strict=True), key=lambda pair: (pair[0].label, pair[0].intensity)
    )
    crowded = False  # names of neighbours stand above and below in turn
    for i, (point, height) in enumerate(pairs):
        place, timed, ground = (
            (point.intensity, height),
            point.flops_per_s is not None,
            LEVEL_INK[point.level],
        )
        if not timed:
            axes.plot([point.intensity] * 2, [bottom, height], color=ground, lw=3, ls=(0, (2, 1)))
        axes.plot(*place, "o", ms=13, mfc=ground, mec=INK, mew=1.2)
        before = pairs[i - 1][0] if i else point
        near = before.label == point.label and 1 < point.intensity / before.intensity < 2.2
        crowded = near and not crowded
        under = {
            "xytext": (0, 11 if crowded else -11),
            "ha": "center",
            "va": "bottom" if crowded else "top",
        }
        beside = {"xytext": (12, -23), "ha": "left", "va": "center"}
        axes.annotate(
            point.level,
            place,
            textcoords="offset points",
            fontsize=FONT,
            **(under if timed else beside),
        )
        if i + 1 == len(pairs) or pairs[i + 1][0].label != point.label:
            words = f"{point.label}, {scaled(point.flops_per_s, 'FLOP/s')}"
            late = axes.transAxes.inverted().transform(axes.transData.transform(place))[0] > 0.5
            axes.annotate(
                words,
                place,
                (-12, 6) if late else (12, 0),
                textcoords="offset points",
                fontsize=FONT,
                ha="right" if late else "left",
                va="center",
            )
