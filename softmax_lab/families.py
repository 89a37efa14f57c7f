"""What kernels compute: families, each with its arguments, shapes, inputs, oracle and checker."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from softmax_lab import products, reference
from softmax_lab.arguments import told
from softmax_lab.facts import ITEMSIZE


@dataclass(frozen=True)
class Family:
    """Kernels that compute one thing: their arguments in launch order, shape rule, test inputs and
    oracle.

    `arguments` names the parameters of the `__global__` function: input arrays, the output, then
    sizes (int). The first input is a matrix (rows, cols), and `y` has a row or an element for each
    of its rows; further inputs are shared by all rows. `shape(*arrays)` gives the sizes by name and
    checks the arrays, `extents(rows, cols)` the shape of each array by name. The rest are
    reference functions: `inputs(kind, rows, cols, seed)` → input arrays for each of `kinds`
    (`biased` are those whose roundings all fall the same way),
    `oracle(*arrays)` → y, `compare(y, *arrays, dtype=…, terms=…)` → Verdict.
    """

    name: str
    arguments: tuple[str, ...]
    shape: Callable[..., dict[str, int]]
    extents: Callable[[int, int], dict[str, tuple[int, ...]]]
    kinds: tuple[str, ...]
    biased: tuple[str, ...]
    inputs: Callable[..., tuple[np.ndarray, ...]]
    oracle: Callable[..., np.ndarray]
    compare: Callable[..., reference.Verdict]

    @property
    def inputs_named(self) -> tuple[str, ...]:
        """Names of the input arrays: the arguments before the output `y`."""
        return self.arguments[: self.arguments.index("y")]

    def result(self, rows: int, cols: int) -> tuple[int, ...]:
        """The shape of y."""
        return self.extents(rows, cols)["y"]

    def roundings(self, kind: str, cols: int, threads: int) -> int | None:
        """Roundings that one sum over a row by so many threads may take on inputs of `kind`, for
        `terms` of the checker: the certain bound where they are biased, None elsewhere."""
        if kind not in self.biased:
            return None
        # A thread's own terms, the levels of a tree, the warps of a row one after another.
        steps = -(-cols // threads) + threads.bit_length() + 8
        # Difference, two in the exponential, product, sum; never less than other inputs get.
        return max(5 * steps, math.ceil(reference.SUM_ERROR * math.sqrt(cols)))

    def once(self, rows: int, cols: int, dtype: str = "float32") -> int:
        """Bytes of each input read once and the output written once [B]: the useful bytes."""
        elements = sum(math.prod(shape) for shape in self.extents(rows, cols).values())
        return ITEMSIZE[dtype] * elements


SIZE_LIMIT = 2**31
"""Sizes are `int` in the kernels' signatures; offsets are `size_t`, so only a single size must stay
below this."""


def _rows_cols(x) -> dict[str, int]:
    """Sizes of a packed (rows, cols) matrix. Raises ValueError for another shape or a size of 2^31
    and more."""
    shape = tuple(getattr(x, "shape", np.shape(x)))
    if len(shape) != 2:
        raise ValueError(
            f"softmax kernels take one matrix (rows, cols), got an array of shape {shape}"
        )
    return checked_sizes(shape)


def _matrix_vector(A, x) -> dict[str, int]:
    """Sizes of a packed matrix A (rows, cols) and a vector x (cols). Raises ValueError for other
    shapes or a size of 2^31 and more."""
    shapes = [tuple(getattr(each, "shape", np.shape(each))) for each in (A, x)]
    if [len(shape) for shape in shapes] != [2, 1] or shapes[0][1] != shapes[1][0]:
        raise ValueError(
            f"gemv kernels take A (rows, cols) and x (cols), got shapes {shapes[0]} and {shapes[1]}"
        )
    return checked_sizes(shapes[0])


def checked_sizes(shape) -> dict[str, int]:
    """`{"rows": …, "cols": …}` from a shape. Raises TypeError for sizes that are not integers,
    ValueError outside 0 ≤ size < 2^31."""
    if len(shape) != 2:
        got = ", ".join(map(told, shape)) or "none"
        raise ValueError(f"a shape is rows, cols; got {len(shape)}: {got}")
    sizes = {}
    for name, size in zip(("rows", "cols"), shape, strict=True):
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)):
            raise TypeError(f"{name} must be an integer, got {told(size)}")
        if not 0 <= size < SIZE_LIMIT:
            raise ValueError(f"{name} must be in 0 … 2^31 - 1, got {size}")
        sizes[name] = int(size)
    return sizes


SOFTMAX = Family(
    name="softmax",
    arguments=("x", "y", "rows", "cols"),
    shape=_rows_cols,
    extents=lambda rows, cols: {"x": (rows, cols), "y": (rows, cols)},
    kinds=tuple(reference.INPUTS),
    biased=reference.BIASED,
    inputs=lambda *kind_and_sizes: (reference.inputs(*kind_and_sizes),),
    oracle=reference.softmax,
    compare=reference.compare,
)

LOG_SOFTMAX = replace(
    SOFTMAX, name="log_softmax", oracle=reference.log_softmax, compare=reference.compare_log
)

GEMV = Family(
    name="gemv",
    arguments=("A", "x", "y", "rows", "cols"),
    shape=_matrix_vector,
    extents=lambda rows, cols: {"A": (rows, cols), "x": (cols,), "y": (rows,)},
    kinds=tuple(products.INPUTS),
    biased=products.BIASED,
    inputs=products.inputs,
    oracle=products.gemv,
    compare=products.compare,
)
