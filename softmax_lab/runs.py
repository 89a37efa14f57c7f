"""What a GPU and its compiler said, as tables: times, resources, provenance."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from softmax_lab import registry
from softmax_lab.facts import GPUS
from softmax_lab.prose import Sentence, Table, names, say
from softmax_lab.records import COPY, Measured
from softmax_lab.roofline import occupancy, rate, registers_for_all
from softmax_lab.units import MISSING, apart, number, percent

TIMING = ("median [µs]", "20 – 80 % [µs]", "useful [GB/s]", "share of copy")
"""Heads of the cells that `timing` gives."""


def times(runs: Sequence[Measured | None]) -> Table | Sentence:
    """Recorded times, a shape a row, beside the copy kernel's at the same size in the same run."""
    timed = [run for run in runs if run is not None and run.seconds]
    if not timed:
        return say("Time on a GPU: not measured yet.")
    rows = [(shape(run.rows, run.cols), *timing(run)) for run in timed]
    return Table(
        ("shape", *TIMING),
        tuple(rows),
        frozenset({1, 2, 3, 4}),
        note=f"{timed[0].dtype}; {provenance(*timed)}",
    )


def timing(run: Measured) -> tuple[str, str, str, str]:
    """Cells of a timed run: median [µs], spread [µs], useful rate [GB/s], share of copy."""
    useful = registry.get(run.kernel).family.once(run.rows, run.cols, run.dtype)
    low, median, high = apart(*(seconds * 1e6 for seconds in (run.p20, run.seconds, run.p80)))
    return (
        median,
        f"{low} – {high}",
        number(rate(useful, run.seconds) / 1e9),
        percent(share_of_copy(run)),
    )


def against_copy(run: Measured | None) -> Sentence:
    """How a run compares with copying the same matrix."""
    share = share_of_copy(run)
    if share is None:
        return say("Against the copy kernel: not measured yet.")
    family = registry.get(run.kernel).family
    once, copied = (each.once(run.rows, run.cols, run.dtype) for each in (family, COPY.family))
    words = "On {rows} × {cols} the kernel took {mine:s} and copying the same matrix {copy:s}"
    if once == copied:
        words += (
            ": it reaches **{share:%}** of the copy's rate, in other words it is {slower:×} slower."
        )
    else:
        words += (
            ". It has to move {once:B} and the copy {copied:B}, so it reaches **{share:%}** of the "
            "copy's rate."
        )
    return say(
        words,
        once=once,
        copied=copied,
        rows=run.rows,
        cols=run.cols,
        mine=run.seconds,
        copy=run.copy_seconds,
        share=share,
        slower=1 / share,
    )


def share_of_copy(run: Measured | None) -> float | None:
    """The rate of useful bytes as a share of the copy kernel's; a kernel that reads and writes the
    matrix once moves as many as the copy."""
    if run is None or not run.seconds or not run.copy_seconds:
        return None
    mine, copys = (
        each.family.once(run.rows, run.cols, run.dtype) for each in (registry.get(run.kernel), COPY)
    )
    return rate(mine, run.seconds) / rate(copys, run.copy_seconds)


def provenance(*runs: Measured | None, of: Sequence[str] = ("times",)) -> Sentence:
    """Machine, date and software of every run behind the times, the counters or both of `runs`."""
    return Sentence((origin(runs, of) or f"Machine and date: {MISSING}") + ".", source=True)


def origin(runs: Sequence[Measured | None], of: Sequence[str], brief: bool = False) -> str:
    """The recorded runs that gave `of`, "times" or "counters" or both, each once; "" where none
    did. Of several it says which gave what. `brief` leaves the software out."""
    found: dict[tuple[str, ...], dict[str, dict[str, None]]] = {}
    for run in filter(None, runs):
        gave = {"times": run.provenance if run.seconds else {}, "counters": run.counters_provenance}
        for kind in of:
            if gave[kind]:
                machine, date, *software = about(run.gpu, gave[kind])
                where = (machine, *(() if brief else software))
                found.setdefault(where, {}).setdefault(date, {})[kind] = None
    several = sum(map(len, found.values())) > 1
    parts = []
    for (machine, *software), dates in found.items():
        when = (
            f"{names(list(kinds))} of {date}" if several else date for date, kinds in dates.items()
        )
        parts.append(", ".join((machine, *when, *software)))
    return "; ".join(parts)


