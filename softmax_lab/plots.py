"""Charts of the models and the records: roofline, and bytes moved at each level."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from softmax_lab import roofline as model
from softmax_lab.canvas import FONT, GRID, INK, LEVEL_INK, WASTE, canvas, inline
from softmax_lab.facts import GPUS
from softmax_lab.ledger import Ledger
from softmax_lab.records import COPY
from softmax_lab.svg import Svg
from softmax_lab.units import MISSING, number, scaled

REFERENCE_GPU = "nvidia-h200"
"""Whose data sheet a chart shows while no run is recorded."""


@dataclass(frozen=True)
class Roof:
    """A bandwidth [B/s] that bounds a kernel, and where the number comes from."""

    label: str
    bandwidth: float
    source: str
    measured: bool = False


def roofline(
    points: Sequence[model.Point],
    roofs: Sequence[Roof],
    peak: float | None,
    peak_source: str,
    *,
    where: str,
    title: str = "Roofline",
) -> Svg:
    """Performance over arithmetic intensity, log-log: DRAM `roofs` [B/s], FP32 `peak` [FLOP/s].

    `where` names machine and date. A point without a time is a dashed line up to the lowest roof.
    Without a peak there is no flat roof. A point that a log-log chart cannot show (0, infinity,
    NaN) is left out, and named in the note and in a warning.
    """
    if not roofs:
        raise ValueError("a roofline needs at least one roof")
    shown = [point for point in points if not point.flaw]
    left_out = [f"{p.label} at {p.level} ({p.flaw})" for p in points if p.flaw]
    lowest = min(roof.bandwidth for roof in roofs)
    flat = peak or math.inf
    heights = [p.flops_per_s or model.attainable(p.intensity, flat, lowest) for p in shown]
    ridges = [model.ridge(peak, roof.bandwidth) for roof in roofs] if peak else [1.0]
    left = min([p.intensity for p in shown] + [min(ridges) / 1000]) / 2
    right = max([p.intensity for p in shown] + [max(ridges) * 3]) * 2
    bottom = min([*heights, left * lowest]) / 4
    top = max([*heights, peak or right * max(roof.bandwidth for roof in roofs)]) * 5

    figure, axes = canvas(440)
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
    axes.set_xlabel("arithmetic intensity [FLOP/B]: FLOPs over bytes moved at the named level")
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
        _draw_roof(axes, roof, flat, left, right, shown, above=rank == 0)
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


@dataclass(frozen=True)
class Traffic:
    """Bytes that crossed one level of the memory [B], and how many of them were of use there."""

    level: str
    useful: float
    moved: float
    origin: str  # "counted", "derived" or "measured"

    @property
    def wasted(self) -> float:
        """Bytes beyond the useful ones; none where a cache spared the level even those."""
        return max(0.0, self.moved - self.useful)


def traffic(
    levels: Sequence[Traffic], *, where: str, title: str = "Bytes moved at each level"
) -> Svg:
    """Horizontal bars of the bytes each level moved: useful ones solid, wasted ones hatched."""
    if not levels:
        raise ValueError("a traffic chart needs at least one level")
    figure, axes = canvas(70 + 76 * len(levels), left=16)
    widest = max(max(each.moved, each.useful) for each in levels) or 1.0
    said = []
    for row, each in enumerate(levels):
        solid = min(each.useful, each.moved)
        axes.barh(row, solid, 0.44, color=LEVEL_INK[each.level], edgecolor=INK, linewidth=1)
        axes.barh(row, each.wasted, 0.44, left=solid, color=WASTE, edgecolor=INK, linewidth=1)
        words = f"{scaled(each.moved, 'B')} moved, {scaled(solid, 'B')} useful"
        axes.annotate(
            f"{each.level} ({each.origin}): {words}",
            (0, row),
            (2, 22),
            textcoords="offset points",
            fontsize=FONT,
        )
        said.append(f"{each.level}, {each.origin}: {words}")
    axes.set(xlim=(0, widest * 1.02), ylim=(len(levels) - 0.6, -0.75), yticks=[])
    axes.set_xlabel("bytes moved [B]")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: scaled(v, "B") if v else "0"))
    axes.locator_params(axis="x", nbins=5)
    axes.spines["left"].set_visible(True)
    note = f"{where}. Solid: useful; hatched: moved in vain."
    return inline(figure, title, f"{title}. {'. '.join(said)}. {note}", escape(note))


def _draw_roof(
    axes: Axes,
    roof: Roof,
    peak: float,
    left: float,
    right: float,
    points: Sequence[model.Point],
    *,
    above: bool,
) -> None:
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
    places = [left * (corner / left) ** (f if above else g) for f, g in ((0.66, 0.7), (0.24, 0.22))]
    crowd = [sum(abs(math.log10(p.intensity / place)) < 0.75 for p in points) for place in places]
    place = places[crowd.index(min(crowd))]
    axes.annotate(
        f"{scaled(roof.bandwidth, 'B/s')} {roof.label}",
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
        near = before.label == point.label and 1 < point.intensity / before.intensity < 1.7
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
            late = axes.transAxes.inverted().transform(axes.transData.transform(place))[0] > 0.6
            axes.annotate(
                words,
                place,
                (-12, 6) if late else (12, 0),
                textcoords="offset points",
                fontsize=FONT,
                ha="right" if late else "left",
                va="center",
            )


def of_ledger(book: Ledger) -> Svg:
    """The roofline of one kernel at one shape: L1 derived, L2 and DRAM as measured."""
    run = book.measured
    gpu = GPUS.get(run.gpu if run else REFERENCE_GPU)
    moved = model.moved_bytes(book.executed) | (model.moved_bytes(run.counts) if run else {})
    shown = model.points(
        book.kernel.title, book.executed.flops, moved, run.seconds if run else None
    )
    roofs = [Roof("DRAM, data sheet", gpu.dram_bytes_per_s, gpu.source)] if gpu else []
    if run and run.copy_seconds:
        copied = model.rate(COPY.family.once(book.rows, book.cols), run.copy_seconds)
        roofs.append(Roof("copy kernel, measured", copied, "same size, same run", measured=True))
    return roofline(
        shown,
        roofs,
        gpu.fp32_flops_per_s if gpu else None,
        "data sheet",
        where=where(book),
        title=f"Roofline of {book.kernel.title}",
    )


def traffic_of(book: Ledger) -> Svg:
    """Bytes moved at each level by one kernel at one shape.

    At L1 the useful bytes are those that lanes ask for; further out, each input once and the
    output once.
    """
    useful = {"L1": book.executed.load_useful_bytes + book.executed.store_useful_bytes}
    useful |= dict.fromkeys(("L2", "DRAM"), book.kernel.family.once(book.rows, book.cols))
    derived = model.moved_bytes(book.executed)
    measured = model.moved_bytes(book.measured.counts) if book.measured else {}
    bars = [
        Traffic(
            level,
            useful[level],
            (derived | measured)[level],
            "measured" if level in measured else "derived",
        )
        for level in model.LEVELS
        if level in derived | measured
    ]
    return traffic(bars, where=where(book), title=f"Bytes moved by {book.kernel.title}")


def where(book: Ledger) -> str:
    """Shape, machine and date that a figure names."""
    shape = f"{number(book.rows)} × {number(book.cols)} float32"
    run = book.measured
    if run is None:
        return f"{shape}; {GPUS[REFERENCE_GPU].name}: {MISSING}"
    about = run.provenance or run.counters_provenance
    machine = GPUS[run.gpu].name if run.gpu in GPUS else run.gpu
    return ", ".join(part for part in (f"{shape}; {machine}", about.get("date", "")) if part)
