"""What is recorded, kind by kind: the rows of record files, and what each of them replaces."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Launched:
    """What every row begins with: the run that made it, the kernel as it was, and what it was
    launched on."""

    run: str
    kernel: str
    fingerprint: str
    dtype: str
    rows: int
    cols: int

    @property
    def key(self) -> tuple:
        """What a newer row replaces: all of the same launch, so that one run made it all."""
        return self.kernel, self.dtype, self.rows, self.cols


@dataclass(frozen=True)
class Timing(Launched):
    """Time of one launch [s] of a kernel at a shape, beside the copy kernel's in the same run.

    `method` is `graph` (rotating buffers in a CUDA graph) or `events` (one buffer pair, again and
    again); `level` is where the data is when a launch starts, `DRAM` or `L2`. `copy` is the copy
    kernel's fingerprint.
    """

    method: str
    level: str
    pairs: int
    repeats: int
    median_s: float
    p20_s: float
    p80_s: float
    copy: str
    copy_median_s: float
    copy_p20_s: float
    copy_p80_s: float

    @property
    def key(self) -> tuple:
        """What a newer row replaces."""
        return self.kernel, self.dtype, self.rows, self.cols, self.method


@dataclass(frozen=True)
class Counter(Launched):
    """One hardware counter of one launch, under its Nsight Compute name."""

    metric: str
    unit: str
    value: float


@dataclass(frozen=True)
class Reading(Launched):
    """One reading of a clock [s] around `launches` launches of a kernel over `pairs` buffer pairs
    in turn.

    `clock` says how it was read (`series.CLOCKS`). A thread of the copy moves `vectors` of four
    floats. `turn` is the reading's place in the series: 0 comes first, with nothing warmed up.
    """

    clock: str
    pairs: int
    launches: int
    vectors: int
    turn: int
    seconds: float

    @property
    def key(self) -> tuple:
        """What a newer row replaces: a whole series, so that one run made it all."""
        shape = self.kernel, self.dtype, self.rows, self.cols
        return *shape, self.clock, self.pairs, self.launches, self.vectors


@dataclass(frozen=True)
class Rerun(Launched):
    """A published measurement made again: times of one launch [s] of a kernel by its protocol and
    by ours, in the same run.

    `calls_s` is the mean of `launches` calls one after the other, `graph_s` that of as many in a
    CUDA graph, both on one buffer pair; `cold_s` is the median of our protocol (`Timing`), with its
    spread, where the data is at `level`. `max_error` is the largest absolute difference from
    results in float64. `data` is the kind of scores (`reference.INPUTS`).
    """

    data: str
    warm_ups: int
    launches: int
    calls_s: float
    graph_s: float
    cold_s: float
    cold_p20_s: float
    cold_p80_s: float
    level: str
    max_error: float

    @property
    def key(self) -> tuple:
        """What a newer row replaces."""
        return self.kernel, self.dtype, self.rows, self.cols, self.data


@dataclass(frozen=True)
class Sanitized(Launched):
    """What one tool of compute-sanitizer found in `launches` launches of a kernel, each of another
    shape; the largest is (`rows`, `cols`)."""

    tool: str
    launches: int
    errors: int

    @property
    def key(self) -> tuple:
        """What a newer row replaces."""
        return self.kernel, self.dtype, self.tool


@dataclass(frozen=True)
class Soaked(Launched):
    """Random launches of a kernel, all judged; the most elements had a matrix of (`rows`, `cols`).

    `worst` is the largest error of an element in units of what is allowed, infinite where there was
    no number or one too many.
    """

    seed: int
    launches: int
    failures: int
    worst: float

    @property
    def key(self) -> tuple:
        """What a newer row replaces."""
        return self.kernel, self.dtype


@dataclass(frozen=True)
class Pressed(Launched):
    """One trial of a kernel under pressure (`pressure.TRIALS`): `launches` results were judged, the
    largest of (`rows`, `cols`), and `refusals` errors came as they should; `failures` counts the
    rest, wrong results and errors that did not come or should not have.
    """

    trial: str
    launches: int
    refusals: int
    failures: int

    @property
    def counted(self) -> tuple[int, int, int]:
        """(launches, refusals, failures)."""
        return self.launches, self.refusals, self.failures

    @property
    def key(self) -> tuple:
        """What a newer row replaces."""
        return self.kernel, self.dtype, self.trial


KINDS = {
    "bench": Timing,
    "profile": Counter,
    "clock": Reading,
    "rerun": Rerun,
    "sanitize": Sanitized,
    "soak": Soaked,
    "pressure": Pressed,
}
"""Row types by the kind of record, which is the stem of its file."""

HEADS = {
    "bench": "Times of one launch in seconds. Rates and ratios are computed on reading.",
    "profile": "Hardware counters of one launch as Nsight Compute reports them.",
    "clock": "Readings of a clock around launches in seconds, in the order they were taken in.",
    "rerun": "A published measurement made again: seconds of one launch, by its protocol and ours.",
    "sanitize": "Errors that the tools of compute-sanitizer reported, 0 for none.",
    "soak": "Random launches, how many failed, and the largest error in units of what is allowed.",
    "pressure": "Launches at once and after errors: results judged, errors due, what was wrong.",
}
"""What the first line of each file says."""
