"""Launches of a trial: each on inputs of its own, held against the oracle, tallied by kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from softmax_lab import gpu, stopwatch
from softmax_lab.registry import Kernel

SHAPES = ((250, 1001), (37, 33), (1, 4099), (600, 7))
"""Shapes (rows, cols) of the launches, in turn: none fills whole blocks or vectors."""


@dataclass
class Tally:
    """What a trial came to for one kernel: results that were judged, errors that came as they
    should, and everything that was not as it should be."""

    launches: int = 0
    refusals: int = 0
    failures: int = 0
    largest: tuple[int, int] = (0, 0)


@dataclass
class Job:
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

    def jobs(self, each: int = 1, *, poisoned: bool = True) -> list[Job]:
        """`each` launches of every kernel, the kernels and shapes in turn."""
        import cupy

        out = []
        for turn, kernel in product(range(each), self.kernels):
            self._made += 1
            shape = SHAPES[turn % len(SHAPES)]
            host = kernel.family.inputs("normal", *shape, self._made)
            out.append(Job(kernel, host, [cupy.asarray(values) for values in host]))
            if poisoned:
                out[-1].out = cupy.empty(kernel.family.result(*shape), "float32")
                stopwatch.poison(out[-1].out)
        return out

    def judge(self, jobs: Iterable[Job]) -> None:
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
