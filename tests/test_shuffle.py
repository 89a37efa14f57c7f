import numpy as np
import pytest

from softmax_lab.shuffle import reduce, shuffle, steps_per_row

LANES = np.arange(32, dtype=np.float32)


@pytest.mark.parametrize(
    ("kind", "argument", "width", "source"),
    [
        ("down", 5, 32, lambda n: n + 5 if n + 5 < 32 else n),
        ("up", 5, 32, lambda n: n - 5 if n >= 5 else n),
        ("xor", 9, 32, lambda n: n ^ 9),
        ("idx", 7, 32, lambda n: 7),
        ("down", 3, 8, lambda n: n + 3 if n % 8 + 3 < 8 else n),
        ("up", 3, 8, lambda n: n - 3 if n % 8 >= 3 else n),
        ("xor", 12, 8, lambda n: n ^ 12 if (n ^ 12) < n // 8 * 8 + 8 else n),
        ("idx", 11, 8, lambda n: n // 8 * 8 + 3),
    ],
)
def test_who_reads_whom(kind, argument, width, source):
    got = shuffle(kind, LANES, argument, width=width)
    assert got.source == tuple(source(lane) for lane in range(32))
    assert got.after == tuple(float(s) for s in got.source)
    assert not any(got.undefined)


def test_down_sum_of_one_to_32():
    # R08: lanes past the end keep their own value, so lane 31 doubles five times; only lane 0 holds
    # the sum.
    rounds = reduce(np.arange(1, 33), "sum")
    assert rounds[4].values[0] == 528
    assert rounds[4].values[31] == 1024
    assert rounds[4].meaningful == (0,)
    assert rounds[5].values == (528.0,) * 32


def test_butterfly_leaves_the_result_everywhere():
    rounds = reduce(-200 - LANES, "max", how="butterfly")
    assert rounds[-1].values == (-200.0,) * 32
    assert len(rounds) == 5


def test_a_missing_lane_is_flagged_never_zero():
    # R08: 11 active lanes of -5 - lane; reads of the others are undefined, not 0.
    rounds = reduce(-5 - LANES, "max", mask=(1 << 11) - 1)
    first = rounds[0].shuffle
    assert first.source[11:] == (None,) * 21
    assert all(first.undefined[lane] for lane in range(11))
    assert np.isnan(rounds[-1].values[0])
    assert not any(value == 0 for step in rounds for value in step.values)


def test_an_undefined_value_never_turns_into_a_number():
    # Lane 2 is missing: lane 0 reads it first, and a maximum with lane 1 must not cover that up.
    for how in ("down", "butterfly"):
        for operator in ("max", "sum"):
            assert np.isnan(reduce([6, 4, 5, 1], operator, how=how, mask=0b1011)[-1].values[0])


def test_four_lanes_as_in_the_book():
    first, second, broadcast = reduce([6, 4, 5, 1], "max")
    assert first.shuffle.after[:2] == (5.0, 1.0)
    assert first.values[:2] == (6.0, 4.0)
    assert second.values[0] == 6
    assert broadcast.values == (6.0,) * 4


def test_a_tree_needs_31_and_the_warp_performs_160():
    rounds = reduce(LANES, "max")
    assert sum(step.useful for step in rounds) == 31
    assert sum(step.executed for step in rounds) == 160


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("how", ["down", "butterfly"])
@pytest.mark.parametrize("operator", ["max", "sum"])
def test_every_power_of_two(lanes, how, operator):
    values = np.random.default_rng(lanes).integers(-50, 50, lanes).astype(np.float32)
    rounds = reduce(values, operator, how=how)
    want = values.max() if operator == "max" else values.sum()
    assert (rounds[-1].values if rounds else tuple(values)) == (float(want),) * lanes
    assert 2 * len(rounds) == steps_per_row(lanes, how=how)


def test_steps_a_row():
    assert [steps_per_row(w) for w in (4, 32)] == [6, 12]
    assert steps_per_row(32, how="butterfly") == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("left", LANES, 1), "down, up, xor, idx"),
        (("down", np.arange(3), 1), "power of two"),
        (("down", np.arange(64), 1), "power of two"),
    ],
)
def test_nonsense_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        shuffle(*arguments)


def test_masks_and_widths_are_checked():
    with pytest.raises(ValueError, match="mask must name"):
        shuffle("down", LANES, 1, mask=0)
    with pytest.raises(ValueError, match="0 or more, got -1"):
        shuffle("down", LANES, -1)
    with pytest.raises(ValueError, match="how is down or butterfly"):
        steps_per_row(32, how="up")
    with pytest.raises(ValueError, match="up to 32, got 64"):
        steps_per_row(64)
    with pytest.raises(ValueError, match="width"):
        shuffle("down", LANES, 1, width=12)
    with pytest.raises(ValueError, match="operator"):
        reduce(LANES, "min")
    with pytest.raises(ValueError, match="how"):
        reduce(LANES, "max", how="up")
