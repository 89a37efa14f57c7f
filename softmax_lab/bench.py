"""Times on the GPU: cold, judged by the oracle, beside a copy of the same size in the same run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from softmax_lab import facts, gpu, provenance, records, registry, stopwatch
from softmax_lab.fingerprint import fingerprint
from softmax_lab.recordrows import Timing
from softmax_lab.records import Measured, Session
from softmax_lab.registry import COPY, Kernel
from softmax_lab.units import places

Shapes = Sequence[tuple[int, int]]

SHAPES = (
    (256, 1024),
    (250, 1001),
    (32, 65536),
    (8192, 128),
    (2048, 512),
    (512, 2048),
    (128, 8192),
    (65536, 1024),
    (32768, 4096),
    (4096, 65536),
    *((65536, cols) for cols in (1, 2, 4, 7, 8, 16)),
)
"""Shapes (rows, cols) of the record: the running example and its odd twin, one size in four shapes,
matrices far beyond L2, and rows shorter than a sector, where the access pattern shows most."""

ALIGNMENTS = tuple((65536, cols) for cols in (1025, 1026, 1028, 1032))
"""Rows that start off a boundary of 16 or of 32 bytes now and then, and once never."""

ODD = tuple((250, cols) for cols in (1000, 1001, 1004, 1023, 1025))
"""Few rows that begin at a sector, anywhere, at 16 bytes, and a float before or behind a power of
two: what their position does to a thread that walks a row."""

NARROW = ((65536, 32), (65536, 128))
"""Rows of one step of a warp, and of four."""

SHAPES_OF = {
    "softmax": (*SHAPES, *NARROW),
    "log_softmax": (*SHAPES, *NARROW),
    "gemv": (*SHAPES, (16384, 16384), *ALIGNMENTS, *NARROW),
}
"""Shapes of the record by family."""

L2_MULTIPLE = 4
"""Buffers together exceed L2 this many times: none is still there when it is read again."""

REPEATS = 15
WARM_UPS = 2
FEWEST_PAIRS = 4
"""Launches in a graph at least: the cost of starting it is shared by this many."""

MOST_PAIRS = 1024
"""Launches in a graph at most: a shape so small that this does not exceed L2 is labelled `L2`."""

COPY_TURNS = (1, 2, 4, 8)
"""16-byte vectors a thread of the copy kernel takes; the fastest of these is the roof."""

PROTOCOL = (
    f"one CUDA graph per kernel, a launch on each of K buffer pairs, which together exceed "
    f"{L2_MULTIPLE} x L2; {WARM_UPS} warm-up replays, then the timed ones, kernels interleaved; "
    f"median, 20 % and 80 % of replay time / K; copy: the fastest of {len(COPY_TURNS)} launch "
    f"shapes, interleaved likewise; data standard normal; results compared with float64 first. "
    f"Method events: one pair, one launch between two events, the same repeats"
)


def run(
    kernels: Iterable[str | Kernel] | None = None,
    shapes: Shapes | None = None,
    dtype="float32",
    *,
    repeats: int = REPEATS,
    warm: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Session:
    """Time kernels (all that fit device and type) at shapes (`SHAPES_OF`) on the current device.

    `warm` adds single launches on one buffer pair (method `events`), which a small matrix spends in
    L2. Raises ValueError for kernels, shapes or a type that do not go together, GPU or not, and for
    a shape the device's memory cannot hold; RuntimeError without a GPU or when a kernel's answer is
    wrong.
    """
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, got {repeats}")
    device, chosen, dtype = gpu.ready(kernels, dtype, shapes)
    name, clocks, out = records.run_id(), [], []
    for mine, grid in plan(chosen, SHAPES_OF, shapes):
        for rows, cols in grid:
            new = at_shape(mine, rows, cols, dtype, name, repeats, warm)
            clocks += provenance.clocks_now(device.id)  # they stay up for a while after a replay
            out += new
            say(table(new, head=len(out) == len(new)))
    about = provenance.collect(device.id, PROTOCOL, clocks)
    return Session(facts.slug(about["GPU"]), tuple(out), {name: about})


def measure(kernel: str | Kernel, rows: int, cols: int, dtype="float32") -> Measured:
    """Time one kernel at one shape now; nothing is recorded and no hardware counter is read.

    Raises as `run` does.
    """
    return run([kernel], [(rows, cols)], dtype).runs()[0]


def plan(
    kernels: Iterable[Kernel],
    shapes_of: Mapping[str, Shapes],
    shapes: Shapes | None = None,
) -> list[tuple[list[Kernel], list[tuple[int, int]]]]:
    """Which kernels of a family are taken together at which shapes: at `shapes`, or at those of
    their family in `shapes_of` and, for a softmax by a thread a row, at ODD."""
    out: list[tuple[list[Kernel], list[tuple[int, int]]]] = []
    for family, mine in gpu.by_family(kernels).items():
        grid = shapes or shapes_of.get(family, SHAPES)
        out.append((mine, list(grid)))
        walkers = [kernel for kernel in mine if kernel.threads_per_row == 1]
        if walkers and family == "softmax" and not shapes:
            out.append((walkers, [each for each in ODD if each not in grid]))
    return out


def summary(samples: Sequence[float]) -> tuple[float, float, float]:
    """Median, 20 % and 80 % quantile of samples; never the mean, which one outlier moves."""
    p20, p80 = np.quantile(samples, (0.2, 0.8))
    return statistics.median(samples), float(p20), float(p80)


def pairs_for(
    pair_bytes: int, l2_bytes: int, free_bytes: int, held_bytes: int = 0
) -> tuple[int, str]:
    """How many buffer pairs to rotate, and the level their data is at then: `DRAM` or `L2`.

    A kernel touches `pair_bytes` of a pair; the pair may hold more (`held_bytes`). Raises
    ValueError when not even one pair fits into free memory.
    """
    if pair_bytes < 1:
        raise ValueError("a matrix without elements takes no time to measure")
    fit = free_bytes // max(held_bytes, pair_bytes)
    if not fit:
        need, free = (f"{n / 1e9:.3g} GB" for n in (max(held_bytes, pair_bytes), free_bytes))
        raise ValueError(f"input and output take {need}, the GPU has {free} free")
    wanted = max(L2_MULTIPLE * l2_bytes // pair_bytes + 1, FEWEST_PAIRS)
    pairs = min(wanted, fit, MOST_PAIRS)
    return pairs, _level(pairs * pair_bytes, l2_bytes)


def _level(bytes_in_use: int, l2_bytes: int) -> str:
    """Where data is when it is read again: in DRAM only if L2 cannot hold any of it by then."""
    return "DRAM" if bytes_in_use > L2_MULTIPLE * l2_bytes else "L2"


def table(rows: Sequence[Timing], head: bool = True) -> str:
    """Rows as lines of text: time, useful bytes per second (inputs read and output written once),
    and that rate as a share of the copy's."""
    lines = []
    if head:
        columns = ("shape", "kernel", "median [µs]", "20–80 % [µs]", "useful [GB/s]", "of copy", "")
        lines.append("{:>12}  {:<22} {:>12} {:>19} {:>13} {:>8}  {}".format(*columns))
    for row in rows:
        useful = _once(row.kernel, row) / row.median_s / 1e9
        low, median, high = (1e6 * s for s in (row.p20_s, row.median_s, row.p80_s))
        digits = max(2, places(low, high))
        spread = f"{low:.{digits}f}–{high:.{digits}f}"
        share = useful * 1e9 * row.copy_median_s / _once(COPY, row)
        label = "" if row.level == "DRAM" else "L2-resident"
        label += "" if row.method == "graph" else f" ({row.method})"
        lines.append(
            f"{f'{row.rows}x{row.cols}':>12}  {row.kernel:<22} {median:>12.{digits}f} "
            f"{spread:>19} {useful:>13.1f} {share:>8.3f}  {label}".rstrip()
        )
    return "\n".join(lines)


