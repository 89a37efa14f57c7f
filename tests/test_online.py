import numpy as np
import pytest

from softmax_lab import online, reference
from softmax_lab.online import LOWEST, expected_updates, harmonic, lanes, merge, scan, updates

ROW = [3, 1, 2, 0, 6, 4, 5, 1]


def total64(row):
    row = np.asarray(row, dtype=np.float64)
    return row.max(), np.exp(row - row.max()).sum()


@pytest.mark.parametrize("form", online.FORMS)
@pytest.mark.parametrize(
    "name", ["normal", "rising", "falling", "constant", "negative", "outliers"]
)
def test_every_form_ends_with_the_max_and_sum(form, name):
    row = reference.inputs(name, 1, 300)[0]
    last = scan(row, form=form)[-1]
    assert (last.max, last.sum) == pytest.approx(total64(row), rel=1e-5)


def test_the_teaching_row_digit_for_digit():
    # Worklog section 5: four threads, columns t and t + 4.
    pairs = lanes(ROW, 4)
    assert [m for m, _ in pairs] == [6, 4, 5, 1]
    assert [round(total, 4) for _, total in pairs] == [1.0498, 1.0498, 1.0498, 1.3679]
    corrected = [total * np.exp(m - 6) for m, total in pairs]
    assert [round(float(v), 4) for v in corrected] == [1.0498, 0.1421, 0.3862, 0.0092]
    assert [
        round(float(corrected[0] + corrected[2]), 4),
        round(float(corrected[1] + corrected[3]), 4),
    ] == [
        1.4360,
        0.1513,
    ]
    assert round(float(sum(corrected)), 4) == 1.5873
    raw = sum(total for _, total in pairs)
    assert (round(raw, 4), round(raw / float(sum(corrected)), 2)) == (4.5172, 2.85)
    y = reference.softmax(ROW)
    assert [round(float(v), 4) for v in y] == [
        0.0314,
        0.0042,
        0.0115,
        0.0016,
        0.6300,
        0.0853,
        0.2318,
        0.0042,
    ]
    assert round(float((y * sum(corrected) / raw).sum()), 3) == 0.351
    assert (updates([ROW]), updates([ROW], threads=4)) == (2, 8)


def test_merge_is_the_online_step_on_parts():
    whole = total64(ROW)
    for cut in range(1, 8):
        halves = (scan(ROW[:cut])[-1], scan(ROW[cut:])[-1])
        got = merge(*((half.max, half.sum) for half in halves))
        assert got == pytest.approx(whole, rel=1e-6)
        assert got == merge(*((half.max, half.sum) for half in reversed(halves)))


def test_the_identity_adds_exactly_nothing():
    empty = (LOWEST, 0.0)
    assert merge(empty, empty) == empty
    for pair in ((3.0, 1.5), (-(2.0**100), 2.0), (LOWEST, 1.0)):
        assert merge(empty, pair) == merge(pair, empty) == pair
    # T1: with -inf as identity two empty parts make NaN.
    assert np.isnan(merge((-np.inf, 0.0), (-np.inf, 0.0))[1])


@pytest.mark.parametrize("form", online.FORMS)
def test_the_hole_in_the_printed_recurrence(form):
    row = [-np.inf, 1.0, 2.0]
    assert np.isnan(scan(row, form=form, start=-np.inf)[-1].sum)
    assert scan(row, form=form)[-1].sum == pytest.approx(total64(row)[1])


def test_a_masked_row_sums_to_zero_so_that_it_ends_in_nan():
    last = scan([-np.inf] * 5)[-1]
    assert (last.max, last.sum) == (LOWEST, 0)


@pytest.mark.parametrize(
    ("row", "rises"),
    [([1, 2, 3, 4], 4), ([4, 3, 2, 1], 1), ([2, 2, 2, 2], 1), ([1, 3, 2, 3, 4], 3)],
)
def test_ties_do_not_rise(row, rises):
    assert updates([row]) == rises
    assert sum(step.rose for step in scan(row)) == rises


@pytest.mark.parametrize("name", reference.INPUTS)
@pytest.mark.parametrize("threads", [1, 4, 32])
def test_updates_agree_with_the_scan(name, threads):
    for cols in (1, 5, 33, 100):
        x = reference.inputs(name, 7, cols)
        want = sum(step.rose for row in x for t in range(threads) for step in scan(row[t::threads]))
        assert updates(x, threads) == want


