"""What the GPU executed for the operations of the source: branches, exponentials, instructions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softmax_lab import cost
from softmax_lab.counters import OPCODES
from softmax_lab.facts import WARP
from softmax_lab.ledger import Ledger
from softmax_lab.prose import Sentence, Table, names, say, seen_columns
from softmax_lab.runs import provenance, shape
from softmax_lab.units import MISSING, number

INSTRUCTIONS = "smsp__inst_executed.sum"
DIVERGENT = "smsp__sass_branch_targets_threads_divergent.sum"


def branches(book: Ledger) -> Sentence:
    """Which `if` statements of the source the branches of a ledger are, phase by phase."""
    parts = [
        f"{number(cost.value(phase.formulas['branches'], book.symbol))} in the phase "
        rf"“{phase.name}”, \({cost.latex(phase.formulas['branches'])}\)"
        for phase in book.kernel.executed
        if "branches" in phase.formulas
    ]
    return say(
        "Branches met by warps, {n}: {parts}. Each is an `if` of the source, counted once for each "
        "warp that comes to it. A loop's own test is no `if`, so this is not the number of branch "
        "instructions that the GPU executed: {seen}.",
        n=book.executed.branches,
        parts=names(parts),
        seen=_counter(book, f"{OPCODES}.BRA"),
    )


def per_column(books: Sequence[Ledger]) -> Table | Sentence:
    """What a lane computes and a warp executes for one column of its rows, a kernel a row.

    A column of a warp is a store request: every element is stored once.
    """
    rows = []
    for book in books:
        if _counter(book, INSTRUCTIONS) is None:
            continue
        columns, elements = book.executed.store_requests, book.rows * book.cols
        cells = (
            (book.executed.exp + book.executed.div) / elements,
            _counter(book, f"{OPCODES}.MUFU") / columns,
            _counter(book, INSTRUCTIONS) / columns,
        )
        split = (book.counted and book.counted.diverged, _counter(book, DIVERGENT))
        rows.append((f"`{book.kernel.symbol}`", *map(number, (*cells, *split))))
    if not rows:
        return say("What the GPU executed: not measured yet.")
    heads = (
        *("kernel", "exponentials and divisions", "special-function instructions"),
        *("all instructions", "diverged, counted", "diverged, measured"),
    )
    heads, rows = seen_columns(heads, rows)
    where = shape(books[0].rows, books[0].cols)
    about = provenance(*(book.measured for book in books), of=("counters",))
    note = (
        f"{where}, for one column: exponentials and divisions of a lane, by the source; "
        f"instructions that a warp executed. Diverged: branches of the whole launch. {about}"
    )
    return Table(heads, rows, frozenset(range(1, len(heads))), note=note)


def both_sides(book: Ledger, unroll: int = 4) -> Sentence:
    """Whether the compiler took the step's branch away in all but one step of a pass unrolled
    `unroll` times: the special-function instructions that this makes against those executed.

    A step that computes both sides has two exponentials, one that branches has one, and one more
    where its lanes disagree.
    """
    seen, split = _counter(book, f"{OPCODES}.MUFU"), _counter(book, DIVERGENT)
    if seen is None or split is None:
        return say(f"Special-function instructions of the GPU: {MISSING}.")
    done, walks = book.executed, -(-book.rows * book.kernel.threads_per_row // WARP)
    once = (done.exp + done.div) * done.store_requests / (book.rows * book.cols)
    twice = walks * (done.store_requests // walks // unroll) * (unroll - 1)
    made = once + twice + split
    return say(
        "With one exponential a step, and a reciprocal for each division, the warps would execute "
        "{once} special-function instructions; they executed {seen}. If {most} of {unroll} steps "
        "compute both sides whatever their lanes say, that is {twice} more, and the steps that do "
        "branch add one for each of the {split} branches that diverged there. Together {made}: "
        "{verdict}.",
        once=once,
        seen=seen,
        most=unroll - 1,
        unroll=unroll,
        twice=twice,
        split=split,
        made=made,
        verdict="the number executed, to the unit" if made == seen else "not the number executed",
    )


def price_of_divergence(books: Sequence[Ledger]) -> Sentence:
    """Instructions of a step, of a row and of a divergent branch, from three recorded shapes of a
    kernel with a warp on a row, and what share of the first shape's they are.

    Raises ValueError for another number of shapes.
    """
    if len(books) != 3:
        raise ValueError(f"three unknowns take three shapes, got {len(books)}")
    seen = [[_counter(book, name) for name in (INSTRUCTIONS, DIVERGENT)] for book in books]
    if any(value is None for pair in seen for value in pair):
        return say(f"Instructions that divergence cost: {MISSING}.")
    executed = [pair[0] for pair in seen]
    table = [
        (book.executed.store_requests, book.rows, pair[1])
        for book, pair in zip(books, seen, strict=True)
    ]
    step, row, branch = (
        round(each, 6) for each in np.linalg.solve(np.array(table, float), np.array(executed))
    )
    split = seen[0][1]
    whole = all(float(4 * price).is_integer() for price in (step, row, branch))
    return say(
        "Three recorded shapes, {shapes}, fix three prices: {step:4} instructions for a step of "
        "the two passes, {row:4} for what a row needs besides, and {branch:4} for a branch that "
        "diverges{whole}. On the first shape {split} branches diverged in the machine; that is "
        "**{share:%}** of all instructions.",
        whole=", all in whole quarters, as a loop of four steps a turn must have them"
        if whole
        else "",
        shapes=names([shape(book.rows, book.cols) for book in books]),
        step=step,
        row=row,
        branch=branch,
        split=split,
        share=branch * split / executed[0],
    )


def _counter(book: Ledger, name: str) -> float | None:
    return book.measured.counters.get(name) if book.measured else None
