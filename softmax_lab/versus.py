"""Kernels beside each other: what a step costs in each form, counts, sectors, warps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from softmax_lab import coalescing, cost, online
from softmax_lab.counts import FIELDS, Counts
from softmax_lab.facts import GPUS, ITEMSIZE, WARP
from softmax_lab.findings import WORDS
from softmax_lab.ledger import Ledger
from softmax_lab.plots import REFERENCE_GPU
from softmax_lab.prose import Sentence, Table, names, say
from softmax_lab.runs import shape
from softmax_lab.units import number, percent

MERGE = (
    *("maximum of the row", "before the reuse", "correction", "sum of the row"),
    *("merge of the lanes", "merge of the threads"),
)
"""Phases in which the lanes or threads of a row put their partial results together."""


def forms(books: Sequence[Ledger], phase: str, fields: Sequence[str]) -> Table:
    """One phase's closed forms, a kernel a row."""
    rows = []
    for book in books:
        (here,) = (each for each in book.kernel.executed if each.name == phase)
        cells = (
            rf"\({cost.latex(here.formulas[f])}\)" if f in here.formulas else "–" for f in fields
        )
        rows.append((f"`{book.kernel.symbol}`", *cells))
    heads = ("kernel", *(WORDS[field] for field in fields))
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))))


def counts(books: Sequence[Ledger], fields: Sequence[str]) -> Table:
    """Counted values of several kernels at one shape, a kernel a column."""
    rows = [
        (WORDS[field], *(number(getattr(book.counted, field)) for book in books))
        for field in fields
    ]
    heads = (shape(books[0].rows, books[0].cols), *(f"`{book.kernel.symbol}`" for book in books))
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))), note="Counted on one matrix.")


def by_data(book: Ledger, counted: Mapping[str, Counts]) -> Table:
    """What a kernel's counts owe to the data: those that differ between matrices of the ledger's
    shape, a matrix a row by what it is called; the note lists the counts that are the same."""
    values = {f: [getattr(each, f) for each in counted.values()] for f in ("flops", *FIELDS)}
    known = [f for f, each in values.items() if any(each)]
    moved = [f for f in known if len(set(values[f])) > 1]
    cells = [(name, *(number(getattr(each, f)) for f in moved)) for name, each in counted.items()]
    note = say(
        "`{kernel}` on {rows} × {cols}, counted. The same on all of them: {same}.",
        kernel=book.kernel.symbol,
        rows=book.rows,
        cols=book.cols,
        same=names([WORDS[f].removesuffix(" [B]") for f in known if f not in moved]),
    )
    heads = ("scores of a row", *(WORDS[f] for f in moved))
    return Table(heads, tuple(cells), frozenset(range(1, len(heads))), note=note.words)


def exact(differences: Mapping[str, Counts]) -> Sentence:
    """Whether counted minus derived is nothing, for several kernels: `{name: count - derive}`."""
    apart = [
        f"`{name}` in {names([WORDS[f] for f, v in gap.known().items() if v])}"
        for name, gap in differences.items()
        if any(gap.known().values())
    ]
    if apart:
        return say("Counted and derived differ: {which}.", which="; ".join(apart))
    fields = {len(gap.known()) for gap in differences.values()}
    return say(
        "Counted minus derived, from the same matrix: **zero** in all {n} counts, for {who}.",
        n=max(fields),
        who=names([f"`{name}`" for name in differences]),
    )


