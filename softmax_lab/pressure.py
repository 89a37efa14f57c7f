"""The kernels on a GPU under pressure: many launches at once, and after calls that went wrong."""

from __future__ import annotations

import math
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path

import numpy as np

from softmax_lab import facts, gpu, provenance, records, registry, stopwatch
from softmax_lab.fingerprint import fingerprint
from softmax_lab.recordfile import Pressed
from softmax_lab.records import Session
from softmax_lab.registry import Kernel

SHAPES = ((250, 1001), (37, 33), (1, 4099), (600, 7))
"""Shapes (rows, cols) of the launches, in turn: none fills whole blocks or vectors."""

STREAMS, THREADS = 16, 8
EACH = 12
"""Launches of each kernel on the streams, and on each thread."""

TOO_MUCH = 1 << 20
"""Dynamic shared memory that no GPU has for one block [B]."""

COUNTED = ("launches", "refusals", "failures")
PROTOCOL = (
    "inputs that no other launch has, outputs poisoned or allocated by the launch, every element "
    "compared with float64; streams: 16 non-blocking ones in turn; threads: 8, each with a stream, "
    "no kernel loaded before; memory: all that the driver still gives is taken, then each kernel "
    "without out= (twice) and with it; compile: each kernel from a source with an error (twice); "
    "shared: each kernel with 1 MiB of shared memory for a block (twice); then each kernel again"
)


@dataclass
class Tally:
    """What a trial came to for one kernel: results that were judged, errors that came as they
    should, and everything that was not as it should be."""

    launches: int = 0
    refusals: int = 0
    failures: int = 0
    largest: tuple[int, int] = (0, 0)


@dataclass
class _Job:
    """One launch: its kernel, its inputs here and there, and its output, None to be allocated."""

    kernel: Kernel
    host: tuple[np.ndarray, ...]
    there: list
    out: object = None
    error: str = ""

    def launch(self) -> None:
        try:
            self.out = gpu.launch(self.kernel, *self.there, out=self.out)
        except Exception as error:  # told with the kernel; the other launches go on
            self.error = f"{type(error).__name__}: {error}"

    def verdict(self) -> str:
        """What is wrong, or nothing."""
        if self.error:
            return self.error
        family, (rows, cols) = self.kernel.family, self.host[0].shape
        terms = family.roundings("normal", cols, self.kernel.threads_per_row)
        found = family.compare(self.out.get(), *self.host, terms=terms)
        return "" if found.ok else f"{rows}x{cols}: {found.message}"


class Trial:
    """A trial under way: jobs are made and judged here, and tallied by kernel."""

    def __init__(self, kernels: Sequence[Kernel], say: Callable[[str], None]):
        self.kernels = list(kernels)
        self.tallies = {each.name: Tally() for each in kernels}
        self._say, self._made = say, 0

    def jobs(self, each: int = 1, *, poisoned: bool = True) -> list[_Job]:
        """`each` launches of every kernel, the kernels and shapes in turn."""
        import cupy

        out = []
        for turn, kernel in product(range(each), self.kernels):
            self._made += 1
            shape = SHAPES[turn % len(SHAPES)]
            host = kernel.family.inputs("normal", *shape, self._made)
            out.append(_Job(kernel, host, [cupy.asarray(values) for values in host]))
            if poisoned:
                out[-1].out = cupy.empty(kernel.family.result(*shape), "float32")
                stopwatch.poison(out[-1].out)
        return out

    def judge(self, jobs: Iterable[_Job]) -> None:
        for job in jobs:
            tally = self.tallies[job.kernel.name]
            tally.launches += 1
            tally.largest = max(tally.largest, job.host[0].shape, key=math.prod)
            self._enter(job.kernel, job.verdict())

    def refused(self, kernel: Kernel, call: Callable[[], object], error: type, words: str) -> None:
        """Enter whether a call raises that error with those words."""
        try:
            call()
            said = f"no error where {error.__name__} was due"
        except error as raised:
            said = "" if words in str(raised) else f"{error.__name__} without {words!r}: {raised}"
        except Exception as raised:
            said = f"{type(raised).__name__} where {error.__name__} was due: {raised}"
        self.tallies[kernel.name].refusals += not said
        self._enter(kernel, said)

    def _enter(self, kernel: Kernel, wrong: str) -> None:
        if wrong:
            self.tallies[kernel.name].failures += 1
            self._say(f"  {kernel.name}: {wrong}")


def run(
    kernels: Iterable[str | Kernel] | None = None,
    *,
    say: Callable[[str], None] = lambda line: None,
) -> tuple[Session, int]:
    """Every kernel, or those named, in every trial on the current device; a session and how much
    was wrong.

    Takes all free memory of the GPU for a moment. Raises ValueError for kernels that do not fit,
    RuntimeError without a GPU.
    """
    device, chosen, dtype = gpu.ready(kernels, "float32", None)
    name, rows = records.run_id(), []
    for trial, go in TRIALS.items():
        under_way = Trial(chosen, say)
        go(under_way)
        for kernel, t in under_way.tallies.items():
            about = name, kernel, fingerprint(kernel, dtype), dtype, *t.largest
            rows.append(Pressed(*about, trial, *(getattr(t, what) for what in COUNTED)))
        mine = rows[-len(chosen) :]
        sums = [sum(getattr(row, what) for row in mine) for what in COUNTED]
        say("{}: {} launches, {} refusals, {} wrong".format(trial, *sums))
    about = provenance.collect(device.id, PROTOCOL)
    session = Session(facts.slug(about["GPU"]), tuple(rows), {name: about})
    return session, sum(row.failures for row in rows)


