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

from softmax_lab.recordrows import HEADS, KINDS


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
    text.write(f"# {HEADS[kind]}\n")
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
