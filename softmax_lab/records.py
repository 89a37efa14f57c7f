"""Recorded runs by GPU: the package's and the reader's own, tied to source by fingerprints."""

from __future__ import annotations

import functools
import math
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from softmax_lab import counters, registry
from softmax_lab.counts import Counts
from softmax_lab.fingerprint import fingerprint
from softmax_lab.recordfile import Table, checked, locked, merged, read, rewrite
from softmax_lab.recordrows import KINDS, Counter, Launched, Timing
from softmax_lab.registry import COPY, Kernel

UNKNOWN = Counts()
"""Nothing is known of a launch."""


@dataclass(frozen=True)
class Measured:
    """What is known of one kernel at one shape on one GPU; what nobody recorded is None or empty.

    `seconds` [s] is the median of one launch, `p20` and `p80` its spread, `copy_…` the copy
    kernel's. `counts` holds the fields that hardware counts, `counters` everything it was
    asked, by Nsight Compute's names.
    """

    kernel: str
    dtype: str
    rows: int
    cols: int
    gpu: str
    counts: Counts = UNKNOWN
    seconds: float | None = None
    p20: float | None = None
    p80: float | None = None
    copy_seconds: float | None = None
    copy_p20: float | None = None
    copy_p80: float | None = None
    level: str | None = None
    counters: Mapping[str, float] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)
    counters_provenance: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Session:
    """What a run measured on one GPU (a slug), ready to be written."""

    gpu: str
    rows: tuple[Launched, ...]
    provenance: dict[str, dict[str, str]]

    def runs(self) -> tuple[Measured, ...]:
        """What was timed in graphs, as `lookup` would answer once it is recorded."""
        timed = Table(self.rows, self.provenance)
        return tuple(
            _measured(
                registry.get(row.kernel), (row.rows, row.cols), self.gpu, [row], timed, Table()
            )
            for row in self.rows
            if isinstance(row, Timing) and row.method == "graph"
        )

    def save(self, publish: bool = False) -> Path:
        """Write the rows into the reader's records, or the package's; the file's path."""
        return write(self.gpu, self.rows, self.provenance, publish)


def live() -> bool:
    """Whether the reader asked to measure now instead of reading records (SOFTMAX_LAB_LIVE=1)."""
    return os.environ.get("SOFTMAX_LAB_LIVE", "") not in ("", "0")


def folder(publish: bool = False) -> Path:
    """Where records live: the package's, or the reader's (SOFTMAX_LAB_DATA, else XDG's)."""
    if publish:
        return Path(__file__).resolve().parent / "data"
    if mine := os.environ.get("SOFTMAX_LAB_DATA"):
        return Path(mine).expanduser()
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "softmax-lab"


def gpus() -> tuple[str, ...]:
    """Slugs of the GPUs with records, the reader's own first."""
    return tuple(dict.fromkeys(path.parent.name for path in _files()))


def table(kind: str, gpu: str) -> Table:
    """All rows of a kind for a GPU: the package's, or the reader's own where there is one.

    A reader's row from other source than today's replaces nothing.
    """
    file = f"{checked(kind)}.csv"
    published, mine = read(folder(True) / gpu / file), read(folder() / gpu / file)
    if not mine.rows:
        return published
    theirs, now = {row.key for row in published.rows}, functools.cache(fingerprint)
    own = (row for row in mine.rows if row.key not in theirs or _fresh(row, now))
    return merged(published, own, mine.runs)


def fresh(kind: str, gpu: str) -> Table:
    """`table` without the rows whose source has changed."""
    whole, now = table(kind, gpu), functools.cache(fingerprint)
    return Table(tuple(row for row in whole.rows if _fresh(row, now)), whole.runs)


def lookup(
    name: str | Kernel, rows: int, cols: int, dtype="float32", gpu: str | None = None
) -> Measured:
    """The recorded run of a kernel at a shape, on `gpu` (a slug) or the first GPU that has it.

    Raises LookupError naming the nearest recorded shape, or saying that the source has changed
    since; never guesses. Raises ValueError for an unknown kernel or `dtype`.
    """
    kernel = registry.get(name)
    dtype = kernel.dtype(dtype)
    now, near, outdated = fingerprint(kernel, dtype), [], False
    for slug in (gpu,) if gpu else gpus():
        bench, profile = table("bench", slug), table("profile", slug)
        mine = [
            row for kind in (bench, profile) for row in kind.by_kernel.get((kernel.name, dtype), ())
        ]
        here = [row for row in mine if (row.rows, row.cols) == (rows, cols)]
        if valid := [row for row in here if row.fingerprint == now]:
            return _measured(kernel, (rows, cols), slug, valid, bench, profile)
        outdated |= bool(here)
        near += [(row, slug) for row in mine if row.fingerprint == now]
    what = f"{kernel.name} at {rows} × {cols} ({dtype})" + (f" on {gpu}" if gpu else "")
    if outdated:
        raise LookupError(f"{what} was recorded from other source than today's: measure it again")
    if not near:
        raise LookupError(f"{what} is not measured yet, nor is any other shape")
    row, slug = min(near, key=lambda pair: _distance(pair[0], rows, cols))
    nearest = f"{row.rows} × {row.cols} on {slug}"
    raise LookupError(f"{what} is not measured yet; the nearest recorded is {nearest}")


