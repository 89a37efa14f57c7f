"""How many multiprocessors work on a matrix, and how long a column of it takes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from softmax_lab import coalescing, registry
from softmax_lab.counters import (
    L1_BUSY,
    WAVEFRONTS,
    requests,
    waited_for_memory,
    wavefronts_of_a_request,
)
from softmax_lab.facts import GPUS, ITEMSIZE, WARP
from softmax_lab.ledger import Ledger
from softmax_lab.machine import INSTRUCTIONS
from softmax_lab.plots import data_sheet
from softmax_lab.prose import Sentence, Table, say
from softmax_lab.records import Measured
from softmax_lab.registry import COPY
from softmax_lab.roofline import occupancy, rate
from softmax_lab.runs import provenance, shape, share_of_copy, sm_clock
from softmax_lab.units import MISSING, number, percent, times


def room(book: Ledger) -> Sentence:
    """How many warps of a kernel a multiprocessor has room for, and how many the launch has."""
    if book.compiled is None:
        return say(f"Room for warps: {book.not_compiled or MISSING}.")
    gpu = data_sheet(book.measured and book.measured.gpu)
    kernel, made = book.kernel, book.compiled
    most = occupancy(gpu.compute_capability, kernel.block, made.registers, made.shared_bytes)
    blocks, _ = kernel.geometry(book.rows)
    working = min(blocks, gpu.multiprocessors)
    return say(
        "A multiprocessor of the {gpu} has room for {warps} warps of this kernel, in {fit} blocks. "
        "{rows} rows are {blocks} blocks of {threads} threads, and there are {all} "
        "multiprocessors: {working} of them get a block, {idle} get none.",
        gpu=gpu.name.removeprefix("NVIDIA "),
        warps=most.warps,
        fit=most.blocks,
        rows=book.rows,
        blocks=blocks,
        threads=kernel.block,
        all=gpu.multiprocessors,
        working=working,
        idle=gpu.multiprocessors - working,
    )


def columns(runs: Sequence[Measured | None]) -> Table | Sentence:
    """How long a column takes at each shape, by the blocks that there are: the fewest first."""
    timed = [run for run in runs if run is not None and run.seconds]
    if not timed:
        return say(f"How long a column takes: {MISSING}.")
    rows = []
    for run in sorted(timed, key=lambda run: (run.rows, run.cols)):
        blocks, gpu = registry.get(run.kernel).geometry(run.rows)[0], GPUS.get(run.gpu)
        rows.append(
            (
                shape(run.rows, run.cols),
                number(blocks),
                number(min(blocks, gpu.multiprocessors)) if gpu else "–",
                number(1e9 * run.seconds / run.cols),
                percent(share_of_copy(run)),
            )
        )
    heads = ("shape", "blocks", "multiprocessors with one", "for a column [ns]", "share of copy")
    note = f"For a column: the time over the row's length. {provenance(*timed)}"
    return Table(heads, tuple(rows), frozenset(range(1, 5)), note=note)


def slower_together(few: Measured | None, many: Measured | None) -> Sentence:
    """How much longer a column takes when every multiprocessor has several blocks than when it has
    one at most."""
    if any(run is None or not run.seconds or run.gpu not in GPUS for run in (few, many)):
        return say(f"What several blocks on a multiprocessor cost: {MISSING}.")
    blocks = registry.get(many.kernel).geometry(many.rows)[0] / GPUS[many.gpu].multiprocessors
    return say(
        "On {rows} × {cols} there are {blocks} blocks for each multiprocessor, and a column takes "
        "{slower} as long as on {rows2} × {cols2}, with one block at most.",
        rows=many.rows,
        cols=many.cols,
        blocks=blocks,
        slower=times((many.seconds / many.cols) / (few.seconds / few.cols)),
        rows2=few.rows,
        cols2=few.cols,
    )


def alone(run: Measured | None) -> Sentence:
    """How long a warp that has a GPU to itself takes for a column, in clocks and instructions.

    Raises ValueError for a run of more than one warp.
    """
    if run is None or not run.seconds or (clock := sm_clock(run)) is None:
        return say(f"How long one warp takes for a column: {MISSING}.")
    if run.rows * registry.get(run.kernel).threads_per_row > WARP:
        raise ValueError(f"one warp is at most {WARP} threads with a row, got {run.rows} rows")
    column, executed = run.seconds / run.cols, run.counters.get(INSTRUCTIONS)
    words = "On {rows} × {cols} one warp has the whole GPU. It takes {ns:s} for a column, {clocks} "
    words += "clocks" if executed is None else "clocks, and executes {each} instructions in them"
    return say(
        words + ".",
        rows=run.rows,
        cols=run.cols,
        ns=column,
        clocks=column * clock,
        each=executed and executed / run.cols,
    )


def start(small: Measured | None, large: Measured | None) -> Sentence:
    """How much of a small launch's time its bytes could take, at the copy's rate on `large`."""
    if any(run is None or not run.copy_seconds for run in (small, large)) or not small.seconds:
        return say(f"What a small launch takes: {MISSING}.")
    once, of_large = (COPY.family.once(run.rows, run.cols, run.dtype) for run in (small, large))
    return say(
        "On {rows} × {cols} the kernel takes {mine:s} and the copy {copy:s}. At the rate that the "
        "copy reaches on {rows2} × {cols2} the {once:B} would take {bytes:s}.",
        rows=small.rows,
        cols=small.cols,
        mine=small.seconds,
        copy=small.copy_seconds,
        rows2=large.rows,
        cols2=large.cols,
        once=once,
        bytes=once / rate(of_large, large.copy_seconds),
    )


def further_columns(runs: Sequence[Measured | None]) -> Table | Sentence:
    """What each further column costs, from one recorded row length to the next, beside the copy."""
    timed = [run for run in runs if run is not None and run.seconds and run.copy_seconds]
    timed.sort(key=lambda run: run.cols)
    rows = []
    for before, after in pairwise(timed):
        more = after.cols - before.cols
        mine = (after.seconds - before.seconds) / more
        copys = (after.copy_seconds - before.copy_seconds) / more
        sectors = len(coalescing.strided(ITEMSIZE[after.dtype] * after.cols).sectors)
        rows.append(
            (
                f"{number(before.cols)} → {number(after.cols)}",
                number(sectors),
                number(mine * 1e9),
                number(copys * 1e9),
                percent(copys / mine),
            )
        )
    if not rows:
        return say(f"What a further column costs: {MISSING}.")
    heads = (
        *("row length", "sectors of a request"),
        *("a further column [ns]", "for the copy [ns]", "copy over kernel"),
    )
    note = f"{number(timed[0].rows)} rows each. {provenance(*timed)}"
    return Table(heads, tuple(rows), frozenset(range(1, 5)), note=note)


def alignment(runs: Sequence[Measured | None]) -> Table | Sentence:
    """What is the same and what is not when rows begin at a sector, anywhere, or a power of two
    apart, for kernels with a thread on a row."""
    rows, shown = [], []
    for run in filter(None, runs):
        if not run.seconds or INSTRUCTIONS not in run.counters:
            continue
        shown.append(run)
        seen, columns = run.counters, -(-run.rows // WARP) * run.cols
        stalled = run.gpu in GPUS and waited_for_memory(seen, GPUS[run.gpu])
        rows.append(
            (
                f"`{run.kernel}`, {shape(run.rows, run.cols)}",
                number(seen[INSTRUCTIONS] / columns),
                percent(seen["l1tex__t_sector_hit_rate.pct"] / 100),
                number(wavefronts_of_a_request(seen)),
                percent(seen[L1_BUSY] / 100 if L1_BUSY in seen else None),
                number(_turns_that_miss(run)),
                number(stalled / columns if stalled else None),
                number(1e9 * run.seconds / run.cols),
            )
        )
    if not rows:
        return say(f"What the position of rows changes: {MISSING}.")
    heads = (
        *("kernel", "instructions for a column", "L1 hit rate", "wavefronts of a request"),
        *("L1, its busiest part", "turns that miss, for a column"),
        *("clocks waited, for a column", "for a column [ns]"),
    )
    note = (
        "Wavefronts: clocks that L1 needs to hand a request its data. Turns that miss: of all "
        "walks together, by the model of addresses and the loads that the machine code sends off "
        "at once. Waited: by a warp, for an answer of L1, L2 or DRAM. "
        f"{provenance(*shown, of=('times', 'counters'))}"
    )
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))), note=note)


def served(runs: Sequence[Measured | None]) -> Table | Sentence:
    """How many clocks of a column L1 needs to hand over floats, for kernels with a thread on a row:
    the wavefronts of all warps that a multiprocessor has, beside the clocks that a column takes."""
    rows, shown = [], []
    for run in filter(None, runs):
        seen, each = run.counters, wavefronts_of_a_request(run.counters)
        if run.gpu not in GPUS or each is None or "sm__cycles_active.avg" not in seen:
            continue
        shown.append(run)
        there = GPUS[run.gpu].multiprocessors
        working = min(registry.get(run.kernel).geometry(run.rows)[0], there)
        warps = -(-run.rows // WARP)
        wavefronts = seen[WAVEFRONTS] / working / run.cols
        clocks = seen["sm__cycles_active.avg"] * there / working / run.cols
        cells = (warps / working, requests(seen) / warps / run.cols, each)
        rows.append(
            (
                f"`{run.kernel}`, {shape(run.rows, run.cols)}",
                *map(number, (*cells, wavefronts, clocks)),
                percent(wavefronts / clocks),
            )
        )
    if not rows:
        return say(f"What L1 needs for a column: {MISSING}.")
    heads = (
        *("kernel", "warps on one L1", "requests of a warp for a column"),
        *("wavefronts of a request", "all wavefronts for a column"),
        *("clocks for a column", "wavefronts over clocks"),
    )
    note = (
        "Of the multiprocessors that had a block. Clocks: of the launch that was profiled, while "
        f"they had one. {provenance(*shown, of=('counters',))}"
    )
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))), note=note)


def _turns_that_miss(run: Measured) -> float | None:
    """Turns in which some lane enters a sector, for a column, over all walks of a kernel; None
    where its machine code was not read."""
    ahead, size = registry.get(run.kernel).ahead, ITEMSIZE[run.dtype]
    turns = [coalescing.turns_with_a_new_sector(run.cols, turn, size) for turn in ahead]
    return sum(turns) / run.cols if turns else None
