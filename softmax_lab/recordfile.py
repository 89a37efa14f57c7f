"""Record files: raw quantities as CSV, below `#` lines that say where each run comes from."""

from __future__ import annotations

import csv
import functools
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType


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
    results in float64.
    """

    warm_ups: int
    launches: int
    calls_s: float
    graph_s: float
    cold_s: float
    cold_p20_s: float
    cold_p80_s: float
    level: str
    max_error: float


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
_HEADS = {
    "bench": "Times of one launch in seconds. Rates and ratios are computed on reading.",
    "profile": "Hardware counters of one launch as Nsight Compute reports them.",
    "clock": "Readings of a clock around launches in seconds, in the order they were taken in.",
    "rerun": "A published measurement made again: seconds of one launch, by its protocol and ours.",
    "sanitize": "Errors that the tools of compute-sanitizer reported, 0 for none.",
    "soak": "Random launches, how many failed, and the largest error in units of what is allowed.",
    "pressure": "Launches at once and after errors: results judged, errors due, what was wrong.",
}


@dataclass(frozen=True)
class Table:
    """A record file: rows, and the provenance of each run that `row.run` names."""

    rows: tuple = ()
    runs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @functools.cached_property
    def by_kernel(self) -> Mapping[tuple[str, str], tuple]:
        """Rows of each (kernel, element type), sorted out once: a page looks up hundreds."""
        found = {}
        for row in self.rows:
            found.setdefault((row.kernel, row.dtype), []).append(row)
        return {key: tuple(rows) for key, rows in found.items()}


def read(path: Path) -> Table:
    """A record file, or an empty table where there is none.

    Raises ValueError naming the line that cannot be read.
    """
    return _parsed(path, path.read_text(encoding="utf-8")) if path.is_file() else Table()


@functools.lru_cache(maxsize=16)
def _parsed(path: Path, text: str) -> Table:
    """A record file's text, read once: a page looks up hundreds of runs in the same few files."""
    row_type = KINDS[checked(path.stem)]
    runs: dict[str, dict[str, str]] = {}
    lines = text.splitlines()
    top = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    for line in lines[:top]:
        key, colon, value = line.removeprefix("#").strip().partition(": ")
        if key == "run" and colon:
            runs[value] = {}
        elif colon and runs:
            runs[next(reversed(runs))][key] = value
    names = [each.name for each in fields(row_type)]
    rows = csv.reader(lines[top:])
    if (head := next(rows, names)) != names:
        raise ValueError(f"{path}, line {top + 1}: columns {','.join(head)}, not {','.join(names)}")
    types, out = [each.type for each in fields(row_type)], []
    for number, cells in enumerate(rows, top + 2):
        try:
            pairs = zip(types, cells, strict=True)
            out.append(row_type(*(_cell(kind, cell) for kind, cell in pairs)))
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from error
    known = {run: MappingProxyType(about) for run, about in runs.items()}
    return Table(tuple(out), MappingProxyType(known))


def checked(kind: str) -> str:
    """The kind itself. Raises ValueError naming the kinds there are."""
    if kind not in KINDS:
        raise ValueError(f"records are of kind {' or '.join(KINDS)}, got {kind!r}")
    return kind


def _cell(type_name: str, text: str) -> str | int | float:
    if type_name == "str":
        return text
    value = float(text)
    return int(value) if type_name == "int" or value.is_integer() else value


def merged(old: Table, rows: Iterable, runs: Mapping[str, Mapping[str, str]]) -> Table:
    """`old` with `rows` in place of those that share a key."""
    rows = tuple(rows)
    replaced = {row.key for row in rows}
    kept = (row for row in old.rows if row.key not in replaced)
    return Table((*kept, *rows), {**old.runs, **runs})


def rewrite(path: Path, kind: str, new: Table) -> None:
    """Write a record file in one step; runs that no row names are left out."""
    text = io.StringIO()
    text.write(f"# {_HEADS[kind]}\n")
    named = {row.run for row in new.rows}
    for run in sorted(named):
        text.write(f"# run: {run}\n")
        for key, value in new.runs[run].items():
            text.write(f"# {key}: {' '.join(str(value).split())}\n")
    columns = fields(KINDS[kind])
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([each.name for each in columns])
    for row in sorted(new.rows, key=_place):
        values = (getattr(row, each.name) for each in columns)
        writer.writerow([f"{value:.9g}" if isinstance(value, float) else value for value in values])
    scratch = path.with_suffix(".new")  # the folder is locked, so nobody else writes this name
    scratch.write_text(text.getvalue(), encoding="utf-8", newline="\n")
    scratch.replace(path)


def _place(row) -> tuple:
    """Where a row stands in its file."""
    return *row.key, getattr(row, "metric", ""), getattr(row, "turn", 0)


@contextmanager
def locked(place: Path) -> Iterator[None]:
    """Keep other writers of a folder out, where the system has such a lock (not Windows)."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(place, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
