import numpy as np
import pytest

from softmax_lab.coalescing import (
    request,
    rows_on_boundary,
    strided,
    thread_per_row_sectors,
    turns_with_a_new_sector,
    vectors_per_row_sectors,
    warp_per_row_sectors,
)


@pytest.mark.parametrize(
    ("stride", "base", "size", "sectors", "efficiency"),
    [
        (4, 0, 4, 4, 1.0),
        (4, 4, 4, 5, 0.8),
        (8, 0, 4, 8, 0.5),
        (8, 28, 4, 9, 128 / 288),
        (4096, 0, 4, 32, 0.125),
        (0, 0, 4, 1, 0.125),
        (-4, 124, 4, 4, 1.0),
        (16, 0, 16, 16, 1.0),
    ],
)
def test_one_warp(stride, base, size, sectors, efficiency):
    # R06: shifted, strided, broadcast, reversed and vector accesses.
    got = strided(stride, base=base, size=size)
    assert len(got.sectors) == sectors
    assert got.efficiency == pytest.approx(efficiency)


def test_order_of_lanes_does_not_matter_and_duplicates_move_once():
    rng = np.random.default_rng(3)
    addresses = 4 * rng.integers(0, 200, 32)
    assert request(addresses) == request(rng.permutation(addresses))
    assert request(np.concatenate([addresses[:16]] * 2)).sectors == request(addresses[:16]).sectors


def test_broadcast_is_asked_for_32_times_and_useful_once():
    got = strided(0)
    assert (got.asked_bytes, got.useful_bytes, got.moved_bytes) == (128, 4, 32)


@pytest.mark.parametrize("addresses", [[], list(range(0, 132, 4)), [2], [-4]])
def test_bad_requests(addresses):
    with pytest.raises(ValueError, match=r"a request has|needs addresses"):
        request(addresses)


def test_bad_size():
    with pytest.raises(ValueError, match="got 3"):
        request([0], size=3)


@pytest.mark.parametrize("size", [2, 4])
def test_closed_form_is_the_sum_of_requests(size):
    rng = np.random.default_rng(7)
    shapes = [
        (m, n)
        for m in (1, 2, 31, 32, 33, 65, 100)
        for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 33)
    ]
    shapes += [tuple(int(v) for v in rng.integers(1, 90, 2)) for _ in range(40)]
    for rows, cols in shapes:
        want = 0
        for first in range(0, rows, 32):
            mine = np.arange(first, min(first + 32, rows))
            want += sum(len(request((mine * cols + i) * size, size).sectors) for i in range(cols))
        assert thread_per_row_sectors(rows, cols, size) == want, (rows, cols)


def test_closed_form_of_nothing():
    assert thread_per_row_sectors(0, 5) == thread_per_row_sectors(5, 0) == 0


@pytest.mark.parametrize("size", [2, 4])
def test_closed_form_of_a_warp_per_row_is_the_sum_of_requests(size):
    rng = np.random.default_rng(11)
    shapes = [(m, n) for m in (1, 2, 9, 33) for n in (1, 7, 8, 31, 32, 33, 64, 65, 100, 1001)]
    shapes += [tuple(int(v) for v in rng.integers(1, 200, 2)) for _ in range(40)]
    for rows, cols in shapes:
        want = 0
        for row in range(rows):
            for first in range(0, cols, 32):
                mine = np.arange(first, min(first + 32, cols))
                want += len(request((row * cols + mine) * size, size).sectors)
        assert warp_per_row_sectors(rows, cols, size) == want, (rows, cols)


def test_closed_form_of_loads_of_four_is_the_sum_of_requests():
    rng = np.random.default_rng(13)
    shapes = [(m, n) for m in (1, 2, 5, 33) for n in (1, 3, 4, 8, 12, 127, 128, 130, 132, 1001)]
    shapes += [tuple(int(v) for v in rng.integers(1, 300, 2)) for _ in range(40)]
    for rows, cols in shapes:
        want = vectors = 0
        for row in range(rows):
            start, at = 4 * row * cols, 0
            if start % 16 == 0:
                vectors += 1
                for first in range(0, cols // 4, 32):
                    mine = np.arange(first, min(first + 32, cols // 4))
                    want += len(request(start + 16 * mine, 16).sectors)
                at = cols // 4 * 4
            for first in range(at, cols, 32):
                mine = np.arange(first, min(first + 32, cols))
                want += len(request(start + 4 * mine).sectors)
        assert vectors_per_row_sectors(rows, cols) == want, (rows, cols)
        assert rows_on_boundary(rows, cols, 16) == vectors, (rows, cols)
    assert rows_on_boundary(0, 4, 16) == vectors_per_row_sectors(0, 4) == 0


@pytest.mark.parametrize(
    ("cols", "efficiency"),
    [(1000, 1.0), (1001, 0.817), (1023, 0.820), (100, 0.862), (33, 0.702), (7, 0.5)],
)
def test_a_warp_per_row_is_perfect_only_from_sector_boundaries(cols, efficiency):
    rows = 256
    moved = 32 * warp_per_row_sectors(rows, cols)
    assert 4 * rows * cols / moved == pytest.approx(efficiency, abs=6e-4)


@pytest.mark.parametrize("cols", [1, 3, 7, 8, 12, 33, 100, 1001, 1024])
def test_steps_at_which_a_lane_enters_a_sector(cols):
    entered, before = 0, set()
    for i in range(cols):
        sectors = {(lane, (lane * cols + i) * 4 // 32) for lane in range(32)}
        entered += bool(sectors - before)
        before |= sectors
    assert turns_with_a_new_sector(cols, 1) == entered


@pytest.mark.parametrize("turn", [2, 4, 16])
@pytest.mark.parametrize("cols", [1, 7, 8, 12, 33, 100, 1004, 1024])
def test_a_turn_holds_the_misses_of_its_steps(cols, turn):
    steps = [any((lane * cols + i) % 8 == 0 for lane in range(32)) for i in range(cols)]
    turns = [any(steps[at : at + turn]) for at in range(0, cols, turn)]
    assert turns_with_a_new_sector(cols, turn) == sum(turns)


def test_a_row_without_elements_has_no_steps():
    with pytest.raises(ValueError, match="got 0"):
        turns_with_a_new_sector(0, 1)
    with pytest.raises(ValueError, match="got 8 and 0"):
        turns_with_a_new_sector(8, 0)
