"""What if this line were gone? Kernels with one line taken away, and what then happens."""

from __future__ import annotations

from dataclasses import dataclass

from softmax_lab import registry
from softmax_lab.emulator import Source
from softmax_lab.registry import Kernel


@dataclass(frozen=True)
class Cut:
    """A registered kernel without one line: `line` of `file`, where `instead` stands now.

    `outcome` is a kind of fault (report.KINDS), or "wrong numbers" where every access is in order
    and only y shows it; `shape` (rows, cols) is one where it shows.
    """

    name: str
    kernel: Kernel
    title: str
    file: str
    line: int
    instead: str
    outcome: str
    shape: tuple[int, int]
    source: Source


WRONG = "wrong numbers"
_BROADCAST = "    return __shfl_sync(ALL_LANES, value, 0);\n"
_ALONE = "    return value;\n"

# kernel, name, title, file, the line, what comes before it, what stands there instead, outcome,
# shape
_TEXTS = (
    (
        *("naive", "guard", "the guard", "naive.cu"),
        "    if (row >= size_t(rows)) return;  // nothing below waits for another thread, "
        "so one may leave alone\n",
        *("", "\n", "out of bounds", (5, 8)),
    ),
    (
        *("online_rescale", "correction", "the correction factor", "online_rescale.cu"),
        *("            sum *= expf(max - v);\n", "", "\n", WRONG, (4, 16)),
    ),
    (
        *("warp", "correction", "the correction factor", "warp.cu"),
        "    sum *= expf(max - row_max);  // unlike denominators first become alike\n",
        *("", "\n", WRONG, (2, 40)),
    ),
    (
        *("warp", "max_broadcast", "the broadcast of the maximum", "common.cuh", _BROADCAST),
        "        value = fmaxf(value, __shfl_down_sync(ALL_LANES, value, offset));\n",
        *(_ALONE, WRONG, (2, 40)),
    ),
    (
        *("warp", "sum_broadcast", "the broadcast of the sum", "common.cuh", _BROADCAST),
        "        value += __shfl_down_sync(ALL_LANES, value, offset);\n",
        *(_ALONE, WRONG, (2, 40)),
    ),
)


def cuts() -> tuple[Cut, ...]:
    """Every kernel with a line taken away.

    Raises ValueError where a line that is to go does not stand in its file exactly once.
    """
    return tuple(_cut(*each) for each in _TEXTS)


def _cut(name, label, title, file, line, before, instead, outcome, shape) -> Cut:
    kernel = registry.get(name)
    whole = Source.read(kernel.path)
    included = file != whole.name
    path = kernel.path.parent.parent / file
    text = path.read_text(encoding="utf-8") if included else whole.text
    if text.count(before + line) != 1:
        raise ValueError(
            f"{file} must hold this once, has it {text.count(before + line)} times: "
            f"{before + line!r}"
        )
    number = text[: text.index(before + line) + len(before)].count("\n") + 1
    changed = text.replace(before + line, before + instead)
    source = (
        Source(whole.text, whole.name, whole.folder, {file: changed})
        if included
        else Source(changed, whole.name, whole.folder)
    )
    return Cut(
        f"{name}-{label}", kernel, title, file, number, instead.strip(), outcome, shape, source
    )
