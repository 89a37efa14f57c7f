"""What timing on a GPU needs: poisoned buffers, a judge, captured launches, rounds of replays."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from softmax_lab import gpu
from softmax_lab.families import Family
from softmax_lab.registry import COPY, Kernel

_CHUNK = 1 << 22
"""Elements that go between host and device at a time."""


def buffers(
    family: Family, rows: int, cols: int, dtype: str, pairs: int, data: str = "normal"
) -> list[tuple]:
    """Tuples (inputs…, y) on the device, all with the same inputs of the kind `data`, every y
    poisoned.

    Copied from the host or moved as bytes: no kernel of CuPy's has to be compiled.
    """
    import cupy

    shapes = family.extents(rows, cols).values()
    out = [tuple(cupy.empty(shape, dtype) for shape in shapes) for _ in range(pairs)]
    first, *others = out[0][:-1]
    step = max(1, min(rows, _CHUNK // cols))
    block, *vectors = family.inputs(data, step, cols)
    for start in range(0, rows, step):  # scaled anew each time, so no two pieces are alike
        piece = block[: rows - start] * np.float32(1 + start / rows)
        first[start : start + step].set(piece.astype(dtype, copy=False))
    for there, here in zip(others, vectors, strict=True):
        there.set(here.astype(dtype, copy=False))
    for *inputs, y in out:
        for theirs, mine in zip(out[0], inputs, strict=False):
            if mine is not theirs:
                mine.data.copy_from_device_async(theirs.data, mine.nbytes)
        poison(y)
    return out


def copy_buffers(pairs: Sequence[tuple]) -> list[tuple]:
    """Pairs (x, y) for the copy kernel: the matrices of `pairs`, and their y where it is as large,
    else one of its own."""
    import cupy

    return [(x, y if y.shape == x.shape else cupy.empty_like(x)) for x, *_, y in pairs]


def poison(y) -> None:
    """Fill an output with NaN, so that an element nobody writes shows."""
    y.data.memset_async(0xFF, y.nbytes)  # all bits set is a NaN in every float format


def judge(kernel: Kernel, x, *rest, data: str = "normal") -> None:
    """Launch once on inputs (x, …) and a poisoned output, the last of `rest`; every element must be
    written, and the oracle agree."""
    *vectors, y = rest
    poison(y)
    gpu.launch(kernel, x, *vectors, out=y)
    step = max(1, _CHUNK // x.shape[1])
    for start in range(0, len(y), step):
        if np.isnan(y[start : start + step].get()).any():
            raise RuntimeError(f"{kernel.name} left elements of a {_shape(x)} matrix unwritten")
    compare(kernel, x, *rest, data=data)


def compare(kernel: Kernel, x, *rest, data: str = "normal") -> None:
    """Hold the first, middle and last rows against the oracle. Raises RuntimeError."""
    *vectors, y = rest
    shared = [each.get() for each in vectors]
    family, dtype = kernel.family, str(x.dtype)
    terms = family.roundings(data, x.shape[1], kernel.threads_per_row)
    for piece in _pieces(x):
        given = x[piece].get(), *shared
        verdict = family.compare(y[piece].get(), *given, dtype=dtype, terms=terms)
        if not verdict.ok:
            where = f"rows from {piece.start} of {_shape(x)}"
            raise RuntimeError(f"{kernel.name} is wrong, {where}: {verdict.message}")


def check_copy(launch: Callable, x, y) -> None:
    """A roof that does not copy is none: first, middle and last rows must be equal to the bit."""
    poison(y)
    launch(x, y)
    compare_copy(x, y)


def compare_copy(x, y) -> None:
    """Hold the first, middle and last rows of a copy against the original. Raises RuntimeError."""
    for piece in _pieces(x):
        if x[piece].get().tobytes() != y[piece].get().tobytes():
            raise RuntimeError(f"the copy kernel is wrong on a {_shape(x)} matrix")


def _pieces(x) -> list[slice]:
    count = max(1, min(len(x), _CHUNK // 4 // x.shape[1]))
    return [slice(at, at + count) for at in sorted({0, (len(x) - count) // 2, len(x) - count})]


def _shape(x) -> str:
    return f"{x.shape[0]}x{x.shape[1]}"


def launcher(kernel: Kernel) -> Callable:
    """A launch of a kernel from its inputs into the last of its arguments."""
    return lambda *arrays: gpu.launch(kernel, *arrays[:-1], out=arrays[-1])


def copier(turns: int) -> Callable:
    """A launch of the copy kernel with `turns` vectors a thread; half types are moved as floats."""

    def launch(x, y):
        copy = gpu.function(COPY, "float32", x.device.id)
        rows, cols = x.shape[0], x.shape[1] * x.itemsize // 4
        blocks = max(1, -(-rows * cols // (4 * COPY.block * turns)))
        copy((blocks,), (COPY.block,), (x, y, np.int32(rows), np.int32(cols)))

    return launch


def idler() -> Callable:
    """A launch of the kernel that does nothing."""

    def launch(x, y):
        empty = gpu.function("roof/empty", "float32", x.device.id)
        empty((1,), (32,), (x, y, np.int32(x.shape[0]), np.int32(x.shape[1])))

    return launch


def single(launch: Callable, pair: tuple) -> Callable:
    """One launch on one pair, to be started on a stream."""

    def once(stream):
        with stream:
            launch(*pair)

    return once


def graph(stream, launch: Callable, pairs: Sequence[tuple]):
    """A graph of one launch on each pair, captured on `stream`; a failure ends the capture too."""
    with stream:
        launch(*pairs[0])  # loads the kernel, which a capture should not
        stream.synchronize()
        stream.begin_capture()
        try:
            for pair in pairs:
                launch(*pair)
        finally:
            captured = stream.end_capture()
    return captured


def interleaved(
    stream, starts: dict[str, Callable], repeats: int, warm_ups: int
) -> dict[str, list[float]]:
    """Seconds that each of `starts` keeps the stream busy, taken in rounds."""
    import cupy

    before, after = cupy.cuda.Event(), cupy.cuda.Event()
    times: dict[str, list[float]] = {name: [] for name in starts}
    for turn in range(warm_ups + repeats):
        for name, start in starts.items():
            before.record(stream)
            start(stream)
            after.record(stream)
            after.synchronize()
            if turn >= warm_ups:
                times[name].append(cupy.cuda.get_elapsed_time(before, after) * 1e-3)
    return times


def by_host(stream, start: Callable, repeats: int, *, wait: bool) -> list[float]:
    """Seconds of the host's clock: until the call returns, or (`wait`) until the GPU is done."""
    times = []
    for _ in range(repeats):
        before = time.perf_counter()
        start(stream)
        if wait:
            stream.synchronize()
        times.append(time.perf_counter() - before)
        stream.synchronize()  # a reading begins with nothing under way
    return times
