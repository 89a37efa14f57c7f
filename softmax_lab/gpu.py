"""Kernels on the GPU: what there is, and launching on the caller's stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from softmax_lab import nvrtc, registry
from softmax_lab.arguments import can_hold, check_array, in_one_memory, overlap
from softmax_lab.contract import stated_for_kernels
from softmax_lab.facts import OLDEST_DRIVER, WITHOUT_OPT_IN
from softmax_lab.nvrtc import ARCHS, Compiled, CompileError, SpillError, ToolkitError, compile
from softmax_lab.registry import Kernel

__all__ = [
    "ARCHS",
    "CompileError",
    "Compiled",
    "SpillError",
    "Status",
    "ToolkitError",
    "by_family",
    "compile",
    "fitting",
    "forget",
    "function",
    "launch",
    "ordered",
    "ready",
    "status",
]


@dataclass(frozen=True)
class Status:
    """Whether kernels can run on a GPU here, and if not, why not and what to do, in plain words.

    Versions are None where they could not be read; `l2_bytes`, `memory_bytes` [B].
    """

    available: bool
    reason: str = ""
    name: str | None = None
    compute_capability: int | None = None
    multiprocessors: int | None = None
    l2_bytes: int | None = None
    memory_bytes: int | None = None
    driver: str | None = None
    runtime: str | None = None
    nvrtc: str | None = None
    cupy: str | None = None


@cache
def status() -> Status:
    """What the current device is and whether kernels can run on it. Never raises; asked once."""
    found: dict = {}
    try:
        reason = _look(found)
    except Exception as error:  # whatever CuPy, the driver or a broken install throws
        reason = f"the GPU does not answer: {_words(error)}"
    return Status(available=not reason, reason=reason, **found)


@stated_for_kernels
def launch(kernel: str | Kernel, *arrays, out=None):
    """Run a kernel on C-contiguous CuPy or NumPy arrays; its output, of the inputs' kind.

    CuPy: on the arrays' device and CuPy's current stream there, without waiting for it; `out` saves
    the allocation and is needed inside a graph capture. NumPy: copied there and back. A matrix
    without elements needs no launch. Raises TypeError or ValueError for arrays the
    kernel does not take and RuntimeError where there is no GPU, all before anything is launched.
    """
    kernel = registry.get(kernel)
    sizes = kernel.check(*arrays)
    arguments = dict(zip(kernel.family.inputs_named, arrays, strict=True))
    if out is not None:
        check_array(kernel.name, "out", out, (str(arrays[0].dtype),))
        arguments["out"] = out
    in_one_memory(kernel.name, arguments)
    shape = kernel.family.result(**sizes)
    if out is not None:
        _check_out(kernel.name, arguments, shape)
    first = arrays[0]
    if not all(sizes.values()):
        return _cleared(empty(first, shape) if out is None else out)
    if not (state := status()).available:
        raise RuntimeError(state.reason)
    import cupy

    if isinstance(first, np.ndarray):
        y = cupy.asnumpy(launch(kernel, *map(cupy.asarray, arrays)))
        if out is None:
            return y
        out[...] = y
        return out
    with first.device:
        if out is None:
            refuse_in_capture(kernel.name, "give it out=")
            out = empty(first, shape)
        run = function(kernel, str(first.dtype), first.device.id)
        grid, block = kernel.geometry(sizes["rows"])
        run((grid,), block, ordered(kernel, arrays, out, sizes), kernel.shared_bytes)
    return out


def refuse_in_capture(name: str, cure: str) -> None:
    """Raise RuntimeError where the current stream is being captured and `name` has to allocate."""
    import cupy

    stream = cupy.cuda.get_current_stream()
    if stream.ptr and stream.is_capturing():
        raise RuntimeError(
            f"{name} is being captured into a graph: {cure}, because memory allocated during a "
            "capture may be handed out again before the graph runs"
        )


def as_bytes(array):
    """A CuPy array's own memory as bytes (…, itemsize), which may start anywhere."""
    import cupy

    shape, strides = (*array.shape, array.itemsize), (*array.strides, 1)
    return cupy.ndarray(shape, np.uint8, memptr=array.data, strides=strides)


def empty(like, shape: tuple[int, ...], dtype=None):
    """An array of `shape` where `like` is, of its type unless `dtype` is another."""
    dtype = like.dtype if dtype is None else dtype
    if isinstance(like, np.ndarray):
        return np.empty(shape, dtype)
    import cupy

    with like.device:
        return cupy.empty(shape, dtype)


def _cleared(y):
    """The result on a matrix without elements: a sum of no terms is 0."""
    if isinstance(y, np.ndarray):
        y[...] = 0
    elif y.nbytes:
        with y.device:
            y.data.memset_async(0, y.nbytes)
    return y


def ordered(kernel: Kernel, arrays: tuple, out, sizes: dict[str, int]) -> tuple:
    """Arguments in the kernel's order, the sizes as the 4-byte ints they are."""
    values = iter((*arrays, out))
    return tuple(
        np.int32(sizes[name]) if name in sizes else next(values) for name in kernel.family.arguments
    )


_FUNCTIONS: dict[tuple[str, str, int], object] = {}


