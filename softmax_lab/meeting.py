"""How the threads of a row meet: what it costs in each kernel, and what row sums cannot show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softmax_lab import cost, reference
from softmax_lab.excerpts import source_line
from softmax_lab.facts import ITEMSIZE, WARP
from softmax_lab.ledger import Ledger
from softmax_lab.prose import Sentence, Table, say
from softmax_lab.units import number, percent
from softmax_lab.versus import MERGE


def per_row(books: Sequence[Ledger]) -> Table:
    """What putting one row together takes, a kernel a row of the table.

    A barrier is one of the block that the row is in, shared by its rows; a request is one of a
    warp.
    """
    rows = []
    for book in books:
        phases = [phase for phase in book.kernel.executed if phase.name in MERGE]
        done = cost.evaluate(phases, book.symbol)
        work = done.flops + (done.compare or 0)
        cells = (
            book.kernel.threads_per_row,
            (done.barriers or 0) / book.kernel.geometry(book.rows)[0],
            *((value or 0) / book.rows for value in (done.shuffles, done.shared_requests)),
            work / book.rows,
            (done.exp or 0) / book.rows,
        )
        rows.append((f"`{book.kernel.symbol}`", *map(number, cells)))
    heads = ("kernel", "threads", "barriers", "shuffles", "shared-memory requests")
    heads += ("FLOPs and comparisons", "exponentials")
    first = books[0]
    note = say(
        "For one row of {cols}, as executed. A barrier is one of the block: where several rows "
        "share a block, all of them wait at it.",
        cols=first.cols,
    )
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))), note=note.words)


def at_work(lengths: Sequence[int], threads: Sequence[int]) -> Table:
    """Share of a row's threads that have a column in the last step of a walk, and steps of the
    walk, by row length and threads a row."""
    rows = []
    for cols in lengths:
        cells = []
        for each in threads:
            steps = -(-cols // each)
            cells += [number(steps), percent(cols / (steps * each))]
        rows.append((number(cols), *cells))
    heads = ["row length"]
    for each in threads:
        heads += [f"steps of {number(each)} threads", "at work"]
    note = "Threads at work: columns over threads times steps."
    return Table(tuple(heads), tuple(rows), frozenset(range(len(heads))), note=note)


def row_sums(y: np.ndarray, x: np.ndarray) -> Sentence:
    """What adding up the results of each row finds, and what the oracle finds."""
    want = reference.softmax(x)
    off = np.abs(y - want) / want
    verdict = reference.compare(y, x)
    wrong = (off > 1e-4).any(axis=1)
    return say(
        "Every row of the result sums to one; the worst misses it by {miss}. And yet {rows} of "
        "{all} rows hold elements that are wrong, the worst of them by {off:%} of what it should "
        "be. The oracle's checker {says}.",
        miss=float(np.abs(y.sum(axis=1, dtype=np.float64) - 1).max()),
        rows=int(wrong.sum()),
        all=len(x),
        off=float(off.max()),
        says="passes it" if verdict.ok else f"refuses it: {verdict.message}",
    )


def said_by(faults: Sequence) -> Sentence:
    """The first fault that the emulator reported."""
    return say("The emulator: {first}.", first=str(faults[0]) if faults else "no fault")


def cut_off(values: Sequence[float]) -> Table:
    """What becomes of a maximum in an int of 32 bits, as a GPU converts it, and of its row's
    largest exponential."""
    rows = []
    for value in values:
        held = int(np.clip(np.trunc(value), -(2**31), 2**31 - 1))
        with np.errstate(over="ignore"):
            power = float(np.exp(np.float32(np.float32(value) - np.float32(held))))
        rows.append((number(value, 10), number(held), number(power)))
    heads = ("maximum", "as an int", r"\(e^{\text{maximum} - \text{int}}\)")
    note = "Cut off towards zero; beyond the integers of 32 bits the GPU takes the nearest of them."
    return Table(heads, tuple(rows), frozenset(range(3)), note=note)


def undone(cuts: Sequence) -> Table:
    """Lines of our kernels beside what stands there once a repair is undone (`cuts.Cut`s)."""
    rows = [
        (
            f"`{cut.file}`, line {cut.number}",
            f"`{source_line(cut.kernel.name, cut.file, cut.number)}`",
            f"`{cut.instead}`" if cut.instead else "–",
            cut.line.outcome,
        )
        for cut in cuts
    ]
    heads = ("where", "here", "as published", "what finds it")
    note = "As published: what does the same in our file. Wrong numbers: the oracle alone."
    return Table(heads, tuple(rows), note=note)


def waiting(book: Ledger) -> Sentence:
    """How many warps of a block wait at its barriers, and for whom."""
    return say(
        "A block of `{name}` has {warps} warps, {each} on each of {rows} rows. At a barrier all "
        "{warps} meet: the {each} warps of one row wait for the {others} of the others, which have "
        "nothing to tell them.",
        name=book.kernel.symbol,
        warps=book.kernel.block // WARP,
        each=book.kernel.threads_per_row // WARP,
        others=(book.kernel.block - book.kernel.threads_per_row) // WARP,
        rows=book.kernel.rows_per_block,
    )


def slots(book: Ledger) -> Sentence:
    """The shared memory that `block_warp` asks for as published, and what it needs: two values for
    each thread of a block, and for each warp."""
    return say(
        "As published a block asks for {asked:B}; it needs {used:B}, which is what ours asks for.",
        asked=2 * ITEMSIZE["float32"] * book.kernel.block,
        used=2 * ITEMSIZE["float32"] * book.kernel.block // WARP,
    )


def switched_off(book: Ledger) -> Sentence:
    """Why the GPU counts more shared-memory instructions of `block_tree` than its source asks for:
    an `if` that became predicates is executed by every warp."""
    warps, rounds = book.kernel.block // WARP, book.kernel.block.bit_length() - 1
    each = 2 * warps * (3 * rounds + 2)
    return say(
        "Of the shared-memory requests the GPU counts {seen}, the source asks for {derived}. The "
        "compiler made of the `if` in the tree a switch on each instruction, so all {warps} warps "
        "execute the three accesses of all {rounds} rounds, most of them with every lane off: two "
        "trees, {warps} warps, 3 · {rounds} + 2 accesses make {each} a row, {all} in all. An "
        "instruction without a lane moves nothing: of wavefronts the GPU counts {waves}, as "
        "derived.",
        seen=book.measured and book.measured.counts.shared_requests,
        derived=book.executed.shared_requests,
        warps=warps,
        rounds=rounds,
        each=each,
        all=each * book.rows,
        waves=book.measured and book.measured.counts.shared_wavefronts,
    )
