"""How fast it can be at best: what copies of all sizes took, and the bound that follows."""

from __future__ import annotations

from collections.abc import Sequence

from softmax_lab import overhead, roofline
from softmax_lab.facts import Gpu
from softmax_lab.ledger import Ledger
from softmax_lab.plots import data_sheet
from softmax_lab.prose import Sentence, Table, say
from softmax_lab.records import Measured
from softmax_lab.registry import COPY
from softmax_lab.roofline import rate
from softmax_lab.runs import provenance, shape
from softmax_lab.series import LARGE, SIZES, VECTORS, Readings, Series
from softmax_lab.units import MISSING, number, percent, scaled

ALONE = ("wait", "events", "graph")
"""Clocks by which a copy that is launched alone has a time."""


def once(run: Measured) -> int:
    """One read and one write of a run's matrix [B]: what a copy moves, and softmax must."""
    return COPY.family.once(run.rows, run.cols, run.dtype)


def sheet_of(run: Measured | None) -> Gpu:
    """The data sheet of a run's GPU, or of the reference."""
    return data_sheet(run and run.gpu)


def copies(runs: Sequence[Measured | None]) -> list[Measured]:
    """The runs beside which a copy was timed, by the bytes that it moves."""
    return sorted((run for run in runs if run is not None and run.copy_seconds), key=once)


def line(runs: Sequence[Measured | None]) -> roofline.Line | None:
    """The line through the smallest and the largest copy, or None where no two are recorded."""
    timed = copies(runs)
    if len(timed) < 2 or once(timed[0]) == once(timed[-1]):
        return None
    return roofline.line(*((once(run), run.copy_seconds) for run in (timed[0], timed[-1])))


def two_numbers(runs: Sequence[Measured | None]) -> Sentence:
    """What the smallest and the largest copy say of all the others."""
    timed, fit = copies(runs), line(runs)
    if fit is None:
        return say("Copies of many sizes: not measured yet.")
    between = timed[1:-1]
    off = [abs(fit.time(once(run)) / run.copy_seconds - 1) for run in between] or [0.0]
    return say(
        r"The smallest copy ({small:B}, {soon:s}) and the largest ({large:B}, {late:s}) make "
        r"\(t_0\) = **{start:s}** and \(b\) = **{b:B/s}**. The other {n} copies are within {off:%} "
        r"of what these two numbers say. Half of \(b\) is reached at \(t_0 b\) = {half:B}.",
        small=float(once(timed[0])),
        soon=timed[0].copy_seconds,
        large=float(once(timed[-1])),
        late=timed[-1].copy_seconds,
        start=fit.start,
        b=fit.bandwidth,
        n=len(between),
        off=max(off),
        half=fit.half,
    )


def by_place(readings: Readings | None) -> dict[tuple[int, str], list[Series]]:
    """Copies of several sizes in graphs, by vectors a thread and by what holds their buffers: L2
    (one pair of them, again and again) or DRAM (as many as L2 cannot hold). Nothing where not all
    are recorded."""
    out = {}
    for vectors in VECTORS if readings else ():
        at = [{"rows": rows, "cols": cols, "vectors": vectors} for rows, cols in SIZES]
        found = [readings.find(COPY.name, "graph", **each) for each in at]
        if not all(len(series) > 1 for series in found):
            return {}
        out[vectors, "L2"] = [series[0] for series in found]
        out[vectors, "DRAM"] = [series[-1] for series in found]
    return out


def through(series: Sequence[Series]) -> roofline.Line:
    """The line through the smallest and the largest of several copies."""
    return roofline.line(*((one.bytes_once, one.each) for one in (series[0], series[-1])))


