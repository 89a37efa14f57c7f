"""The only list of kernels: what each is, how it is launched and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from softmax_lab import block_cost, cost, gemv_cost, reference
from softmax_lab.arguments import check_array, dtype_name, told
from softmax_lab.families import (
    GEMV,
    LOG_SOFTMAX,
    SIZE_LIMIT,
    SOFTMAX,
    Family,
    checked_sizes,
)


@dataclass(frozen=True)
class Kernel:
    """One kernel: pure data plus its two closed forms (see `cost`).

    `requires` is the lowest compute capability it compiles for (75 is `sm_75`), `title` what charts
    call it, `shared_bytes` the dynamic shared memory of a block [B]. With `rows_along_y` a block is
    two-dimensional: threadIdx.y is the row, threadIdx.x the thread of the row. `code` is the kernel
    whose source this is another launch of, "" where it has its own.

    `ahead` are the loads that a warp sends off before it first needs the answer of one, walk by
    walk, as read in the machine code of NVRTC 12.9 for sm_90; empty where it was not read. A last
    walk with a division is one ahead even where it is unrolled: the call for the division's rare
    cases stands between an element and the next.
    """

    name: str
    family: Family
    rows_per_block: int
    threads_per_row: int
    dtypes: tuple[str, ...]
    requires: int
    executed: tuple[cost.Phase, ...]
    textbook: tuple[cost.Phase, ...]
    title: str
    shared_bytes: int = 0
    rows_along_y: bool = False
    code: str = ""
    ahead: tuple[int, ...] = ()

    @property
    def symbol(self) -> str:
        """Name of its `__global__` function, and the stem of its file."""
        return (self.code or self.name).rpartition("/")[2]

    @property
    def path(self) -> Path:
        """Its CUDA source file."""
        folder = (self.code or self.name).rpartition("/")[0] or self.family.name
        return kernel_folder() / folder / f"{self.symbol}.cu"

    @property
    def block(self) -> int:
        """Threads of a block."""
        return self.rows_per_block * self.threads_per_row

    @property
    def max_cols(self) -> int:
        """Longest row it takes: a thread's fp32 sum of ones stops growing at 2^24 terms, so it may
        get no more."""
        return min(SIZE_LIMIT - 1, SUM_LIMIT * self.threads_per_row)

    def check(self, *arrays) -> dict[str, int]:
        """The sizes of a launch on these arrays (NumPy or CuPy), or why it may not be made, before
        it is.

        Raises TypeError for a wrong number of arrays, a dtype the kernel does not offer, a masked
        array or what is none, ValueError for a wrong shape, a size out of range or an array that is
        not C-contiguous.
        """
        wanted = self.family.inputs_named
        if len(arrays) != len(wanted):
            got = ", ".join(map(told, arrays)) or "none"
            raise TypeError(f"{self.name} takes {', '.join(wanted)}, got {len(arrays)}: {got}")
        for name, array in zip(wanted, arrays, strict=True):
            check_array(self.name, name, array, self.dtypes)
        return self._within_limits(self.family.shape(*arrays))

    def sizes(self, shape) -> dict[str, int]:
        """The sizes of a launch on arrays of `shape` (rows, cols), as `check` finds them.

        Raises as `checked_sizes` does, and ValueError for rows longer than `max_cols`.
        """
        return self._within_limits(checked_sizes(shape))

    def _within_limits(self, sizes: dict[str, int]) -> dict[str, int]:
        if sizes["cols"] > self.max_cols:
            raise ValueError(
                f"{self.name} takes rows of up to {self.max_cols} columns, got {sizes['cols']}"
            )
        return sizes

    def dtype(self, dtype) -> str:
        """The name of an element type that it takes, from a name or a dtype.

        Raises ValueError naming those it takes.
        """
        name = dtype_name(dtype)
        if name not in self.dtypes:
            got = name or told(dtype)
            raise ValueError(f"{self.name} takes {' or '.join(self.dtypes)}, got {got}")
        return name

    def geometry(self, rows: int) -> tuple[int, tuple[int, ...]]:
        """(blocks, threads of a block along x and, if it has one, y) of a launch over `rows`
        rows."""
        shape = (self.threads_per_row, self.rows_per_block) if self.rows_along_y else (self.block,)
        return -(-rows // self.rows_per_block), shape


def kernel_folder() -> Path:
    """The folder `kernels/`: beside the package in a checkout, inside it in an installed wheel."""
    package = Path(__file__).resolve().parent
    for folder in (package / "kernels", package.parent / "kernels"):
        if (folder / "softmax").is_dir():
            return folder
    raise FileNotFoundError(f"no kernels folder in or beside {package}: reinstall softmax-lab")


SUM_LIMIT = 2**24
"""Terms one fp32 accumulator may take: 2^24 + 1 rounds back to 2^24."""


def _kernel(name, family, rows: int, threads: int, title: str, *costs, **more) -> Kernel:
    """A kernel for float32 on every GPU the book knows; `costs` are its two closed forms."""
    return Kernel(name, family, rows, threads, ("float32",), 75, *costs, title, **more)


def _thread_per_row(name: str, executed: tuple[cost.Phase, ...], title: str, **more) -> Kernel:
    return _kernel(name, SOFTMAX, 128, 1, title, executed, cost.ONLINE_TEXTBOOK, **more)


def _warp_per_row(name: str, executed: tuple[cost.Phase, ...], title: str, **more) -> Kernel:
    return _kernel(name, SOFTMAX, 1, 32, title, executed, cost.WARP_TEXTBOOK, **more)


def _shared(name: str, way: str, rows: int, threads: int, title: str, **more) -> Kernel:
    return _kernel(name, SOFTMAX, rows, threads, title, *block_cost.FORMS[way], **more)


def _log(way: str, rows: int, threads: int, **more) -> Kernel:
    name, title = f"{LOG_SOFTMAX.name}/online_{way}", f"log-softmax, one {way} per row"
    forms = block_cost.FORMS[f"log, {way}"]
    return _kernel(name, LOG_SOFTMAX, rows, threads, title, *forms, **more)


def _gemv(stem: str, rows: int, threads: int, way: str, title: str) -> Kernel:
    costs = gemv_cost.EXECUTED[way], gemv_cost.TEXTBOOK[threads]
    return _kernel(f"{GEMV.name}/{stem}", GEMV, rows, threads, title, *costs)


_ALL = (
    _kernel(
        "naive",
        SOFTMAX,
        128,
        1,
        "three passes",
        cost.NAIVE_EXECUTED,
        cost.NAIVE_TEXTBOOK,
        ahead=(16, 4, 1),
    ),
    _kernel(
        "naive_store",
        SOFTMAX,
        32,
        1,
        "three passes, exponentials kept",
        cost.NAIVE_STORE_EXECUTED,
        cost.NAIVE_STORE_TEXTBOOK,
    ),
    _thread_per_row("online", cost.ONLINE_EXECUTED["branch"], "online", ahead=(4, 1)),
    _thread_per_row("online_rescale", cost.ONLINE_EXECUTED["rescale"], "online, rescale then add"),
    _thread_per_row("online_branchfree", cost.ONLINE_EXECUTED["branchfree"], "online, branch-free"),
    _warp_per_row("warp", cost.WARP_EXECUTED["branch"], "one warp per row", ahead=(4, 1)),
    _warp_per_row("warp_rescale", cost.WARP_EXECUTED["rescale"], "one warp per row, as published"),
    _shared("block_tree", "tree", 1, 512, "one block per row, trees", shared_bytes=4 * 512),
    _shared("block_warp", "fold", 4, 256, "eight warps per row, shuffles", rows_along_y=True),
    _shared("warp_merge", "merge", 4, 32, "one warp per row, one operator", ahead=(4, 1)),
    _shared("block_online", "online", 1, 256, "one block per row, online"),
    _log("thread", 128, 1),
    _log("warp", 1, 32, ahead=(4, 1)),
    _log("block", 1, 256),
    _gemv("row_per_thread", 128, 1, "thread", "GEMV, one thread per row"),
    _gemv("row_per_warp", 4, 32, "warp", "GEMV, one warp per row"),
    _gemv("row_per_warp_vec4", 4, 32, "vec4", "GEMV, one warp, four floats"),
)

KERNELS: dict[str, Kernel] = {kernel.name: kernel for kernel in _ALL}
"""Every kernel by name, family by family, each in teaching order."""

LADDER: tuple[Kernel, ...] = tuple(kernel for kernel in _ALL if kernel.family is SOFTMAX)
"""The softmax rungs in teaching order: a filter, not a second list."""


def _beside(name: str, title: str, oracle: Callable, rows_per_block: int, threads: int, **costs):
    """A kernel that is no rung: called like softmax, but it computes something else."""
    family = replace(SOFTMAX, name=name.partition("/")[0], oracle=oracle)
    costs = {"executed": (), "textbook": ()} | costs
    return Kernel(name, family, rows_per_block, threads, ("float32",), 75, title=title, **costs)


def _apart(stem: str, way: str, title: str) -> Kernel:
    """A softmax between two rungs that differ in more than one thing."""
    return _shared(f"apart/{stem}", way, 4, 32, title, ahead=(4, 1))


COPY = _beside("roof/copy", "copy", np.asarray, 1, 256, textbook=cost.COPY_TEXTBOOK)
"""The measured roof, a copy by 16 bytes: it stands in every timing row."""

EXHIBITS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        COPY,
        _beside("roof/empty", "nothing", np.empty_like, 1, 32),
        _beside(
            "foil/unshifted",
            "without the shift",
            reference.unshifted,
            128,
            1,
            executed=cost.UNSHIFTED_EXECUTED,
            textbook=cost.UNSHIFTED_TEXTBOOK,
        ),
        replace(
            KERNELS["naive"],
            name="apart/naive_32",
            code="naive",
            rows_per_block=32,
            title="three passes, 32 rows to a block",
        ),
        _apart("warp_four_rows", "four rows", "one warp per row, four rows to a block"),
        _apart("warp_merge_unhinted", "merge", "one warp per row, one operator, no hint"),
    )
}
"""Kernels that the book runs, shows and times beside the list, by name: roofs, one that fails on
purpose, and steps between two rungs. They are no rungs, so no run takes them unless they are
named."""


def so_far(name: str) -> list[str]:
    """Names of the ladder's rungs up to `name`. Raises ValueError for a name that is not on it."""
    names = [kernel.name for kernel in LADDER]
    if name not in names:
        raise ValueError(f"no kernel {name!r} on the ladder; there are {', '.join(names)}")
    return names[: names.index(name) + 1]


