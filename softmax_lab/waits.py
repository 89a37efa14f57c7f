"""What of a GPU was at work while a kernel ran, and what waiting leaves on its way."""

from __future__ import annotations

from collections.abc import Sequence

from softmax_lab.counters import (
    BUSY,
    ISSUING,
    L1_BUSY,
    L2_BUSY,
    STALLS,
    WAVEFRONTS,
    busy,
    waited,
    waited_for_memory,
    warp_clocks,
)
from softmax_lab.facts import GPUS, ITEMSIZE, MULTIPROCESSORS, WARP
from softmax_lab.ledger import Ledger
from softmax_lab.machine import INSTRUCTIONS
from softmax_lab.prose import Sentence, Table, say, seen_columns
from softmax_lab.records import Measured
from softmax_lab.registry import COPY, get
from softmax_lab.roofline import bytes_in_flight, rate
from softmax_lab.runs import provenance, shape, share_of_copy, sm_clock
from softmax_lab.units import MISSING, number, percent

PARTS = {
    "warps": "places for warps",
    "issue": "issue of instructions",
    "special": "special-function units",
    "L1": "L1, by its bytes",
    "DRAM": "DRAM",
}
"""What tables call the parts that `counters.busy` knows."""

L1_BUSIEST = "L1, its busiest part"


def at_work(runs: Sequence[Measured | None]) -> Table | Sentence:
    """How much of each part of the GPU the runs used, a run a row."""
    rows, shown = [], []
    for run in filter(None, runs):
        parts = busy(run.counters, GPUS[run.gpu]) if run.gpu in GPUS else {}
        if not parts:
            continue
        shown.append(run)
        cells = [percent(parts.get(part)) for part in BUSY]
        cells.insert(
            _AFTER_L1, percent(run.counters[L1_BUSY] / 100 if L1_BUSY in run.counters else None)
        )
        rows.append(
            (f"`{run.kernel}`, {shape(run.rows, run.cols)}", *cells, percent(share_of_copy(run))),
        )
    if not rows:
        return say(f"What of the GPU was at work: {MISSING}.")
    parts = [PARTS[part] for part in BUSY]
    parts.insert(_AFTER_L1, L1_BUSIEST)
    heads, rows = seen_columns(("kernel", *parts, "share of copy"), rows)
    note = (
        "Of what each part could do at most; all but DRAM on the multiprocessors that had work. By "
        "its bytes: sectors moved, over the bytes that L1 could hand over. Its busiest part: the "
        "profiler's counter, whatever keeps that part busy. "
        f"{provenance(*shown, of=('times', 'counters'))}"
    )
    return Table(heads, rows, frozenset(range(1, len(heads))), note=note)


_AFTER_L1 = BUSY.index("L1") + 1


def waiting(runs: Sequence[Measured | None]) -> Table | Sentence:
    """What a warp waits for between two of its instructions, the longest wait in bold, and how busy
    the schedulers and caches are meanwhile; a run a column."""
    known = [run for run in runs if run is not None and run.gpu in GPUS]
    shown = [run for run in known if waited(run.counters, GPUS[run.gpu])]
    if not shown:
        return say(f"What the warps waited for: {MISSING}.")
    columns = [_waits(run) for run in shown]
    lines = ("from one instruction to the next [clocks]", *STALLS.values(), *_BESIDES, *_MEANWHILE)
    rows = tuple((line, *cells) for line, *cells in zip(lines, *columns, strict=True))
    busy_from = 1 + len(STALLS) + len(_BESIDES)
    note = (
        "Averages over all warps. The counters are of several replays of one launch, so shares may "
        f"miss their sum by a little. {provenance(*shown, of=('counters',))}"
    )
    return Table(
        ("a warp", *(f"`{run.kernel}`, {shape(run.rows, run.cols)}" for run in shown)),
        rows,
        frozenset(range(1, len(shown) + 1)),
        note=note,
        groups=((1, "of that time it waits for"), (busy_from, "and meanwhile these are busy")),
    )


_BESIDES = ("its turn, or something else", "nothing: it issues")
_MEANWHILE = (
    "issue of instructions, by its own counter",
    L1_BUSIEST,
    "L1, its data: wavefronts a clock",
    "L2",
)


