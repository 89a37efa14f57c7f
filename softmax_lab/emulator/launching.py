"""One launch of any kernel source, from its text to what it did."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softmax_lab import counts, facts
from softmax_lab.counts import Counts
from softmax_lab.emulator import report
from softmax_lab.emulator import trace as traces
from softmax_lab.emulator.build import Executable, compiled
from softmax_lab.emulator.process import Launch, Limits, Out, Results, execute
from softmax_lab.emulator.report import Fault, Site
from softmax_lab.emulator.trace import Step
from softmax_lab.emulator.translate import Source

DYNAMIC_SHARED = "dynamic shared memory"
LOCKSTEP_ONLY = (
    "load_useful_bytes store_useful_bytes load_requests load_sectors store_requests store_sectors "
    "shared_requests shared_wavefronts branches diverged"
).split()
"""Fields that only exist where the lanes of a warp run together."""
MEMORY = (
    "load_bytes store_bytes load_useful_bytes store_useful_bytes "
    "load_requests load_sectors store_requests store_sectors"
).split()
"""Fields that an access which nobody saw would falsify."""


@dataclass(frozen=True)
class Run:
    """One execution: `y` is the first of its `outputs`, `trace` is None unless it was asked for.

    `unwritten` counts output elements that no thread stored; `unique_*_sectors` the different
    sectors touched, which is the least DRAM has to move; `extra` holds the counters that `Counts`
    has no field for; `seconds` [s] is the emulator's own time; `printed` what the kernel printed.
    """

    y: np.ndarray | None
    outputs: tuple[np.ndarray, ...]
    counts: Counts
    faults: tuple[Fault, ...]
    trace: tuple[Step, ...] | None
    sites: tuple[Site, ...]
    unwritten: int
    unique_load_sectors: int
    unique_store_sectors: int
    extra: dict[str, int]
    seconds: float
    printed: str


def launch(
    source: Source,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    arguments: tuple,
    *,
    kernel: str | None = None,
    shared: int = 0,
    opt_in: bool = False,
    count: bool = True,
    lockstep: bool = True,
    sanitize: bool = False,
    trace: tuple[int, int] | None = None,
    blocks: tuple[int, int] | None = None,
    cluster: int = 1,
    cooperative: bool = False,
    limits: Limits = Limits(),  # noqa: B008
    optimise: str = "-O1",
    compiler: str | None = None,
    defines: tuple[str, ...] = (),
) -> Run:
    """Executes any kernel; `arguments` are arrays, `Out(shape)`, `Virtual(shape)`, ints and floats.

    `kernel` names one of several, or a template instance such as `"softmax<128>"`; `shared` is
    dynamic shared memory [B], of which a kernel gets no more than 48 KiB without `opt_in`, as with
    cudaFuncSetAttribute; `blocks=(first, last)` runs only those; `cluster` blocks, or with
    `cooperative` all, are alive together. Raises ValueError for a launch that no GPU would take,
    and CompilerMissing, CompileError, SourceError, EmulatorCrash, EmulatorTimeout.
    """
    program = compiled(
        source,
        kernel,
        count=count,
        optimise=optimise,
        with_compiler=compiler,
        defines=tuple(defines),
    )
    number = _number(program, kernel)
    sizes = _triple("grid", grid, facts.GRID)
    if shared > facts.WITHOUT_OPT_IN and not opt_in:
        raise ValueError(
            f"no such launch: {shared} bytes of dynamic shared memory, over {facts.WITHOUT_OPT_IN} "
            "must be asked for before it (cudaFuncSetAttribute; here opt_in=True)"
        )
    group = int(np.prod(sizes, dtype=object)) if cooperative else cluster
    request = Launch(
        sizes,
        _triple("block", block, facts.BLOCK),
        tuple(arguments),
        shared,
        group,
        lockstep,
        sanitize,
        trace,
        blocks=blocks,
    )
    return _run_of(program, number, request, execute(program, number, request, limits), count)


def _triple(name: str, size: int | tuple[int, ...], most: tuple[int, ...]) -> tuple[int, int, int]:
    sizes = (size,) if isinstance(size, (int, np.integer)) else tuple(size)
    if not 1 <= len(sizes) <= 3 or any(int(n) < 1 for n in sizes):
        raise ValueError(f"{name} is one to three sizes from 1 up, got {size!r}")
    if any(int(n) > limit for n, limit in zip(sizes, most, strict=False)):
        limits = ", ".join(map(str, most))
        raise ValueError(f"no such launch: a {name} has up to {limits} along x, y, z, got {size!r}")
    return (*map(int, sizes), 1, 1)[:3]


def _number(program: Executable, kernel: str | None) -> int:
    names = ["".join(name.split()) for name in program.kernels]
    if kernel is None:
        if len(names) > 1:
            raise ValueError(f"name one of the kernels {', '.join(program.kernels)}")
        return 0
    return names.index("".join(kernel.split()))


def _run_of(program: Executable, number: int, request: Launch, found: Results, count: bool) -> Run:
    buffers = [i for i, a in enumerate(request.arguments) if isinstance(a, (np.ndarray, Out))]
    outs = [k for k, i in enumerate(buffers) if type(request.arguments[i]) is Out]
    outputs = tuple(found.arrays[k] for k in outs)

    def locate(site: int) -> tuple[str, int]:
        file, line = program.sites[site] if site < len(program.sites) else (-1, 0)
        return (program.files[file], line) if file >= 0 else ("?", 0)

    parameters = program.parameters[number]

    def name(buffer: int) -> str:
        if buffer < len(buffers):
            return (
                parameters[buffers[buffer]]
                if buffers[buffer] < len(parameters)
                else f"argument {buffers[buffer]}"
            )
        variable = buffer - report.VARIABLES
        return (
            program.variables[variable]
            if 0 <= variable < len(program.variables)
            else DYNAMIC_SHARED
        )

    unknown = set(counts.HARDWARE_ONLY)
    if not request.lockstep:
        unknown |= set(LOCKSTEP_ONLY)
    if found.unwatched:
        unknown |= set(MEMORY)  # an int* was read or written unseen: unknown is not zero
    known = {} if not count else {f: found.counters[f] for f in counts.FIELDS if f not in unknown}
    extra = {n: v for n, v in found.counters.items() if n not in counts.FIELDS}
    return Run(
        y=outputs[0] if outputs else None,
        outputs=outputs,
        counts=Counts(**known),
        faults=report.faults(found.faults, locate, name),
        trace=traces.steps(found.steps, locate, name) if request.trace else None,
        sites=report.sites(found.sites, found.branches, locate, program.files),
        unwritten=sum(found.unwritten[k] for k in outs) if count else 0,
        unique_load_sectors=found.counters["unique_load_sectors"],
        unique_store_sectors=found.counters["unique_store_sectors"],
        extra=extra,
        seconds=found.counters["nanoseconds"] / 1e9,
        printed=found.printed,
    )
