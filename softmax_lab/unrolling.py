"""What an unrolled loop adds to the loads of its source where lanes of a warp differ by a trip."""

from __future__ import annotations

from dataclasses import dataclass

from softmax_lab.coalescing import phases
from softmax_lab.facts import SECTOR, WARP


@dataclass(frozen=True)
class Loop:
    """How a compiler wrote a loop anew.

    A lane makes trips one at a time until what it has left is a multiple of `ahead`, then goes
    through bodies of `blocks` trips, largest first, each as often as it fits. `wide` [B] is what a
    lane loads in a trip.
    """

    blocks: tuple[int, ...]
    ahead: int = 1
    wide: int = 4

    def places(self, trips: int) -> list[tuple[int, int, int]]:
        """Where in the machine code each of a lane's trips runs: (body, turn of it, load in it)."""
        before = trips % self.ahead
        out, left = [(0, 0, k) for k in range(before)], trips - before
        for body, block in enumerate(self.blocks, 1):
            turns, left = divmod(left, block)
            out += [(body, turn, k) for turn in range(turns) for k in range(block)]
        return out


FLOATS = Loop((4, 2, 1))
"""The first pass of a softmax warp and the walk of a GEMV warp, float by float."""

VECTORS = Loop((16, 8, 4), ahead=4, wide=16)
"""The walk of a GEMV warp with four floats a load; one to three trips come first, alone.

Both as read in the machine code of NVRTC 12.9 for sm_90. The record, of NVRTC 13.0, agrees to the
unit at 250 x 1001, where some lanes make 32 trips over floats and others 31, 8 and 7 over vectors;
no recorded shape yet takes the body of two for some lanes and not for others.
"""


def added(rows: int, cols: int, loop: Loop, size: int = 4) -> tuple[int, int]:
    """(requests, sectors) that a warp-per-row pass over a packed (rows, cols) matrix makes beyond
    its source.

    Lanes that have a trip less than the others run some of their trips elsewhere in the code: a
    request of the source falls in two, or one of the machine holds two trips.
    """
    return _sum(
        (alike, _row(phase, cols * size, loop)) for phase, alike in phases(rows, cols, size)
    )


def added_gemv(rows: int, cols: int, vectors: bool = False, size: int = 4) -> tuple[int, int]:
    """(requests, sectors) that y = A x by a warp a row makes beyond its source, for A and for x,
    which starts at a boundary anew with each row; `vectors` takes rows that start at 16 bytes by
    fours."""
    parts = []
    for phase, alike in phases(rows, cols, size):
        loop, length = FLOATS, cols * size
        if vectors and phase % VECTORS.wide == 0:
            loop, length = VECTORS, length // VECTORS.wide * VECTORS.wide  # the rest is one trip
        parts += [(alike, _row(start, length, loop)) for start in (phase, 0)]
    return _sum(parts)


def _sum(parts) -> tuple[int, int]:
    requests = sectors = 0
    for alike, (more, wider) in parts:
        requests += alike * more
        sectors += alike * wider
    return requests, sectors


def _row(phase: int, length: int, loop: Loop) -> tuple[int, int]:
    """What one walk over `length` bytes that start `phase` past a sector's boundary adds."""
    trips, tail = divmod(length // loop.wide, WARP)
    if not tail:
        return 0, 0
    ways = ((0, tail, loop.places(trips + 1)), (tail, WARP, loop.places(trips)))
    requests: dict[tuple[int, int, int], set[int]] = {}
    plain: dict[int, set[int]] = {}
    for first, last, places in ways:
        for trip, place in enumerate(places):
            here = phase + loop.wide * (WARP * trip + first)
            end = here + loop.wide * (last - first)
            touched = range(here // SECTOR, (end - 1) // SECTOR + 1)
            requests.setdefault(place, set()).update(touched)
            plain.setdefault(trip, set()).update(touched)
    return len(requests) - len(plain), _touched(requests) - _touched(plain)


def _touched(requests: dict) -> int:
    return sum(map(len, requests.values()))
