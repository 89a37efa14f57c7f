"""What is right: softmax in float64, inputs that break kernels, and a checker that wrong answers
fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from softmax_lab.arguments import dtype_name, is_cupy, told, without_mask

UNIT = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Unit roundoff by element type: half the distance from 1 to the next number."""

OPERATION_ERROR = 8
"""Roundings allowed outside the sum [units]: two per exponential (CUDA states 1 ulp for expf), the
quotient, spare."""

SUM_ERROR = 4
"""A sum of N terms is allowed this times √N [units]: rounding errors of either sign grow like a
random walk (Higham & Mary 2019, probabilistic rounding analysis); 4 standard deviations."""

DENORMAL_ERROR = 4 * 2.0**-149
"""Absolute error allowed to a result: subnormal numbers are this far apart, whatever their relative
size."""


def softmax(x) -> np.ndarray:
    """Softmax along the last axis in float64 (any shape → the same shape).

    The contract of every kernel: masked entries (-inf) are exactly 0; a row with +inf or NaN, and a
    row that is masked whole, is NaN in every element. Raises TypeError for a masked array: its mask
    is none of these. A CuPy array stays on its GPU.
    """
    x = _float64(x)
    if x.size == 0:
        return x.copy()
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        powers = np.exp(x - x.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True)