def timed(kernels: Iterable[str | Kernel], dtype: str = "float32") -> tuple[Measured, ...]:
    """Every recorded time of `kernels` from today's source, without counters, kernel by kernel and
    by growing shape, on the first GPU that has any."""
    chosen = [registry.get(each) for each in kernels]
    now, nothing = {each.name: fingerprint(each, dtype) for each in chosen}, Table((), {})
    for slug in gpus():
        bench = table("bench", slug)
        rows = [row for row in bench.rows if (row.dtype, row.method) == (dtype, "graph")]
        valid = {
            (row.kernel, row.rows, row.cols): row
            for row in rows
            if row.fingerprint == now.get(row.kernel)
        }
        shapes = sorted({key[1:] for key in valid}, key=lambda shape: (shape[0] * shape[1], shape))
        found = [(k, shape) for k in chosen for shape in shapes if (k.name, *shape) in valid]
        if found:
            return tuple(
                _measured(k, shape, slug, [valid[k.name, *shape]], bench, nothing)
                for k, shape in found
            )
    return ()


def stale() -> list[tuple[Path, Launched]]:
    """Rows whose source has changed or is gone, with their file, the reader's own first."""
    now = functools.cache(fingerprint)
    return [(path, row) for path in _files() for row in read(path).rows if not _fresh(row, now)]


def drop(name: str) -> int:
    """Remove every row of a kernel, the package's and the reader's own; the number removed.

    The kernel may be gone from the list. Raises ValueError for a name that neither the list nor any
    row knows.
    """
    recorded = {row.kernel for path in _files() for row in read(path).rows}
    if name not in {*recorded, *registry.KERNELS}:
        known = ", ".join(dict.fromkeys([*registry.KERNELS, *sorted(recorded)]))
        raise ValueError(f"no kernel and no record is called {name!r}; there are {known}")
    removed = 0
    for path in _files():
        with locked(path.parent):
            old = read(path)
            kept = tuple(row for row in old.rows if row.kernel != name)
            if len(kept) < len(old.rows):
                removed += len(old.rows) - len(kept)
                rewrite(path, path.stem, Table(kept, old.runs))
    return removed


def write(
    gpu: str,
    rows: Iterable[Launched],
    provenance: Mapping[str, Mapping[str, str]],
    publish: bool = False,
) -> Path:
    """Add rows of one kind to a GPU's file in place of older ones with the same key; its path.

    `provenance` describes each run that the rows name. Other rows stay; the file is replaced in one
    step, and writers wait for each other. Raises ValueError for a run without provenance,
    PermissionError where nothing may be written.
    """
    rows = tuple(rows)
    kinds = {type(row) for row in rows}
    kind = next((name for name, row_type in KINDS.items() if kinds == {row_type}), None)
    if kind is None:
        raise ValueError(f"write takes rows of one kind, got {len(rows)} of {len(kinds)} kinds")
    if unknown := {row.run for row in rows} - set(provenance):
        raise ValueError(f"no provenance for the run {', '.join(sorted(unknown))}")
    path = folder(publish) / gpu / f"{kind}.csv"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.parent):
            rewrite(path, kind, merged(read(path), rows, provenance))
    except OSError as error:
        hint = (
            "publishing needs a checkout"
            if publish
            else "set SOFTMAX_LAB_DATA to a folder of yours"
        )
        raise PermissionError(f"cannot write {path} ({error.strerror}): {hint}") from error
    return path


def run_id() -> str:
    """A new name for a run: UTC time and random digits, so that two runs never share one."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


def _files() -> list[Path]:
    """Every record file there is, the reader's own first."""
    places = (folder(), folder(publish=True))
    return [
        path for place in places for kind in KINDS for path in sorted(place.glob(f"*/{kind}.csv"))
    ]


def _fresh(row: Launched, now: Callable[..., str]) -> bool:
    """Whether a row's source is today's; `now` is `fingerprint`, cached for this one call."""
    try:
        same = row.fingerprint == now(row.kernel, row.dtype)
    except ValueError:  # the kernel is gone
        return False
    return same and getattr(row, "copy", None) in (None, now(COPY.name))


def _measured(
    kernel: Kernel, shape: tuple[int, int], slug: str, valid: list, bench: Table, profile: Table
) -> Measured:
    time = next((row for row in valid if isinstance(row, Timing) and row.method == "graph"), None)
    values = {row.metric: row.value for row in valid if isinstance(row, Counter)}
    about = next((profile.runs.get(row.run, {}) for row in valid if isinstance(row, Counter)), {})
    return Measured(
        kernel=kernel.name,
        dtype=valid[0].dtype,
        rows=shape[0],
        cols=shape[1],
        gpu=slug,
        counts=counters.counts(values, kernel.block) if values else UNKNOWN,
        seconds=time and time.median_s,
        p20=time and time.p20_s,
        p80=time and time.p80_s,
        copy_seconds=time and time.copy_median_s,
        copy_p20=time and time.copy_p20_s,
        copy_p80=time and time.copy_p80_s,
        level=time and time.level,
        counters=MappingProxyType(values),
        provenance=bench.runs.get(time.run, {}) if time else about,
        counters_provenance=about,
    )


def _distance(row: Timing | Counter, rows: int, cols: int) -> float:
    """How far a recorded shape is, in octaves: doubling either side is one."""
    pairs = ((row.rows, rows), (row.cols, cols))
    return sum(abs(math.log2(max(a, 0.5) / max(b, 0.5))) for a, b in pairs)