def two_places(readings: Readings | None) -> Table | Sentence:
    """Copies of the same sizes out of L2 and out of DRAM [µs], and the line through either."""
    found = by_place(readings)
    if not found:
        return say("Copies out of L2 and out of DRAM: not measured yet.")
    rows = []
    for (vectors, place), series in found.items():
        fit = through(series)
        cells = *(1e6 * one.each for one in series), 1e6 * fit.start, fit.bandwidth / 1e12
        rows.append((place, number(vectors), *map(number, cells)))
    sizes = (f"{scaled(float(one.bytes_once), 'B')} [µs]" for one in found[VECTORS[0], "L2"])
    heads = "buffers in", "vectors a thread", *sizes, r"\(t_0\) [µs]", r"\(b\) [TB/s]"
    note = (
        r"\(b\) is the slope between these sizes, and no rate that a whole copy reached. "
        + overhead.where(readings)
    )
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))), note=note)


def what_a_cache_saves(readings: Readings | None) -> Sentence:
    """How much sooner a copy out of L2 starts than one out of DRAM, and how much faster it goes on,
    with few loads under way and with more."""
    found = by_place(readings)
    if not found:
        return say("What L2 saves: not measured yet.")
    lines = {key: through(series) for key, series in found.items()}
    few, many = (lines[v, "L2"].bandwidth / lines[v, "DRAM"].bandwidth for v in VECTORS)
    off = [
        abs(lines[key].time(one.bytes_once) / one.each - 1)
        for key, series in found.items()
        for one in series
    ]
    return say(
        "With {one} vector a thread a copy out of L2 starts {sooner:s} sooner than one out of "
        "DRAM, and then moves bytes at {few:×} its rate. With {four} it moves them at **{many:×}** "
        "its rate. Between its ends each line is within {off:%} of what was timed.",
        one=VECTORS[0],
        four=VECTORS[1],
        sooner=lines[VECTORS[0], "DRAM"].start - lines[VECTORS[0], "L2"].start,
        few=few,
        many=many,
        off=max(off),
    )


def table(runs: Sequence[Measured | None]) -> Table | Sentence:
    """Least time of a softmax by shape [µs]: by data sheet, by the line, and a copy as timed."""
    timed, fit = copies(runs), line(runs)
    if fit is None:
        return say("The least time of a softmax, by a measured copy: not measured yet.")
    sheet = sheet_of(timed[0])
    rows = []
    for run in timed:
        moved = once(run)
        least = roofline.floor_time(moved, sheet.dram_bytes_per_s)
        times = (number(1e6 * t) for t in (least, fit.time(moved), run.copy_seconds))
        size = scaled(float(moved), "B")
        rows.append((shape(run.rows, run.cols), size, *times, percent(least / run.copy_seconds)))
    heads = (
        "shape",
        "bytes",
        "data sheet [µs]",
        r"\(t_0 + \text{bytes}/b\) [µs]",
        "copy [µs]",
        "sheet / copy",
    )
    peak = scaled(sheet.dram_bytes_per_s, "B/s")
    note = f"Data sheet: {sheet.source}, {peak}. Copy: {provenance(timed[0])}"
    return Table(heads, tuple(rows), frozenset(range(1, 6)), note=note)


def least(run: Measured | None) -> dict[str, float | None]:
    """Least time of a softmax of one matrix [µs] by level (see `predictions`): derived from the
    data sheet, measured as the copy of that size."""
    if run is None or not run.copy_seconds:
        return {"derived": None, "measured": None}
    sheet = roofline.floor_time(once(run), sheet_of(run).dram_bytes_per_s)
    return {"derived": 1e6 * sheet, "measured": 1e6 * run.copy_seconds}


def bound(run: Measured | None) -> Sentence:
    """The least time of a softmax of one matrix: by data sheet, and by the copy of that size."""
    if run is None or not run.copy_seconds:
        return say("The least time of a softmax of this matrix: not measured yet.")
    sheet, moved = sheet_of(run), once(run)
    return say(
        "A softmax of {rows} × {cols} reads {half:B} and writes {half:B}. At the data sheet's "
        "{sheet:B/s} that takes **{least:s}**. A kernel that only copies took "
        "**{copy:s}** a launch, several of them in a graph.",
        rows=run.rows,
        cols=run.cols,
        half=moved / 2,
        sheet=sheet.dram_bytes_per_s,
        least=roofline.floor_time(moved, sheet.dram_bytes_per_s),
        copy=run.copy_seconds,
    )


