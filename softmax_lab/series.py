"""Series of clock readings in the order they were taken in: every one of them, warm-up included."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from softmax_lab import records, registry
from softmax_lab.recordrows import Reading

KIND = "clock"

CLOCKS = {
    "call": "host, until the call returns",
    "wait": "host, until the GPU is done",
    "events": "events before and after",
    "graph": "events around one graph",
}
"""How a clock is read around launches, and what tables call it."""

COPY, EMPTY = "roof/copy", "roof/empty"
SMALL, MIDDLE, LARGE = (256, 1024), (2048, 1024), (65536, 1024)
"""Shapes (rows, cols): the running example, one whose pairs fill L2 in small steps, one far
beyond."""

SIZES = ((128, 1024), (512, 1024), (1024, 1024), MIDDLE)
"""Shapes of copies that L2 holds when one pair of buffers is used again and again."""

VECTORS = (1, 4)
"""Vectors a thread of these copies: with four, four loads of a thread are under way at once."""

WARM_UPS = 2
"""Readings at the start of a series that no median takes: what is done once is done there."""


@dataclass(frozen=True)
class Series:
    """Readings [s] of one clock around `launches` launches, over `pairs` buffer pairs in turn; a
    thread of the copy moves `vectors` of four floats."""

    kernel: str
    rows: int
    cols: int
    clock: str
    pairs: int
    launches: int
    seconds: tuple[float, ...]
    vectors: int = 1

    @property
    def settled(self) -> tuple[float, ...]:
        """The readings after the warm-up; all of them where there are no more than that."""
        return self.seconds[WARM_UPS:] or self.seconds

    @property
    def median(self) -> float:
        """Median of the settled readings [s], for all launches of a reading together."""
        return statistics.median(self.settled)

    @property
    def each(self) -> float:
        """Median time of one launch [s]."""
        return self.median / self.launches

    @property
    def bytes_once(self) -> int:
        """One read and one write of one matrix [B]: what a launch of a copy moves."""
        return registry.COPY.family.once(self.rows, self.cols)


@dataclass(frozen=True)
class Readings:
    """Every series that one GPU (a slug) has, and where they come from."""

    gpu: str
    series: tuple[Series, ...]
    provenance: Mapping[str, str] = field(default_factory=dict)

    def find(self, kernel: str, clock: str, **at: int) -> tuple[Series, ...]:
        """Series of a kernel by a clock, whose `rows`, `cols`, `pairs`, `launches` and `vectors`
        (1 unless said) are as given.

        Ordered by shape, then by pairs and launches. Raises ValueError for a clock there is not.
        """
        if clock not in CLOCKS:
            raise ValueError(f"a clock is {', '.join(CLOCKS)}, got {clock!r}")
        found = [
            one
            for one in self.series
            if (one.kernel, one.clock) == (kernel, clock)
            and all(getattr(one, name) == value for name, value in {"vectors": 1, **at}.items())
        ]
        return tuple(sorted(found, key=lambda one: (one.rows, one.cols, one.pairs, one.launches)))

    def one(self, kernel: str, clock: str, **at: int) -> Series | None:
        """The series that `find` finds first, or None."""
        return next(iter(self.find(kernel, clock, **at)), None)


def recorded(gpu: str | None = None) -> Readings | None:
    """Series recorded on `gpu` (a slug) or on the first GPU that has any; None where none has."""
    for slug in (gpu,) if gpu else records.gpus():
        table = records.fresh(KIND, slug)
        if table.rows:
            return gathered(slug, table.rows, table.runs)
    return None


def gathered(gpu: str, rows: Iterable[Reading], runs: Mapping[str, Mapping[str, str]]) -> Readings:
    """Rows put together to series, in the order of their turns."""
    rows = sorted(rows, key=lambda row: (row.key, row.turn))
    out = []
    for _, group in groupby(rows, key=lambda row: row.key):
        first, *rest = group
        seconds = tuple(float(row.seconds) for row in (first, *rest))
        place = first.kernel, first.rows, first.cols
        how = first.clock, first.pairs, first.launches
        out.append(Series(*place, *how, seconds, first.vectors))
    return Readings(gpu, tuple(out), runs.get(rows[-1].run, {}) if rows else {})
