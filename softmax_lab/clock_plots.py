"""Charts of the clock: first launches, buffers that fit into L2 or do not, copies of all sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from softmax_lab import floors, overhead
from softmax_lab.canvas import FONT, GRID, INK, LEVEL_INK, canvas, inline
from softmax_lab.plots import data_sheet
from softmax_lab.prose import Sentence, say
from softmax_lab.records import Measured
from softmax_lab.roofline import rate
from softmax_lab.runs import about
from softmax_lab.series import COPY, SMALL, Readings
from softmax_lab.svg import Svg
from softmax_lab.units import number, scaled

_RATE = "useful bytes in a second [B/s]"
_DASHED = (0, (5, 3))


def warm_up(readings: Readings | None) -> Svg | Sentence:
    """Every reading of the first series by its place in it, both axes logarithmic."""
    one = readings and readings.one(COPY, "wait", rows=SMALL[0], cols=SMALL[1])
    if not one:
        return say("The first launches, one by one: not measured yet.")
    values = np.array(one.seconds)
    lines = {"mean of all": float(values.mean()), "median": one.median}
    figure, axes = canvas(380, left=112)
    axes.set(xscale="log", yscale="log", xlim=(0.85, 1.25 * len(values)))
    axes.set_ylim(values.min() / 4, values.max() * 2)
    axes.set(xlabel="reading, in the order they were taken in", ylabel="time of one launch [s]")
    _log(axes.xaxis, number)
    _log(axes.yaxis, lambda value: scaled(value, "s"))
    axes.grid(color=GRID, linewidth=0.7)
    for words, value in lines.items():
        axes.axhline(value, color=INK, lw=1.5, ls="-" if words == "median" else _DASHED)
        off = (0, -20) if words == "median" else (0, 6)
        _label(axes, f"{words} {scaled(value, 's')}", (1, value), off, "left")
    _points(axes, range(1, len(values) + 1), values, ["L2"] * len(values), size=7)
    said = (
        f"First reading {scaled(values[0], 's')}, second {scaled(values[1], 's')}, median of the "
        f"later ones {scaled(one.median, 's')}, mean of all {scaled(lines['mean of all'], 's')}."
    )
    return _done(figure, "The first launches of a kernel", said, _place(readings, SMALL))


def rotation(readings: Readings | None) -> Svg | Sentence:
    """Useful rate of one copy over the bytes of all buffers that its launches go round."""
    found = overhead.working_sets(readings) if readings else []
    if not found:
        return say("One copy over more and more buffers: not measured yet.")
    gpu = data_sheet(readings.gpu)
    sizes, rates = ([each[k] for each in found] for k in (1, 2))
    figure, axes = canvas(380, left=112)
    axes.set(xscale="log", xlim=(sizes[0] / 1.3, sizes[-1] * 1.3))
    axes.set(xlabel="all buffers together [B]", ylabel=_RATE)
    axes.xaxis.set_major_locator(FixedLocator(sizes[:: 1 + len(sizes) // 4]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: scaled(value, "B")))
    _rates(axes, 1.15 * max(*rates, gpu.dram_bytes_per_s))
    axes.axvline(gpu.l2_bytes, color=INK, lw=1.5, ls=_DASHED)
    _label(axes, f"L2 {scaled(gpu.l2_bytes, 'B')}", (gpu.l2_bytes, 0), (6, 8), "left")
    _sheet(axes, gpu.dram_bytes_per_s, (sizes[-1] * 1.25, "right"))
    axes.plot(sizes, rates, color=INK, lw=1)
    _points(axes, sizes, rates, ["L2" if size <= gpu.l2_bytes else "DRAM" for size in sizes])
    said = _list((scaled(a, "B"), scaled(b, "B/s")) for a, b in zip(sizes, rates, strict=True))
    place = _place(readings, (found[0][0].rows, found[0][0].cols))
    return _done(figure, "A copy over more and more buffers", said, place)


def copies(runs: Sequence[Measured | None]) -> Svg | Sentence:
    """Useful rate of the copy kernel over the bytes it moves, with the line of two numbers."""
    timed, fit = floors.copies(runs), floors.line(runs)
    if fit is None:
        return say("Copies of many sizes: not measured yet.")
    peak = floors.sheet_of(timed[0]).dram_bytes_per_s
    sizes = [float(floors.once(run)) for run in timed]
    rates = [rate(size, run.copy_seconds) for size, run in zip(sizes, timed, strict=True)]
    figure, axes = canvas(380, left=112)
    axes.set(xscale="log", xlim=(sizes[0] / 1.5, sizes[-1] * 1.5))
    axes.set(xlabel="bytes read and written [B]", ylabel=_RATE)
    _log(axes.xaxis, lambda value: scaled(value, "B"))
    _rates(axes, 1.15 * peak)
    _sheet(axes, peak, (sizes[0] / 1.4, "left"))
    dense = np.geomspace(sizes[0] / 1.5, sizes[-1] * 1.5, 200)
    axes.plot(dense, [rate(size, fit.time(size)) for size in dense], color=INK, lw=1.5)
    _label(axes, "bytes / (t₀ + bytes / b)", (fit.half, fit.bandwidth / 2), (16, -16), "left")
    _points(axes, sizes, rates, [run.level or "DRAM" for run in timed])
    said = _list((scaled(a, "B"), scaled(b, "B/s")) for a, b in zip(sizes, rates, strict=True))
    place = ", ".join(about(timed[0].gpu, timed[0].provenance)[:2])
    return _done(figure, "Copies of many sizes", said, f"{place}, cold")


def _place(readings: Readings, size: tuple[int, int]) -> str:
    machine = ", ".join(about(readings.gpu, readings.provenance)[:2])
    return f"Copy of {number(size[0])} × {number(size[1])} float32; {machine}"


def _list(pairs) -> str:
    return "; ".join(f"{a}: {b}" for a, b in pairs) + "."


def _done(figure: Figure, title: str, said: str, place: str) -> Svg:
    return inline(figure, title, f"{title}. {place}. {said}", escape(f"{place}."))


def _points(axes: Axes, xs, ys, levels: Sequence[str], size: float = 9) -> None:
    for x, y, level in zip(xs, ys, levels, strict=True):
        axes.plot(x, y, "o", ms=size, mfc=LEVEL_INK[level], mec=INK, mew=0.9)


def _rates(axes: Axes, top: float) -> None:
    axes.set_ylim(0, top)
    axes.grid(color=GRID, linewidth=0.7)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: scaled(v, "B/s") if v else "0"))


def _sheet(axes: Axes, peak: float, at: tuple[float, str]) -> None:
    axes.axhline(peak, color=INK, lw=1.5, ls=_DASHED)
    _label(axes, f"DRAM, data sheet {scaled(peak, 'B/s')}", (at[0], peak), (0, 6), at[1])


def _log(axis, write: Callable[[float], str]) -> None:
    axis.set_major_locator(LogLocator(numticks=10))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))


def _label(axes: Axes, words: str, at: tuple, off: tuple, side: str) -> None:
    axes.annotate(words, at, off, textcoords="offset points", ha=side, fontsize=FONT)