def several_times(readings: Readings | None, runs: Sequence[Measured | None]) -> Sentence:
    """Why one large copy has several times in the book: by clock, in the bench, by a rate."""
    clocks = [readings and readings.one(COPY.name, clock, rows=LARGE[0]) for clock in ALONE]
    graphs = readings.find(COPY.name, "graph", rows=LARGE[0]) if readings else ()
    several = next((one for one in graphs if one.launches > 1), None)
    timed = copies(runs)
    run = next((run for run in timed if (run.rows, run.cols) == LARGE), None)
    if run is None or several is None or None in clocks:
        return say("One copy by the clocks and beside the kernels: not measured yet.")
    wait, events, graph = clocks
    best = max(timed, key=lambda each: rate(once(each), each.copy_seconds))
    floor = once(run) * best.copy_seconds / once(best)
    return say(
        "The copy of {rows} × {cols} has several times in this book, and each is right. Alone it "
        "is {wait:s} to a host that waits, {events:s} between two events, {graph:s} as the only "
        "launch of a graph. As one of {n} in a graph it is {several:s}: the start of the graph is "
        "shared. Beside the kernels it is **{copy:s}**, the fastest of several ways to share the "
        "matrix among threads, where the clocks took the simplest. And at the best rate of these "
        "copies, that of {m} × {n_best}, it would be {floor:s}. That is reckoned from a rate, and "
        "no time that anybody took. A kernel is held against **{copy:s}**, which the same protocol "
        "gave in the same run.",
        rows=run.rows,
        cols=run.cols,
        wait=wait.each,
        events=events.each,
        graph=graph.each,
        n=several.launches,
        several=several.each,
        copy=run.copy_seconds,
        m=best.rows,
        n_best=best.cols,
        floor=floor,
    )


def arithmetic(rows: int, cols: int, flops_each: float) -> Sentence:
    """A matrix by arithmetic alone, at so many FLOPs an element, against its bytes; data sheet."""
    sheet = sheet_of(None)
    moved = COPY.family.once(rows, cols)
    work = roofline.floor_time(0, 1, flops_each * rows * cols, sheet.fp32_flops_per_s)
    moving = roofline.floor_time(moved, sheet.dram_bytes_per_s)
    return say(
        "At {n} FLOPs an element the arithmetic of {rows} × {cols} takes {work:s} at the data "
        "sheet's {peak:FLOP/s}. That is {share:%} of the {moving:s} that its bytes take.",
        n=flops_each,
        rows=rows,
        cols=cols,
        work=work,
        peak=sheet.fp32_flops_per_s,
        share=work / moving,
        moving=moving,
    )


def rates(book: Ledger) -> Table | Sentence:
    """One run of one kernel, and each "bandwidth" [GB/s] that can be made of its one time."""
    run = book.measured
    if run is None or not run.seconds:
        return say("One time, many bandwidths: not measured yet.")
    moved = {"L1": roofline.moved_bytes(book.executed)["L1"], **roofline.moved_bytes(run.counts)}
    kinds = {"useful: read once, written once": once(run), "asked for": book.executed.bytes}
    kinds |= {f"moved at {level}": moved.get(level) for level in roofline.LEVELS}
    sheet = sheet_of(run).dram_bytes_per_s
    rows = []
    for words, size in kinds.items():
        cells = (MISSING,) * 3
        if size is not None:
            speed = rate(size, run.seconds)
            cells = scaled(float(size), "B"), number(speed / 1e9), percent(speed / sheet)
        rows.append((words, *cells))
    heads = ("which bytes", "bytes", "over the time [GB/s]", "of DRAM's data sheet")
    what = f"`{book.kernel.symbol}` on {shape(book.rows, book.cols)}, {scaled(run.seconds, 's')}"
    note = f"{what}; {provenance(run, of=('times', 'counters'))}"
    return Table(heads, tuple(rows), frozenset({1, 2, 3}), note=note)
