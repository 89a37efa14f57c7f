"""Where a softmax in float32 ends: its limits, found by running it; logarithms; lost rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from softmax_lab import reference
from softmax_lab.lane_art import fixed
from softmax_lab.prose import Sentence, Table, say
from softmax_lab.units import number, percent

Softmax = Callable[[np.ndarray], np.ndarray]
"""A softmax of a float32 matrix (rows, cols): a kernel's launch."""

LARGEST = float(np.finfo(np.float32).max)
SMALLEST = 2.0**-149
"""Largest and smallest positive float32."""

UPWARDS = 1.0, 200.0
"""Scores between which every row of equal scores overflows, however long it is."""

OUTCOMES = ("1/N", "NaN", "infinity", "zero")
"""What a row of equal scores may come out as, in every place."""


def limits(run: Softmax, lengths: Sequence[int]) -> Table:
    """The last equal scores of which `run` still makes 1/N, by row length: derived, and found by
    running it on neighbouring floats."""
    rows = []
    for cols in lengths:
        top = math.log(LARGEST) - math.log(cols)
        held, lost = reference.edge(lambda v, n=cols: _even(run, v, n), *UPWARDS)
        rows.append((f"{number(cols)}, upwards", f"{top:.6f}", f"{held:.6f}", f"{lost:.6f}"))
    bottom = math.log(SMALLEST / 2)
    held, lost = reference.edge(lambda v: _even(run, v, 1), -1.0, -200.0)
    rows.append(("any, downwards", f"{bottom:.6f}", f"{held:.6f}", f"{lost:.6f}"))
    heads = ("row length N", "derived", "last right, run", "first wrong, run")
    cells = tuple((name, *map(_minus, values)) for name, *values in rows)
    return Table(heads, cells, frozenset({1, 2, 3}))


def highest(run: Softmax) -> dict[str, float]:
    """The last score that alone in its row comes out as 1, by level (see `predictions`): derived,
    and found by running."""
    held, _ = reference.edge(lambda v: _even(run, v, 1), *UPWARDS)
    return {"derived": math.log(LARGEST), "counted": held}


def outcome(y: np.ndarray) -> str:
    """What a row of equal scores came out as, in a word or three: one of OUTCOMES.

    Raises ValueError for results that differ from each other.
    """
    first = float(y.flat[0])
    if not np.array_equal(y, np.full_like(y, first), equal_nan=True):
        raise ValueError(f"equal scores gave results that differ: {y}")
    if math.isnan(first):
        return "NaN"
    return "infinity" if math.isinf(first) else "1/N" if first else "zero"


def _even(run: Softmax, score: float, cols: int) -> bool:
    """Whether a row of equal scores gets equal shares."""
    y = run(np.full((1, cols), score, np.float32))
    return bool(np.allclose(y, 1 / cols, rtol=1e-3, atol=0))


def logarithms(run: Softmax, direct: Softmax, depths: Sequence[float]) -> Table:
    """log-softmax of the second score of the row [0, -depth]: the logarithm of what `run` gives,
    and `direct`, beside the exact value."""
    rows = []
    for depth in depths:
        x = np.array([[0, -depth]], np.float32)
        with np.errstate(divide="ignore"):
            after = float(np.log(run(x))[0, 1])
        exact = float(reference.log_softmax(x)[0, 1])
        values = (float(run(x)[0, 1]), after, float(direct(x)[0, 1]), exact)
        rows.append((_minus(f"{-depth:g}"), _power(values[0]), *map(_place, values[1:])))
    heads = ("second score", "its softmax", "logarithm of that", "directly", "exact")
    return Table(heads, tuple(rows), frozenset(range(5)), note="Float32; exact: float64.")


def fading(run: Softmax, depths: Sequence[float]) -> Table:
    """The second result of [0, -depth], how far it is from the exact one, and how far apart the
    float32 numbers around it are."""
    rows = []
    for depth in depths:
        x = np.array([[0, -depth]], np.float32)
        y, exact = float(run(x)[0, 1]), float(reference.softmax(x)[0, 1])
        gap = float(np.spacing(np.float32(y)))
        cells = _power(y), percent(abs(y / exact - 1)), percent(gap / y) if y else "–"
        rows.append((_minus(f"{-depth:g}"), *cells))
    heads = ("second score", "its softmax", "off by", "gap to the next float")
    note = say("The smallest positive float32 is {least}.", least=_power(SMALLEST))
    return Table(heads, tuple(rows), frozenset(range(4)), note=note.words)


def contract(rows: Mapping[str, Sequence[float]], runs: Mapping[str, Softmax]) -> Table:
    """Rows that hold infinities or NaN, and what each of `runs` makes of them."""
    cells = []
    for name, scores in rows.items():
        x = np.array([scores], np.float32)
        results = (", ".join(_short(v) for v in run(x)[0]) for run in runs.values())
        cells.append((name, ", ".join(_short(v) for v in x[0]), *results))
    return Table(("row", "scores", *(f"`{name}`" for name in runs)), tuple(cells))


def agreed(x: np.ndarray, runs: Mapping[str, Softmax]) -> Sentence:
    """Whether all of `runs` keep the contract on a matrix, element by element."""
    wrong = [name for name, run in runs.items() if not reference.compare(run(x), x).ok]
    rows = int(np.isnan(reference.softmax(x)).all(axis=1).sum())
    return say(
        "{n} kernels ran on {rows} rows, {lost} of them without a distribution. "
        + ("All of them keep the contract." if not wrong else "It is broken by {wrong}."),
        n=len(runs),
        rows=len(x),
        lost=rows,
        wrong=", ".join(f"`{name}`" for name in wrong),
    )


def _place(value: float) -> str:
    return fixed(value, 4)


def _short(value: float) -> str:
    return fixed(float(value), 3)


def _minus(written: str) -> str:
    return written.replace("-", "−")


def _power(value: float) -> str:
    """A number in scientific notation, and zero as what it is."""
    if not value:
        return "0"
    mantissa, exponent = f"{value:.3e}".split("e")
    return rf"\({mantissa} \cdot 10^{{{int(exponent)}}}\)"
