"""What is right of matrix products: y = A x in float64, inputs that break kernels, a checker."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from softmax_lab.reference import (
    DENORMAL_ERROR,
    OPERATION_ERROR,
    SUM_ERROR,
    UNIT,
    Verdict,
    judged,
    known,
)
from softmax_lab.reference import (
    INPUTS as MATRICES,
)


def gemv(A, x) -> np.ndarray:
    """The product of A (rows, cols) and x (cols,) in float64 (rows,); NaN and infinities go
    through."""
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        return np.asarray(A, dtype=np.float64) @ np.asarray(x, dtype=np.float64)


def compare(y, A, x, *, dtype: str = "float32", terms: int | None = None) -> Verdict:
    """Judge y (rows,) as A (rows, cols) times x (cols,), element by element.

    Allowed at row r: (8 + 4·√cols) roundings of float32 relative to Σ |A_rc x_c|, which is what the
    error of a dot product grows with (cancellation shrinks the result, not the error), and one more
    of `dtype` relative to the result. `terms`, the roundings in one thread's sum, is allowed
    instead of 4·√cols: the certain bound, for data that round the same way again and again. Raises
    ValueError when the shapes differ.
    """
    y, A, x = (np.asarray(each) for each in (y, A, x))
    if A.ndim != 2 or x.shape != A.shape[1:] or y.shape != A.shape[:1]:
        raise ValueError(
            "compare takes y (rows), A (rows, cols) and x (cols), got "
            f"{y.shape}, {A.shape} and {x.shape}"
        )
    if y.size == 0:
        return Verdict(True, "nothing to compare")
    want = gemv(A, x)
    units = OPERATION_ERROR + (SUM_ERROR * np.sqrt(A.shape[1]) if terms is None else terms)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        allowed = units * UNIT["float32"] * gemv(np.abs(A), np.abs(x))
        allowed += np.abs(want) * (UNIT[dtype] if dtype != "float32" else 0)
        allowed += A.shape[1] * DENORMAL_ERROR  # each product may be rounded below the normal range
    return judged(y, want, allowed)


def _vector(cols: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(cols)


def _cancelling(rows: int, cols: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Large products that nearly cancel: only a bound relative to their magnitudes is fair."""
    A = 1e4 * rng.standard_normal((rows, cols))
    A[:, 1::2] = -A[:, : cols // 2 * 2 : 2] + 1e-2 * rng.standard_normal((rows, cols // 2))
    return A, np.ones(cols)


def _special(rows: int, cols: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows with an infinity or a NaN, and with infinities that meet, between rows that must not be
    touched; x has no zero, so that 0 · ∞ does not hide a row."""
    A = MATRICES["special"](rows, cols, rng)
    A[5::6, :1], A[5::6, 1:2] = np.inf, -np.inf
    return A, 1 + rng.random(cols)


def _with_vector(kind: str) -> Callable:
    return lambda rows, cols, rng: (MATRICES[kind](rows, cols, rng), _vector(cols, rng))


INPUTS: dict[str, Callable[[int, int, np.random.Generator], tuple[np.ndarray, np.ndarray]]] = {
    **{kind: _with_vector(kind) for kind in ("normal", "outliers", "position", "offset", "deep")},
    "subnormal": _with_vector("subnormal"),
    "cancelling": _cancelling,
    "unit": lambda m, n, rng: (rng.standard_normal((m, n)), np.eye(1, max(n, 1), n - 1)[0, :n]),
    "constant": lambda m, n, rng: (np.full((m, n), -0.7), np.full(n, 0.3)),
    "special": _special,
}
"""Inputs by name, f(rows, cols, rng) → A (rows, cols), x (cols,); `unit` picks A's last column, so
that a lost tail shows alone."""


BIASED = ("constant",)
"""Inputs whose roundings fall the same way again and again: equal terms."""


def inputs(kind: str, rows: int, cols: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The named input as float32, the same for the same seed. Raises ValueError for an unknown
    name."""
    known(kind, INPUTS)
    A, x = INPUTS[kind](rows, cols, np.random.default_rng(seed))
    return A.astype(np.float32), x.astype(np.float32)
