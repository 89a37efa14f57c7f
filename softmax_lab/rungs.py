"""The ladder so far: what each rung asks for, what it moves, and what the clock says of it."""

from __future__ import annotations

from collections.abc import Sequence

from softmax_lab.ledger import Ledger
from softmax_lab.prose import Table, names
from softmax_lab.roofline import moved_bytes
from softmax_lab.runs import provenance, shape, share_of_copy
from softmax_lab.units import MISSING, number, percent, times

HEADS = (
    "rung",
    "asked [B]",
    "moved [B]",
    "[FLOP/B]",
    "time [µs]",
    "gain",
    "of copy",
)


def table(books: Sequence[Ledger]) -> Table:
    """Rungs at one shape (M, N), a rung a line: bytes that lanes ask for and that L1 moves for one
    element, useful FLOPs over the bytes moved.

    `gain` is the first rung's time over this one's, `of copy` the rate of useful bytes over
    the copy kernel's in the same run. Raises ValueError where the shapes differ.
    """
    shapes = {(book.rows, book.cols) for book in books}
    if len(shapes) != 1:
        raise ValueError(f"rungs are compared at one shape, got {sorted(shapes) or 'none'}")
    rows, cols = shapes.pop()
    elements = rows * cols
    lines = []
    for book in books:
        moved = moved_bytes(book.executed)["L1"]
        first, mine = books[0].measured, book.measured
        timed = mine is not None and mine.seconds
        both = timed and first is not None and first.seconds
        lines.append(
            (
                f"`{book.kernel.symbol}`",
                number(book.executed.bytes / elements),
                number(moved / elements),
                number(book.textbook.flops / moved),
                number(mine.seconds * 1e6) if timed else MISSING,
                times(first.seconds / mine.seconds) if both else MISSING,
                percent(share_of_copy(mine)),
            )
        )
    known = [book.measured for book in books if book.measured and book.measured.seconds]
    said = f"{known[0].dtype}; {provenance(*known)}" if known else f"Time: {MISSING}."
    flops = "FLOPs of the textbook"
    if doubles := [f"`{book.kernel.symbol}`" for book in books if book.executed.f64]:
        flops += f" (of {names(doubles)} without those in double)"
    note = (
        f"On {shape(rows, cols)}. Bytes of one element, asked for by lanes and moved at L1; "
        f"{flops} over the bytes moved; useful bytes a second over the copy's. {said}"
    )
    return Table(HEADS, tuple(lines), frozenset(range(1, len(HEADS))), note=note)
