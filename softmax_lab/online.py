"""The online recurrence and the (max, sum) merge in NumPy float32, with traces; how often a running
maximum rises."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softmax_lab.arguments import without_mask
from softmax_lab.facts import WARP

LOWEST = float(np.finfo(np.float32).min)
"""Where the kernels' running maximum starts: -FLT_MAX, so that a masked entry adds exp(-inf) = 0
and never exp(-inf + inf) = NaN."""

FORMS = ("branch", "rescale", "branchfree")
"""Ways to write one step: a branch for a new maximum; rescale, then always add; a maximum and two
exponentials."""


@dataclass(frozen=True)
class Step:
    """One element of the recurrence: the state before and after, whether the maximum rose, and the
    rescale factor."""

    index: int
    x: float
    max_before: float
    sum_before: float
    rose: bool
    rescale: float
    max: float
    sum: float


def scan(row, *, form: str = "branch", start: float = LOWEST) -> tuple[Step, ...]:
    """Every step of the online pass over a row (cols,), in float32 and in the kernels' order of
    operations.

    `start=-np.inf` is the recurrence as usually printed: a leading -inf then turns the row into
    NaN. Raises ValueError for another form.
    """
    if form not in FORMS:
        raise ValueError(f"form is one of {', '.join(FORMS)}, got {form!r}")
    one, top, total = np.float32(1), np.float32(start), np.float32(0)
    steps = []
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        for index, x in enumerate(np.asarray(without_mask("row", row), dtype=np.float32).ravel()):
            before = (top, total)
            rose = bool(x > top)
            if form == "branchfree":
                new = np.fmax(top, x)
                rescale = np.exp(top - new)
                top, total = new, total * rescale + np.exp(x - new)
            elif rose:
                rescale = np.exp(top - x)
                top, total = x, total * rescale + one
            else:
                rescale, total = one, total + np.exp(x - top)
            numbers = (float(v) for v in (*before, rescale, top, total))
            max_before, sum_before, factor, max_after, sum_after = numbers
            steps.append(
                Step(index, float(x), max_before, sum_before, rose, factor, max_after, sum_after)
            )
    return tuple(steps)


def merge(
    a: tuple[float, float], b: tuple[float, float], *, guarded: bool = False
) -> tuple[float, float]:
    """The pair (m, L) of two parts of a row from the pairs of each, in float32; (LOWEST, 0) is the
    identity.

    Commutative; associative up to rounding. With (-inf, 0) as identity, exp(-inf + inf) makes NaN:
    see `LOWEST`; `guarded` then takes 1 for the factor where both maxima are alike.
    """
    top, total = merge_all(a, b, guarded=guarded)
    return float(top), float(total)


def merge_all(a, b, *, guarded: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """`merge` of many at once: maxima and sums, arrays of one shape each; one exponential, as the
    kernels do it."""
    (m1, l1), (m2, l2) = (tuple(np.asarray(v, dtype=np.float32) for v in pair) for pair in (a, b))
    rises = m2 > m1
    (top, most), (low, least) = (
        (np.where(rises, m, n), np.where(rises, k, j))
        for m, n, k, j in ((m2, m1, l2, l1), (m1, m2, l1, l2))
    )
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        factor = np.exp(low - top)
        if guarded:
            factor = np.where(low == top, np.float32(1), factor)
        return top, most + least * factor


def lanes(row, threads: int) -> tuple[tuple[float, float], ...]:
    """The (m, L) that each of `threads` threads ends with when thread t walks row[t::threads]; an
    idle thread has (LOWEST, 0)."""
    if threads < 1:
        raise ValueError(f"at least one thread walks a row, got {threads}")
    row = np.asarray(without_mask("row", row))
    parts = (scan(row[t::threads]) for t in range(threads))
    return tuple((part[-1].max, part[-1].sum) if part else (LOWEST, 0.0) for part in parts)


def rises(x, threads: int = 1) -> np.ndarray:
    """Where a running maximum rises: booleans of x's shape (rows, cols), each of `threads` threads
    of a row walking its own columns t, t + threads, … from -FLT_MAX on. The first element of a walk
    counts when it is above that."""
    x = np.asarray(without_mask("x", x), dtype=np.float32)
    out = np.zeros(x.shape, dtype=bool)
    for t in range(min(threads, x.shape[-1])):
        mine = x[..., t::threads]
        # NaN never compares greater, and maximum.accumulate would spread it: to the comparison it
        # is "not above".
        walk = np.where(np.isnan(mine), LOWEST, mine)
        before = np.maximum.accumulate(np.maximum(walk, LOWEST), axis=-1)
        before = np.concatenate(
            [np.full((*mine.shape[:-1], 1), LOWEST, np.float32), before[..., :-1]], axis=-1
        )
        out[..., t::threads] = mine > before
    return out


def updates(x, threads: int = 1) -> int:
    """R: how often running maxima rise over all rows of x (rows, cols), `threads` threads sharing a
    row."""
    return int(rises(x, threads).sum())


def expected_updates(rows: int, cols: int, threads: int = 1) -> float:
    """E[R] for independent continuous data (rows, cols), `threads` threads to a row: a walk of n
    elements rises H_n times, the harmonic number."""
    short, longer = divmod(cols, threads)
    return rows * (longer * harmonic(short + 1) + (threads - longer) * harmonic(short))


def diverged(x, threads: int = 1) -> int:
    """D: how often the lanes of a warp disagree on "did the maximum rise", when they step through x
    (rows, cols) together, `threads` (a power of two) threads to a row, threads numbered row by
    row."""
    rose = rises(x, threads)
    asked = np.ones(rose.shape, dtype=bool)
    asked, rose = (_by_warp_step(flags, threads) for flags in (asked, rose))
    return int(((rose & asked).any(axis=(1, 3)) & (~rose & asked).any(axis=(1, 3))).sum())


def expected_diverged(rows: int, cols: int, threads: int = 1) -> float:
    """E[D] for independent continuous data: at its step k each lane's maximum rises with
    probability 1/k."""
    together = max(1, WARP // threads)
    wide = min(threads, WARP)
    full, tail = divmod(rows, together)
    total = 0.0
    for warps, rows_here in ((full, together), (1, tail)):
        if not warps or not rows_here:
            continue
        for first in range(0, cols, wide):
            chance = 1 / (first // threads + 1)
            lanes_here = rows_here * min(wide, cols - first)
            total += warps * (1 - chance**lanes_here - (1 - chance) ** lanes_here)
    return total


def merge_rises(x, threads: int, butterfly: bool) -> int:
    """How often a merge finds the larger maximum in the second of two parts, when `threads` (a
    power of two) threads have walked x (rows, cols) as in `rises` and their maxima meet: t and t +
    threads/2, and so on by halves; in a butterfly every thread merges with its partner."""
    x = np.asarray(x, dtype=np.float32)
    walks = np.full((x.shape[0], -(-x.shape[1] // threads) * threads), LOWEST, np.float32)
    walks[:, : x.shape[1]] = np.fmax(x, LOWEST)  # fmax: NaN is "not above", as in `rises`
    maxima = walks.reshape(x.shape[0], -1, threads).max(axis=1)
    return int(_meet(maxima, np.less, np.maximum, butterfly))


def expected_merge_rises(rows: int, cols: int, threads: int, butterfly: bool) -> float:
    """E[merge_rises] for independent continuous data: the larger maximum is in the second part with
    the probability that any one element of the two is."""
    elements = (cols + np.arange(threads)[::-1]) // threads
    share = lambda mine, other: other / np.maximum(mine + other, 1)  # noqa: E731
    return rows * float(_meet(elements[None], share, np.add, butterfly))


def _meet(parts: np.ndarray, asked, combine, butterfly: bool):
    """Sum of asked(mine, other) over all merges of parts (rows, threads), halved to one."""
    total, half = 0, parts.shape[1] // 2
    lanes = np.arange(parts.shape[1])
    while half:
        mine = parts if butterfly else parts[:, :half]
        other = parts[:, lanes ^ half] if butterfly else parts[:, half : 2 * half]
        total += asked(mine, other).sum()
        parts, half = combine(mine, other), half // 2
    return total


def _by_warp_step(flags: np.ndarray, threads: int) -> np.ndarray:
    """(rows, cols) → (warps, rows of a warp, steps, columns of a step); False where no lane
    stands."""
    rows, cols = flags.shape
    together, wide = max(1, WARP // threads), min(threads, WARP)
    padded = np.zeros((-(-rows // together) * together, -(-cols // wide) * wide), dtype=bool)
    padded[:rows, :cols] = flags
    return padded.reshape(-1, together, padded.shape[1] // wide, wide)


def harmonic(n: int) -> float:
    """H_n = 1 + 1/2 + … + 1/n ≈ ln n + 0.5772 (exact sum up to 10^5 terms, then its asymptotic
    series)."""
    if n <= 100_000:
        return float((1 / np.arange(1, n + 1)).sum())
    return float(np.log(n) + np.euler_gamma + 1 / (2 * n) - 1 / (12 * n * n))
