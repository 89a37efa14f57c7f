"""Whether what is measured now agrees with the record of the same thing on the same kind of GPU."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from softmax_lab import records, series
from softmax_lab.records import Measured
from softmax_lab.series import EMPTY, SMALL, Readings, Series
from softmax_lab.units import fill

MACHINES = 0.05
"""Two sessions on machines with one kind of GPU may differ by this share of the recorded value,
beyond what either run spreads. H200s, sessions of two days, launches of 10 µs and more: 2.5 % at
most in 112 comparisons."""

SHORT, SHORT_MACHINES = 10e-6, 0.15
"""A launch that takes less than this [s] may differ by more: 13.7 % at most in 21 comparisons, by
kernels with a warp a row at 2048 x 512, which settle at one of two times for a whole session."""

HOSTS = 2.0
"""Another host may take this many times as long over a start, or as many times less. A presumption:
one host alone is in the records."""

SWITCH = "SOFTMAX_LAB_AGREE"
"""0 in this variable of the environment measures without comparing."""


class Disagreement(RuntimeError):
    """A measurement of now and the record of the same are further apart than both explain."""


@dataclass(frozen=True)
class Spread:
    """A median with what 60 % of its samples lie between."""

    low: float
    median: float
    high: float

    def over(self, other: Spread) -> Spread:
        """The ratio to another, as far apart as the two spreads allow."""
        return Spread(self.low / other.high, self.median / other.median, self.high / other.low)


@dataclass(frozen=True)
class Pair:
    """One quantity now and in the record; `unit` is "s", or "×" for a ratio to the copy's time.

    `above` and `below` are what may come on top of `machines`, a share, where now is more and where
    it is less.
    """

    unit: str
    now: Spread
    then: Spread
    above: float = 0.0
    below: float = 0.0
    machines: float = MACHINES

    @property
    def tolerance(self) -> float:
        """How far the medians may be apart: the sides of both spreads that face each other, and the
        machines."""
        now, then = self.now, self.then
        if now.median > then.median:
            facing = now.median - now.low + then.high - then.median + self.above
        else:
            facing = now.high - now.median + then.median - then.low + self.below
        return facing + self.machines * then.median

    @property
    def ok(self) -> bool:
        """Whether the medians are close enough."""
        return abs(self.now.median - self.then.median) <= self.tolerance

    @property
    def off(self) -> float:
        """The difference of the medians as a share of the recorded one."""
        return self.now.median / self.then.median - 1

    def __str__(self) -> str:
        of = " the copy's time" if self.unit == "×" else ""
        return fill(
            f"{{now:{self.unit}}}{of} now, {{then:{self.unit}}} recorded ({{off:%}} {{which}}, "
            "{allowed:%} allowed)",
            now=self.now.median,
            then=self.then.median,
            off=abs(self.off),
            which="more" if self.off > 0 else "less",
            allowed=self.tolerance / self.then.median,
        )


@dataclass(frozen=True)
class Comparison:
    """What was compared, in words, with the record's date; agreeing in one of its pairs is enough.

    A time and its ratio to the copy's are such pairs: on slower memory the ratio lasts, and a copy
    that is off by itself leaves the time (seen at 256 x 1024: 15 % between two sessions).
    """

    what: str
    date: str
    pairs: tuple[Pair, ...]

    @property
    def ok(self) -> bool:
        """Whether now and then agree."""
        return any(pair.ok for pair in self.pairs)

    def __str__(self) -> str:
        verb = "agrees" if self.ok else "disagrees"
        return (
            f"{self.what} {verb} with the record of {self.date}: {'; '.join(map(str, self.pairs))}."
        )


def timed(run: Measured) -> Comparison | None:
    """A kernel timed now against the record of the same kernel's source, shape, type, protocol,
    level and GPU; None where there is none."""
    try:
        then = records.lookup(run.kernel, run.rows, run.cols, run.dtype, run.gpu)
    except LookupError:
        return None
    alike = then.level == run.level and _protocol(then) == _protocol(run)
    if not (alike and run.seconds and then.seconds):
        return None
    share = SHORT_MACHINES if then.seconds < SHORT else MACHINES
    pairs = [Pair("s", _time(run), _time(then), machines=share)]
    if run.copy_seconds and then.copy_seconds:
        ratios = (_time(each).over(_copy(each)) for each in (run, then))
        pairs.append(Pair("×", *ratios, machines=share))
    what = f"{run.kernel} at {run.rows} × {run.cols} ({run.dtype}) on {run.gpu}"
    return Comparison(what, then.provenance.get("date", "an unknown date"), tuple(pairs))


def read(now: Readings) -> tuple[Comparison, ...]:
    """Every series of clock readings taken now that the record of this GPU and protocol has too.

    The host starts what a reading times. What that takes is the recorded reading of a launch of
    nothing by the same clock, and hosts differ in it.
    """
    then = series.recorded(now.gpu)
    if then is None or _protocol(then) != _protocol(now):
        return ()
    found = []
    for one in now.series:
        named = ("rows", "cols", "pairs", "launches", "vectors")
        at = {name: getattr(one, name) for name in named}
        if (old := then.one(one.kernel, one.clock, **at)) is None:
            continue
        nothing = then.one(EMPTY, one.clock, rows=SMALL[0], cols=SMALL[1], pairs=1, launches=1)
        start = min(nothing.median, old.median) if nothing else 0.0
        room = start * (HOSTS - 1), start * (1 - 1 / HOSTS)
        what = (
            f"{one.launches} × {one.kernel} at {one.rows} × {one.cols} over {one.pairs} pairs, "
            f"clock “{one.clock}”, on {now.gpu}"
        )
        pair = Pair("s", _settled(one), _settled(old), *room)
        found.append(Comparison(what, then.provenance.get("date", "an unknown date"), (pair,)))
    return tuple(found)


def demand(found: Iterable[Comparison | None]) -> None:
    """Raise Disagreement with every comparison that fails, unless SOFTMAX_LAB_AGREE=0."""
    wrong = [str(each) for each in found if each is not None and not each.ok]
    if wrong and os.environ.get(SWITCH) != "0":
        advice = (
            "Allowed is what both runs spread and what two machines differ by. Is something else "
            f"at work on this GPU? {SWITCH}=0 measures without comparing."
        )
        raise Disagreement("\n".join([*wrong, advice]))


def report(runs: Sequence[Measured]) -> tuple[list[str], bool]:
    """A line for each run, furthest from its record first, and whether all that could be compared
    agree."""
    found = sorted(filter(None, map(timed, runs)), key=lambda each: -_excess(each))
    lines = [f"{'ok  ' if each.ok else 'OFF '} {each}" for each in found]
    lines.append(f"{len(found)} of {len(runs)} runs have a record to compare with.")
    return lines, all(each.ok for each in found)


def _excess(found: Comparison) -> float:
    """Difference over tolerance, of the pair that fits best: above 1 it disagrees."""
    return min(abs(each.off) * each.then.median / each.tolerance for each in found.pairs)


def _protocol(run: Measured | Readings) -> str | None:
    return run.provenance.get("protocol")


def _time(run: Measured) -> Spread:
    return Spread(run.p20 or run.seconds, run.seconds, run.p80 or run.seconds)


def _copy(run: Measured) -> Spread:
    middle = run.copy_seconds
    return Spread(run.copy_p20 or middle, middle, run.copy_p80 or middle)


def _settled(one: Series) -> Spread:
    low, high = np.quantile(one.settled, (0.2, 0.8))
    return Spread(float(low), one.median, float(high))
