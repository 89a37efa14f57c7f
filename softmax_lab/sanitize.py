"""NVIDIA's compute-sanitizer over every kernel: its four tools, and a proof that each can find."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from softmax_lab import facts, gpu, nvrtc, planted, provenance, records, registry, stopwatch
from softmax_lab.fingerprint import fingerprint
from softmax_lab.recordrows import Sanitized
from softmax_lab.records import Session
from softmax_lab.registry import COPY, EXHIBITS, KERNELS, Kernel

CONTROLS = {
    "memcheck": ("misaligned_vector", "writes_without_guard"),
    "racecheck": ("no_barrier_between_levels",),
    "initcheck": ("output_read_first",),
    "synccheck": ("half_a_warp_at_the_barrier",),
}
"""The tools, and planted defects of which each has to find one: a tool that finds nothing anywhere
proves nothing."""

SHAPES = ((250, 1001), (37, 33), (5, 7), (3, 4099))
"""Shapes (rows, cols) of a run: blocks that are not full, rows shorter than a warp, rows longer
than a block, none that fills whole vectors."""

SECONDS = 240
"""What one process under a tool may take [s]."""

PROTOCOL = (
    "each kernel once at each shape in one process under each tool, each array in a memory "
    "allocation of its own, outputs poisoned except for initcheck, results compared with float64; "
    "where a tool reports anything, each kernel again in a process of its own"
)


class SanitizerError(RuntimeError):
    """compute-sanitizer is missing or gave no summary; the message says what to do."""


@dataclass(frozen=True)
class Report:
    """What one process under a tool came to: its errors, and the lines that tell of the first."""

    errors: int
    said: tuple[str, ...]


def run(
    kernels: Iterable[str | Kernel] | None = None,
    shapes: Sequence[tuple[int, int]] = SHAPES,
    *,
    say: Callable[[str], None] = lambda line: None,
) -> tuple[Session, int]:
    """Every kernel and exhibit, or those named, under every tool; a session and its errors.

    Raises ValueError for kernels or shapes that do not fit, RuntimeError without a GPU,
    SanitizerError without compute-sanitizer or a summary.
    """
    named = list(kernels or (*KERNELS, *EXHIBITS))
    device, chosen, dtype = gpu.ready(named, "float32", shapes)
    if not (program := provenance.program("compute-sanitizer")):
        raise SanitizerError(
            "compute-sanitizer not found on PATH, in CUDA_PATH, CUDA_HOME or /usr/local/cuda: it "
            "comes with CUDA's toolkit"
        )
    name, rows, controls = records.run_id(), [], []
    largest = max(shapes, key=lambda shape: shape[0] * shape[1])
    with ThreadPoolExecutor(len(CONTROLS)) as pool:
        found = pool.map(lambda tool: _under(program, tool, chosen, shapes), CONTROLS)
        for tool, (control, errors) in zip(CONTROLS, found, strict=True):
            controls.append(f"{tool} {control}")
            say(f"{tool}: {sum(errors.values())} errors in {len(errors)} kernels; {control}")
            for kernel, count in errors.items():
                about = name, kernel, fingerprint(kernel, dtype), dtype, *largest
                rows.append(Sanitized(*about, tool, len(shapes), count))
                if count:
                    say(f"  {kernel}: {count} errors")
    about = provenance.collect(device.id, PROTOCOL)
    about["shapes"] = " ".join(f"{rows}x{cols}" for rows, cols in shapes)
    about["compute-sanitizer"] = version(program)
    about["controls"] = "; ".join(controls)
    session = Session(facts.slug(about["GPU"]), tuple(rows), {name: about})
    return session, sum(row.errors for row in rows)


def command(program: str, tool: str, *options: str) -> list[str]:
    """The call that runs a child process under a tool."""
    work = [sys.executable, "-m", "softmax_lab", "sanitize", "--child", "--tool", tool]
    return [program, "--tool", tool, *work, *options]


def parse(text: str) -> Report:
    """The errors that a tool's closing lines count. Raises SanitizerError where there are none."""
    counts = re.findall(
        r"^=+ (?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) haz)", text, re.M
    )
    if not counts:
        raise SanitizerError("compute-sanitizer gave no summary:\n" + "\n".join(_last(text)))
    reported = [line for line in text.splitlines() if line.startswith("=========")]
    said = [line.strip("= ") for line in reported if not re.search("SUMMARY|COMPUTE-SAN", line)]
    return Report(sum(int(a or b) for a, b in counts), tuple(said[:8]))


