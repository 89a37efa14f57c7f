"""Small kernels with a planted defect and their repaired twins, as the pages show them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from softmax_lab.cuts import Line, without
from softmax_lab.emulator import Source

FILE = Path(__file__).resolve().parent.parent / "tests" / "emulator" / "defects.cu"
SIZE = 128
"""Elements of x and of y in a launch; x is 1, 2, 3, …"""

LINES = (
    Line(
        *("barrier_between_levels", "barrier", "the barrier of the loop"),
        *("        __syncthreads();", "shared race"),
    ),
    Line(
        *("barrier_between_levels", "first", "the barrier before the loop"),
        *("    __syncthreads();", "shared uninitialised"),
        after="    s[t] = x[t];",
    ),
    Line(
        *("waits_before_overwriting", "barrier", "the barrier before the write"),
        *("    __syncthreads();", "shared race"),
        after="float first = s[0];",
    ),
    Line(
        "warp_with_syncwarp", "barrier", "the barrier of the warp", "__syncwarp();", "shared race"
    ),
    Line(
        *("blocks_with_grid_sync", "barrier", "the barrier of the grid"),
        *("cooperative_groups::this_grid().sync();", "global race"),
    ),
    Line("reads_in_bounds", "guard", "the guard", "if (i < n) ", "out of bounds", instead=""),
)
"""Lines of repaired twins that a reader may take away: kernels with barriers, above all."""

TITLES = {
    "barrier_between_levels": "a block's sum, a tree in shared memory",
    "waits_before_overwriting": "all read the first element, then write",
    "warp_with_syncwarp": "a warp turns its values round in shared memory",
    "blocks_with_grid_sync": "one block reads what the other wrote",
    "reads_in_bounds": "a copy with more threads than elements",
}


@dataclass(frozen=True)
class Planted:
    """One kernel of the file: its launch, its lines `first` to `last`, and the `fault` that one of
    them carries, "" in a repaired twin. `puzzle` counts those with a fault, from 1."""

    name: str
    grid: int
    block: int
    shared: int
    group: int
    first: int
    last: int
    fault: str
    puzzle: int

    @property
    def title(self) -> str:
        """What a reader sees of it: nothing that gives the fault away, if it has one."""
        blocks = f"{self.grid} block{'s' * (self.grid > 1)} of {self.block} threads"
        return TITLES.get(self.name, f"puzzle {self.puzzle}: {blocks}")


def text() -> str:
    """The file, line for line, without its comments, which give the faults away."""
    return re.sub(r" *//.*", "", FILE.read_text(encoding="utf-8"))


def shown() -> str:
    """What a reader sees of the file: of the defects' names, too, nothing."""
    told = text()
    for each in planted():
        if each.fault:
            told = told.replace(f"void {each.name}(", "void puzzle(")
    return told


def planted() -> tuple[Planted, ...]:
    """Every kernel of the file."""
    lines = FILE.read_text(encoding="utf-8").split("\n")
    starts = [k for k, line in enumerate(lines) if line.startswith("// grid ")]
    found = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        head = lines[start]
        name = re.search(r"void (\w+)\(", lines[start + 1])[1]
        fault = re.search(r"// FAULT (.+)", "\n".join(lines[start:end]))
        grid, block = (int(re.search(rf"{word} (\d+)", head)[1]) for word in ("grid", "block"))
        shared = re.search(r"shared (\d+)", head)
        last = next(k for k in range(start, end) if lines[k] == "}") + 1
        found.append(
            Planted(
                name,
                grid,
                block,
                int(shared[1]) if shared else 0,
                grid if "cooperative" in head else 1,
                start + 2,
                last,
                fault[1] if fault else "",
                1 + sum(bool(each.fault) for each in found),
            )
        )
    return tuple(found)


def cut(line: Line) -> tuple[int, str, Source]:
    """(number, what stands there now, source) of a twin without `line`; every other kernel of the
    file is blank, so that lines keep their numbers."""
    (twin,) = (each for each in planted() if each.name == line.kernel)
    kept = [
        each if twin.first <= k <= twin.last or each.startswith("#include") else ""
        for k, each in enumerate(text().split("\n"), start=1)
    ]
    number, instead, changed = without("\n".join(kept), line, FILE.name)
    return number, instead, Source(changed, FILE.name, FILE.parent)
