"""Why few rows that are long are slow: blocks, multiprocessors, and the pace of each."""

from __future__ import annotations

from collections.abc import Sequence

from softmax_lab import published
from softmax_lab.clock import CLOSE
from softmax_lab.facts import GPUS, ITEMSIZE, MULTIPROCESSORS, WARP, Gpu
from softmax_lab.ledger import Ledger
from softmax_lab.prose import Sentence, Table, say
from softmax_lab.published import USEFUL, Again
from softmax_lab.records import Measured
from softmax_lab.registry import get
from softmax_lab.roofline import rate
from softmax_lab.runs import provenance, sm_clock
from softmax_lab.runs import shape as written
from softmax_lab.theirs import source, where
from softmax_lab.units import MISSING, number, percent

L2_HITS, FROM_DRAM = "lts__t_sector_hit_rate.pct", "dram__bytes_read.sum"
ACTIVE, DURATION = "sm__cycles_active.avg", "gpu__time_duration.sum"


def crowd(runs: Sequence[Measured | None], *, theirs: bool = False) -> Table | Sentence:
    """Blocks, multiprocessors that have one, and useful rates, of all and of each of them: a
    recorded run a row, below the published table's and in its order if asked for."""
    rows, headings = [], []
    if theirs:
        headings.append((0, f"{source()}, as published"))
        rows += [
            _crowded(each.rows, each.cols, each.seconds, published.gpu())
            for each in published.table()
        ]
    known = [run for run in runs if run is not None and run.seconds and run.gpu in GPUS]
    if not rows and not known:
        return say(f"Rates of few and of many rows: {MISSING}.")
    if theirs and known:
        places = {shape: place for place, shape in enumerate(published.shapes())}
        known.sort(key=lambda run: places.get((run.rows, run.cols), len(places)))
        headings.append((len(rows), f"{GPUS[known[0].gpu].name.removeprefix('NVIDIA ')}, cold"))
    rows += [_crowded(run.rows, run.cols, run.seconds, GPUS[run.gpu], run) for run in known]
    heads = ("shape", "blocks", "multiprocessors with one", "of all")
    heads += ("useful [GB/s]", "for each with one [GB/s]")
    note = str(provenance(*known)) if known else f"On another GPU: {MISSING}."
    if theirs:
        note = f"{source()}: {published.about()['protocol']}. {note}"
    numeric = frozenset(range(1, len(heads)))
    return Table(heads, tuple(rows), numeric, note=note, groups=tuple(headings))


def places(books: Sequence[Ledger]) -> Table | Sentence:
    """Where the warps of several kernels are on a shape with few rows, and what each of them asks
    for a second; a kernel a row."""
    rows, shown = [], []
    for book in books:
        run = book.measured
        if run is None or not run.seconds or run.gpu not in GPUS:
            continue
        shown.append(run)
        busy, blocks = _blocks(book.rows, GPUS[run.gpu], run.kernel)
        warps = blocks * book.kernel.block // WARP
        cells = (
            book.executed.load_bytes / (ITEMSIZE[run.dtype] * book.rows * book.cols),
            *(book.kernel.threads_per_row, blocks, busy, warps / busy, 1e6 * run.seconds),
            rate(book.executed.bytes, run.seconds) / warps / 1e9,
        )
        rows.append((f"`{book.kernel.symbol}`", *map(number, cells)))
    if not rows:
        return say(f"Where the warps are: {MISSING}.")
    heads = ("kernel", "reads of a row", "threads on it", "blocks", "multiprocessors with one")
    heads += ("warps on each of these", "time [µs]", "asked for, a warp [GB/s]")
    note = f"{written(shown[0].rows, shown[0].cols)}. {provenance(*shown)}"
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))), note=note)


def active(run: Measured | None) -> Sentence:
    """The share of their clocks in which multiprocessors had work, as counted, beside the share of
    them that a launch gives a block."""
    seen = run.counters if run else {}
    clock = sm_clock(run) if run else None
    if not {ACTIVE, DURATION} <= set(seen) or clock is None or run.gpu not in GPUS:
        return say(f"The share of time in which multiprocessors had work: {MISSING}.")
    sheet = GPUS[run.gpu]
    busy, _ = _blocks(run.rows, sheet, run.kernel)
    return say(
        "On {rows} × {cols} `{kernel}` gives {busy} of {all} multiprocessors a block, {share:%}. "
        "The counters agree: on average a multiprocessor had work in {seen:%} of the clocks.",
        rows=run.rows,
        cols=run.cols,
        kernel=run.kernel,
        busy=busy,
        all=sheet.multiprocessors,
        share=busy / sheet.multiprocessors,
        seen=seen[ACTIVE] / (seen[DURATION] * 1e-9 * clock),
    )


def fall(again: Again | None) -> Sentence:
    """The rate that the widest published shape loses against the fastest, in two factors: idle
    multiprocessors, and the pace of the others; of the published table and of `again`, cold."""
    sheets = [(source(), published.gpu(), [(e.rows, e.cols, e.seconds) for e in published.table()])]
    if again and again.published and again.gpu in GPUS:
        cold = [(e.rows, e.cols, e.cold_s) for e in again.published]
        sheets.append((f"{where(again)}, cold", GPUS[again.gpu], cold))
    return say("{each}", each=" ".join(_fall(*each).words for each in sheets))


