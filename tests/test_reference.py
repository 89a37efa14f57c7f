import numpy as np
import pytest

from softmax_lab import online
from softmax_lab.reference import (
    INPUTS,
    compare,
    compare_log,
    inputs,
    log_softmax,
    softmax,
    unshifted,
)


def float32_softmax(x):
    shifted = np.exp(x - x.max(axis=1, keepdims=True), dtype=np.float32)
    return shifted / shifted.sum(axis=1, keepdims=True)


def test_known_values():
    got = softmax([[0, 1, 2, 3]])
    assert got[0] == pytest.approx([0.0320586, 0.08714432, 0.23688282, 0.64391426])


def test_contract_for_special_rows():
    # N02: rows that are masked whole, or hold +inf or NaN, are NaN in every element; a row beside
    # them is untouched.
    inf, nan = np.inf, np.nan
    got = softmax([[-inf] * 4, [1, inf, 2, 0], [inf, inf, 0, 0], [nan, 1, 2, 3], [0, 1, 2, 3]])
    assert np.isnan(got[:4]).all()
    assert got[4].sum() == pytest.approx(1)


def test_partly_masked_rows_are_exact():
    # N01: one finite value among masked ones.
    x = np.full((2, 100_000), -np.inf, "f4")
    x[0, 50_000], x[1, 0], x[1, 2] = 10, 1, 2
    got = softmax(x)
    assert got[0, 50_000] == 1
    assert got[0].sum() == 1
    assert got[1, [0, 2]] == pytest.approx([0.26894142, 0.73105858])


def test_large_offsets():
    # N04
    rows = np.array([[-1e7, -1e7 + 1, -1e7 + 2], [1000, 1001, 1002]], "f4")
    for row in softmax(rows):
        assert row == pytest.approx([0.09003057, 0.24472847, 0.66524096])
    assert softmax([3.4e38, -3.4e38, 0]).tolist() == [1, 0, 0]


def test_empty():
    for shape in ((0, 5), (5, 0), (0, 0)):
        assert softmax(np.zeros(shape)).shape == log_softmax(np.zeros(shape)).shape == shape


def test_the_logarithm_of_softmax():
    for name in INPUTS:
        x = inputs(name, 6, 9)
        with np.errstate(divide="ignore"):
            want = np.log(softmax(x))
        deep = want < -700  # softmax itself is subnormal or 0 in float64
        assert np.allclose(log_softmax(x)[~deep], want[~deep], rtol=1e-12, equal_nan=True)
        assert (log_softmax(x)[deep] < -690).all()
    assert log_softmax([0, -2000]).tolist() == [0, -2000]


@pytest.mark.parametrize("name", [name for name in INPUTS if name not in ("special", "masked")])
@pytest.mark.parametrize("cols", [1, 7, 100, 4096])
def test_an_honest_float32_softmax_passes(name, cols):
    x = inputs(name, 6, cols)
    with np.errstate(over="ignore", under="ignore"):
        verdict = compare(float32_softmax(x), x)
    assert verdict.ok, verdict.message


def test_masked_and_special_rows_pass_with_nan_where_it_belongs():
    for name in ("masked", "special"):
        x = inputs(name, 12, 40)
        with np.errstate(invalid="ignore"):
            assert compare(float32_softmax(x), x).ok


WRONG = {
    "zeros": lambda x: np.zeros_like(x),
    "uniform": lambda x: np.full_like(x, 1 / x.shape[1]),
    "lost tail": lambda x: np.hstack([float32_softmax(x[:, :-1]), np.zeros((len(x), 1), "f4")]),
    "no maximum subtracted": lambda x: np.exp(x + 90) / np.exp(x + 90).sum(1, keepdims=True),
    "half precision": lambda x: float32_softmax(x).astype("f2").astype("f4"),
    "wrong axis": lambda x: float32_softmax(x.T.copy()).T,
    "not normalised": lambda x: np.exp(x - x.max(1, keepdims=True)),
    "epsilon in the denominator": lambda x: float32_softmax(x) * np.float32(1 - 1e-4),
    "unlike denominators": lambda x: 2.85 * float32_softmax(x),
    "one NaN": lambda x: np.where(
        np.arange(x.size).reshape(x.shape) == 5, np.nan, float32_softmax(x)
    ),
    "shifted by a row": lambda x: np.roll(float32_softmax(x), 1, axis=0),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("cols", [33, 1024, 20_000])
def test_wrong_answers_are_refused(name, cols):
    x = inputs("normal", 5, cols)
    with np.errstate(all="ignore"):
        verdict = compare(WRONG[name](x).astype(np.float32), x)
    assert not verdict.ok, name
    assert "must be" in verdict.message
    assert verdict.row is not None


def test_an_all_zero_output_fails_even_where_probabilities_are_tiny():
    # T23: an absolute tolerance would accept this.
    x = inputs("normal", 1, 500_000)
    assert not compare(np.zeros_like(x), x).ok


def test_nan_must_not_hide_a_row():
    x = inputs("normal", 3, 8)
    assert not compare(np.full_like(x, np.nan), x).ok
    x[1] = -np.inf
    assert not compare(np.zeros_like(x), x).ok


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="one shape"):
        compare(np.zeros((2, 3)), np.zeros((3, 2)))


