"""What a caller may hand over: arrays without a mask, element types by any name; and how an error
message shows what it got instead."""

from __future__ import annotations

import reprlib

import numpy as np

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
            "be lost; x.filled(-np.inf) gives masked scores the probability 0"
        )
    return x


def check_array(kernel: str, name: str, array, dtypes: tuple[str, ...]) -> None:
    """Raise TypeError unless `array` is a NumPy or CuPy array of one of `dtypes` and not masked,
    and ValueError unless it is C-contiguous; the message names the kernel and the argument."""
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