def resources(name: str, compile_for: Callable[..., Any], archs: Sequence[str]) -> Table | Sentence:
    """Registers, shared memory and spills as `compile_for(kernel, arch=…)` (`gpu.compile`) reports,
    beside what a multiprocessor has room for.

    It needs no GPU. Where there is no compiler the table says why instead.
    """
    kernel = registry.get(name)
    rows, compilers = [], {}
    try:
        for arch in archs:
            made = compile_for(kernel, arch=arch)
            cc = int(arch.removeprefix("sm_"))
            room = occupancy(cc, kernel.block, made.registers, made.shared_bytes)
            compilers[made.compiler] = True
            cells = (made.registers, registers_for_all(cc), made.shared_bytes, made.spill_bytes)
            fit = f"{number(room.warps)} of {number(room.most_warps)}"
            rows.append((arch, *map(number, cells), fit, names(room.limited_by)))
    except (RuntimeError, ImportError, OSError) as why:
        return Sentence(f"Registers and spills need NVRTC, CUDA's run-time compiler: {why}")
    heads = (
        *("architecture", "registers", "most for all warps", "shared memory [B]", "spills [B]"),
        *("warps that fit", "limit"),
    )
    note = (
        f"Compiled by {names(list(compilers))} when this page was built. Registers and spills of a "
        "thread, shared memory of a block; warps of a multiprocessor."
    )
    return Table(heads, tuple(rows), frozenset({1, 2, 3, 4, 5}), note=note)


def instructions(name: str, compile_for: Callable[..., Any], families: Sequence[str]) -> Sentence:
    """How often PTX, the compiler's text before machine code, holds instructions that begin with
    one of `families`, such as "shfl". `compile_for` as in `resources`."""
    try:
        made = compile_for(registry.get(name))
    except (RuntimeError, ImportError, OSError) as why:
        return Sentence(f"PTX needs NVRTC, CUDA's run-time compiler: {why}")
    found = Counter(re.findall(r"^\s*(?:@!?%\w+\s+)?([a-z][\w.]*)", made.ptx, re.M))
    said = [
        f"`{word}` {times} time{'s' if times > 1 else ''}"
        for word, times in sorted(found.items())
        if word.startswith(tuple(families))
    ]
    none = f"nothing that begins with {names(list(families))}"
    return say(
        "What {compiler} makes of `{name}` for {arch} holds {said}.",
        compiler=made.compiler,
        name=name,
        arch=made.arch,
        said=names(said) if said else none,
    )


def sm_clock(run: Measured) -> float | None:
    """The highest clock of the multiprocessors [Hz] that was seen in the run that timed, None where
    nobody noted it."""
    seen = re.search(r"SM (?:\d+–)?(\d+) MHz", run.provenance.get("clocks seen", ""))
    return int(seen[1]) * 1e6 if seen else None


def shape(rows: int, cols: int) -> str:
    """Rows and columns as a table writes them."""
    return f"{number(rows)}\u00a0×\u00a0{number(cols)}"


def about(slug: str, facts: Mapping[str, str]) -> list[str]:
    """Machine, date and software of a run, as parts of a line."""
    machine = facts.get("GPU") or (GPUS[slug].name if slug in GPUS else slug)
    rest = [f"{key} {facts[key]}" for key in ("driver", "CUDA", "NVRTC") if facts.get(key)]
    return [machine, facts.get("date") or "date unknown", *rest]