def test_masks_are_refused_and_not_dropped():
    x = np.ma.masked_less(inputs("normal", 3, 4), 0)
    y = softmax(x.filled(-np.inf))
    for refused in (
        lambda: softmax(x),
        lambda: unshifted(x),
        lambda: compare(y, x),
        lambda: compare(np.ma.masked_array(y), x.data),
        lambda: online.updates(x),
        lambda: online.scan(x[0]),
        lambda: online.lanes(x[0], 2),
    ):
        with pytest.raises(TypeError, match="plain array, got a masked one of shape"):
            refused()


def test_what_was_rounded_to_is_named():
    x = inputs("normal", 3, 4)
    rounded = softmax(x).astype("f2")
    assert compare(rounded, x, dtype="float16").ok and compare(rounded, x, dtype=np.float16).ok
    assert not compare(rounded, x, dtype=np.float32).ok
    with pytest.raises(ValueError, match="dtype is one of float32, float16, bfloat16, got 'junk'"):
        compare(softmax(x), x, dtype="junk")


def test_inputs_are_reproducible_and_named():
    assert np.array_equal(inputs("normal", 3, 4), inputs("normal", 3, 4))
    assert not np.array_equal(inputs("normal", 3, 4, seed=1), inputs("normal", 3, 4))
    with pytest.raises(ValueError, match="there are normal"):
        inputs("nromal", 3, 4)


def test_inputs_take_every_shape():
    for name in INPUTS:
        for shape in ((0, 3), (3, 0), (1, 1), (7, 2)):
            assert inputs(name, *shape).shape == shape


def test_repeating_values_bias_a_long_sum_and_the_certain_bound_covers_it():
    # Added one after another, 2^17 equal terms round the same way until the next power of two.
    x = np.zeros((1, 2**17), "f4")
    x[:, 1:] = np.log(0.3)
    total = np.add.accumulate(np.exp(x[0]), dtype=np.float32)[-1]
    y = np.exp(x) / total
    assert not compare(y, x).ok
    assert compare(y, x, terms=x.shape[1]).ok


# ------------------------------------------------------------------------------ log-softmax


def float32_log_softmax(x):
    with np.errstate(all="ignore"):
        shifted = x - x.max(axis=1, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True, dtype=np.float32))


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("cols", [1, 7, 100, 4096])
def test_an_honest_float32_log_softmax_passes(name, cols):
    x = inputs(name, 12, cols)
    verdict = compare_log(float32_log_softmax(x), x)
    assert verdict.ok, verdict.message


WRONG_LOGS = {
    "zeros": lambda x: np.zeros_like(x),
    "uniform": lambda x: np.full_like(x, -np.log(x.shape[1])),
    "softmax": float32_softmax,
    "softmax, then its logarithm": lambda x: np.log(float32_softmax(x)),
    "maximum and logarithm added first": lambda x: (
        x - (x.max(1, keepdims=True) - float32_log_softmax(x).max(1, keepdims=True))
    ),
    "lost tail": lambda x: np.hstack([float32_log_softmax(x[:, :-1]), x[:, -1:] - 9]),
    "half precision": lambda x: float32_log_softmax(x).astype("f2").astype("f4"),
    "logarithm to base 2": lambda x: float32_log_softmax(x) / np.float32(np.log(2)),
    "a sum of all but one": lambda x: float32_log_softmax(x) + np.float32(1 / x.shape[1]),
    "masked entries of -FLT_MAX": lambda x: np.maximum(float32_log_softmax(x), np.finfo("f4").min),
    "not a number": lambda x: np.full_like(x, np.nan),
}


@pytest.mark.parametrize("name", WRONG_LOGS)
@pytest.mark.parametrize("cols", [33, 1024])
def test_wrong_logarithms_are_refused(name, cols):
    x = 1e5 + np.round(inputs("normal", 5, cols))
    x[:, 1], x[:, 2] = 1e5 - 95, -np.inf
    with np.errstate(all="ignore"):
        y = WRONG_LOGS[name](x).astype(np.float32)
    assert compare_log(float32_log_softmax(x), x).ok
    assert not compare_log(y, x).ok, name


def test_the_verdict_says_what_is_allowed_at_its_worst_element():
    x = inputs("normal", 3, 100)
    y = float32_softmax(x)
    verdict = compare(y, x)
    depth = x[verdict.row].max() - x[verdict.row, verdict.col]
    assert verdict.allowed == pytest.approx((8 + depth + 4 * 10) * 2**-24, rel=1e-5)
    want = softmax(x)[verdict.row, verdict.col]
    error = abs(float(y[verdict.row, verdict.col]) - want) / want
    assert error == pytest.approx(verdict.worst * verdict.allowed, rel=1e-5)
    masked = np.array([[0, -np.inf]], "f4")
    assert compare(float32_softmax(masked), masked).ok
