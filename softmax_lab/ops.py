"""The operators: softmax and log-softmax of any array, along any axis, by one contract.

NumPy arrays are computed on the host in float64, CuPy arrays on their GPU by the best kernel there
is for their rows, and in float64 where float32 would not hold the scores.
"""

from __future__ import annotations

import operator
from array import array

import numpy as np

from softmax_lab import choice, contract, gpu
from softmax_lab.arguments import can_hold, in_one_memory, is_aligned, is_cupy, overlap, told
from softmax_lab.arguments import without_mask as plain
from softmax_lab.families import LOG_SOFTMAX, SOFTMAX, Family
from softmax_lab.registry import Kernel

SLAB = {"host": 2**20, "gpu": 2**27}
"""Elements computed at a time in float64, so that what is in between stays small."""

ROWS = 2**30
"""Rows of one launch: their number is an `int` in the kernels' signatures."""

EXACT = ("float32", "float16", "int16", "uint16", "int8", "uint8", "bool")
"""Element types whose every value is a float32: the kernels may compute with them."""


@contract.stated
def softmax(x, axis: int = -1, out=None):
    """Softmax of x along `axis` (any shape → the same shape), NumPy or CuPy as x is.

    float16, float32 and float64 keep their type, integers and booleans become float32; lists and
    numbers are what NumPy makes of them. NumPy arrays are computed in float64 and rounded once,
    without a compiler, a GPU or a warning; CuPy arrays on their own device and its current stream,
    by a kernel in float32, and in float64 (correct, not tuned) where x is float64 or an integer of
    32 bits or more. `out`, any writable array of the result's shape and type in x's memory, takes
    the result and is returned; it may be x or overlap it. In a graph capture only packed float32
    rows with their own packed `out` need no memory. Raises TypeError for what is no such array and
    for an `out` of another type, ValueError for an axis that x has not and for an `out` that does
    not fit, both before anything is written; RuntimeError where the GPU's compiler is missing.
    """
    return _applied(SOFTMAX, x, axis, out)


@contract.stated
def log_softmax(x, axis: int = -1, out=None):
    """Logarithm of `softmax` along `axis` (any shape → the same shape), from the scores themselves:
    finite where softmax itself would be 0.

    Arguments, types, places and errors are those of `softmax`. Raises TypeError and ValueError as
    `softmax` does, before anything is written.
    """
    return _applied(LOG_SOFTMAX, x, axis, out)


def _applied(family: Family, x, axis, out):
    x = _array(family.name, x)
    dtype = _result_type(family.name, x)
    axis = _axis(family.name, x, axis)
    if out is not None:
        _check_out(family.name, x, out, dtype)
    if isinstance(x, np.ndarray):
        y = np.empty(x.shape, dtype) if out is None or overlap(x, out) else out
        _by_slabs(family, *_rows(axis, x, y), SLAB["host"])
        return _delivered(y, out)
    with x.device:
        return _on_gpu(family, x, axis, out, dtype)


def _array(name: str, x):
    """x as a plain NumPy or CuPy array. Raises TypeError for what is none."""
    if is_cupy(x):
        return x
    try:
        leaves = list(_leaves(x))
    except RecursionError:
        raise TypeError(f"{name}: x must be numbers in lists, got lists without an end") from None
    for each in (x, *leaves):
        plain(f"{name}: x", each)
    foreign = [each for each in (x, *leaves) if not isinstance(each, (*_PLAIN, list, tuple))]
    if not foreign:
        try:
            return np.asarray(x)
        except ValueError as error:  # NumPy's for lists that make no array
            raise TypeError(f"{name}: x must be lists of equal lengths: {error}") from None
    got = f"{'a list of ' * (foreign[0] is not x)}{type(foreign[0]).__name__}"
    if _is_array(foreign[0]):
        got += "; np.asarray(x) makes one on the host, cupy.from_dlpack(x) one on the GPU"
    raise TypeError(f"{name}: x must be a NumPy or CuPy array, or numbers in lists, got {got}")


def _is_array(x) -> bool:
    """Whether another library's object is an array that can be converted."""
    names = ("__array__", "__dlpack__", "__array_interface__", "__cuda_array_interface__")
    return any(hasattr(x, name) for name in names) or isinstance(x, (memoryview, array))


_PLAIN = (np.ndarray, np.generic, bool, int, float, complex)


def _leaves(x):
    """What nested lists hold: NumPy would drop the mask of a masked array among them."""
    if isinstance(x, (list, tuple)):
        for each in x:
            yield from _leaves(each) if isinstance(each, (list, tuple)) else (each,)


def _result_type(name: str, x) -> np.dtype:
    """The element type of the result. Raises TypeError for scores of any other type."""
    if x.dtype.kind in "biu":
        return np.dtype("float32")
    if x.dtype.kind == "f" and x.dtype.itemsize <= 8:
        return x.dtype.newbyteorder("=")
    raise TypeError(
        f"{name}: x must be float16, float32, float64, an integer or boolean, got {x.dtype}"
    )


