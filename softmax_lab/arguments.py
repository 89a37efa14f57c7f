"""What a caller may hand over: arrays without a mask, in one memory, element types by any name; and
how an error message shows what it got instead."""

from __future__ import annotations

import reprlib
import sys

import numpy as np
from numpy.lib.stride_tricks import as_strided

from softmax_lab.facts import ITEMSIZE


def told(value) -> str:
    """`value` as an error message shows it: an array by its shape alone, all else cut short."""
    if getattr(value, "shape", ()):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    return " ".join(reprlib.repr(value).split())


def dtype_name(dtype) -> str | None:
    """`"float32"` for `"float32"`, `"f4"`, `np.float32` or an array's dtype; None for what is no
    element type."""
    if dtype is None or (isinstance(dtype, str) and dtype in ITEMSIZE):
        return dtype  # NumPy by itself knows no bfloat16, and takes None for float64
    try:
        return str(np.dtype(dtype))
    except (TypeError, ValueError, SyntaxError):
        return None


def without_mask(name: str, x):
    """x itself. Raises TypeError for a masked array, whose mask NumPy would drop without a word."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(
            f"{name} must be a plain array, got a masked one of shape {x.shape}: its mask would "
            "be lost; its filled(-np.inf) would do for scores, its data for a place to write to"
        )
    return x


def is_cupy(x) -> bool:
    """Whether x is a CuPy array. Imports nothing: who has one has imported CuPy."""
    return isinstance(x, getattr(sys.modules.get("cupy"), "ndarray", ()))


def address(array) -> int:
    """Where the first element of a NumPy or CuPy array lies [B]."""
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr


def place(array) -> str:
    """The memory that a NumPy or CuPy array lies in, in words."""
    return "the host (NumPy)" if isinstance(array, np.ndarray) else f"GPU {array.device.id}"


def in_one_memory(who: str, named: dict) -> None:
    """Raise ValueError, from `who`, naming all places unless the arrays, given by name, are in one
    memory."""
    places = {name: place(array) for name, array in named.items()}
    if len(set(places.values())) > 1:
        where = ", ".join(f"{name} on {there}" for name, there in places.items())
        raise ValueError(f"{who}: arrays must be in one memory, got {where}")


def is_aligned(array) -> bool:
    """Whether every element starts at a multiple of its size."""
    return not any(step % array.itemsize for step in (address(array), *array.strides))


def overlap(a, b) -> bool:
    """Whether two arrays of one memory reach into each other, judged by their first and last bytes:
    true for interleaved views as well."""
    (first, after), (start, end) = reach(a), reach(b)
    return first < end and start < after


def reach(array) -> tuple[int, int]:
    """The first byte of any element and the one after the last; equal for an empty array."""
    start = address(array)
    if not array.size:
        return start, start
    steps = [step * (size - 1) for size, step in zip(array.shape, array.strides, strict=True)]
    low = start + sum(step for step in steps if step < 0)
    return low, start + sum(step for step in steps if step > 0) + array.itemsize


def overlaps_itself(array) -> bool:
    """Whether two elements share a byte, as in windows or broadcasts that may be written.

    Exact, from shape and strides alone; layouts with so many axes that NumPy gives up count as
    overlapping.
    """
    axes = [(abs(s), n) for n, s in zip(array.shape, array.strides, strict=True) if n > 1]
    extent = array.itemsize
    apart = []
    for step, size in sorted(axes):
        apart.append(step >= extent)
        extent += step * (size - 1)
    if not array.size or all(apart):  # each axis steps over all that the smaller steps reach
        return False
    # Two elements differ first along some axis; by how much they do is all that matters, so that
    # one may be taken from place 0. Addresses are compared, and nothing is read.
    steps, sizes = zip(*axes, strict=True)
    view = as_strided(np.empty(1, f"V{array.itemsize}"), sizes, steps)
    try:
        for _ in sizes:
            if np.shares_memory(view[:1], view[1:], max_work=2**20):
                return True
            view = view[0]
    except np.exceptions.TooHardError:
        return True
    return False


def can_hold(who: str, out, shape: tuple[int, ...]) -> None:
    """Raise ValueError, from `who`, unless `out` has the shape of the result and a place of its own
    for each element, which may be written (CuPy's broadcast views do not say that they may not)."""
    if out.shape != shape:
        raise ValueError(f"{who}: out must have the shape of the result, {shape}; got {out.shape}")
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise ValueError(f"{who}: out must be writable, got a read-only array")
    if overlaps_itself(out):
        got = f"got strides {out.strides} for shape {out.shape}"
        raise ValueError(f"{who}: out must not repeat elements, {got}: some share a place")


def check_array(kernel: str, name: str, array, dtypes: tuple[str, ...]) -> None:
    """Raise TypeError unless `array` is a NumPy or CuPy array of one of `dtypes` and not masked,
    and ValueError unless it is C-contiguous and aligned; the message names kernel and argument."""
    without_mask(f"{kernel}: {name}", array)
    if not hasattr(array, "dtype") or not hasattr(array, "flags"):
        got = type(array).__name__
        raise TypeError(f"{kernel}: {name} must be a NumPy or CuPy array, got {got}")
    if str(array.dtype) not in dtypes:
        raise TypeError(f"{kernel}: {name} must be {' or '.join(dtypes)}, got {array.dtype}")
    if not array.flags.c_contiguous:
        raise ValueError(
            f"{kernel}: {name} must be C-contiguous, got strides {array.strides} for shape "
            f"{array.shape}; np/cp.ascontiguousarray makes a copy"
        )
    if array.size and not is_aligned(array):
        raise ValueError(f"{kernel}: {name} must start at a multiple of {array.itemsize} bytes")
