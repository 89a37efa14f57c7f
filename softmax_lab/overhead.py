"""What readings of a clock say of a launch, as tables and sentences."""

from __future__ import annotations

from collections.abc import Sequence

from softmax_lab.plots import data_sheet
from softmax_lab.prose import Sentence, Table, names, say
from softmax_lab.roofline import rate
from softmax_lab.runs import about, shape
from softmax_lab.series import CLOCKS, COPY, EMPTY, LARGE, MIDDLE, SMALL, Readings, Series
from softmax_lab.units import MISSING, number, percent

JOBS = ((EMPTY, SMALL), (COPY, SMALL), (COPY, LARGE))
"""What is launched to find out what a launch costs: nothing to do, little, much."""

SLOW = 1.5
"""A reading of more than this many medians is counted as a straggler."""

ALIKE = 0.05
"""Two clocks that differ by no more than this share are said to show the same."""


def clocks(readings: Readings | None) -> Table | Sentence:
    """One launch by four clocks, a row each: medians [µs], of a graph its time by its launches."""
    if readings is None:
        return say("One launch by four clocks: not measured yet.")
    jobs = ["nothing" if kernel == EMPTY else f"copy {shape(*size)}" for kernel, size in JOBS]
    heads = ("clock", *(f"{job} [µs]" for job in jobs))
    longest = [_single(readings, kernel, "graph", size) for kernel, size in JOBS]
    graphs = [number(one and one.launches) for one in longest]
    rows = []
    for clock, words in CLOCKS.items():
        found = (_single(readings, kernel, clock, size) for kernel, size in JOBS)
        rows.append((words, *map(_each, found)))
    found = [one for one in longest[1:] if one]
    note = f"Medians. The graphs hold {', '.join(graphs)} launches. {_places(readings, found)}"
    note += where(readings)
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))), note=note)


def asynchronous(readings: Readings | None) -> Sentence:
    """What the host's clock says of a large copy if nobody waits for it, against the GPU's own."""
    call, events = (_single(readings, COPY, clock, LARGE) for clock in ("call", "events"))
    if call is None or events is None:
        return say("A large copy by the host's clock, without waiting: not measured yet.")
    sheet = _sheet(readings)
    claimed = rate(call.bytes_once, call.each)
    verdict = "**No memory can do that.**" if claimed > sheet else "Here it is not even absurd."
    return say(
        "The launch of a copy of {rows} × {cols} returns after **{call:s}**. Between two events "
        "it takes {events:s}. Taken for the time of the copy, the first would mean {claimed:B/s}, "
        "{times:×} the data sheet's {sheet:B/s}. " + verdict,
        rows=call.rows,
        cols=call.cols,
        call=call.each,
        events=events.each,
        claimed=claimed,
        times=claimed / sheet,
        sheet=sheet,
    )


def stopped(readings: Readings | None) -> int | None:
    """How much of a large copy the host's clock sees if nobody waits: 0 all, 1 most, 2 far less
    than half, 3 more than all; None where nobody measured it."""
    call, events = (_single(readings, COPY, clock, LARGE) for clock in ("call", "events"))
    if call is None or events is None:
        return None
    seen = call.each / events.each
    if abs(seen - 1) <= ALIKE:
        return 0
    return 3 if seen > 1 else 1 if seen > 0.5 else 2


def empty(readings: Readings | None) -> dict[str, float | None]:
    """Time of the empty kernel as one of many in a graph [µs], by level (see `predictions`)."""
    one = _single(readings, EMPTY, "graph", SMALL)
    return {"measured": one and 1e6 * one.each}


def nothing(readings: Readings | None) -> Sentence:
    """What a launch of the empty kernel costs, alone and as one of many in a graph."""
    found = [_single(readings, EMPTY, clock, SMALL) for clock in ("wait", "events", "graph")]
    if None in found:
        return say("A launch of a kernel that does nothing: not measured yet.")
    wait, events, graph = found
    return say(
        "A launch of a kernel that does nothing takes {wait:s} by the host's clock, {events:s} "
        "between two events, and **{graph:s}** as one of {n} in a graph. Events around a single "
        "launch say {times:×} as much as the graph.",
        wait=wait.each,
        events=events.each,
        graph=graph.each,
        n=graph.launches,
        times=events.each / graph.each,
    )