def get(name: str | Kernel) -> Kernel:
    """The kernel called `name`, of the list or an exhibit. Raises ValueError naming the list."""
    if isinstance(name, Kernel):
        return name
    found = isinstance(name, str) and (KERNELS.get(name) or EXHIBITS.get(name))
    if not found:
        raise ValueError(f"no kernel {told(name)}; there are {', '.join(KERNELS)}")
    return found


def chosen(
    kernels: Iterable[str | Kernel] | None, dtype="float32", shapes: Sequence = ()
) -> list[Kernel]:
    """The kernels asked for, or (None) all that take `dtype` and matrices of all `shapes`.

    Raises ValueError when one that was asked for does not, when there is none, and for a matrix
    without elements: it is never launched.
    """
    for shape in shapes:
        if not all(checked_sizes(shape).values()):
            raise ValueError(f"a matrix without elements is never launched, got {tuple(shape)}")
    out, why = [], "there is none"
    named = map(get, KERNELS if kernels is None else kernels)
    for kernel in {each.name: each for each in named}.values():
        try:
            kernel.dtype(dtype)
            for shape in shapes:
                kernel.sizes(shape)
        except ValueError as error:
            if kernels is not None:
                raise
            why = error
        else:
            out.append(kernel)
    if not out:
        raise ValueError("no kernel was named" if kernels is not None else f"no kernel fits: {why}")
    return out