def _fall(who: str, sheet: Gpu, times: Sequence[tuple[int, int, float]]) -> Sentence:
    def useful(run: tuple[int, int, float]) -> float:
        return rate(USEFUL * run[0] * run[1], run[2])

    fast, wide = max(times, key=useful), min(times, key=lambda run: run[0])
    (busy, _), (there, blocks) = _blocks(wide[0], sheet), _blocks(fast[0], sheet)
    lost = useful(fast) / useful(wide)
    if fast == wide:
        return say("{who}: {a} has the highest rate of all.", who=who, a=written(*wide[:2]))
    return say(
        "{who}: from {a} to {b} the rate falls by {lost:×}. That is {part:×} because {idle} of "
        "{all} multiprocessors have no block, times {pace:×} in the pace of the others, which have "
        "{one} block each instead of up to {many}.",
        who=who,
        a=written(*fast[:2]),
        b=written(*wide[:2]),
        lost=lost,
        idle=sheet.multiprocessors - busy,
        all=sheet.multiprocessors,
        part=there / busy,
        pace=lost * busy / there,
        one=-(-wide[0] // sheet.multiprocessors),
        many=min(-(-blocks // sheet.multiprocessors), _most(sheet)),
    )


def _most(sheet: Gpu) -> int:
    """Blocks of the kernel that a multiprocessor has places for, by their warps."""
    return MULTIPROCESSORS[sheet.compute_capability].warps * WARP // get(published.KERNEL).block


def recovers(few: Measured | None, many: Sequence[Measured | None]) -> Sentence:
    """The test: few rows, and more of them. First as many multiprocessors as can be get a block
    each, then each gets more of them; what either does for the rate of each. No verdict where the
    first step also takes the matrices out of L2."""
    known = [run for run in many if run is not None and run.seconds]
    if few is None or not few.seconds or few.gpu not in GPUS or not known:
        return say(f"Whether more rows of that length bring the rate back: {MISSING}.")
    sheet = GPUS[few.gpu]
    (alone, each), said = _pace(few, sheet), []
    paces = {run.rows: _pace(run, sheet)[1] / each for run in known}
    for run in known:
        words = "{rows} rows, {gain:×} on {more:×} the multiprocessors"
        more, gain = _pace(run, sheet)[0] / alone, _useful(run) / _useful(few)
        said.append(say(words, rows=run.rows, gain=gain, more=more).words)
    words = "The rate against that of {few} rows of {cols}: {said}. "
    best = max(paces, key=paces.get)
    alone_each = [run for run in known if few.rows < run.rows <= sheet.multiprocessors]
    most = max(alone_each, key=lambda run: run.rows, default=None)
    one_each = most and most.rows
    known_facts = {"few": few.rows, "cols": few.cols, "said": "; ".join(said)}
    if one_each not in paces:
        words += "With exactly one block on each multiprocessor: {first}."
        return say(words, first=MISSING, **known_facts)
    verdict = {
        (True, True): "Idle multiprocessors are one part of the answer, too few warps on the "
        "others the other.",
        (True, False): "Idle multiprocessors are the answer.",
        (False, True): "More than idle multiprocessors is at work already at the first step.",
        (False, False): "A multiprocessor slows down in company: idle ones are not the answer.",
    }[abs(paces[one_each] - 1) <= CLOSE, paces[best] > 1 + CLOSE]
    words += "For each multiprocessor with a block that is {first:×} the pace at {full} rows, one "
    words += "block each, and {top:×} at {best}. "
    words += _outgrown(few, most, sheet) or verdict
    return say(
        words, first=paces[one_each], full=one_each, top=paces[best], best=best, **known_facts
    )


def _outgrown(few: Measured, more: Measured, sheet: Gpu) -> str:
    """Why a step from `few` to `more` rows tells nothing of multiprocessors alone, where the pair
    of matrices fits into L2 before it and not after; else nothing."""
    small, large = (USEFUL * run.rows * run.cols for run in (few, more))
    if not small <= sheet.l2_bytes < large:
        return ""
    words = "But the first step changes two things: input and output grow from {small:B} to "
    words += "{large:B}, and L2 holds {l2:B}. "
    moved = [run.counters.get(FROM_DRAM) for run in (few, more)]
    hits = [run.counters.get(L2_HITS) for run in (few, more)]
    if all(each is not None for each in (*moved, *hits)):
        words += "DRAM reads {a} and then {b} bytes an element, and L2 has what it is asked for in "
        words += "{c:%} and then {d:%} of cases. "
    words += "So it is no test of multiprocessors alone."
    a, b = (
        each and each / run.rows / run.cols for each, run in zip(moved, (few, more), strict=True)
    )
    c, d = (each and each / 100 for each in hits)
    return say(words, small=small, large=large, l2=sheet.l2_bytes, a=a, b=b, c=c, d=d).words


def _pace(run: Measured, sheet: Gpu) -> tuple[int, float]:
    """Multiprocessors with a block, and the useful rate of each [B/s]."""
    busy, _ = _blocks(run.rows, sheet, run.kernel)
    return busy, _useful(run) / busy


def _useful(run: Measured) -> float:
    return rate(USEFUL * run.rows * run.cols, run.seconds)


def _blocks(rows: int, sheet: Gpu, kernel: str = published.KERNEL) -> tuple[int, int]:
    """(multiprocessors that get a block, blocks) of a launch over so many rows."""
    blocks, _ = get(kernel).geometry(rows)
    return min(blocks, sheet.multiprocessors), blocks


def _crowded(rows: int, cols: int, seconds: float, sheet: Gpu, run: Measured | None = None):
    busy, blocks = _blocks(rows, sheet, run.kernel if run else published.KERNEL)
    useful = rate(USEFUL * rows * cols, seconds)
    shares = (percent(busy / sheet.multiprocessors), number(useful / 1e9))
    return (written(rows, cols), number(blocks), number(busy), *shares, number(useful / busy / 1e9))
