"""CUDA kernels on the CPU: the book's own `.cu` files, run thread by thread and counted.

`run` executes a registered kernel and counts, `plain` only computes, `launch` takes any source.
"""

from __future__ import annotations

import numpy as np

from softmax_lab import counts, registry
from softmax_lab.emulator.build import CompileError
from softmax_lab.emulator.cache import cache_folder, cache_place
from softmax_lab.emulator.compilers import Compiler, CompilerMissing, compiler
from softmax_lab.emulator.launching import Run, launch
from softmax_lab.emulator.process import EmulatorCrash, EmulatorTimeout, Limits, Out, Virtual
from softmax_lab.emulator.report import Fault, Site
from softmax_lab.emulator.trace import Step
from softmax_lab.emulator.translate import Source, SourceError
from softmax_lab.registry import Kernel

__all__ = [
    "CompileError",
    "Compiler",
    "CompilerMissing",
    "EmulatorCrash",
    "EmulatorTimeout",
    "Fault",
    "Limits",
    "Out",
    "Run",
    "Site",
    "Source",
    "SourceError",
    "Step",
    "Virtual",
    "cache_folder",
    "cache_place",
    "compiler",
    "launch",
    "plain",
    "run",
]


def run(
    kernel: Kernel | str,
    *arrays: np.ndarray,
    lockstep: bool = True,
    sanitize: bool = False,
    trace: tuple[int, int] | None = None,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    optimise: str = "-O1",
    compiler: str | None = None,
) -> Run:
    """Executes a registered kernel on arrays (rows, cols) and counts what it does; `trace=(block,
    warp)` records one warp.

    `sanitize` adds races and uninitialised shared memory to the faults that are always seen.
    Without `lockstep` the fields that concern warps are None and the run is about three times
    faster. Raises ValueError or TypeError for arrays the kernel does not take, CompilerMissing,
    CompileError, EmulatorCrash, EmulatorTimeout.
    """
    kernel = registry.get(kernel)
    arguments, sizes = _arguments(kernel, arrays)
    if arguments is None:
        y = _nothing(kernel, arrays, sizes)
        return Run(y, (y,), counts.ZERO, (), () if trace else None, (), 0, 0, 0, {}, 0.0, "")
    grid, block = kernel.geometry(sizes["rows"])
    return launch(
        Source.read(kernel.path),
        grid,
        block,
        arguments,
        kernel=kernel.symbol,
        shared=kernel.shared_bytes,
        opt_in=True,
        lockstep=lockstep,
        sanitize=sanitize,
        trace=trace,
        limits=limits,
        optimise=optimise,
        compiler=compiler,
    )


def plain(kernel: Kernel | str, *arrays: np.ndarray, limits: Limits = Limits()) -> np.ndarray:  # noqa: B008
    """The output of a registered kernel, shaped as its input, from a build where `float` is float:
    nothing is counted. Raises as `run` does, and EmulatorCrash for a fault."""
    kernel = registry.get(kernel)
    arguments, sizes = _arguments(kernel, arrays)
    if arguments is None:
        return _nothing(kernel, arrays, sizes)
    grid, block = kernel.geometry(sizes["rows"])
    found = launch(
        Source.read(kernel.path),
        grid,
        block,
        arguments,
        kernel=kernel.symbol,
        shared=kernel.shared_bytes,
        opt_in=True,
        count=False,
        limits=limits,
    )
    if found.faults:
        raise EmulatorCrash(f"{kernel.name}: {'; '.join(map(str, found.faults))}")
    return found.y


def _arguments(kernel: Kernel, arrays: tuple) -> tuple[tuple | None, dict[str, int]]:
    """(launch arguments, sizes); no arguments where there is nothing to do."""
    for array in arrays:
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{kernel.name} takes NumPy arrays here, got {type(array).__name__}")
    sizes = kernel.check(*arrays)
    if not all(sizes.values()):
        return None, sizes
    out = Out(kernel.family.result(**sizes), str(arrays[0].dtype))
    return (*arrays, out, *sizes.values()), sizes


def _nothing(kernel: Kernel, arrays: tuple, sizes: dict[str, int]) -> np.ndarray:
    """The result on a matrix without elements: a sum of no terms is 0."""
    return np.zeros(kernel.family.result(**sizes), arrays[0].dtype)
