"""Recorded times of several kernels beside each other, and gains against what the bytes promise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from softmax_lab.ledger import Ledger
from softmax_lab.prose import Sentence, Table, names, say
from softmax_lab.records import Measured
from softmax_lab.runs import provenance, shape
from softmax_lab.units import MISSING, number, times

CLOSE = 0.15
"""A gain that misses the promised one by at most this share counts as kept: 1.3× is promised as a
gain of 0.3, and 1.1× keeps a third of it."""


def race(recorded: Mapping[str, Sequence[Measured | None]]) -> Table | Sentence:
    """Recorded times of several kernels at the same shapes, a shape a row; the last column compares
    the last kernel with the first. Shapes that nobody recorded are left out."""
    columns = list(recorded.values())
    rows = []
    for runs in zip(*columns, strict=True):
        known = [run for run in runs if run is not None and run.seconds]
        if not known:
            continue
        first, last = runs[0], runs[-1]
        both = first is not None and last is not None and first.seconds and last.seconds
        gain = times(first.seconds / last.seconds) if both else MISSING
        cells = (number(run.seconds * 1e6) if run and run.seconds else MISSING for run in runs)
        rows.append((shape(known[0].rows, known[0].cols), *cells, gain))
    if not rows:
        return say("Time on a GPU: not measured yet.")
    heads = ("shape", *(f"`{name}` [µs]" for name in recorded), "gain")
    known = [run for runs in columns for run in runs if run is not None and run.seconds]
    note = f"Medians; {known[0].dtype}; {provenance(*known)}"
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))), note=note)


def steps(recorded: Mapping[str, Sequence[Measured | None]]) -> Table | Sentence:
    """From the first kernel to the last by steps, a shape a row: the time of the first, the gain of
    each step over the kernel before, by what the step is called, and the time of the last. Shapes
    that lack a record are left out."""
    rows, shown = [], []
    for runs in zip(*recorded.values(), strict=True):
        if not all(run is not None and run.seconds for run in runs):
            continue
        shown += runs
        first, *_, last = seconds = [run.seconds for run in runs]
        each = (times(before / after) for before, after in pairwise(seconds))
        ends = (number(1e6 * first), number(1e6 * last))
        rows.append((shape(runs[0].rows, runs[0].cols), ends[0], *each, ends[1]))
    if not rows:
        return say("Gain of each step: not measured yet.")
    _, *called = recorded
    first, *_, last = (f"`{run.kernel}` [µs]" for run in shown[-len(recorded) :])
    heads = ("shape", first, *called, last)
    note = f"Medians, and gains of each step; {shown[0].dtype}; {provenance(*shown)}"
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))), note=note)


def spread(recorded: Mapping[str, Sequence[Measured | None]]) -> Sentence:
    """How far apart kernels are that were recorded at the same shapes."""
    apart = [
        (max(seconds) / min(seconds) - 1, runs[0])
        for runs in zip(*recorded.values(), strict=True)
        if all(run is not None and run.seconds for run in runs)
        for seconds in [[run.seconds for run in runs]]
    ]
    if not apart:
        return say("How far they are apart: not measured yet.")
    most, run = max(apart, key=lambda pair: pair[0])
    return say(
        "Over {n} shapes the slowest and the fastest of them differ by {most:%} at most, on {rows} "
        "× {cols}.",
        n=len(apart),
        most=most,
        rows=run.rows,
        cols=run.cols,
    )


def gain(before: Ledger, after: Ledger, promised: float, of: str) -> Sentence:
    """How many times as fast `after` is as `before`, against what a ratio of bytes promises.

    `of` says which bytes: "bytes asked for", "bytes moved at L1".
    """
    promise = "The ratio of {of} is {promised:×}. "
    a, b = before.measured, after.measured
    known = {"of": of, "promised": promised}
    if a is None or b is None or not a.seconds or not b.seconds:
        return say(
            promise + "How much faster `{b}` is than `{a}`: not measured yet.",
            a=before.kernel.symbol,
            b=after.kernel.symbol,
            **known,
        )
    ratio = a.seconds / b.seconds
    if abs((ratio - 1) / (promised - 1) - 1) <= CLOSE:
        verdict = "On this shape the clock comes close to the ratio."
    elif ratio <= 1:
        verdict = "There is no gain: the bytes were not what it waited for."
    else:
        size = "less" if ratio < promised else "more"
        verdict = f"That is {size} than the ratio: {{of}} are not the whole story."
    return say(
        promise + "On {rows} × {cols} `{a}` takes {before:s} and `{b}` {after:s}: `{b}` is "
        "**{ratio:×}** as fast. " + verdict,
        a=before.kernel.symbol,
        b=after.kernel.symbol,
        rows=before.rows,
        cols=before.cols,
        before=a.seconds,
        after=b.seconds,
        ratio=ratio,
        **known,
    )


def gains(recorded: Mapping[str, Sequence[Measured | None]], least_rows: int) -> Sentence:
    """Between which values the gain of the second of two kernels lies, over the recorded shapes of
    so many rows or more."""
    known = _gained(recorded, least_rows)
    if not known:
        return say("The gain on other shapes: not measured yet.")
    (least, short), *_, (most, long) = known if len(known) > 1 else known * 2
    return say(
        "Over the {n} recorded shapes of {rows} rows or more the gain lies between {least:×} ({a}) "
        "and {most:×} ({b}).",
        n=len(known),
        rows=least_rows,
        least=least,
        most=most,
        a=short,
        b=long,
    )


def ends(recorded: Mapping[str, Sequence[Measured | None]], top: int = 2) -> Sentence:
    """The `top` recorded shapes on which the second of two kernels gains most, and the one on which
    it gains least."""
    known = _gained(recorded)
    if len(known) <= top:
        return say("On which shapes it gains most: not measured yet.")
    least, *_ = told = [f"{where} ({times(ratio)})" for ratio, where in known]
    return say(
        "Of {n} recorded shapes it gains most on {most}, and least on {least}.",
        n=len(known),
        most=names(told[: -top - 1 : -1]),
        least=least,
    )


def _gained(
    recorded: Mapping[str, Sequence[Measured | None]], least_rows: int = 1
) -> list[tuple[float, str]]:
    """(gain of the second of two kernels, shape) where both were recorded, by growing gain."""
    return sorted(
        (a.seconds / b.seconds, shape(a.rows, a.cols))
        for a, b in zip(*recorded.values(), strict=True)
        if a and b and a.seconds and b.seconds and a.rows >= least_rows
    )


def beside(before: Ledger, after: Ledger) -> Sentence:
    """How many times as fast `after` is as `before`, where no ratio of bytes promises anything."""
    a, b = before.measured, after.measured
    known = a is not None and b is not None and a.seconds and b.seconds
    said = "`{b}` against `{a}` on {rows} × {cols}: "
    said += "{after:s} against {before:s}, **{ratio:×}** as fast." if known else "not measured yet."
    return say(
        said,
        a=before.kernel.symbol,
        b=after.kernel.symbol,
        rows=before.rows,
        cols=before.cols,
        before=known and a.seconds,
        after=known and b.seconds,
        ratio=a.seconds / b.seconds if known else None,
    )