def rises(lengths: Sequence[int], rows: int, matrix: Callable[[int, int], np.ndarray]) -> Table:
    """How often a running maximum rises in rows of each length: expected and seen.

    `matrix(rows, cols)` gives the data; "diverging steps" are those of warps that walk 32 rows.
    """
    cells = []
    for cols in lengths:
        x = matrix(rows, cols)
        seen = online.updates(x) / rows
        split = online.diverged(x) / (-(-rows // 32) * cols)
        cells.append(
            (
                number(cols),
                number(online.harmonic(cols)),
                number(seen),
                percent(seen / cols),
                percent(split),
            )
        )
    heads = ("row length", "expected, \\(H_N\\)", "seen", "of elements", "diverging steps")
    note = say("Rises of a row: expected, and the mean of {rows} random rows.", rows=rows)
    return Table(heads, tuple(cells), frozenset(range(5)), note=str(note))


def rise_share(x: np.ndarray) -> Sentence:
    """How few elements are a new maximum, and how many warp steps diverge all the same."""
    rows, cols = x.shape
    seen = online.updates(x)
    return say(
        "On {rows} × {cols} the maximum rises {seen} times, {each} a row, where \\(H_N\\) is "
        "{expected}. That is {share:%} of the elements; yet with 32 rows side by side {split:%} of "
        "the warps' steps diverge.",
        rows=rows,
        cols=cols,
        seen=seen,
        each=seen / rows,
        expected=online.harmonic(cols),
        share=seen / x.size,
        split=online.diverged(x) / (-(-rows // 32) * cols),
    )


def walks(x: np.ndarray, threads: int) -> Sentence:
    """R of one walk over each row against R of `threads` walks, seen and expected."""
    rows, cols = x.shape
    return say(
        "On {rows} × {cols} one walk over each row meets {one} new maxima ({e1} are expected), {t} "
        "walks meet {many} ({e2} are expected).",
        rows=rows,
        cols=cols,
        one=online.updates(x),
        e1=online.expected_updates(rows, cols),
        t=threads,
        many=online.updates(x, threads),
        e2=online.expected_updates(rows, cols, threads),
    )


def merge_share(book: Ledger) -> Sentence:
    """FLOPs of putting a row together, as a share of all others: textbook, and as executed."""
    said, total = _merge(book.kernel.textbook, book)
    done, _ = _merge(book.kernel.executed, book)
    return say(
        "Putting a row together takes {said} FLOPs by the textbook and {done} as executed. On rows "
        "of {cols} floats that is {a:%} and {b:%} of the FLOPs that the row takes anyway.",
        said=said / book.rows,
        done=done / book.rows,
        cols=book.cols,
        a=said / (total - said),
        b=done / (total - said),
    )


def _merge(phases: Sequence[cost.Phase], book: Ledger) -> tuple[float, float]:
    flops = {phase.name: cost.evaluate((phase,), book.symbol).flops for phase in phases}
    return sum(flops[name] for name in MERGE if name in flops), sum(flops.values())


def row_lengths(lengths: Sequence[int], rows: int, count_at: Callable[[int], Counts]) -> Table:
    """Sectors per load request when a warp shares a row, by row length: model, counted, and the
    used share beside that of thread-per-row reads."""
    cells = []
    for cols in lengths:
        counted = count_at(cols)
        requests = rows * -(-cols // 32)
        model = coalescing.warp_per_row_sectors(rows, cols)
        apart = coalescing.thread_per_row_sectors(rows, cols)
        cells.append(
            (
                number(cols),
                number(model / requests),
                number(counted.load_sectors / counted.load_requests),
                percent(counted.load_efficiency),
                percent(ITEMSIZE["float32"] * rows * cols / (32 * apart)),
                percent(cols / (32 * -(-cols // 32))),
            )
        )
    heads = ("row length", "model", "counted", "bytes used", "thread per row", "lanes at work")
    note = (
        "Model and counted: sectors of a load request, on average. Thread per row: the bytes used "
        "when each lane reads in a row of its own."
    )
    return Table(heads, tuple(cells), frozenset(range(6)), note=note)


def moved(book: Ledger) -> Sentence:
    """Bytes that lanes ask for and bytes that move at L1, per element, and both intensities."""
    moved = 32 * (book.executed.load_sectors + book.executed.store_sectors)
    elements = book.rows * book.cols
    flops = book.textbook.flops
    return say(
        "`{name}` on {rows} × {cols}: {asked} bytes an element asked for, {moved} moved at L1. Its "
        "{flops} FLOPs an element, by the textbook, make {a} FLOP/B of what is asked for, and {b} "
        "FLOP/B of what moves.",
        name=book.kernel.symbol,
        rows=book.rows,
        cols=book.cols,
        asked=book.executed.bytes / elements,
        moved=moved / elements,
        flops=flops / elements,
        a=flops / book.executed.bytes,
        b=flops / moved,
    )


def crowd(books: Sequence[Ledger]) -> Sentence:
    """How many blocks and warps each kernel launches at its shape, beside a GPU's
    multiprocessors."""
    gpu = GPUS[REFERENCE_GPU]
    said = []
    for book in books:
        blocks, _ = book.kernel.geometry(book.rows)
        warps = blocks * -(-book.kernel.block // WARP)
        said.append(
            f"`{book.kernel.symbol}` launches {number(blocks)} blocks, {number(warps)} warps"
        )
    return say(
        "On {rows} rows {said}. An {gpu} has {n} multiprocessors.",
        rows=books[0].rows,
        said=names(said),
        gpu=gpu.name.removeprefix("NVIDIA "),
        n=gpu.multiprocessors,
    )


def divergence(book: Ledger) -> Sentence:
    """How many of the steps at which a warp's lanes ask "is it a new maximum?" split the warp."""
    steps = book.counted.load_requests / 2  # one of the two passes that read
    return say(
        "The lanes of a warp disagree in {split} of the {steps} steps of the pass, {share:%}.",
        split=book.counted.diverged,
        steps=steps,
        share=book.counted.diverged / steps,
    )
