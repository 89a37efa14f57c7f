"""A published measurement made again on this machine's GPU: by its own protocol, and by ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from softmax_lab import bench, facts, gpu, provenance, records, reference, registry, stopwatch
from softmax_lab.fingerprint import fingerprint
from softmax_lab.published import DATA, KERNEL, LAUNCHES, WARM_UPS, shapes
from softmax_lab.recordrows import Rerun, Timing
from softmax_lab.records import Session

PROTOCOL = (
    f"published: one buffer pair, {WARM_UPS} warm-up launches, then the mean of {LAUNCHES} between "
    f"two events, allocation and copies untimed; calls: each launched from Python; graph: all "
    f"{LAUNCHES} in one CUDA graph, replayed once before; largest absolute difference from float64 "
    f"over the whole matrix; data standard normal unless the row says another. cold: "
    f"{bench.PROTOCOL}"
)


def run(
    at: Sequence[tuple[int, int]] | None = None,
    kernel: str = KERNEL,
    data: Iterable[str] = DATA,
    *,
    say: Callable[[str], None] = lambda line: None,
) -> Session:
    """Time `kernel` at shapes (rows, cols), the published ones unless given, on inputs of each kind
    of `data`, on this device.

    Raises ValueError for shapes that the kernel does not take and for kinds there are not, GPU or
    not; RuntimeError without a GPU or when the kernel's answer is wrong.
    """
    at = list(shapes() if at is None else at)
    data = list(data)
    for kind in data:
        reference.known(kind, reference.INPUTS)
    device, (chosen,), dtype = gpu.ready([kernel], "float32", at)
    name, clocks, rows = records.run_id(), [], []
    for shape in at:
        for kind in data:
            (cold,) = bench.at_shape([chosen], *shape, dtype, name, data=kind)
            rows.append(_at_shape(chosen, kind, dtype, name, cold))
            clocks += provenance.clocks_now(device.id)
            say(line(rows[-1]))
    about = provenance.collect(device.id, PROTOCOL, clocks)
    return Session(facts.slug(about["GPU"]), tuple(rows), {name: about})


def line(row: Rerun) -> str:
    """A row as a line of text: times of one launch [µs] and the largest error."""
    calls, graph, cold = (1e6 * s for s in (row.calls_s, row.graph_s, row.cold_s))
    return (
        f"{row.rows}x{row.cols} {row.data}: {calls:.2f} µs by calls, {graph:.2f} µs in a graph, "
        f"{cold:.2f} µs cold, error {row.max_error:.3g}"
    )


def _at_shape(kernel: registry.Kernel, data: str, dtype: str, name: str, ours: Timing) -> Rerun:
    import cupy

    shape = ours.rows, ours.cols

    cupy.get_default_memory_pool().free_all_blocks()
    (pair,) = stopwatch.buffers(kernel.family, *shape, dtype, 1, data)
    stopwatch.judge(kernel, *pair, data=data)
    x, y = (each.get() for each in pair)
    error = float(np.abs(y - kernel.family.oracle(x)).max())
    stream, launch = cupy.cuda.Stream(non_blocking=True), stopwatch.launcher(kernel)

    def calls(stream, count=LAUNCHES):
        with stream:
            for _ in range(count):
                launch(*pair)

    calls(stream, WARM_UPS)
    stream.synchronize()
    graph = stopwatch.graph(stream, launch, [pair] * LAUNCHES)
    (by_calls,) = stopwatch.interleaved(stream, {"": calls}, 1, 0)[""]
    (by_graph,) = stopwatch.interleaved(stream, {"": graph.launch}, 1, 1)[""]
    return Rerun(
        run=name,
        kernel=kernel.name,
        fingerprint=fingerprint(kernel, dtype),
        dtype=dtype,
        rows=shape[0],
        cols=shape[1],
        data=data,
        warm_ups=WARM_UPS,
        launches=LAUNCHES,
        calls_s=by_calls / LAUNCHES,
        graph_s=by_graph / LAUNCHES,
        cold_s=ours.median_s,
        cold_p20_s=ours.p20_s,
        cold_p80_s=ours.p80_s,
        level=ours.level,
        max_error=error,
    )
