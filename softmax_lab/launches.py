"""The clock itself, measured: one launch read in four ways, from the first on, warm and cold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from softmax_lab import facts, gpu, provenance, records, registry, stopwatch
from softmax_lab.fingerprint import fingerprint
from softmax_lab.recordrows import Reading
from softmax_lab.records import Session
from softmax_lab.series import CLOCKS, COPY, EMPTY, LARGE, MIDDLE, SIZES, SMALL, VECTORS

FIRST = 200
"""Readings of the series that begins with a kernel nobody has compiled yet."""

REPEATS = 30
ROTATED = 96
"""Launches in each graph that goes round a number of buffer pairs."""

PAIRS = (1, 2, 3, 4, 5, 6, 8, 12, 16, 32)
LENGTHS = (1, 2, 4, 8, 16, 32, 64)


def beyond_l2(shape: tuple[int, int]) -> int:
    """Buffer pairs of a shape that are as many bytes together as the most pairs of `MIDDLE`."""
    return PAIRS[-1] * MIDDLE[0] * MIDDLE[1] // (shape[0] * shape[1])


@dataclass(frozen=True)
class Plan:
    """One series to take: what is launched on which shape, which clock, how many of everything."""

    kernel: str
    shape: tuple[int, int]
    clock: str
    pairs: int = 1
    launches: int = 1
    vectors: int = 1
    repeats: int = REPEATS


PLANS = (
    Plan(COPY, SMALL, "wait", repeats=FIRST),  # before all others: its first launch compiles
    *(Plan(COPY, SMALL, clock) for clock in ("call", "events")),
    *(Plan(EMPTY, SMALL, clock) for clock in ("wait", "call", "events")),
    *(Plan(each, SMALL, "graph", launches=n) for each in (EMPTY, COPY) for n in LENGTHS),
    *(Plan(COPY, MIDDLE, "graph", pairs=n, launches=ROTATED) for n in PAIRS),
    *(Plan(COPY, LARGE, clock) for clock in CLOCKS),
    Plan(COPY, LARGE, "graph", launches=8),
    *(
        Plan(COPY, shape, "graph", pairs=n, launches=max(n, ROTATED), vectors=vectors)
        for shape in SIZES
        for vectors in VECTORS
        for n in (1, beyond_l2(shape))
        if (shape, vectors) != (MIDDLE, 1)
    ),
)
"""What a run takes, in this order; plans of one shape share their buffers."""

PROTOCOL = (
    "series of readings in order, none left out, the stream idle before each; call, wait: the "
    "host's clock around a launch from Python, until it returns and until the stream is idle; "
    "events: around one launch; graph: events around one CUDA graph of several launches; the first "
    "series begins before its kernel is compiled; a thread of the copy moves one vector of 16 "
    "bytes unless the row says more; copies are compared with their originals after"
)


def run(say: Callable[[str], None] = lambda line: None, plans: Sequence[Plan] = PLANS) -> Session:
    """Take every planned series on the current device. Raises RuntimeError without a GPU or when a
    copy is wrong."""
    if not (state := gpu.status()).available:
        raise RuntimeError(state.reason)
    import cupy

    device = cupy.cuda.Device()
    for kernel in {plan.kernel for plan in plans}:
        gpu.forget(kernel)
    name, clocks, rows = records.run_id(), [], []
    for shape, group in groupby(plans, key=lambda plan: plan.shape):
        group = list(group)
        cupy.get_default_memory_pool().free_all_blocks()
        pairs = stopwatch.buffers(
            registry.COPY.family, *shape, "float32", max(plan.pairs for plan in group)
        )
        cupy.cuda.get_current_stream().synchronize()
        for plan in group:
            seconds = _series(plan, pairs[: plan.pairs])
            rows += _rows(name, plan, seconds)
            say(line(plan, seconds))
        clocks += provenance.clocks_now(device.id)
    about = provenance.collect(device.id, PROTOCOL, clocks)
    return Session(facts.slug(about["GPU"]), tuple(rows), {name: about})


def line(plan: Plan, seconds: Sequence[float]) -> str:
    """A series as a line of text: first, least, middle and largest reading, of one launch [µs]."""
    each = [1e6 * value / plan.launches for value in seconds]
    shape = "{}x{}".format(*plan.shape)
    return (
        f"{plan.kernel:<11} {shape:>10} {plan.clock:<7} {plan.pairs:>3} pairs {plan.launches:>3} "
        f"launches: first {each[0]:.2f}, then {min(each):.2f} … {sorted(each)[len(each) // 2]:.2f} "
        f"… {max(each[1:] or each):.2f} µs"
    )


def _series(plan: Plan, pairs: list[tuple]) -> list[float]:
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True)
    launch = stopwatch.copier(plan.vectors) if plan.kernel == COPY else stopwatch.idler()
    if plan.clock == "graph":
        turns = [pairs[i % plan.pairs] for i in range(plan.launches)]
        start = stopwatch.graph(stream, launch, turns).launch
    else:
        start = stopwatch.single(launch, pairs[0])
    if plan.clock in ("call", "wait"):
        seconds = stopwatch.by_host(stream, start, plan.repeats, wait=plan.clock == "wait")
    else:
        seconds = stopwatch.interleaved(stream, {"": start}, plan.repeats, 0)[""]
    if plan.kernel == COPY:  # only now: to judge it first would have warmed it up
        used = pairs[: min(plan.pairs, plan.launches)]
        for _, y in used:
            stopwatch.poison(y)
        cupy.cuda.get_current_stream().synchronize()
        start(stream)
        stream.synchronize()
        for x, y in used:
            stopwatch.compare_copy(x, y)
    return seconds


def _rows(run: str, plan: Plan, seconds: Sequence[float]) -> list[Reading]:
    of = run, plan.kernel, fingerprint(plan.kernel), "float32", *plan.shape
    how = plan.clock, plan.pairs, plan.launches, plan.vectors
    return [Reading(*of, *how, turn, value) for turn, value in enumerate(seconds)]