def log_softmax(x) -> np.ndarray:
    """Logarithm of `softmax` in float64, straight from the scores (any shape → the same shape):
    -inf for a masked entry, NaN throughout a row without a distribution. Raises TypeError for a
    masked array; a CuPy array stays on its GPU."""
    x = _float64(x)
    if x.size == 0:
        return x.copy()
    with np.errstate(invalid="ignore", over="ignore", under="ignore", divide="ignore"):
        shifted = x - x.max(axis=-1, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def _float64(x):
    """x in float64 where it is: what follows is written in ufuncs and methods, which CuPy has."""
    if is_cupy(x):
        return x.astype(np.float64, copy=False)
    return np.asarray(without_mask("x", x), dtype=np.float64)


def unshifted(x) -> np.ndarray:
    """The definition without its shift, in float32 along the last axis: shown failing, used by
    nothing."""
    with np.errstate(invalid="ignore", over="ignore", under="ignore", divide="ignore"):
        powers = np.exp(np.asarray(without_mask("x", x), dtype=np.float32))
        return powers / powers.sum(axis=-1, keepdims=True, dtype=np.float32)


def edge(holds: Callable[[np.float32], bool], good: float, bad: float) -> tuple[float, float]:
    """The neighbouring float32 numbers, between `good` and `bad`, at which `holds` turns false.

    Raises ValueError unless it holds at `good` and fails at `bad`, both of one sign.
    """
    if good * bad <= 0 or not holds(np.float32(good)) or holds(np.float32(bad)):
        raise ValueError(f"it must hold at {good} and fail at {bad}, two numbers of one sign")
    # Floats of one sign are in the order of the integers they are made of.
    inside, outside = (int(np.float32(value).view(np.int32)) for value in (good, bad))
    while abs(outside - inside) > 1:
        middle = (inside + outside) // 2
        if holds(np.int32(middle).view(np.float32)):
            inside = middle
        else:
            outside = middle
    return tuple(float(np.int32(bits).view(np.float32)) for bits in (inside, outside))


@dataclass(frozen=True)
class Verdict:
    """The checker's answer: `worst` is the largest error in units of what is allowed, at `row`,
    `col`; `allowed` is what is allowed there, relative to the result."""

    ok: bool
    message: str
    worst: float = 0.0
    row: int | None = None
    col: int | None = None
    allowed: float | None = None


def compare(y, x, *, dtype="float32", terms: int | None = None) -> Verdict:
    """Judge y (rows, cols) as the softmax of x (rows, cols), element by element, by relative error.

    Allowed at element i: (8 + |x_i - max| + 4·√cols) roundings of float32, because x_i - max is
    rounded once and its error comes out of exp multiplied by itself, and one more rounding of
    `dtype` on writing. NaN must stand exactly where the contract puts it. `terms`, the roundings in
    one thread's sum, is allowed instead of 4·√cols: the certain bound, for `BIASED` inputs. Raises
    ValueError when the shapes differ or `dtype` is no key of `UNIT`, TypeError for a masked array.
    """
    x, y, writing = _checked(y, x, dtype)
    if x.size == 0:
        return Verdict(True, "nothing to compare")
    want, units = softmax(x), _depth(x) + _summing(x, terms)
    allowed = want * (units * UNIT["float32"] + writing) + DENORMAL_ERROR
    return judged(y, want, allowed)


def compare_log(y, x, *, dtype="float32", terms: int | None = None) -> Verdict:
    """Judge y (rows, cols) as the log-softmax of x (rows, cols), element by element.

    Allowed at element i: the roundings of x_i - max, of the logarithm and of the result, each
    relative to its size, and (8 + 4·√cols) roundings of float32 absolutely, because a relative
    error of the sum is an absolute one of its logarithm. What float32 cannot hold must be -inf.
    `dtype`, `terms` and errors are those of `compare`.
    """
    x, y, writing = _checked(y, x, dtype)
    if x.size == 0:
        return Verdict(True, "nothing to compare")
    want = log_softmax(x)
    want[want < -np.finfo(np.float32).max] = -np.inf
    size = np.where(np.isfinite(want), np.abs(want), 0)
    allowed = (_depth(x) + 3 * size + _summing(x, terms)) * UNIT["float32"] + size * writing
    return judged(y, want, allowed)


def _checked(y, x, dtype) -> tuple[np.ndarray, np.ndarray, float]:
    """x, y and what one more rounding to `dtype` adds, relatively (0 for float32)."""
    x, y = np.asarray(without_mask("x", x)), np.asarray(without_mask("y", y))
    writing = UNIT.get(dtype_name(dtype))
    if writing is None:
        raise ValueError(f"dtype is one of {', '.join(UNIT)}, got {told(dtype)}")
    if x.ndim != 2 or x.shape != y.shape:
        raise ValueError(
            f"compare takes y and x of one shape (rows, cols), got {y.shape} and {x.shape}"
        )
    return x, y, writing if writing != UNIT["float32"] else 0.0


def _depth(x: np.ndarray) -> np.ndarray:
    """|x_i - max| of each row, 0 where it is not finite."""
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        depth = np.abs(wide - wide.max(axis=1, keepdims=True))
    return np.where(np.isfinite(depth), depth, 0)


def _summing(x: np.ndarray, terms: int | None) -> float:
    """Roundings allowed to a sum over a row and to what surrounds it [units]."""
    return OPERATION_ERROR + (SUM_ERROR * np.sqrt(x.shape[1]) if terms is None else terms)


def judged(y: np.ndarray, want: np.ndarray, allowed: np.ndarray) -> Verdict:
    """The verdict on y (rows, cols) or (rows,) against `want`, each element within `allowed` of it.

    What is not finite must be equal: NaN where NaN is wanted, infinities with their sign.
    """
    got = y.astype(np.float64)
    odd = ~np.isfinite(want)
    wrong = np.isnan(want) != np.isnan(got)
    wrong |= odd & ~np.isnan(want) & (got != want)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        return Verdict(False, f"y[{_spot(at)}] is {got[at]:g}, must be {want[at]:g}", np.inf, *at)
    with np.errstate(invalid="ignore"):
        error = np.where(odd, 0, np.abs(got - want) / allowed)
    at = tuple(int(i) for i in np.unravel_index(np.argmax(error), error.shape))
    worst = float(error[at])
    if worst <= 1:
        limit = float(allowed[at] / abs(want[at])) if np.isfinite(want[at]) and want[at] else None
        said = f"largest error {worst:.2f} of what is allowed"
        return Verdict(True, said, worst, *at, allowed=limit)
    here = f"y[{_spot(at)}] is {got[at]:.9g}, must be {want[at]:.9g}"
    return Verdict(False, f"{here}: {worst:.3g} times the error allowed", worst, *at)


def _spot(at: tuple[int, ...]) -> str:
    return ", ".join(map(str, at))


# ----------------------------------------------------------------------------------------- inputs


def _masked(rows: int, cols: int, rng: np.random.Generator) -> np.ndarray:
    """Every third entry -inf, and the first of each row with it: a causal mask's shape of
    trouble."""
    x = rng.standard_normal((rows, cols))
    x[:, :: max(1, min(3, cols))] = -np.inf
    return x


def _special(rows: int, cols: int, rng: np.random.Generator) -> np.ndarray:
    """Rows that must be NaN (all -inf; one +inf; one NaN; only +inf) between rows that must not be
    touched."""
    x = rng.standard_normal((rows, cols))
    for row in range(rows):
        spot = int(rng.integers(cols)) if cols else 0
        match row % 6:
            case 1:
                x[row] = -np.inf
            case 2:
                x[row, spot : spot + 1] = np.inf
            case 3:
                x[row, spot : spot + 1] = np.nan
            case 4:
                x[row] = np.inf
    return x


def _mixed_scale(rows: int, cols: int, rng: np.random.Generator) -> np.ndarray:
    """Normal values with a few outliers a row, positive ones too: a lost tail or a wrong maximum
    shows."""
    x = rng.standard_normal((rows, cols))
    outliers = rng.random((rows, cols)) < 0.02
    return np.where(outliers, 12 * x + 20, x)


INPUTS: dict[str, Callable[[int, int, np.random.Generator], np.ndarray]] = {
    "normal": lambda m, n, rng: rng.standard_normal((m, n)),
    "outliers": _mixed_scale,
    "position": lambda m, n, rng: ((np.arange(m * n) * 37) % 101).reshape(m, n) * 0.05 - 2,
    "rising": lambda m, n, rng: np.sort(rng.standard_normal((m, n)), axis=1),
    "falling": lambda m, n, rng: -np.sort(rng.standard_normal((m, n)), axis=1),
    "constant": lambda m, n, rng: np.full((m, n), -0.7),
    "negative": lambda m, n, rng: -200 + 0.5 * (np.arange(n) % 64) + np.zeros((m, n)),
    "very negative": lambda m, n, rng: -1e30 * (1 + rng.random((m, n))),
    "offset": lambda m, n, rng: 1e7 + np.round(3 * rng.standard_normal((m, n))),
    "overflowing": lambda m, n, rng: 1000 * rng.standard_normal((m, n)),
    "huge": lambda m, n, rng: 3.4e38 * np.sign(rng.standard_normal((m, n))),
    "subnormal": lambda m, n, rng: 1e-40 * rng.standard_normal((m, n)),
    "deep": lambda m, n, rng: -95 * rng.random((m, n)),
    "masked": _masked,
    "special": _special,
}
"""Inputs by name, f(rows, cols, rng) → (rows, cols): every kernel is checked on all of them."""


BIASED = ("position", "negative", "offset", "rising")
"""Inputs whose roundings fall the same way again and again, so that the error of a long fp32 sum
grows with its length and not with the root of it: few distinct values, or a maximum that rises at
every step and makes the online recurrence multiply by one more rounded factor."""


def known(name: str, kinds: Iterable[str]) -> None:
    """Raise ValueError, naming the kinds of inputs there are, unless `name` is one of them."""
    if name not in (kinds := list(kinds)):
        raise ValueError(f"no input {name!r}; there are {', '.join(kinds)}")


def inputs(name: str, rows: int, cols: int, seed: int = 0) -> np.ndarray:
    """The named input as float32 (rows, cols), the same for the same seed. Raises ValueError for an
    unknown name."""
    known(name, INPUTS)
    with np.errstate(over="ignore"):
        return INPUTS[name](rows, cols, np.random.default_rng(seed)).astype(np.float32)
