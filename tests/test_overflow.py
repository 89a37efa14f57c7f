"""Where a float32 softmax ends: found by running one, told apart from wrong answers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from softmax_lab import overflow, overflow_frames, reference, tables

ROW = [2.0, 1.0, 0.1, -1.0]


def safe(x):
    return reference.softmax(x).astype(np.float32)


def test_edge_finds_neighbours_on_either_side_of_zero():
    for good, bad, limit in ((1.0, 9.0, 3.0), (-1.0, -9.0, -3.0), (9.0, 1.0, 3.0)):
        inside, outside = reference.edge(
            lambda v, g=good, m=limit: bool((v - m) * (g - m) > 0), good, bad
        )
        assert abs(outside - limit) < 1e-6
        assert np.nextafter(np.float32(inside), np.float32(outside)) == np.float32(outside)
    for good, bad in ((1.0, -1.0), (1.0, 2.0), (9.0, 10.0)):
        with pytest.raises(ValueError, match="two numbers of one sign"):
            reference.edge(lambda v: bool(v < 3), good, bad)


def test_limits_are_those_of_the_format():
    rows = overflow.limits(reference.unshifted, (1, 1024)).rows
    derived, held, lost = ([row[k].replace("−", "-") for row in rows] for k in (1, 2, 3))
    assert derived == ["88.722839", "81.791367", "-103.972077"]
    for limit, last, first in zip(derived, held, lost, strict=True):
        assert abs(float(last)) <= abs(float(limit)) + 1e-6
        assert abs(float(first)) >= abs(float(limit)) - 1e-6
        assert abs(float(first) - float(last)) < 1e-5


def direct(x):
    shifted = x - x.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def test_a_logarithm_of_what_faded_is_wrong_and_then_infinite():
    table = overflow.logarithms(safe, direct, (10, 100, 110))
    after, directly, exact = ([row[k] for row in table.rows] for k in (2, 3, 4))
    assert after[1:] == ["−99.9831", "−∞"]
    assert directly[1:] == exact[1:] == ["−100", "−110"]
    assert after[0] == exact[0]


def test_log_softmax_is_the_logarithm_where_there_is_one():
    x = reference.inputs("normal", 5, 30)
    assert reference.log_softmax(x) == pytest.approx(np.log(reference.softmax(x)))
    inf, nan = np.inf, np.nan
    special = reference.log_softmax([[-inf, 0], [-inf, -inf], [inf, 0], [nan, 0], [0, -1000]])
    assert special[0].tolist() == [-inf, 0]
    assert np.isnan(special[1:4]).all()
    assert special[4].tolist() == [0, -1000]
    assert reference.log_softmax(np.zeros((0, 3))).shape == (0, 3)


def test_results_fade_below_the_normal_numbers():
    table = overflow.fading(safe, (80, 100, 104))
    assert [row[1] for row in table.rows][-1] == "0"
    assert table.rows[1][2] == "1.71%"
    assert table.rows[2][2:] == ("100%", "–")
    assert r"1.401 \cdot 10^{-45}" in table.note


def test_the_contract_is_seen_broken():
    rows = {"one +∞": [0, np.inf, 1]}
    table = overflow.contract(rows, {"without": reference.unshifted, "with": safe})
    assert table.rows == (("one +∞", "0, ∞, 1", "0, NaN, 0", "NaN, NaN, NaN"),)
    x = reference.inputs("special", 6, 8)
    assert "All of them keep" in str(overflow.agreed(x, {"safe": safe}))
    said = str(overflow.agreed(x, {"safe": safe, "foil": reference.unshifted}))
    assert "broken by foil" in said
    assert "4 of them without a distribution" in said


def test_shift_runs_what_it_is_given():
    table = tables.shift({"row": [1, 2]}, lambda x: x * 10, lambda x: x * 100)
    assert table.rows == (("row", "1, 2", "10, 20", "100, 200"),)


@pytest.mark.parametrize(
    ("move", "words"),
    [
        (0, "Without the shift: right."),
        (87, "NaN, and zeros for the rest"),
        (120, "NaN throughout"),
        (-102, "wrong by up to"),
        (-140, "NaN throughout"),
    ],
)
def test_a_frame_says_what_is_wrong(move, words):
    x = np.array([ROW], np.float32) + np.float32(move)
    frame = overflow_frames.frame(x[0], reference.unshifted(x)[0], safe(x)[0])
    assert words in frame.alt
    assert frame.alt.endswith("With it: right.")
    assert ("hatch" in frame.markup) == bool(np.isnan(reference.unshifted(x)).any())


def test_zeros_without_a_nan_are_told_apart():
    assert "no NaN to warn" in overflow_frames.verdict(np.zeros(3), np.full(3, 1 / 3))


def test_frames_refuse_what_they_cannot_draw():
    for row in ([], [1.0] * 5, [math.inf, 1.0], [math.nan]):
        with pytest.raises(ValueError, match="1 to 4 finite scores"):
            overflow_frames.frame(row, row, row)
    with pytest.raises(ValueError, match="as many results"):
        overflow_frames.frame([1.0, 2.0], [1.0], [0.5, 0.5])


def test_the_last_score_that_comes_out_as_one_is_found_by_running():
    top = overflow.highest(reference.unshifted)
    assert top["counted"] == pytest.approx(math.log(overflow.LARGEST), rel=1e-7)
    early = overflow.highest(lambda x: np.where(x > 9.5, np.inf, safe(x)))
    assert (early["derived"], early["counted"]) == (top["derived"], 9.5)


@pytest.mark.parametrize(
    ("row", "word"), [([0, 0], "zero"), ([np.nan] * 2, "NaN"), ([np.inf], "infinity"), ([1], "1/N")]
)
def test_a_row_of_equal_scores_comes_out_as_one_thing(row, word):
    assert overflow.outcome(np.array([row], np.float32)) == word
    assert word in overflow.OUTCOMES


def test_results_that_differ_are_no_single_outcome():
    with pytest.raises(ValueError, match="results that differ"):
        overflow.outcome(np.array([[0.0, np.nan]]))