def function(kernel: str | Kernel, dtype: str, device: int):
    """The loaded kernel as CuPy's Function, compiled for that device once a process."""
    kernel = registry.get(kernel)
    key = kernel.name, dtype, device
    if key not in _FUNCTIONS:
        import cupy

        with cupy.cuda.Device(device) as here:
            arch = nvrtc.arch_for(int(here.compute_capability))
            module = cupy.cuda.function.Module()
            module.load(compile(kernel, arch, dtype).cubin)
            made = module.get_function(kernel.symbol)
            if kernel.shared_bytes > WITHOUT_OPT_IN:
                most = cupy.cuda.driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                cupy.cuda.driver.funcSetAttribute(made.ptr, most, kernel.shared_bytes)
            # Another thread may have been faster. What it loaded may run already and must stay.
            return _FUNCTIONS.setdefault(key, made)
    return _FUNCTIONS[key]


def forget(kernel: str | Kernel) -> None:
    """Unload a kernel: its next launch compiles and loads it again, as in a new process."""
    name = registry.get(kernel).name
    for key in [key for key in _FUNCTIONS if key[0] == name]:
        del _FUNCTIONS[key]


def fitting(
    kernels: Iterable[str | Kernel] | None,
    dtype: str,
    compute_capability: int,
    shapes: Sequence[tuple[int, int]] = (),
) -> list[Kernel]:
    """`registry.chosen`, of which (None) those that run on that compute capability.

    Raises ValueError when one that was asked for does not.
    """
    chosen = registry.chosen(kernels, dtype, shapes)
    if kernels is None:
        return [each for each in chosen if each.requires <= compute_capability]
    for each in chosen:
        if each.requires > compute_capability:
            needs, here = each.requires / 10, compute_capability / 10
            raise ValueError(f"{each.name} needs compute capability {needs}, this GPU has {here}")
    return chosen


def ready(
    kernels: Iterable[str | Kernel] | None, dtype, shapes: Sequence[tuple[int, int]] | None
) -> tuple[Any, list[Kernel], str]:
    """The current device, the kernels of `fitting` for it, and the name of `dtype`.

    Raises ValueError for what is wrong on any machine first, then RuntimeError without a GPU.
    """
    kernels = None if kernels is None else list(kernels)
    dtype = registry.chosen(kernels, dtype, shapes or ())[0].dtype(dtype)
    if not (state := status()).available:
        raise RuntimeError(state.reason)
    import cupy

    device = cupy.cuda.Device()
    return device, fitting(kernels, dtype, int(device.compute_capability), shapes or ()), dtype


def by_family(kernels: Iterable[Kernel]) -> dict[str, list[Kernel]]:
    """Kernels by the name of their family, whose shapes and buffers they share."""
    out: dict[str, list[Kernel]] = {}
    for each in kernels:
        out.setdefault(each.family.name, []).append(each)
    return out


def _look(found: dict) -> str:
    """Fill `found` with what can be read of Status; why no kernel can run, or nothing."""
    nvrtc.give_cupy_a_cache()
    try:
        import cupy
    except ModuleNotFoundError as error:
        if error.name == "cupy":
            return "CuPy is not installed: pip install cupy-cuda12x (or cupy-cuda13x)"
        return f"CuPy does not import: {_words(error)}"
    except Exception as error:  # a broken install raises anything
        return f"CuPy does not import: {_words(error)}"
    runtime = cupy.cuda.runtime
    found["cupy"] = cupy.__version__
    driver, needed = runtime.driverGetVersion(), runtime.runtimeGetVersion()
    found["runtime"] = nvrtc.dotted(needed)
    try:
        found["nvrtc"], missing = nvrtc.version(), ""
        nvrtc.include_folders()
    except ToolkitError as error:
        missing = str(error)
    if not driver:
        return (
            "no NVIDIA driver on this machine: kernels run on an NVIDIA GPU under Linux, with its "
            f"driver {OLDEST_DRIVER} or newer"
        )
    found["driver"] = nvrtc.dotted(driver)
    if driver // 1000 < needed // 1000:
        return (
            f"the NVIDIA driver is too old: it serves CUDA {found['driver']}, CuPy was built for "
            f"{found['runtime']}; update the driver or install cupy-cuda{driver // 1000}x"
        )
    try:
        count, why = runtime.getDeviceCount(), ""
    except runtime.CUDARuntimeError as error:
        count, why = 0, f" ({error})"
    if not count:
        return (
            f"there is a driver but no GPU that this process may use{why}; see CUDA_VISIBLE_DEVICES"
        )
    properties = runtime.getDeviceProperties(cupy.cuda.Device().id)
    found |= {
        "name": properties["name"].decode(),
        "compute_capability": properties["major"] * 10 + properties["minor"],
        "multiprocessors": properties["multiProcessorCount"],
        "l2_bytes": properties["l2CacheSize"],
        "memory_bytes": properties["totalGlobalMem"],
    }
    try:
        nvrtc.arch_for(found["compute_capability"])
    except ValueError as error:
        return f"{found['name']} cannot run these kernels: {error}"
    return missing and f"{found['name']} is there, but nothing can be compiled for it: {missing}"


def _check_out(who: str, named: dict, shape: tuple[int, ...]) -> None:
    out = named["out"]
    can_hold(who, out, shape)
    for name, array in named.items():
        if name != "out" and overlap(out, array):
            raise ValueError(
                f"{who}: out overlaps {name}: a kernel may read what it has already written"
            )


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
