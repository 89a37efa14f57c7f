"""What a promise is, and those about scores and element types; `contract` has the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

NAN, INF = np.nan, np.inf
P = (0.09003057317038046, 0.24472847105479767, 0.6652409557748219)
L = (-2.4076059644443806, -1.4076059644443806, -0.4076059644443806)
"""Softmax of three scores that rise by one, whatever the first, and its logarithm."""
P2 = (0.2689414213699951, 0.7310585786300049)
L2 = (-1.3132616875182228, -0.3132616875182228)


@dataclass(frozen=True)
class Clause:
    """One promise: `says` what becomes of the input that `given` shows and `call` makes anew.

    `call()` gives x and the keywords of the call. `softmax` and `log_softmax` are the results,
    numbers that broadcast to the shape of x, or the exception that is raised; `dtype` is their
    type. `kernel` is what a launch on x does where it is not the same: an exception; None where a
    launch has no such thing, which is an axis. `scope` is `large` for more elements than an int
    counts, `gpu` for what takes two memories.
    """

    name: str
    given: str
    says: str
    call: Callable[[], tuple[Any, dict[str, Any]]]
    softmax: Any
    log_softmax: Any
    dtype: str = "float32"
    kernel: type[Exception] | str | None = "same"
    scope: str = ""

    @property
    def of_a_kernel(self) -> str:
        """What a launch does, in words."""
        return self.says if self.kernel == "same" else getattr(self.kernel, "__name__", "")

    def wanted(self, operator: str):
        """The result of `operator` by name, or the exception."""
        return getattr(self, operator)


def f4(rows) -> np.ndarray:
    return np.array(rows, np.float32)


def column(values) -> np.ndarray:
    return np.array(values)[:, None]


def refused(name: str, given: str, error: type[Exception], call, says: str = "", **more) -> Clause:
    """A clause by which both operators raise `error`."""
    return Clause(name, given, says or f"{error.__name__}", call, error, error, **more)


def thirds(name: str, given: str, says: str, call, **more) -> Clause:
    """A clause on rows that rise by one: the results are those of 0, 1, 2."""
    return Clause(name, given, says, call, P, L, **more)


def on(rows, **keywords) -> Callable:
    """The call with float32 rows and these keywords."""
    return lambda: (f4(rows), dict(keywords))


def made(make: Callable, **keywords) -> Callable:
    """The call with what `make()` gives."""
    return lambda: (make(), dict(keywords))


RISING = [[0, 1, 2], [10, 11, 12], [-3, -2, -1]]


class _Foreign:
    """What NumPy could convert, but was not asked to."""

    def __array__(self, dtype=None, copy=None):
        return f4(RISING)


SCORES = (
    Clause(
        "masked entry",
        "-inf, 0, 1",
        "exactly 0, and the others as if it were absent; its logarithm is -inf",
        on([[-INF, 0, 1]]),
        (0, *P2),
        (-INF, *L2),
    ),
    Clause(
        "fully masked row",
        "-inf, -inf, -inf",
        "NaN throughout: there is no distribution; other rows are untouched",
        on([[-INF, -INF, -INF], [0, 1, 2]]),
        ((NAN, NAN, NAN), P),
        ((NAN, NAN, NAN), L),
    ),
    Clause(
        "+inf",
        "0, +inf, 1",
        "NaN throughout its row, for +inf minus +inf is none; other rows are untouched",
        on([[0, INF, 1], [0, 1, 2]]),
        ((NAN, NAN, NAN), P),
        ((NAN, NAN, NAN), L),
    ),
    Clause(
        "NaN",
        "0, NaN, 1",
        "NaN throughout its row; other rows are untouched",
        on([[0, NAN, 1], [0, 1, 2]]),
        ((NAN, NAN, NAN), P),
        ((NAN, NAN, NAN), L),
    ),
    Clause(
        "huge",
        "3.4e38, -3.4e38, 0",
        "no overflow; a logarithm that the type cannot hold is -inf",
        on([[3.4e38, -3.4e38, 0]]),
        (1, 0, 0),
        (0, -INF, -3.4e38),
    ),
    thirds(
        "large offset",
        "1e7, 1e7 + 1, 1e7 + 2",
        "the result of 0, 1, 2",
        on([[1e7, 1e7 + 1, 1e7 + 2], [-1e7, -1e7 + 1, -1e7 + 2]]),
    ),
    Clause(
        "denormal scores",
        "1e-40, -1e-40",
        "as zeros would give",
        on([[1e-40, -1e-40]]),
        (0.5, 0.5),
        (-0.6931471805599453, -0.6931471805599453),
    ),
    Clause(
        "denormal result",
        "0, -90",
        "kept, not flushed to 0",
        on([[0, -90]]),
        (1, 8.194012623990515e-40),
        (0, -90),
    ),
    Clause(
        "below every float32",
        "0, -110",
        "0; the logarithm stays exact",
        on([[0, -110]]),
        (1, 0),
        (0, -110),
    ),
    Clause("single column", "shape (3, 1)", "exactly 1; log 0", on([[0.7], [88.8], [-1e30]]), 1, 0),
    Clause("no rows", "shape (0, 3)", "empty, of the same shape", on(np.empty((0, 3))), 0, 0),
    Clause("no columns", "shape (3, 0)", "empty, of the same shape", on(np.empty((3, 0))), 0, 0),
)

TYPES = (
    thirds(
        "half precision",
        "float16",
        "float16: computed wide, rounded at the end",
        made(lambda: np.array(RISING, np.float16)),
        dtype="float16",
        kernel=TypeError,
    ),
    thirds(
        "double precision",
        "float64",
        "float64: correct, not tuned",
        made(lambda: np.array(RISING, np.float64)),
        dtype="float64",
        kernel=TypeError,
    ),
    thirds(
        "integer",
        "int32",
        "float32",
        made(lambda: np.array(RISING, np.int32)),
        kernel=TypeError,
    ),
    Clause(
        "unsigned integer",
        "uint8 0, 1, 255",
        "float32, with no wrapping round",
        made(lambda: np.array([[0, 1, 255]], np.uint8)),
        (0, 0, 1),
        (-255, -254, 0),
        kernel=TypeError,
    ),
    thirds(
        "integer beyond float32",
        "int64 2²⁴, 2²⁴ + 1, 2²⁴ + 2",
        "float32, from scores that are not rounded to float32 first",
        made(lambda: 2**24 + np.array([[0, 1, 2]])),
        kernel=TypeError,
    ),
    thirds(
        "integer beyond float64",
        "int64 2⁵³, 2⁵³ + 1, 2⁵³ + 2",
        "float32, from scores whose differences are exact",
        made(lambda: 2**53 + np.array([[0, 1, 2]])),
        kernel=TypeError,
    ),
    Clause(
        "boolean",
        "False, True",
        "float32, as 0 and 1",
        made(lambda: np.array([[False, True]])),
        P2,
        L2,
        kernel=TypeError,
    ),
    refused(
        "wider than float64",
        "longdouble",
        TypeError,
        made(lambda: np.array(RISING, np.longdouble)),
        kernel=TypeError,
    ),
    refused(
        "complex", "complex64", TypeError, made(lambda: np.zeros((1, 3), "c8")), kernel=TypeError
    ),
    refused(
        "no numbers",
        "objects, texts",
        TypeError,
        made(lambda: np.array([[0, 1, None]])),
        kernel=TypeError,
    ),
    thirds(
        "list",
        "[[0, 1, 2]]",
        "what np.asarray makes of it",
        made(lambda: [[0, 1, 2]]),
        kernel=TypeError,
    ),
    refused(
        "ragged list",
        "[[0, 1], [2]]",
        TypeError,
        made(lambda: [[0, 1], [2]]),
        kernel=TypeError,
    ),
    refused(
        "masked array",
        "numpy.ma",
        TypeError,
        made(lambda: np.ma.masked_less(f4(RISING), 0)),
        "TypeError: its mask would be lost; -inf is the mask here",
        kernel=TypeError,
    ),
    refused(
        "another library's array",
        "an object with `__array__`",
        TypeError,
        made(lambda: _Foreign()),
        "TypeError naming the conversion",
        kernel=TypeError,
    ),
)