def test_expected_updates_is_the_harmonic_number():
    assert harmonic(1024) == pytest.approx(7.5092, abs=5e-5)
    assert harmonic(10**6) == pytest.approx(float((1 / np.arange(1, 10**6 + 1)).sum()), rel=1e-12)
    x = np.random.default_rng(0).standard_normal((20_000, 64))
    for threads in (1, 3, 32, 100):
        assert updates(x, threads) == pytest.approx(expected_updates(20_000, 64, threads), rel=0.01)


def test_a_row_needs_a_thread():
    with pytest.raises(ValueError, match="at least one thread"):
        lanes(ROW, 0)


def test_forms_are_named():
    with pytest.raises(ValueError, match="branch, rescale, branchfree"):
        scan(ROW, form="fast")


def brute_diverged(x, threads):
    rose, groups = online.rises(x, threads), {}
    for row in range(x.shape[0]):
        for col in range(x.shape[1]):
            warp = (row * threads + col % threads) // 32
            groups.setdefault((warp, col // threads), set()).add(bool(rose[row, col]))
    return sum(len(group) == 2 for group in groups.values())


@pytest.mark.parametrize("threads", [1, 4, 32, 64])
@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (33, 40), (70, 33), (3, 100)])
def test_diverged_is_what_lanes_of_a_warp_disagree_on(threads, shape):
    x = reference.inputs("normal", *shape)
    assert online.diverged(x, threads) == brute_diverged(x, threads)


def test_divergence_as_measured_on_the_prototype():
    # Worklog: 12.5 % of warp iterations diverge though 0.7 % of elements rise; with a warp per row
    # 82 %.
    x = np.random.default_rng(0).standard_normal((256, 1024)).astype("f4")
    assert (updates(x), updates(x, 32)) == (1929, 33_209)
    assert online.diverged(x) == 1020
    assert online.diverged(x, 32) == 6717


@pytest.mark.parametrize("threads", [1, 32, 64])
def test_expected_divergence(threads):
    x = np.random.default_rng(1).standard_normal((4096, 70))
    assert online.diverged(x, threads) == pytest.approx(
        online.expected_diverged(4096, 70, threads), rel=0.02
    )


def merges_one_by_one(maxima, butterfly: bool) -> int:
    """`merge_rises` of one row's maxima, a lane and a round at a time."""
    rose, half = 0, len(maxima) // 2
    while half:
        lanes = range(len(maxima) if butterfly else half)
        partner = [t ^ half if butterfly else t + half for t in lanes]
        rose += sum(maxima[p] > maxima[t] for t, p in zip(lanes, partner, strict=True))
        maxima = [max(maxima[t], maxima[p]) for t, p in zip(lanes, partner, strict=True)]
        half //= 2
    return rose


@pytest.mark.parametrize("butterfly", [True, False])
@pytest.mark.parametrize("threads", [1, 4, 32])
def test_merges_that_rise_are_counted_as_lanes_meet(threads, butterfly):
    rng = np.random.default_rng(6)
    for cols in (1, 3, 31, 32, 33, 100):
        x = rng.integers(-3, 4, (5, cols)).astype("f4")  # ties do not count
        x[1, :: max(1, cols // 3)] = np.nan
        x[2, -1], x[3] = np.inf, -np.inf
        want = 0
        for row in x:
            walks = [row[t::threads] for t in range(threads)]
            walks = [[v for v in walk if not np.isnan(v)] for walk in walks]
            maxima = [max([*map(float, walk), online.LOWEST]) for walk in walks]
            want += merges_one_by_one(maxima, butterfly)
        assert online.merge_rises(x, threads, butterfly) == want


@pytest.mark.parametrize("butterfly", [True, False])
@pytest.mark.parametrize("cols", [1, 5, 40, 300])
def test_expected_merges_that_rise_are_the_mean(cols, butterfly):
    x = np.random.default_rng(7).standard_normal((4000, cols))
    mean = online.merge_rises(x, 32, butterfly) / len(x)
    expected = online.expected_merge_rises(1, cols, 32, butterfly)
    assert mean == pytest.approx(expected, rel=0.03)
    # With every lane at work, one of the two partners rises, in five rounds of 16 pairs.
    assert not butterfly or cols < 32 or expected == 80
