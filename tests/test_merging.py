"""One operator, several trees: what a row comes to, which rows are lost, and where NaN is born."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from softmax_lab import cuts, merging, online, reference
from softmax_lab.facts import WARP
from softmax_lab.merging import LOWEST, TREES, birth, laws, lost, lost_lengths, meet, result

INF = math.inf


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("cols", [1, 15, 16, 31, 33, 256, 300])
def test_every_tree_ends_with_the_pair_of_the_row(tree, cols):
    row = reference.inputs("normal", 1, cols)[0]
    row[cols // 2 :: 3] = -INF if cols > 2 else row[0]
    for start, guarded in product((LOWEST, -INF), (False, True)):
        if start == -INF and not guarded:
            continue
        m, d = result(meet(row, tree, start=start, guarded=guarded))
        want = row.astype(np.float64)
        assert m == want.max()
        assert d == pytest.approx(np.exp(want - want.max()).sum(), rel=1e-5)


def test_as_published_rows_of_up_to_15_columns_are_lost():
    """Worklog, section 6: stride 16 first fails to 15, stride 1 first to 30."""
    assert lost_lengths("butterfly") == tuple(range(1, 16))
    assert lost_lengths("neighbours") == tuple(range(1, 31))
    assert lost_lengths("fold") == ()
    assert lost_lengths("shared") == tuple(range(1, 128))
    assert lost_lengths("warps") == tuple(range(1, 257))  # 24 lanes bring nothing, ever


@pytest.mark.parametrize(
    "tree",
    [
        pytest.param(tree, marks=pytest.mark.slow if merging.threads(tree) > WARP else [])
        for tree in TREES
    ],
)
def test_a_finite_start_or_a_guard_loses_no_row(tree):
    assert lost_lengths(tree, start=LOWEST) == lost_lengths(tree, guarded=True) == ()


def test_nan_is_born_where_two_empty_lanes_meet_and_spreads_from_there():
    rounds = meet(range(15), start=-INF)
    walk, first, second, *_, last = rounds
    assert walk.born == () and birth(rounds) == 1
    assert first.born == (15, 31) == first.alike
    assert [t for t, pair in enumerate(second.pairs) if lost(pair)] == [7, 15, 23, 31]
    assert second.born == ()  # what is lost already is not born again
    assert all(map(lost, last.pairs))
    assert birth(meet(range(16), start=-INF)) is None


def test_a_masked_element_kills_its_lane_before_any_lane_meets_another():
    row = np.zeros(40)
    row[3] = row[35] = -INF
    first, second, *_ = rounds = meet(row, start=-INF)
    assert first.born == (3,) and birth(rounds) == 0
    assert second.born == ()  # column 35 meets NaN in lane 3
    row[3] = 0
    assert birth(meet(row, start=-INF)) is None


def test_guarded_merges_of_equal_infinities_are_known_and_bear_nothing():
    rounds = meet([0.0], start=-INF, guarded=True)
    assert rounds[1].alike == tuple(t for t in range(32) if t not in (0, 16))
    assert not any(each.born for each in rounds)


def test_what_matters_is_what_is_read_again():
    assert [len(r.matter) for r in meet([0.0], "shared")] == [256, 128, 64, 32, 16, 8, 4, 2, 1]
    assert {len(r.matter) for r in meet([0.0], "butterfly")} == {32}
    fold = meet([0.0], "fold")
    assert fold[1].matter == (0, *range(2, 32)) and fold[-1].matter == (0,)


def test_the_butterfly_leaves_the_same_bits_in_every_lane():
    """Commutativity, to the last bit: both partners compute the same."""
    for seed in range(5):
        row = np.random.default_rng(seed).standard_normal(100)
        assert len(set(meet(row)[-1].pairs)) == 1


def test_the_order_of_a_tree_shows_in_the_last_bits():
    row = reference.inputs("normal", 1, 256)[0]
    sums = {result(meet(row, tree))[1] for tree in TREES}
    assert len(sums) > 1 and max(sums) / min(sums) - 1 < 1e-6


def test_laws():
    found = laws()
    assert found.commute == found.trials == 2000
    assert 0.5 < found.associate / found.trials < 0.9
    assert 2**-25 < found.furthest < 2**-21


def test_guarded_and_identity_of_the_operator():
    pair, empty = (1.5, 2.25), (LOWEST, 0.0)
    assert online.merge(pair, empty) == online.merge(empty, pair) == pair
    assert lost(online.merge((-INF, 0.0), (-INF, 0.0)))
    assert online.merge((-INF, 0.0), (-INF, 0.0), guarded=True) == (-INF, 0.0)
    assert online.merge((-INF, 0.0), pair) == pair  # alone it does no harm
    assert online.merge((LOWEST, 0.0), (INF, 1.0)) == (INF, 1.0)  # as the kernels: one exponential
    assert lost(online.merge((INF, 1.0), (INF, 1.0)))
    one, other = online.merge_all(([1.0, LOWEST], [2.0, 0.0]), ([0.0, 3.0], [1.0, 5.0]))
    assert one.tolist() == [1.0, 3.0] and other.dtype == np.float32


@pytest.mark.parametrize("cols", [1, 15, 16, 31])
def test_the_kernel_with_the_published_start_loses_the_rows_that_the_model_loses(cols):
    y = cuts.run("warp_merge-finite_start", reference.inputs("normal", 1, cols)).y
    assert np.isnan(y).all() == np.isnan(y).any() == (cols in lost_lengths("butterfly"))


def test_the_kernel_with_the_published_start_loses_a_row_with_a_mask_in_front():
    x = reference.inputs("normal", 2, 40)
    x[0, 3], x[1, 35] = -INF, -INF
    y = cuts.run("warp_merge-finite_start", x).y
    assert np.isnan(y[0]).all() and not np.isnan(y[1]).any()
    births = [birth(meet(row, start=-INF)) for row in x]
    assert births == [0, None]


@pytest.mark.parametrize(
    ("row", "how", "message"),
    [
        ([], {}, "one number"),
        ([math.nan], {}, "NaN"),
        ([1.0], {"tree": "oak"}, "butterfly, neighbours"),
    ],
)
def test_nonsense_is_refused(row, how, message):
    with pytest.raises(ValueError, match=message):
        meet(row, **how)
    assert merging.threads("fold") == 32
