"""Random launches against the oracle: any kernel, shape, input, alignment and stream."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from softmax_lab import facts, gpu, provenance, records, registry
from softmax_lab.fingerprint import fingerprint
from softmax_lab.recordrows import Soaked
from softmax_lab.records import Session
from softmax_lab.registry import Kernel

LAUNCHES = 100_000
TOGETHER = 16
"""Launches on one input, so that the oracle computes once for several."""

STREAMS = 4
MOST = 1 << 16
"""Elements of a matrix at most: nearly all time is then spent on launching, not on checking."""

GUARD = 32
"""Elements before, between and after the outputs of a batch, which nobody may write."""

EDGES = (32, 128, 256, 512, 1024)
"""Columns and rows beside which kernels change their course: warps and blocks are full there."""

PROTOCOL = (
    "random launches: every 16 share an input and are dealt out to kernels of one family, to 4 "
    "non-blocking streams and to starts that are no multiple of 16 bytes; outputs are poisoned, "
    "with guards between them; every element is compared with float64, every guard with what it "
    "held; a batch depends on the seed and its number alone"
)


@dataclass(frozen=True)
class Start:
    """One launch of a batch: its kernel, its stream, and how many elements past a boundary of 16
    bytes its output begins."""

    kernel: str
    stream: int
    shift: int


@dataclass(frozen=True)
class Batch:
    """Launches on one input of `kind`, which begins `shift` elements past a boundary of 16 bytes.

    Any two with one seed and number are the same.
    """

    seed: int
    number: int
    family: str
    rows: int
    cols: int
    kind: str
    shift: int
    starts: tuple[Start, ...]

    def __str__(self) -> str:
        return (
            f"batch {self.number} of seed {self.seed}: {self.kind} {self.rows}x{self.cols}, "
            f"input {self.shift} past a boundary"
        )


@dataclass
class Tally:
    """What is known of one kernel so far."""

    launches: int = 0
    failures: int = 0
    worst: float = 0.0
    largest: tuple[int, int] = (0, 0)


def plan(
    launches: int, seed: int, kernels: Sequence[Kernel], batch: int | None = None
) -> Iterator[Batch]:
    """`launches` launches, a family after another in turn, so that each kernel gets about as many;
    or the one batch of that number."""
    turns = list(gpu.by_family(kernels).items())
    turns = [mine for _, mine in turns for _ in mine]
    numbers = range(-(-launches // TOGETHER)) if batch is None else (batch,)
    for number in numbers:
        rng = np.random.default_rng([seed, number])
        mine = turns[number % len(turns)]
        rows, cols = _shape(rng)
        kinds = mine[0].family.kinds
        starts = [
            Start(
                mine[int(rng.integers(len(mine)))].name,
                int(rng.integers(STREAMS)),
                int(rng.integers(4)),
            )
            for _ in range(TOGETHER)
        ]
        kind, shift = kinds[int(rng.integers(len(kinds)))], int(rng.integers(4))
        if batch is None:
            starts = starts[: launches - number * TOGETHER]
        yield Batch(
            *(seed, number, mine[0].family.name, rows, cols, kind, shift), starts=tuple(starts)
        )


def _shape(rng: np.random.Generator) -> tuple[int, int]:
    """(rows, cols) of at most MOST elements: one in two has a side beside an edge."""

    def side(most: int) -> int:
        if rng.random() < 0.5:
            edges = [each for each in EDGES if each < most] or [1]
            near = int(edges[int(rng.integers(len(edges)))] + rng.integers(-1, 2))
            return max(1, min(near, most))
        return int(math.exp(rng.uniform(0, math.log(most + 1))))

    first = max(1, side(MOST if rng.random() < 0.02 else 4096))
    second = max(1, side(min(4096, MOST // first)))
    return (first, second) if rng.random() < 0.3 else (second, first)


def run(
    launches: int = LAUNCHES,
    seed: int = 0,
    kernels: Iterable[str | Kernel] | None = None,
    *,
    batch: int | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> tuple[Session, int]:
    """The planned launches on the current device, or those of one `batch`, judged on the host; a
    session and how many failed.

    Raises ValueError for kernels that do not fit or no launches, RuntimeError without a GPU.
    """
    if launches < 1:
        raise ValueError(f"a soak is one launch or more, got {launches}")
    device, chosen, dtype = gpu.ready(kernels, "float32", None)
    import cupy

    tallies = {kernel.name: Tally() for kernel in chosen}
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(STREAMS)]
    workers, clocks, waiting = os.cpu_count() or 1, [], deque()
    with ThreadPoolExecutor(workers) as pool:
        for each in plan(launches, seed, chosen, batch):
            inputs, bits = _launched(each, streams)
            waiting.append((each, pool.submit(judged, each, inputs, bits)))
            while len(waiting) > 4 * workers:
                _enter(tallies, *waiting.popleft(), say)
            if each.number % 1000 == 0:
                clocks += provenance.clocks_now(device.id)
                say(f"{each.number * TOGETHER} launches")
        while waiting:
            _enter(tallies, *waiting.popleft(), say)
    failed = sum(each.failures for each in tallies.values())
    name, about = records.run_id(), provenance.collect(device.id, PROTOCOL, clocks)
    rows = tuple(
        Soaked(
            *(name, kernel, fingerprint(kernel, dtype), dtype, *each.largest),
            *(seed, each.launches, each.failures, each.worst),
        )
        for kernel, each in tallies.items()
        if each.launches
    )
    say(f"{sum(row.launches for row in rows)} launches, {failed} failed")
    return Session(facts.slug(about["GPU"]), rows, {name: about}), failed


def places(batch: Batch) -> tuple[list[int], int, int]:
    """Where each output begins in the buffer, how long it is, and the length of all [elements]."""
    size = math.prod(registry.get(batch.starts[0].kernel).family.result(batch.rows, batch.cols))
    room = -(-(size + 4 + GUARD) // 4) * 4
    return (
        [GUARD + k * room + s.shift for k, s in enumerate(batch.starts)],
        size,
        (GUARD + room * len(batch.starts)),
    )


def _launched(batch: Batch, streams: Sequence) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """The inputs, and the bits of the buffer that all outputs of the batch lie in."""
    import cupy

    family = registry.get(batch.starts[0].kernel).family
    host = family.inputs(batch.kind, batch.rows, batch.cols, batch.number)
    there = []
    for k, each in enumerate(host):
        shift = (batch.shift + k) % 4
        buffer = cupy.empty(each.size + shift, "float32")[shift:].reshape(each.shape)
        buffer.set(each)
        there.append(buffer)
    starts, size, whole = places(batch)
    outputs = cupy.empty(whole, "float32")
    outputs.data.memset_async(0xFF, outputs.nbytes)
    cupy.cuda.get_current_stream().synchronize()  # the streams do not wait for it by themselves
    shape = family.result(batch.rows, batch.cols)
    for start, at in zip(batch.starts, starts, strict=True):
        with streams[start.stream]:
            gpu.launch(start.kernel, *there, out=outputs[at : at + size].reshape(shape))
    for stream in streams:
        stream.synchronize()
    return host, np.ascontiguousarray(outputs.get()).view(np.uint32)


def judged(
    batch: Batch, inputs: tuple[np.ndarray, ...], bits: np.ndarray
) -> dict[str, tuple[float, list[str]]]:
    """By kernel: the largest error in units of what is allowed, and what each failure is."""
    starts, size, _ = places(batch)
    family = registry.get(batch.starts[0].kernel).family
    shape = family.result(batch.rows, batch.cols)
    untouched = np.ones(len(bits), bool)
    found: dict[str, tuple[float, list[str]]] = {}
    for start, at in zip(batch.starts, starts, strict=True):
        worst, said = found.setdefault(start.kernel, (0.0, []))
        mine = bits[at : at + size]
        untouched[at : at + size] = False
        threads = registry.get(start.kernel).threads_per_row
        terms = family.roundings(batch.kind, batch.cols, threads)
        verdict = family.compare(mine.view(np.float32).reshape(shape), *inputs, terms=terms)
        where = f"{start.kernel} in {batch}, output {start.shift}, stream {start.stream}"
        if left := int((mine == 0xFFFFFFFF).sum()):
            said.append(f"{where}: {left} elements unwritten")
        elif not verdict.ok:
            said.append(f"{where}: {verdict.message}")
        found[start.kernel] = max(worst, verdict.worst), said
    if (bits[untouched] != 0xFFFFFFFF).any():
        for _, said in found.values():
            said.append(f"{batch}: written outside of the outputs, by one of {', '.join(found)}")
    return found


def _enter(tallies: dict[str, Tally], batch: Batch, done, say: Callable[[str], None]) -> None:
    for kernel, (worst, said) in done.result().items():
        tally = tallies[kernel]
        tally.launches += sum(start.kernel == kernel for start in batch.starts)
        tally.failures += len(said)
        tally.worst = max(tally.worst, worst)
        tally.largest = max(tally.largest, (batch.rows, batch.cols), key=math.prod)
        if said and tally.failures <= 3 * len(said):  # the first few; all are counted
            say("\n".join(said))
