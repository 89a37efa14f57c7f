"""From the addresses of a warp to the 32-byte sectors that move: how much of the traffic was asked
for."""

from __future__ import annotations

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


def warp_per_row_sectors(rows: int, cols: int, size: int = 4) -> int:
    """Sectors of one pass over a packed (rows, cols) matrix when 32 neighbouring lanes walk a row,
    in closed form.

    A full request is 128 contiguous bytes: 4 sectors from a sector boundary on, 5 from anywhere
    else. Row r starts `r * cols * size` bytes in, so the phase of the rows repeats every 32/size
    rows.
    """
    if rows <= 0 or cols <= 0:
        return 0
    full, tail = divmod(cols, WARP)
    total = 0
    for first in range(min(rows, SECTOR)):
        alike = -(-(rows - first) // SECTOR)  # rows first, first + 32, … share their phase
        phase = first * cols * size % SECTOR
        whole = -(-(phase + WARP * size) // SECTOR)
        # 32 elements are a whole number of sectors, so each request of a row has the row's phase.
        part = -(-(phase + tail * size) // SECTOR) if tail else 0
        total += alike * (full * whole + part)
    return total


def added_by_unrolling(rows: int, cols: int, unroll: int, size: int = 4) -> tuple[int, int]:
    """(requests, sectors) that a warp-per-row pass makes beyond its source when the compiler
    unrolls its loop `unroll` times.

    Where the last group of trips is a whole one for some lanes and one trip short for the others,
    the others leave the unrolled body and make their last trips by themselves: `unroll - 1`
    requests of a row fall in two, and a sector on the seam counts twice.
    """
    trips, tail = -(-cols // WARP), cols % WARP
    if rows <= 0 or not tail or trips % unroll:
        return 0, 0
    # Every 32nd row starts at the same phase of a sector, and so does the seam behind lane `tail`.
    seams = sum(
        -(-(rows - first) // SECTOR)
        for first in range(min(rows, SECTOR))
        if (first * cols + tail) * size % SECTOR
    )
    return (unroll - 1) * rows, (unroll - 1) * seams
