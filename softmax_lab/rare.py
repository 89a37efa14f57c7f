"""The rare path of a division: which scores send a warp there, and what that costs."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from softmax_lab import reference
from softmax_lab.facts import WARP
from softmax_lab.prose import Sentence, Table, say
from softmax_lab.published import DATA, KERNEL, LAUNCHES, Again
from softmax_lab.recordrows import Rerun
from softmax_lab.runs import about, shape
from softmax_lab.units import MISSING, number, percent, times

BELOW = 2.0**-102
"""Numerators from which the last digits of a remainder, 24 binary ones further down, may be lost:
below, the compiler's code calls a subroutine (`FCHK` and `CALL`, NVRTC 13.0, sm_90)."""

RANDOM = next(iter(DATA))


def steps(x: np.ndarray) -> np.ndarray:
    """Of the steps that warps take along each row of scores (rows, cols), 32 columns at a time, the
    share in which some power e^(x - max) is below `BELOW` (rows,)."""
    with np.errstate(invalid="ignore", under="ignore"):
        wide = x.astype(np.float64)
        low = np.exp(wide - wide.max(axis=1, keepdims=True)) < BELOW
    short = -x.shape[1] % WARP
    return np.pad(low, ((0, 0), (0, short))).reshape(len(x), -1, WARP).any(axis=2).mean(axis=1)


def by_data(again: Again | None, *shapes: tuple[int, int]) -> Table | Sentence:
    """Times of some shapes on other scores, and how many steps of a warp divide something tiny, a
    kind of scores a row."""
    cells, headings = [], []
    for rows, cols in shapes:
        runs = _known(again, rows, cols)
        if runs:
            headings.append((len(cells), shape(rows, cols)))
        for kind, run in runs.items():
            usual, tiny = runs[RANDOM], _steps(kind, rows, cols)
            cells.append(
                (
                    DATA[kind],
                    percent(float(tiny.mean())),
                    number(int((tiny > 0.5).sum())),
                    number(1e6 * run.graph_s),
                    times(run.graph_s / usual.graph_s),
                    number(1e6 * run.cold_s),
                    times(run.cold_s / usual.cold_s),
                )
            )
    if not cells:
        return say(f"Times on other scores: {MISSING}.")
    heads = (
        "scores of a row",
        "steps with tiny powers",
        "rows full of them",
        "warm [µs]",
        "over random",
        "cold [µs]",
        "over random",
    )
    note = say(
        "`{kernel}`. Tiny: below {below} in one lane at least, as the scores have it. Full: in "
        "most of their steps. Warm: one pair of matrices, {n} launches in a graph. {about}.",
        below=rf"\(2^{{{math.frexp(BELOW)[1] - 1}}}\)",
        kernel=KERNEL,
        n=LAUNCHES,
        about=", ".join(about(again.gpu, again.provenance)),
    )
    numeric = frozenset(range(1, len(heads)))
    return Table(heads, tuple(cells), numeric, note=note.words, groups=tuple(headings))


def cost(again: Again | None, *shapes: tuple[int, int]) -> Sentence:
    """How far times are from those of random scores, without tiny powers and with them."""
    plain, tiny = [], []
    for rows, cols in shapes:
        runs = _known(again, rows, cols)
        for kind, run in runs.items():
            met = _steps(kind, rows, cols).mean() > 0
            ratio = run.graph_s / runs[RANDOM].graph_s
            if kind != RANDOM:
                (tiny if met else plain).append((ratio, f"{DATA[kind]} at {shape(rows, cols)}"))
    if not (plain and tiny):
        return say(f"What tiny powers cost: {MISSING}.")
    (least, _), (most, _) = min(plain), max(plain)
    slowest, where = max(tiny)
    return say(
        "Warm, the other scores without a tiny power take {least:×} to {most:×} the time of random "
        "ones; with them it goes up to **{slowest:×}** ({where}).",
        least=least,
        most=most,
        slowest=slowest,
        where=where,
    )


@cache
def _steps(kind: str, rows: int, cols: int) -> np.ndarray:
    """`steps` of the scores that were timed."""
    return steps(reference.inputs(kind, rows, cols))


def _known(again: Again | None, rows: int, cols: int) -> dict[str, Rerun]:
    """The runs of a shape by the kind of scores; none without the random ones."""
    found = {kind: again.at(rows, cols, kind) for kind in DATA} if again else {}
    return {k: run for k, run in found.items() if run} if found.get(RANDOM) else {}
