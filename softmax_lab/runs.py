"""What a GPU and its compiler said, as tables: times, resources, provenance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from softmax_lab import registry
from softmax_lab.facts import GPUS, ITEMSIZE
from softmax_lab.prose import Sentence, Table, say
from softmax_lab.records import Measured
from softmax_lab.roofline import rate
from softmax_lab.units import MISSING, number, percent

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
        note=f"{timed[0].dtype}; {provenance(timed[0])}",
    )


def timing(run: Measured) -> tuple[str, str, str, str]:
    """Cells of a timed run: median [µs], spread [µs], useful rate [GB/s], share of copy."""
    useful = 2 * ITEMSIZE[run.dtype] * run.rows * run.cols
    return (
        number(run.seconds * 1e6),
        f"{number(run.p20 * 1e6)} – {number(run.p80 * 1e6)}",
        number(rate(useful, run.seconds) / 1e9),
        percent(run.copy_seconds / run.seconds if run.copy_seconds else None),
    )


def against_copy(run: Measured | None) -> Sentence:
    """How a run compares with copying the same matrix."""
    if run is None or not run.seconds or not run.copy_seconds:
        return say("Against the copy kernel: not measured yet.")
    return say(
        "On {rows} × {cols} the kernel took {mine:s} and copying the same matrix {copy:s}: it "
        "reaches **{share:%}** of the copy's rate, in other words it is {slower:×} slower.",
        rows=run.rows,
        cols=run.cols,
        mine=run.seconds,
        copy=run.copy_seconds,
        share=run.copy_seconds / run.seconds,
        slower=run.seconds / run.copy_seconds,
    )


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