def child(tool: str, kernels: Sequence[str], shapes: Sequence[tuple[int, int]]) -> None:
    """What a tool watches: every kernel once at every shape, each result judged."""
    import cupy

    cupy.cuda.set_allocator(None)  # CuPy's pool would hide where an array ends
    for rows, cols in shapes:
        for kernel in map(registry.get, kernels):
            host = kernel.family.inputs("normal", rows, cols)
            there = [cupy.asarray(each) for each in host]
            y = cupy.empty(kernel.family.result(rows, cols), "float32")
            if tool != "initcheck":  # there, what nobody writes is to stay what it is
                stopwatch.poison(y)
            gpu.launch(kernel, *there, out=y)
            if kernel is COPY:
                stopwatch.compare_copy(*there, y)
            elif kernel.family.oracle is not np.empty_like:
                verdict = kernel.family.compare(y.get(), *host)
                if not verdict.ok:
                    raise RuntimeError(f"{kernel.name} at {rows}x{cols}: {verdict.message}")


def child_with_a_defect(name: str) -> None:
    """What a tool has to find: one kernel of the planted defects."""
    import cupy

    cupy.cuda.set_allocator(None)
    (defect,) = (each for each in planted.planted() if each.name == name)
    device = cupy.cuda.Device()
    arch = nvrtc.arch_for(int(device.compute_capability))
    module = cupy.cuda.function.Module()
    module.load(nvrtc.compile_source(planted.text(), name, arch).cubin)
    x = cupy.asarray(np.arange(1, planted.SIZE + 1, dtype=np.float32))
    y = cupy.empty(planted.SIZE, "float32")
    module.get_function(name)(
        (defect.grid,), (defect.block,), (x, y, np.int32(planted.SIZE)), defect.shared
    )
    device.synchronize()


def _under(program: str, tool: str, kernels: Sequence[Kernel], shapes) -> tuple[str, dict]:
    """What became of a tool's controls, and its errors by kernel."""
    sizes = ",".join(f"{rows}x{cols}" for rows, cols in shapes)

    def errors(mine: Sequence[Kernel]) -> int:
        names = ",".join(kernel.name for kernel in mine)
        return _report(command(program, tool, "--kernels", names, "--shapes", sizes)).errors

    controls = {
        name: _report(command(program, tool, "--planted", name), may_fail=True).errors
        for name in CONTROLS[tool]
    }
    known = [name for name, count in controls.items() if count]
    control = f"found {' and '.join(known)}" if known else f"missed {' and '.join(controls)}"
    if not errors(kernels):
        return control, dict.fromkeys((kernel.name for kernel in kernels), 0)
    return control, {kernel.name: errors([kernel]) for kernel in kernels}


def _report(call: Sequence[str], may_fail: bool = False) -> Report:
    """The report of one process. Raises SanitizerError where it failed and the tool says nothing of
    why, or took too long."""
    try:
        done = subprocess.run(
            call,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=provenance.environment(),
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise SanitizerError(f"a process under {call[2]} took over {SECONDS} s") from error
    report = parse(done.stdout)
    if done.returncode and not report.errors and not may_fail:
        raise SanitizerError(
            f"a process under {call[2]} failed (status {done.returncode}):\n"
            + "\n".join(_last(done.stdout))
        )
    return report


def _last(text: str) -> list[str]:
    return text.splitlines()[-30:]


def version(program: str) -> str:
    """The version that compute-sanitizer gives of itself."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"[Vv]ersion (\S+)", said)
    return found[1] if found else "unknown"
