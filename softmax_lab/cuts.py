"""What if this line were gone? Kernels with one line taken away, and what then happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softmax_lab import emulator, registry
from softmax_lab.emulator import Source
from softmax_lab.registry import Kernel

WRONG = "wrong numbers"
"""The outcome where every access is in order and only y shows that a line is gone."""
INF = float("inf")


@dataclass(frozen=True)
class Line:
    """A line of `kernel` that a reader may take away: the one that holds `text`, in `file` (its own
    unless said), below one that holds `after`.

    `instead` is what `text` becomes; without it the whole line goes. `outcome` is a kind of fault
    (report.KINDS) or WRONG; `shape` (rows, cols), or a `row` of scores, is where it shows.
    """

    kernel: str
    name: str
    title: str
    text: str
    outcome: str
    shape: tuple[int, int] = (4, 16)
    row: Sequence[float] = ()
    file: str = ""
    after: str = ""
    instead: str | None = None


LINES = (
    Line(
        "naive", "guard", "the guard", "if (row >= size_t(rows)) return;", "out of bounds", (5, 8)
    ),
    Line(
        *("naive", "maximum", "the subtraction of the maximum, in the sum only"),
        *("sum += expf(x[i] - max)", WRONG),
        instead="sum += expf(x[i])",
        row=(2, 0, 1, -1),
    ),
    Line(
        *("online", "correction", "the correction factor", "sum * expf(max - v) + 1.0f", WRONG),
        instead="sum + 1.0f",
        row=(1, 2, 3, 4),
    ),
    Line(
        *("online", "contract", "the test for +∞", "sum = max == CUDART_INF_F", WRONG),
        row=(1, INF, 2),
    ),
    Line(
        *("online_rescale", "correction", "the correction factor", "sum *= expf(max - v);", WRONG),
        row=(1, 2, 3, 4),
    ),
    Line(
        *("online_rescale", "finite_start", "the finite start"),
        *("-CUDART_MAX_NORMAL_F", WRONG),
        instead="-CUDART_INF_F",
        row=(-INF, 2, 0, 1),
    ),
    Line(
        *("warp", "correction", "the correction factor", "sum *= expf(max - row_max);", WRONG),
        shape=(2, 40),
    ),
    Line(
        *("warp", "max_broadcast", "the broadcast of the maximum"),
        *("__shfl_sync(ALL_LANES, value, 0)", WRONG, (2, 40)),
        file="common.cuh",
        after="fmaxf(value, __shfl_down_sync",
        instead="value",
    ),
    Line(
        *("warp", "sum_broadcast", "the broadcast of the sum"),
        *("__shfl_sync(ALL_LANES, value, 0)", WRONG, (2, 40)),
        file="common.cuh",
        after="value += __shfl_down_sync",
        instead="value",
    ),
    Line(
        *("warp", "mask", "lane 2's place in the mask", "ALL_LANES = 0xffffffffu;"),
        *("caller not in mask", (1, 40)),
        file="common.cuh",
        instead="ALL_LANES = 0xfffffffbu;",
    ),
    Line(
        *("warp_merge", "finite_start", "the finite start", "-CUDART_MAX_NORMAL_F", WRONG, (1, 12)),
        instead="-CUDART_INF_F",
    ),
    Line(
        *("block_tree", "reuse", "the barrier between the two trees"),
        *("__syncthreads();  // every thread has read slot 0", "shared race"),
        shape=(2, 40),
    ),
    Line(
        *("block_tree", "level", "the barrier between two levels"),
        *("__syncthreads();  // outside of the `if`", "shared race"),
        shape=(2, 40),
    ),
    Line(
        *("block_tree", "half", "the test for the lower half"),
        *("if (thread < half) partial[thread] = fmaxf", "shared out of bounds"),
        instead="partial[thread] = fmaxf",
        shape=(2, 40),
    ),
    Line(
        *("block_warp", "float", "the maximum's place in a float"),
        *("const float row_max = maxima[mine][0];", WRONG),
        instead="const int row_max = int(maxima[mine][0]);",
        row=(-3e9, -3e9, -3e9),
    ),
    Line(
        *("block_warp", "stay", "the staying of threads without a row"),
        *("x += row * cols;", "barrier after exit"),
        instead="if (row >= size_t(rows)) return; x += row * cols;",
        shape=(5, 8),
    ),
    Line(
        *("block_warp", "guard", "the guard"),
        *("const unsigned end = row < size_t(rows) ? cols : 0;", "out of bounds"),
        instead="const unsigned end = cols;",
        shape=(5, 8),
    ),
    Line(
        *("block_warp", "fold", "the barrier before the fold"),
        *("__syncthreads();  // every thread of all four rows", "shared uninitialised"),
        shape=(4, 40),
    ),
    Line(
        *("block_warp", "sum_broadcast", "the broadcast of the sum", "sums[mine][0] = sum;", WRONG),
        shape=(4, 40),
    ),
    Line(
        *("block_online", "barrier", "the barrier before the tree"),
        *("__syncthreads();  // every thread comes here", "shared uninitialised"),
        file="merge.cuh",
        shape=(2, 40),
    ),
    Line(
        *("block_online", "level", "the barrier between two levels"),
        *("__syncthreads();  // outside of the `if`", "shared race"),
        file="merge.cuh",
        shape=(2, 40),
    ),
    Line(
        *("block_online", "correction", "the correction factor"),
        *("small.sum * expf(small.max - large.max)", WRONG),
        file="merge.cuh",
        instead="small.sum",
        row=(1, 2, 3, 4),
    ),
)
"""Lines of registered kernels. A new one needs this entry, and `make live`."""


@dataclass(frozen=True)
class Cut:
    """A registered kernel without a line: line `number` of `file`, which reads `instead` now."""

    name: str
    kernel: Kernel
    line: Line
    file: str
    number: int
    instead: str
    source: Source


def cuts() -> tuple[Cut, ...]:
    """Every registered kernel with a line taken away. Raises ValueError like `without`."""
    return tuple(map(_cut, LINES))


def run(name: str, x: np.ndarray) -> emulator.Run:
    """The kernel without its line, run on scores x (rows, cols) with every check on.

    Raises ValueError for a name that no cut has, and for scores that the kernel does not take.
    """
    found = {cut.name: cut for cut in cuts()}
    if name not in found:
        raise ValueError(f"no cut {name!r}; there are {', '.join(found)}")
    cut = found[name]
    sizes = cut.kernel.check(x)
    launched = (x, emulator.Out(x.shape), *sizes.values())
    blocks, threads = cut.kernel.geometry(sizes["rows"])
    return emulator.launch(
        cut.source,
        blocks,
        threads,
        launched,
        kernel=cut.kernel.symbol,
        shared=cut.kernel.shared_bytes,
        sanitize=True,
    )


def without(text: str, line: Line, name: str) -> tuple[int, str, str]:
    """(number of the line, what it reads now, the whole text without it).

    Raises ValueError unless exactly one line of the file called `name` is meant.
    """
    lines = text.split("\n")
    found = [
        k
        for k, each in enumerate(lines)
        if line.text in each and (not line.after or (k and line.after in lines[k - 1]))
    ]
    if len(found) != 1:
        below = f" below {line.after!r}" if line.after else ""
        raise ValueError(f"{name} must hold {line.text!r}{below} in one line, has it {len(found)}×")
    (k,) = found
    lines[k] = "" if line.instead is None else lines[k].replace(line.text, line.instead)
    return k + 1, lines[k].partition("//")[0].strip(), "\n".join(lines)


def _cut(line: Line) -> Cut:
    kernel = registry.get(line.kernel)
    whole = Source.read(kernel.path)
    if not line.file:
        number, instead, text = without(whole.text, line, whole.name)
        source = Source(text, whole.name, whole.folder)
    else:
        read = (kernel.path.parent.parent / line.file).read_text(encoding="utf-8")
        number, instead, text = without(read, line, line.file)
        source = Source(whole.text, whole.name, whole.folder, {line.file: text})
    name = f"{kernel.name.replace('/', '-')}-{line.name}"
    return Cut(name, kernel, line, line.file or whole.name, number, instead, source)
