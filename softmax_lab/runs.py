"""What a GPU and its compiler said, as tables: times, resources, provenance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from softmax_lab import registry
from softmax_lab.facts import GPUS
from softmax_lab.prose import Sentence, Table, say
from softmax_lab.records import COPY, Measured
from softmax_lab.roofline import rate
from softmax_lab.units import MISSING, apart, number, percent


def times(runs: Sequence[Measured | None]) -> Table | Sentence:
    """Recorded times, a shape a row, beside the copy kernel's at the same size in the same run."""
    timed = [run for run in runs if run is not None and run.seconds]
    if not timed:
        return say("Time on a GPU: not measured yet.")
    rows = []
    for run in timed:
        useful = registry.get(run.kernel).family.once(run.rows, run.cols, run.dtype)
        share = share_of_copy(run)
        low, median, high = apart(*(s * 1e6 for s in (run.p20, run.seconds, run.p80)))
        bandwidth = number(rate(useful, run.seconds) / 1e9)
        rows.append(
            (
                shape(run.rows, run.cols),
                median,
                f"{low} – {high}",
                bandwidth,
                percent(share),
            )
        )
    heads = ("shape", "median [µs]", "20 – 80 % [µs]", "useful [GB/s]", "share of copy")
    return Table(
        heads,
        tuple(rows),
        frozenset({1, 2, 3, 4}),
        note=f"{timed[0].dtype}; {provenance(timed[0])}",
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


def provenance(run: Measured | None) -> Sentence:
    """Machine, date and software of a recorded run, as one line."""
    if run is None:
        return Sentence(f"Machine and date: {MISSING}.", source=True)
    return Sentence(
        ", ".join(about(run.gpu, run.provenance or run.counters_provenance)) + ".", source=True
    )


def resources(name: str, compile_for: Callable[..., Any], archs: Sequence[str]) -> Table | Sentence:
    """Registers, shared memory and spills as `compile_for(kernel, arch=…)` (`gpu.compile`) reports.

    It needs no GPU. Where there is no compiler the table says why instead.
    """
    kernel = registry.get(name)
    rows = []
    try:
        for arch in archs:
            made = compile_for(kernel, arch=arch)
            rows.append(
                (arch, *(number(n) for n in (made.registers, made.shared_bytes, made.spill_bytes)))
            )
    except (RuntimeError, ImportError, OSError) as why:
        return Sentence(f"Registers and spills need NVRTC, CUDA's run-time compiler: {why}")
    heads = ("architecture", "registers", "shared memory [B]", "spills [B]")
    note = "Registers and spills of a thread, shared memory of a block."
    return Table(heads, tuple(rows), frozenset({1, 2, 3}), note=note)


def shape(rows: int, cols: int) -> str:
    """Rows and columns as a table writes them."""
    return f"{number(rows)}\u00a0×\u00a0{number(cols)}"


def about(slug: str, facts: Mapping[str, str]) -> list[str]:
    """Machine, date and software of a run, as parts of a line."""
    machine = facts.get("GPU") or (GPUS[slug].name if slug in GPUS else slug)
    rest = [f"{key} {facts[key]}" for key in ("driver", "CUDA", "NVRTC") if facts.get(key)]
    return [machine, *([facts["date"]] if facts.get("date") else []), *rest]