def first(readings: Readings | None) -> Sentence:
    """The first reading of all against the second and the median, and what it does to a mean."""
    one = _single(readings, COPY, "wait", SMALL)
    if one is None or len(one.seconds) < 3:
        return say("The first launch against the later ones: not measured yet.")
    mean = sum(one.seconds) / len(one.seconds)
    return say(
        "The first launch took {first:s}, the second {second:s}. The median of those after is "
        "{median:s}, so the first took {times:×} as long. The mean of all {n} readings is "
        "{mean:s}, **{off:×}** the median. The median of all {n}, with the first, is {whole:s}.",
        first=one.seconds[0],
        second=one.seconds[1],
        median=one.median,
        times=one.seconds[0] / one.median,
        n=len(one.seconds),
        mean=mean,
        off=mean / one.median,
        whole=sorted(one.seconds)[len(one.seconds) // 2],
    )


def stragglers(readings: Readings | None) -> Sentence:
    """How far mean, median and slowest reading are apart once all is warm."""
    one = _single(readings, COPY, "wait", SMALL)
    if one is None:
        return say("The spread of the later launches: not measured yet.")
    mean, slowest = sum(one.settled) / len(one.settled), max(one.settled)
    return say(
        "Of the {n} readings after the warm-up the slowest took {slowest:s}, {times:×} the median; "
        "{late} took more than {slow:×} the median. Their mean is {off} of their median.",
        n=len(one.settled),
        slowest=slowest,
        times=slowest / one.median,
        late=sum(value > SLOW * one.median for value in one.settled),
        slow=SLOW,
        off=percent(mean / one.median),
    )


def lengths(readings: Readings | None) -> Table | Sentence:
    """Time of one launch [µs] in graphs of more and more of them: of nothing, of a small copy."""
    kernels = (EMPTY, COPY) if readings else ()
    found = [readings.find(each, "graph", rows=SMALL[0], pairs=1) for each in kernels]
    if not found or not all(found):
        return say("Launches that share a graph: not measured yet.")
    timed = [{one.launches: one for one in series} for series in found]
    rows = [
        (number(n), *(_each(each.get(n)) for each in timed))
        for n in sorted({n for each in timed for n in each})
    ]
    heads = ("launches in the graph", "nothing, each [µs]", f"copy {shape(*SMALL)}, each [µs]")
    note = _places(readings, found[1][:1]) + where(readings)
    return Table(heads, tuple(rows), frozenset(range(3)), note=note)


def rotation(readings: Readings | None) -> Sentence:
    """What a copy takes on one buffer pair again and again, and on as many as L2 cannot hold."""
    found = working_sets(readings) if readings else []
    if len(found) < 2:
        return say("One pair of buffers against many: not measured yet.")
    (warm, _, fast), (cold, every, slow) = found[0], found[-1]
    sheet = _sheet(readings)
    verdict = (
        "The first rate is below the data sheet's {sheet:B/s} of DRAM, so nothing looks wrong, "
    )
    verdict += "and yet it"
    if fast > sheet:
        verdict = "The first rate is more than the data sheet's {sheet:B/s} of DRAM, for it"
    return say(
        "The same copy of {rows} × {cols}, on one pair of buffers again and again: {warm:s}, "
        "{fast:B/s} of useful bytes. On {pairs} pairs in turn, {all:B} together: {cold:s}, "
        f"{{slow:B/s}}. {verdict} **comes out of L2** and the second, of the same copy, out of "
        "DRAM.",
        rows=warm.rows,
        cols=warm.cols,
        warm=warm.each,
        fast=fast,
        pairs=cold.pairs,
        all=every,
        cold=cold.each,
        slow=slow,
        sheet=sheet,
    )


def working_sets(readings: Readings) -> list[tuple[Series, float, float]]:
    """The rotation: series, bytes of all its buffers together [B], useful bytes a second [B/s]."""
    found = readings.find(COPY, "graph", rows=MIDDLE[0], cols=MIDDLE[1])
    return [
        (one, float(one.pairs * one.bytes_once), rate(one.bytes_once, one.each)) for one in found
    ]


def source(readings: Readings | None) -> Sentence:
    """Machine, date and software of the readings, as a line of provenance."""
    said = f"Clocks: {where(readings)}" if readings else "Clocks: not measured yet."
    return Sentence(said, source=True)


def where(readings: Readings) -> str:
    """Machine, date and software of the readings, as a table's note writes them."""
    return ", ".join(about(readings.gpu, readings.provenance)) + "."


def _single(
    readings: Readings | None, kernel: str, clock: str, size: tuple[int, int]
) -> Series | None:
    """The series on one pair of buffers; of graphs, the one that holds the most launches."""
    if readings is None:
        return None
    found = readings.find(kernel, clock, rows=size[0], cols=size[1], pairs=1)
    return found[-1] if found else None


def _sheet(readings: Readings) -> float:
    """Data-sheet bandwidth of DRAM [B/s], of the readings' GPU or the reference."""
    return data_sheet(readings.gpu).dram_bytes_per_s


def _places(readings: Readings, series: Sequence[Series]) -> str:
    """Where copies find their data, a shape each: on so few pairs of buffers L2 may hold them."""
    room = data_sheet(readings.gpu).l2_bytes
    found = [
        f"of {shape(one.rows, one.cols)} in {'L2' if one.pairs * one.bytes_once < room else 'DRAM'}"
        for one in series
    ]
    return f"Data {names(found)}. " if found else ""


def _each(one: Series | None) -> str:
    return MISSING if one is None else number(1e6 * one.each)
