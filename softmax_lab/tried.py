"""What was tried against the kernels on a GPU: its sanitizer's tools, random launches, pressure."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence

from softmax_lab import records, registry
from softmax_lab.prose import Sentence, Several, Table, names, say
from softmax_lab.recordrows import Pressed, Sanitized, Soaked
from softmax_lab.runs import about
from softmax_lab.units import MISSING, number, percent

TRIALS = {
    "streams": "launches on many streams, none waiting for another",
    "threads": "launches from many threads, which load the kernels too",
    "memory": "no memory left on the GPU",
    "compile": "a source that does not compile",
    "shared": "more shared memory than a block can have",
    "block": "more threads than a block can have",
}
"""What a page calls the trials of `pressure`."""


def under_tools(gpu: str | None = None) -> Several | Sentence:
    """Errors that each tool of compute-sanitizer reported, a kernel a row."""
    slug, table = _recorded("sanitize", gpu)
    if not table.rows:
        return say(f"Under compute-sanitizer: {MISSING}.")
    rows: Sequence[Sanitized] = table.rows
    tools = list(dict.fromkeys(row.tool for row in rows))
    found = {(row.kernel, row.tool): row.errors for row in rows}
    cells = [
        (f"`{kernel}`", *(_known(found.get((kernel, tool))) for tool in tools))
        for kernel in _in_order(rows)
    ]
    provenance = table.runs[rows[-1].run]
    heads = ("kernel", *(f"{tool} [errors]" for tool in tools))
    shapes = len(provenance.get("shapes", "").split())
    return Several(
        (
            say(
                "{launches} launches of {kernels} kernels, at {shapes} shapes under each of "
                "{tools} tools: {errors}.",
                launches=sum(row.launches for row in rows),
                kernels=len(cells),
                shapes=shapes,
                tools=len(tools),
                errors=_none(sum(row.errors for row in rows), "no error", "errors"),
            ),
            Table(heads, tuple(cells), frozenset(range(1, len(heads)))),
            say(
                "Whether a tool sees anything at all was tried too, on kernels with a planted "
                "defect: {controls}.",
                controls=re.sub(r"(\w+_\w+)", r"`\1`", provenance.get("controls", MISSING)),
            ),
            _source(slug, provenance, "compute-sanitizer"),
        )
    )


def at_random(gpu: str | None = None) -> Several | Sentence:
    """Random launches, how many were wrong and the largest error, a kernel a row."""
    slug, table = _recorded("soak", gpu)
    if not table.rows:
        return say(f"Random launches: {MISSING}.")
    rows: Sequence[Soaked] = table.rows
    of = {row.kernel: row for row in rows}
    cells = [
        (
            f"`{kernel}`",
            number(of[kernel].launches),
            number(of[kernel].failures),
            percent(of[kernel].worst),
        )
        for kernel in _in_order(rows)
    ]
    heads = ("kernel", "launches", "wrong", "largest error [of allowed]")
    first = rows[-1]
    return Several(
        (
            say(
                "{launches} launches of {kernels} kernels, seed {seed}: {failures}.",
                launches=sum(row.launches for row in rows),
                kernels=len(cells),
                seed=str(first.seed),
                failures=_none(sum(row.failures for row in rows), "none was wrong", "were wrong"),
            ),
            Table(heads, tuple(cells), frozenset({1, 2, 3})),
            *_never_drawn(of),
            _source(slug, table.runs[first.run]),
        )
    )


def under_pressure(gpu: str | None = None) -> Several | Sentence:
    """Launches at once and after errors, and how many were wrong, a trial a row."""
    slug, table = _recorded("pressure", gpu)
    if not table.rows:
        return say(f"Under pressure: {MISSING}.")
    rows: Sequence[Pressed] = table.rows
    cells, wrong = [], []
    for trial, words in TRIALS.items():
        mine = [row for row in rows if row.trial == trial]
        wrong += [f"`{row.kernel}` ({words})" for row in mine if row.failures]
        cells.append((words, *map(number, _sums(mine))))
    launches, refusals, failures = _sums(rows)
    return Several(
        (
            say(
                "{launches} launches of {kernels} kernels, and {refusals} calls that failed as "
                "they had to: {failures}.",
                launches=launches,
                kernels=len({row.kernel for row in rows}),
                refusals=refusals,
                failures=_none(failures, "nothing was wrong", "were wrong"),
            ),
            Table(
                ("trial", "launches", "failed as they had to", "wrong"),
                tuple(cells),
                frozenset({1, 2, 3}),
            ),
            *([say("Wrong: {which}.", which=names(wrong))] if wrong else []),
            *_never_drawn({row.kernel for row in rows}),
            _source(slug, table.runs[rows[-1].run]),
        )
    )


def _sums(rows: Sequence[Pressed]) -> tuple[int, ...]:
    """Launches, refusals and failures of all rows together."""
    return tuple(map(sum, zip((0, 0, 0), *(row.counted for row in rows), strict=True)))


def _never_drawn(drawn: Container[str]) -> list[Sentence]:
    """Which kernels of the list the record has no launches of, if there are any."""
    absent = [f"`{name}`" for name in registry.KERNELS if name not in drawn]
    return [say("Not among them yet: {which}.", which=names(absent))] if absent else []


def _recorded(kind: str, gpu: str | None) -> tuple[str, records.Table]:
    """The GPU (a slug) that has records of a kind, and they; an empty table where none has."""
    for slug in (gpu,) if gpu else records.gpus():
        table = records.fresh(kind, slug)
        if table.rows:
            return slug, table
    return "", records.Table()


def _in_order(rows: Sequence[Sanitized | Soaked]) -> list[str]:
    """Kernels with rows, in the order of the list, then the exhibits."""
    there = {row.kernel for row in rows}
    return [name for name in (*registry.KERNELS, *registry.EXHIBITS) if name in there]


def _known(errors: int | None) -> str:
    return MISSING if errors is None else number(errors)


def _none(count: int, none: str, some: str) -> str:
    return f"**{count} {some}**" if count else f"**{none}**"


def _source(slug: str, provenance: Mapping[str, str], *more: str) -> Sentence:
    """The line of provenance, with the version of further software."""
    versions = [f"{name} {provenance[name]}" for name in more if name in provenance]
    return Sentence(", ".join((*about(slug, provenance), *versions)) + ".", source=True)
