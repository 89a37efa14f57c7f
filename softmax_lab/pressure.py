"""The kernels on a GPU under pressure: many launches at once, and after calls that went wrong."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path

from softmax_lab import facts, gpu, provenance, records, registry, stopwatch
from softmax_lab.fingerprint import fingerprint
from softmax_lab.recordrows import Pressed
from softmax_lab.records import Session
from softmax_lab.registry import Kernel
from softmax_lab.trial import Job, Trial

STREAMS, THREADS = 16, 8
EACH = 12
"""Launches of each kernel on the streams, and on each thread."""

TOO_MUCH = 1 << 20
"""Dynamic shared memory that no GPU has for one block [B]."""

PROTOCOL = (
    "inputs that no other launch has, outputs poisoned or allocated by the launch, every element "
    "compared with float64; streams: 16 non-blocking ones in turn; threads: 8, each with a stream, "
    "no kernel loaded before, two threads beginning with the same one; memory: all that the driver "
    "still gives is taken, then each kernel without out= and with it; compile: each kernel from a "
    "source with an error; shared, block: each kernel with 1 MiB of shared memory or 2048 threads "
    "for a block; each error twice, then the kernel again"
)


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
            rows.append(Pressed(*about, trial, t.launches, t.refusals, t.failures))
        sums = map(sum, zip(*(row.counted for row in rows[-len(chosen) :]), strict=True))
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
    """Launches from many threads at once, of which two at a time load the same kernel; every second
    launch allocates its output."""
    import cupy

    work = [trial.jobs(EACH) for _ in range(THREADS)]
    for job in (job for mine in work for job in mine[::2]):
        job.out = None
    cupy.cuda.Device().synchronize()
    for kernel in trial.kernels:
        gpu.forget(kernel)
    together = threading.Barrier(THREADS)

    def launch_all(mine: list[Job], first: int) -> None:
        stream = cupy.cuda.Stream(non_blocking=True)
        together.wait()
        with stream:
            for job in (*mine[first:], *mine[:first]):
                job.launch()
            stream.synchronize()

    threads = [
        threading.Thread(target=launch_all, args=(mine, 5 * (k // 2) % len(mine)))
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
    """Launches of kernels that cannot be made ready: a block asks for more than there is."""
    _refused_by_the_driver(trial, lambda kernel: replace(kernel, shared_bytes=TOO_MUCH))


def with_too_many_threads(trial: Trial) -> None:
    """Launches that the driver refuses: a block has more threads than it may."""
    many = 2 * facts.BLOCK[0]
    _refused_by_the_driver(
        trial, lambda kernel: replace(kernel, rows_per_block=many // kernel.threads_per_row)
    )


def _refused_by_the_driver(trial: Trial, greedy: Callable[[Kernel], Kernel]) -> None:
    import cupy

    for job in trial.jobs():
        wrong = greedy(job.kernel)
        _after_errors(trial, job, wrong, cupy.cuda.driver.CUDADriverError, "CUDA_ERROR")


TRIALS: dict[str, Callable[[Trial], None]] = {
    "streams": on_streams,
    "threads": from_threads,
    "memory": without_memory,
    "compile": from_broken_source,
    "shared": with_too_much_shared_memory,
    "block": with_too_many_threads,
}


@dataclass(frozen=True)
class _Elsewhere(Kernel):
    """A kernel under its own name whose source lies in another folder."""

    at: Path = Path()

    @property
    def path(self) -> Path:
        return self.at


def _after_errors(trial: Trial, job: Job, wrong: Kernel, error: type, words: str) -> None:
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
