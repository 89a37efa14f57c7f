"""What others measured and published, and what is recorded of measuring it again."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from softmax_lab import facts, records
from softmax_lab.recordrows import Rerun

KIND = "rerun"
KERNEL = "block_online"
"""The kernel of ours that does what the published one is said to do."""

DATA = {
    "normal": "random",
    "rising": "rising",
    "falling": "falling",
    "constant": "constant",
    "negative": "down to 31 below the largest",
    "outliers": "with outliers",
    "deep": "down to 95 below the largest",
    "masked": "every third masked",
}
"""Kinds of scores (`reference.INPUTS`) that the kernel is timed on again, the usual one first, and
what tables call them: the source says nothing of its own."""

SOURCE = Path(__file__).resolve().parent / "data" / "published" / "fsk-rtx-3070.csv"

WARM_UPS, LAUNCHES = 3, 20
"""The published protocol: launches that nobody times, then those whose mean is taken."""

USEFUL, ASKED = 8, 12
"""Bytes of an element: read once and written once, and what a kernel with two passes asks for."""

SAME_SIZE = tuple((rows, (32 << 16) // rows) for rows in (32, 64, 128, 256, 512, 2048))
"""Shapes with as many elements as the widest published one: only the number of rows varies."""

SAME_ROW = tuple((rows, 1 << 16) for rows in (32, 132, 264, 528, 1056, 4096))
"""Shapes with its rows, on as many multiprocessors as there are and more: 132 on an H200."""


@dataclass(frozen=True)
class Published:
    """One line of the published table: mean time of a launch [s], and the largest absolute
    difference from results in float64."""

    rows: int
    cols: int
    seconds: float
    max_error: float


@dataclass(frozen=True)
class Again:
    """What a GPU (a slug) has of the same shapes, and where that comes from."""

    gpu: str
    rows: tuple[Rerun, ...]
    provenance: Mapping[str, str] = field(default_factory=dict)

    @property
    def published(self) -> tuple[Rerun, ...]:
        """Its rows at the published shapes, in the published order; others may be recorded too."""
        return tuple(each for shape in shapes() if (each := self.at(*shape)))

    def at(self, rows: int, cols: int, data: str = "normal") -> Rerun | None:
        """The row of a shape and a kind of scores, or None."""
        wanted = rows, cols, data
        return next((r for r in self.rows if (r.rows, r.cols, r.data) == wanted), None)


@cache
def table() -> tuple[Published, ...]:
    """The published table, from the file that names its source."""
    lines = SOURCE.read_text(encoding="utf-8").splitlines()
    found = csv.DictReader(line for line in lines if not line.startswith("#"))
    return tuple(
        Published(
            int(each["rows"]), int(each["cols"]), float(each["ms"]) / 1e3, float(each["max_error"])
        )
        for each in found
    )


def about() -> dict[str, str]:
    """Where the published table comes from: source, GPU, protocol."""
    lines = SOURCE.read_text(encoding="utf-8").splitlines()
    pairs = (line.removeprefix("# ").partition(": ") for line in lines if line.startswith("# "))
    return {key: value for key, colon, value in pairs if colon}


def gpu() -> facts.Gpu:
    """The data sheet of the GPU that the published table was measured on."""
    return facts.gpu_for(about()["GPU"])


def shapes() -> tuple[tuple[int, int], ...]:
    """The published shapes (rows, cols)."""
    return tuple((each.rows, each.cols) for each in table())


def recorded(gpu: str | None = None) -> Again | None:
    """What `gpu` (a slug), or the first GPU that has any, was measured at; None where none was."""
    for slug in (gpu,) if gpu else records.gpus():
        found = records.fresh(KIND, slug)
        if found.rows:
            return Again(slug, found.rows, found.runs.get(found.rows[-1].run, {}))
    return None
