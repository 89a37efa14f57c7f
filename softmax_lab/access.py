"""Access patterns of y = A x in tables and sentences: sectors by array, by stride, by alignment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from softmax_lab import coalescing, cost
from softmax_lab.counts import Counts
from softmax_lab.facts import SECTOR
from softmax_lab.ledger import Ledger
from softmax_lab.prose import Sentence, Table, say
from softmax_lab.records import Measured
from softmax_lab.runs import provenance, shape, share_of_copy
from softmax_lab.units import MISSING, number, percent, times

ARRAYS = ("A", "x")
"""Phases in which a kernel of the family loads one of its arrays."""


def loads(book: Ledger, array: str) -> Counts:
    """What loading one array costs at a ledger's shape, in closed form."""
    (phase,) = (each for each in book.kernel.executed if each.name == array)
    return cost.evaluate((phase,), book.symbol)


def per_load(book: Ledger, executed: Counts) -> dict[str, float]:
    """Sectors of one load of A by level (see `predictions`): derived at a ledger's shape, counted
    when `executed` is one such load by itself."""
    each = loads(book, "A")
    return {
        "derived": each.load_sectors / each.load_requests,
        "counted": executed.load_sectors / executed.load_requests,
    }


def by_array(books: Sequence[Ledger]) -> Table:
    """Load requests and sectors of A and of x, kernel by kernel."""
    rows = []
    for book in books:
        for array in ARRAYS:
            each = loads(book, array)
            rows.append(
                (
                    f"`{book.kernel.symbol}`",
                    array,
                    number(each.load_requests),
                    number(each.load_sectors),
                    number(each.load_sectors / each.load_requests),
                    percent(each.load_efficiency),
                )
            )
    heads = ("kernel", "array", "load requests", "sectors", "sectors per request", "bytes used")
    note = f"Derived, at {shape(books[0].rows, books[0].cols)}."
    return Table(heads, tuple(rows), frozenset(range(2, 6)), note=note)


def patterns(books: Mapping[str, Ledger]) -> Table:
    """Sectors of all loads, by access pattern: derived, counted and the GPU's own counter."""
    rows = []
    for words, book in books.items():
        each = loads(book, "A")
        seen = book.measured.counts.load_sectors if book.measured else None
        rows.append(
            (
                words,
                shape(book.rows, book.cols),
                number(each.load_sectors / each.load_requests),
                number(book.executed.load_sectors),
                number(book.counted and book.counted.load_sectors),
                number(seen),
            )
        )
    heads = ("lanes read A", "shape", "one load of A", "derived", "counted", "hardware")
    known = next((b.measured for b in books.values() if b.measured and b.measured.counters), None)
    note = "Sectors; those derived, counted and of the hardware are of all loads, x included. "
    note += f"Hardware: {provenance(known)}" if known else f"Hardware counters: {MISSING}."
    return Table(heads, tuple(rows), frozenset(range(2, 6)), note=note)


def promise(before: Ledger, after: Ledger) -> dict[str, float]:
    """How many times fewer bytes `after` moves, by what one looks at: A at L1, all loads at L1, and
    each input once."""
    bytes_ = {"A": [loads(book, "A").load_sectors for book in (before, after)]}
    bytes_["loads"] = [book.executed.load_sectors for book in (before, after)]
    bytes_["once"] = [book.kernel.family.once(book.rows, book.cols) for book in (before, after)]
    return {what: a / b for what, (a, b) in bytes_.items()}


def promised(before: Ledger, after: Ledger) -> Sentence:
    """The three ratios of `promise`, with the bytes per element of A behind them."""
    ratio = promise(before, after)
    elements = before.rows * before.cols

    def moved(book: Ledger) -> float:
        return SECTOR * book.executed.load_sectors / elements

    return say(
        "From `{a}` to `{b}`, on {rows} × {cols}: loads of A touch **{A:×}** fewer sectors. With "
        "those of x it is **{loads:×}**: {before} bytes move at L1 for each element of A, then "
        "{after}. And of what has to come from DRAM, each input once, the ratio is {once:×}.",
        a=before.kernel.symbol,
        b=after.kernel.symbol,
        rows=before.rows,
        cols=before.cols,
        before=moved(before),
        after=moved(after),
        **ratio,
    )


def alignment(
    lengths: Sequence[int],
    rows: int,
    count_at: Callable[[int], tuple[Counts, Counts]],
    recorded: Callable[[int], tuple[Measured | None, Measured | None]],
) -> Table:
    """What loads of four floats do on rows of each length: rows that allow them, requests against
    those of loads of one, sectors, and recorded times.

    `count_at(cols)` counts (one float, four floats) on `rows` rows; `recorded(cols)` finds both
    runs.
    """
    cells, known = [], None
    for cols in lengths:
        one, four = count_at(cols)
        runs = recorded(cols)
        timed = all(run is not None and run.seconds for run in runs)
        known = runs[1] if timed else known
        cells.append(
            (
                number(cols),
                percent(coalescing.rows_on_boundary(rows, cols, 16) / rows),
                times(one.load_requests / four.load_requests),
                number(one.load_sectors / rows),
                number(four.load_sectors / rows),
                times(runs[0].seconds / runs[1].seconds) if timed else MISSING,
            )
        )
    heads = ("row length", "rows on 16 bytes", "fewer requests", "sectors", "by four", "faster")
    note = f"Counted on {number(rows)} rows, A and x together; sectors of a row. Faster: "
    note += f"{number(known.rows)} rows, {provenance(known)}" if known else f"{MISSING}."
    return Table(heads, tuple(cells), frozenset(range(6)), note=note)


def useful_rates(recorded: Mapping[str, Sequence[Measured | None]]) -> Table | Sentence:
    """Rates of useful bytes of several kernels beside the copy's, a shape a row."""
    rows = []
    for runs in zip(*recorded.values(), strict=True):
        timed = [run for run in runs if run is not None and run.seconds]
        if timed:
            known = timed[0]
            cells = (percent(share_of_copy(run)) for run in runs)
            rows.append((shape(known.rows, known.cols), *cells))
    if not rows:
        return say("Rates on a GPU: not measured yet.")
    heads = ("shape", *(f"`{name}`" for name in recorded))
    note = f"Useful bytes a second, as a share of the copy's; {known.dtype}; {provenance(known)}"
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))), note=note)