def _once(kernel: str | Kernel, row: Timing) -> int:
    return registry.get(kernel).family.once(row.rows, row.cols, row.dtype)


def at_shape(
    kernels: Sequence[Kernel],
    rows: int,
    cols: int,
    dtype: str,
    run_name: str,
    repeats: int = REPEATS,
    warm: bool = False,
    *,
    data: str = "normal",
) -> list[Timing]:
    """Judge and time kernels of one family at one shape, on inputs of the kind `data`; buffers live
    only as long as this call. Raises as `run` does."""
    import cupy

    here = cupy.cuda.Device().id
    cupy.get_default_memory_pool().free_all_blocks()
    l2 = cupy.cuda.runtime.getDeviceProperties(here)["l2CacheSize"]
    free = int(0.9 * cupy.cuda.runtime.memGetInfo()[0])  # the rest is for the runtime and others
    family = kernels[0].family
    touched, copied = family.once(rows, cols, dtype), COPY.family.once(rows, cols, dtype)
    own_copy = family.result(rows, cols) != (rows, cols)  # else y serves for the copy as well
    count, level = pairs_for(touched, l2, free, touched + own_copy * copied // 2)
    pairs = stopwatch.buffers(family, rows, cols, dtype, count, data)
    copy_pairs = stopwatch.copy_buffers(pairs)
    copies = {f"copy {turns}": stopwatch.copier(turns) for turns in COPY_TURNS}
    for copy in copies.values():
        stopwatch.check_copy(copy, *copy_pairs[0])
    for kernel in kernels:
        stopwatch.judge(kernel, *pairs[0], data=data)
    cupy.cuda.get_current_stream().synchronize()

    stream = cupy.cuda.Stream(non_blocking=True)
    launches = copies | {kernel.name: stopwatch.launcher(kernel) for kernel in kernels}
    buffers = {name: copy_pairs if name in copies else pairs for name in launches}
    graphs = {name: stopwatch.graph(stream, each, buffers[name]) for name, each in launches.items()}
    starts = {name: graph.launch for name, graph in graphs.items()}
    times = stopwatch.interleaved(stream, starts, repeats, WARM_UPS)
    for (
        kernel
    ) in kernels:  # a graph that stopped early would have been timed for less than it claims
        stopwatch.poison(pairs[-1][-1])
        cupy.cuda.get_current_stream().synchronize()
        graphs[kernel.name].launch(stream)
        stream.synchronize()
        stopwatch.compare(kernel, *pairs[-1], data=data)
    out = _timings(times, kernels, (run_name, dtype, rows, cols), ("graph", level, count))
    if warm:
        single = {name: stopwatch.single(each, buffers[name][0]) for name, each in launches.items()}
        times = stopwatch.interleaved(stream, single, repeats, WARM_UPS)
        level = _level(touched, l2)
        out += _timings(times, kernels, (run_name, dtype, rows, cols), ("events", level, 1))
    return out


def _timings(times: dict[str, list[float]], kernels, where: tuple, how: tuple) -> list[Timing]:
    """Rows from the seconds that each name's replays took, of one launch on each of the pairs."""
    run_name, dtype, rows, cols = where
    method, level, pairs = how
    each = {name: summary(np.divide(seconds, pairs)) for name, seconds in times.items()}
    kernel_names = {kernel.name for kernel in kernels}
    roof = min(values for name, values in each.items() if name not in kernel_names)
    return [
        Timing(
            run=run_name,
            kernel=kernel.name,
            fingerprint=fingerprint(kernel, dtype),
            dtype=dtype,
            rows=rows,
            cols=cols,
            method=method,
            level=level,
            pairs=pairs,
            repeats=len(times[kernel.name]),
            median_s=each[kernel.name][0],
            p20_s=each[kernel.name][1],
            p80_s=each[kernel.name][2],
            copy=fingerprint(COPY),
            copy_median_s=roof[0],
            copy_p20_s=roof[1],
            copy_p80_s=roof[2],
        )
        for kernel in kernels
    ]