def _waits(run: Measured) -> tuple[str, ...]:
    """Cells of a run in `waiting`."""
    seen, gpu = run.counters, GPUS[run.gpu]
    whole, shares = warp_clocks(seen, gpu), waited(seen, gpu)
    itself, longest = 1 / whole, max(shares, key=shares.get)
    rest = max(0.0, 1 - itself - sum(shares.values()))
    clocks = gpu.multiprocessors * seen["sm__cycles_active.avg"]
    in_percent = {name: seen[name] / 100 for name in (ISSUING, L1_BUSY, L2_BUSY) if name in seen}
    return (
        number(whole),
        *(_marked(percent(shares[reason]), reason == longest) for reason in STALLS),
        percent(rest),
        percent(itself),
        *(percent(in_percent.get(name)) for name in (ISSUING, L1_BUSY)),
        number(seen[WAVEFRONTS] / clocks if WAVEFRONTS in seen else None),
        percent(in_percent.get(L2_BUSY)),
    )


def _marked(cell: str, mark: bool) -> str:
    return f"**{cell}**" if mark else cell


def issuing(run: Measured | None) -> Sentence:
    """The time it takes to issue a launch's instructions if nothing ever has to wait, beside the
    copy's."""
    known = run is not None and run.gpu in GPUS and run.seconds and run.copy_seconds
    if not known or INSTRUCTIONS not in run.counters or (clock := sm_clock(run)) is None:
        return say(f"How long its instructions take to issue: {MISSING}.")
    gpu = GPUS[run.gpu]
    schedulers = MULTIPROCESSORS[gpu.compute_capability].schedulers
    return say(
        "The warps execute {n} instructions. Were there one ready for each of the {schedulers} "
        "schedulers of {all} multiprocessors at every clock, that would take {least:s}. The copy "
        "takes {copy:s}, and the kernel {mine:s}.",
        n=run.counters[INSTRUCTIONS],
        schedulers=schedulers,
        all=gpu.multiprocessors,
        least=run.counters[INSTRUCTIONS] / (schedulers * gpu.multiprocessors * clock),
        copy=run.copy_seconds,
        mine=run.seconds,
    )


def in_flight(book: Ledger, loads: Sequence[int]) -> Table | Sentence:
    """Bytes on their way when every lane waits for so many loads, and how long a read may take for
    that to keep up with the copy."""
    run = book.measured
    parts = busy(run.counters, GPUS[run.gpu]) if run and run.gpu in GPUS else {}
    if "warps" not in parts or not run.copy_seconds:
        return say(f"Bytes on their way: {MISSING}.")
    gpu = GPUS[run.gpu]
    chip = MULTIPROCESSORS[gpu.compute_capability]
    warps = parts["warps"] * chip.warps
    pace = rate(COPY.family.once(run.rows, run.cols, run.dtype), run.copy_seconds)
    rows = []
    for each in loads:
        held = bytes_in_flight(warps, each, ITEMSIZE[run.dtype], gpu.multiprocessors)
        rows.append((number(each), number(held / 1e6), number(1e9 * held / pace)))
    heads = ("loads a lane waits for", "on their way [MB]", "longest read to keep up [ns]")
    note = say(
        "{warps} warps on each of {n} multiprocessors, as recorded; to keep up with the copy's "
        "{pace:B/s}. {about}",
        warps=warps,
        n=gpu.multiprocessors,
        pace=pace,
        about=str(provenance(run, of=("times", "counters"))),
    )
    return Table(heads, tuple(rows), frozenset(range(3)), note=note.words)


def answers(runs: Sequence[Measured | None]) -> Table | Sentence:
    """How often a warp waits for an answer of L1, L2 or DRAM, by its machine code, and how long
    each time, by the counters; for kernels with a warp on a row."""
    rows, shown = [], []
    for run in filter(None, runs):
        stalled = run.gpu in GPUS and waited_for_memory(run.counters, GPUS[run.gpu])
        ahead = get(run.kernel).ahead
        if not stalled or not ahead or (clock := sm_clock(run)) is None:
            continue
        shown.append(run)
        steps = -(-run.cols // WARP)
        turns = sum(-(-steps // each) for each in ahead)
        seen, gpu = run.counters, GPUS[run.gpu]
        clocks = stalled / run.rows / turns
        there = busy(seen, gpu)["warps"] * MULTIPROCESSORS[gpu.compute_capability].warps
        cells = (there, len(ahead) * steps, turns, clocks, 1e9 * clocks / clock)
        rows.append((f"`{run.kernel}`, {shape(run.rows, run.cols)}", *map(number, cells)))
    if not rows:
        return say(f"How long a warp waits for an answer: {MISSING}.")
    heads = (
        *("kernel", "warps on a multiprocessor", "loads for a row"),
        *("waits for a row", "for each [clocks]", "for each [ns]"),
    )
    note = (
        "Waits: by the loads that the machine code sends off at once. For each: the clocks in "
        "which warps waited for L1, L2 or DRAM, over rows and waits. "
        f"{provenance(*shown, of=('times', 'counters'))}"
    )
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))), note=note)
