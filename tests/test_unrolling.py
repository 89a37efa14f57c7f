"""What unrolling adds to loads, against lanes that walk through the machine's loop one by one."""

from __future__ import annotations

from functools import cache

import pytest

from softmax_lab.coalescing import request, rows_on_boundary
from softmax_lab.unrolling import FLOATS, VECTORS, Loop, added, added_gemv

COLS = [1, 31, 32, 33, 64, 65, 96, 97, 100, 127, 128, 129, 161, 200, 1001, 1023, 1024]


def walked(lane: int, end: int, loop: Loop):
    """(place in the code, trip) of one lane, as the machine code counts: by comparisons with what
    is left."""
    i = lane
    while i < end and len(range(i, end, 32)) % loop.ahead:
        yield ("alone", i - lane), i
        i += 32
    for block in loop.blocks:
        turn = 0
        while len(range(i, end, 32)) >= block:
            for k in range(block):
                yield (block, turn, k), i
                i += 32
            turn += 1
    assert i >= end


def by_hand(starts, end: int, loop: Loop) -> tuple[int, int]:
    rows = [one_row(start % 32, end, loop) for start in starts]
    return sum(row[0] for row in rows), sum(row[1] for row in rows)


@cache
def one_row(start: int, end: int, loop: Loop) -> tuple[int, int]:
    machine, source = {}, {}
    for lane in range(32):
        for place, i in walked(lane, end, loop):
            address = start + loop.wide * i
            machine.setdefault(place, []).append(address)
            source.setdefault(i - lane, []).append(address)
    there, here = (
        sum(len(request(each, loop.wide).sectors) for each in requests.values())
        for requests in (machine, source)
    )
    return len(machine) - len(source), there - here


@pytest.mark.parametrize("cols", COLS)
@pytest.mark.parametrize("loop", [Loop((1,)), Loop((2, 1)), Loop((4, 1)), FLOATS], ids=str)
def test_lanes_that_leave_a_body_early_split_requests(cols, loop):
    assert added(70, cols, loop) == by_hand([4 * row * cols for row in range(70)], cols, loop)


@pytest.mark.parametrize("cols", COLS)
def test_a_matrix_and_a_vector_are_walked_in_the_same_way(cols):
    x = by_hand(70 * [0], cols, FLOATS)
    assert added_gemv(70, cols) == tuple(map(sum, zip(added(70, cols, FLOATS), x, strict=True)))


@pytest.mark.parametrize("cols", [*COLS, 132, 164, 260, 300, 516, 644, 2500])
def test_rows_at_sixteen_bytes_go_by_fours_and_the_others_do_not(cols):
    starts = [4 * row * cols for row in range(70)]
    quick = [start for start in starts if start % 16 == 0]
    assert len(quick) == rows_on_boundary(70, cols, 16)
    slow = [start for start in starts if start % 16]
    parts = [by_hand(quick, cols // 4, VECTORS), by_hand(len(quick) * [0], cols // 4, VECTORS)]
    parts += [by_hand(slow, cols, FLOATS), by_hand(len(slow) * [0], cols, FLOATS)]
    assert added_gemv(70, cols, vectors=True) == tuple(map(sum, zip(*parts, strict=True)))


@pytest.mark.parametrize("loop", [FLOATS, VECTORS], ids=str)
def test_lanes_with_as_many_trips_add_nothing(loop):
    width = loop.wide // 4
    for trips in (1, 2, 5, 31):
        assert added(70, 32 * width * trips, loop) == (0, 0)


def test_no_row_makes_no_request():
    assert (
        added(0, 5, FLOATS) == added(5, 0, FLOATS) == added_gemv(0, 5) == added_gemv(5, 0) == (0, 0)
    )


@pytest.mark.parametrize(
    ("loop", "more"), [(Loop((4, 1)), [3, 0, 0, 0]), (FLOATS, [3, 0, 1, 0])], ids=["ones", "halves"]
)
def test_what_a_row_gains_whose_last_trip_some_lanes_lack(loop, more):
    assert [added(1, 32 * trips - 1, loop)[0] for trips in (4, 5, 6, 7)] == more
