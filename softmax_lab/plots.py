"""Charts of a ledger: its roofline, and the bytes it moved at each level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from matplotlib.ticker import FuncFormatter

from softmax_lab import roofline as model
from softmax_lab.canvas import FONT, INK, LEVEL_INK, WASTE, canvas, inline
from softmax_lab.facts import GPUS, L1_BYTES_A_CLOCK, Gpu
from softmax_lab.ledger import Ledger
from softmax_lab.records import COPY
from softmax_lab.roof_chart import Roof, roofline
from softmax_lab.runs import origin, sm_clock
from softmax_lab.svg import Svg
from softmax_lab.units import MISSING, number, scaled

REFERENCE_GPU = "nvidia-h200"
"""Whose data sheet a chart shows while no run is recorded."""


def data_sheet(slug: str | None) -> Gpu:
    """The data sheet of a GPU, or of the reference where it is not known."""
    return GPUS.get(slug, GPUS[REFERENCE_GPU])


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


def of_ledger(book: Ledger) -> Svg:
    """The roofline of one kernel at one shape: L1 derived, L2 and DRAM as measured.

    L2 has no roof: makers state no bandwidth of it, and no run here measures one.
    """
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
    if gpu and run and (clock := sm_clock(run)):
        most = model.l1_bandwidth(gpu.multiprocessors, clock)
        how = f"{L1_BYTES_A_CLOCK} B a clock and multiprocessor, {number(clock / 1e6)} MHz"
        roofs.append(Roof("L1, most at that clock", most, how, level="L1"))
    return roofline(
        shown,
        roofs,
        gpu.fp32_flops_per_s if gpu else None,
        "data sheet",
        where=where(book, "times", "counters"),
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
    return traffic(bars, where=where(book, "counters"), title=f"Bytes moved by {book.kernel.title}")


def where(book: Ledger, *of: str) -> str:
    """Shape, machine and date that a figure names: those of the runs that gave `of` ("times",
    "counters")."""
    shape = f"{number(book.rows)} × {number(book.cols)} float32"
    missing = f"{GPUS[REFERENCE_GPU].name}: {MISSING}"
    return f"{shape}; {origin([book.measured], of, brief=True) or missing}"