def _axis(name: str, x, axis) -> int:
    """`axis` counted from 0; a single number has one axis, as if it stood in a row alone."""
    try:
        if isinstance(axis, (bool, np.bool_)):
            raise TypeError
        axis = operator.index(axis)
    except TypeError:
        raise TypeError(f"{name}: axis must be an integer, got {told(axis)}") from None
    axes = max(1, x.ndim)
    if not -axes <= axis < axes:
        allowed = f"{-axes} … {axes - 1} for an array of shape {tuple(x.shape)}"
        raise ValueError(f"{name}: axis must be in {allowed}, got {axis}")
    return axis % axes


def _check_out(name: str, x, out, dtype: np.dtype) -> None:
    """Raises TypeError or ValueError unless the result may be written to `out`."""
    plain(f"{name}: out", out)
    if not (is_cupy(out) or isinstance(out, np.ndarray)):
        kind = "NumPy" if isinstance(x, np.ndarray) else "CuPy"
        raise TypeError(f"{name}: out must be a {kind} array as x is, got {type(out).__name__}")
    in_one_memory(name, {"x": x, "out": out})
    if out.dtype != dtype:
        raise TypeError(f"{name}: out must be {dtype}, got {out.dtype}")
    can_hold(name, out, x.shape)


def _rows(axis: int, *arrays) -> list:
    """Views of the arrays whose last axis holds the rows."""
    return [a.swapaxes(axis, -1) if a.ndim else a.reshape(1) for a in arrays]


def _by_slabs(family: Family, x, y, most: int) -> None:
    """The oracle on about `most` elements at a time, each rounded once, on being written to y."""
    ahead = x.shape[:-1]
    if x.size > most and max(ahead, default=1) > 1:
        longest = ahead.index(max(ahead))
        half = ahead[longest] // 2
        for part in (slice(None, half), slice(half, None)):
            where = (*(slice(None),) * longest, part)
            _by_slabs(family, x[where], y[where], most)
    elif x.size:
        # A signalling NaN is "invalid" as soon as it is converted.
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            y[...] = family.oracle(_differences(x) if _beyond_float64(x) else x)


def _beyond_float64(x) -> bool:
    """Whether there are integers of that type which float64 would round."""
    return x.dtype.kind in "iu" and x.dtype.itemsize > 4


def _differences(x):
    """Integers minus the largest of their row, in float64: subtracted exactly, rounded after it.

    Unsigned, for the difference of two signed ones may be twice as long; it wraps round to what it
    is, since it is not negative.
    """
    wide = x.astype(np.uint64)
    return -((x.max(axis=-1, keepdims=True).astype(np.uint64) - wide).astype(np.float64))


def _delivered(y, out):
    """The result, in `out` where there is one."""
    if out is None or y is out:
        return y
    out[...] = y
    return out


# ---------------------------------------------------------------------------------- on a GPU


def _on_gpu(family: Family, x, axis: int, out, dtype: np.dtype):
    if not x.size:
        return gpu.empty(x, x.shape, dtype) if out is None else out
    cols = x.shape[axis] if x.ndim else 1
    kernel = choice.best(family, x.size // cols, cols) if str(x.dtype) in EXACT else None
    there = out is not None and is_aligned(out) and not overlap(x, out)
    if kernel is None or not (there and is_aligned(x) and all(map(_packed, _rows(axis, x, out)))):
        gpu.refuse_in_capture(family.name, "give it packed float32 rows and out= of their own")
    if not is_aligned(x):
        x = gpu.as_bytes(x).copy(order="C").view(x.dtype)[..., 0]
    y = out if there else gpu.empty(x, x.shape, dtype)
    if kernel is None:
        _by_slabs(family, *_rows(axis, x, y), SLAB["gpu"])
    else:
        _by_kernel(kernel, *_rows(axis, x, y))
    if out is not None and not is_aligned(out):
        gpu.as_bytes(out)[...] = gpu.as_bytes(y)
        return out
    return _delivered(y, out)


def _packed(array) -> bool:
    """Whether a kernel can read or write it as it is."""
    return array.dtype == np.float32 and array.flags.c_contiguous


def _by_kernel(kernel: Kernel, x, y) -> None:
    """Rows along the last axis by a kernel, from and into packed float32."""
    matrix = x.astype(np.float32, copy=False).reshape(-1, x.shape[-1])
    if not matrix.flags.c_contiguous:
        matrix = matrix.copy(order="C")
    result = (y if _packed(y) else gpu.empty(x, x.shape, np.float32)).reshape(matrix.shape)
    for start in range(0, len(matrix), ROWS):
        part = slice(start, start + ROWS)
        gpu.launch(kernel, matrix[part], out=result[part])
    if not _packed(y):
        y[...] = result.reshape(y.shape)
