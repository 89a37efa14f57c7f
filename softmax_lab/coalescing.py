"""From the addresses of a warp to the 32-byte sectors that move: how much of the traffic was asked
for."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from softmax_lab.facts import SECTOR, WARP


@dataclass(frozen=True)
class Request:
    """One load or store instruction of one warp: bytes its lanes asked for, distinct ones, sectors
    touched."""

    asked_bytes: int
    useful_bytes: int
    sectors: tuple[int, ...]

    @property
    def moved_bytes(self) -> int:
        """Bytes that move [B]: whole sectors."""
        return SECTOR * len(self.sectors)

    @property
    def efficiency(self) -> float:
        """Distinct bytes asked for over bytes moved; 1 is perfect, 1/8 is one fp32 word a
        sector."""
        return self.useful_bytes / self.moved_bytes


def request(addresses, size: int = 4) -> Request:
    """The request that lanes make when lane l reads or writes `size` bytes at `addresses[l]` [B] (1
    to 32 lanes).

    The order of the lanes does not matter and a byte asked for twice moves once. Leave inactive
    lanes out. Raises ValueError for no lane, more than a warp of lanes, a negative or a misaligned
    address.
    """
    at = np.asarray(addresses, dtype=np.int64).ravel()
    if not 1 <= at.size <= WARP:
        raise ValueError(f"a request has 1 to {WARP} active lanes, got {at.size} addresses")
    if size not in (1, 2, 4, 8, 16):
        raise ValueError(f"an access has 1, 2, 4, 8 or 16 bytes, got {size}")
    if (at < 0).any() or (at % size).any():
        bad = at[(at < 0) | (at % size != 0)][0]
        raise ValueError(
            f"an access of {size} bytes needs addresses that are multiples of {size}, got {bad}"
        )
    distinct = np.unique(at)  # aligned accesses of one size either coincide or are disjoint
    # An aligned access is at most 16 bytes, so it never crosses a sector boundary.
    sectors = np.unique(distinct // SECTOR)
    return Request(size * at.size, size * distinct.size, tuple(int(s) for s in sectors))


def strided(stride: int, *, base: int = 0, size: int = 4, lanes: int = WARP) -> Request:
    """The request of `lanes` lanes that read `size` bytes each, `stride` bytes apart, from byte
    `base` on. Raises ValueError as `request` does."""
    return request(base + stride * np.arange(lanes, dtype=np.int64), size)


def thread_per_row_sectors(rows: int, cols: int, size: int = 4) -> int:
    """Sectors of one pass over a packed (rows, cols) matrix when thread r walks row r, in closed
    form.

    A request is one column of 32 rows. Rows of at least 32 bytes put each lane in a sector of its
    own; shorter rows leave no gap wider than a sector, so a request touches every sector from its
    first address to its last.
    """
    if rows <= 0 or cols <= 0:
        return 0
    pitch = cols * size
    if pitch >= SECTOR:
        return rows * cols
    full, tail = divmod(rows, WARP)

    def one_warp(lanes: int) -> int:
        # A warp starts at row 32w, hence at a sector boundary: only its own offsets matter.
        last = (lanes - 1) * pitch
        return sum((last + i * size) // SECTOR - i * size // SECTOR + 1 for i in range(cols))

    return full * one_warp(WARP) + (one_warp(tail) if tail else 0)


def turns_with_a_new_sector(cols: int, turn: int, size: int = 4) -> int:
    """Turns of `turn` steps along packed rows of `cols` elements, one row a lane, in which some
    lane of a warp enters a sector that it has not read from.

    Rows of a whole number of sectors let all lanes enter theirs at the same step; of other rows
    each lane does so at its own. A last turn may be shorter. Raises ValueError for rows without
    elements and turns without steps.
    """
    if cols < 1 or turn < 1:
        raise ValueError(f"a row has 1 element or more and a turn 1 step, got {cols} and {turn}")
    place = (np.arange(WARP)[:, None] * cols + np.arange(cols)) * size % SECTOR
    # All lanes enter one at the first step, lane 0 at a sector's first byte.
    return len(np.unique(np.flatnonzero((place == 0).any(axis=0)) // turn))


def warp_per_row_sectors(rows: int, cols: int, size: int = 4) -> int:
    """Sectors of one pass over a packed (rows, cols) matrix when 32 neighbouring lanes walk a row,
    in closed form.

    A full request is 128 contiguous bytes: 4 sectors from a sector boundary on, 5 from anywhere
    else. Row r starts `r * cols * size` bytes in, so the phase of the rows repeats every 32/size
    rows.
    """
    return sum(
        alike * _walk(phase, cols * size, WARP * size) for phase, alike in phases(rows, cols, size)
    )


def rows_on_boundary(rows: int, cols: int, wide: int, size: int = 4) -> int:
    """How many rows of a packed (rows, cols) matrix start at a multiple of `wide` bytes."""
    if rows <= 0:
        return 0
    return -(-rows // (wide // math.gcd(wide, cols * size)))


def vectors_per_row_sectors(rows: int, cols: int, wide: int = 16, size: int = 4) -> int:
    """Sectors of one pass when a warp walks a row with loads of `wide` bytes a lane: closed form.

    Only rows that start at a multiple of `wide` bytes are read so; what is left over at their ends
    goes in one request, and other rows are walked element by element.
    """
    total = 0
    for phase, alike in phases(rows, cols, size):
        if phase % wide:
            total += alike * _walk(phase, cols * size, WARP * size)
        else:
            rest = cols * size % wide  # it starts at a multiple of `wide`: one sector
            total += alike * (_walk(phase, cols * size - rest, WARP * wide) + (rest > 0))
    return total


def vectors_per_row_requests(rows: int, cols: int, wide: int = 16, size: int = 4) -> int:
    """Load requests of the pass that `vectors_per_row_sectors` describes."""
    if rows <= 0 or cols <= 0:
        return 0
    quick, (vectors, rest) = rows_on_boundary(rows, cols, wide, size), divmod(cols * size, wide)
    return quick * (-(-vectors // WARP) + (rest > 0)) + (rows - quick) * -(-cols // WARP)


def shared_vectors_sectors(rows: int, cols: int, wide: int = 16, size: int = 4) -> int:
    """Sectors of a vector (cols,) that starts at a boundary and is walked anew with each row, in
    that row's way."""
    if rows <= 0 or cols <= 0:
        return 0
    quick, rest = rows_on_boundary(rows, cols, wide, size), cols * size % wide
    whole = -(-(cols * size - rest) // SECTOR) + (rest > 0)
    return quick * whole + (rows - quick) * -(-cols * size // SECTOR)


def phases(rows: int, cols: int, size: int) -> list[tuple[int, int]]:
    """(bytes past a sector's boundary at which a row starts, rows that start so): rows 32 apart are
    alike."""
    if rows <= 0 or cols <= 0:
        return []
    firsts = range(min(rows, SECTOR))
    return [(r * cols * size % SECTOR, -(-(rows - r) // SECTOR)) for r in firsts]


def _walk(phase: int, length: int, step: int) -> int:
    """Sectors of `length` contiguous bytes that start `phase` past a boundary and are read in
    requests of `step` bytes, a whole number of sectors: each request has the first one's phase."""
    full, rest = divmod(length, step)
    sectors = full * -(-(phase + step) // SECTOR)
    return sectors + (-(-(phase + rest) // SECTOR) if rest else 0)