def on_streams(trial: Trial) -> None:
    """Launches on many streams, none of which waits for another."""
    import cupy

    jobs = trial.jobs(EACH)
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(STREAMS)]
    cupy.cuda.Device().synchronize()
    for k, job in enumerate(jobs):
        with streams[k % STREAMS]:
            job.launch()
    cupy.cuda.Device().synchronize()
    trial.judge(jobs)


def from_threads(trial: Trial) -> None:
    """Launches from many threads at once, which also load the kernels; every second one allocates
    its output."""
    import cupy

    work = [trial.jobs(EACH) for _ in range(THREADS)]
    for job in (job for mine in work for job in mine[::2]):
        job.out = None
    cupy.cuda.Device().synchronize()
    for kernel in trial.kernels:
        gpu.forget(kernel)
    together = threading.Barrier(THREADS)

    def launch_all(mine: list[_Job], first: int) -> None:
        stream = cupy.cuda.Stream(non_blocking=True)
        together.wait()
        with stream:
            for job in (*mine[first:], *mine[:first]):
                job.launch()
            stream.synchronize()

    threads = [
        threading.Thread(target=launch_all, args=(mine, 5 * k % len(mine)))
        for k, mine in enumerate(work)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for mine in work:
        trial.judge(mine)


def without_memory(trial: Trial) -> None:
    """Launches that have to allocate where there is no memory left, and such that need none."""
    import cupy

    refused, given = trial.jobs(poisoned=False), trial.jobs()
    for job in given:  # loads the kernel, which takes memory
        job.launch()
        stopwatch.poison(job.out)
    with _no_memory_left():
        for job in refused:
            for _ in range(2):
                trial.refused(
                    *(job.kernel, lambda job=job: gpu.launch(job.kernel, *job.there)),
                    *(cupy.cuda.memory.OutOfMemoryError, "Out of memory"),
                )
        for job in given:
            job.launch()
        cupy.cuda.Device().synchronize()
    for job in refused:
        job.launch()
    trial.judge((*given, *refused))


def from_broken_source(trial: Trial) -> None:
    """Launches whose source does not compile."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "kernels"
        shutil.copytree(registry.kernel_folder(), copy)
        for job in trial.jobs():
            kernel = job.kernel
            file = copy / kernel.path.relative_to(registry.kernel_folder())
            text = file.read_text(encoding="utf-8")
            file.write_text(text.replace(f" {kernel.symbol}(", f" {kernel.symbol}(?"))
            broken = _Elsewhere(
                **{each.name: getattr(kernel, each.name) for each in fields(kernel)}, at=file
            )
            _after_errors(trial, job, broken, gpu.CompileError, f"{file.name}(")


def with_too_much_shared_memory(trial: Trial) -> None:
    """Launches that the driver refuses."""
    import cupy

    for job in trial.jobs():
        greedy = replace(job.kernel, shared_bytes=TOO_MUCH)
        _after_errors(trial, job, greedy, cupy.cuda.driver.CUDADriverError, "CUDA_ERROR")


TRIALS: dict[str, Callable[[Trial], None]] = {
    "streams": on_streams,
    "threads": from_threads,
    "memory": without_memory,
    "compile": from_broken_source,
    "shared": with_too_much_shared_memory,
}


@dataclass(frozen=True)
class _Elsewhere(Kernel):
    """A kernel under its own name whose source lies in another folder."""

    at: Path = Path()

    @property
    def path(self) -> Path:
        return self.at


def _after_errors(trial: Trial, job: _Job, wrong: Kernel, error: type, words: str) -> None:
    """Launch what cannot be, twice: a failure may not be taken for the kernel. Then the kernel."""
    gpu.forget(job.kernel)
    for _ in range(2):
        trial.refused(job.kernel, lambda: gpu.launch(wrong, *job.there), error, words)
    job.launch()
    trial.judge([job])


@contextmanager
def _no_memory_left() -> Iterator[None]:
    """Take what the driver still gives, down to the smallest piece, and let go of it again."""
    import cupy

    runtime, held = cupy.cuda.runtime, []
    cupy.get_default_memory_pool().free_all_blocks()
    size = runtime.memGetInfo()[0]
    try:
        while size >= 512:
            try:
                held.append(runtime.malloc(size))
            except runtime.CUDARuntimeError:
                size //= 2
        # The process's own pool may have room left; a new one has to ask the driver.
        with cupy.cuda.using_allocator(cupy.cuda.MemoryPool().malloc):
            yield
    finally:
        for each in held:
            runtime.free(each)
