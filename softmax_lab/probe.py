"""One load of one warp, executed on the emulator for a stride, an offset and an element size."""

from __future__ import annotations

import numpy as np

from softmax_lab import emulator
from softmax_lab.counts import Counts
from softmax_lab.facts import WARP
from softmax_lab.registry import kernel_folder

ELEMENTS = {2: "__half", 4: "float", 8: "float2", 16: "float4"}
"""The element type that a lane reads, by its bytes."""


def path():
    """The CUDA source of the load; it belongs to no family, for it computes nothing."""
    return kernel_folder() / "probe" / "strided.cu"


def strided(stride: int, offset: int = 0, size: int = 4) -> Counts:
    """Counts of 32 lanes that read `size` bytes each, lane l element `offset + l · stride`.

    Raises ValueError for a size without an element type and for a negative stride or offset.
    """
    if size not in ELEMENTS:
        raise ValueError(f"an element has {', '.join(map(str, ELEMENTS))} bytes, got {size}")
    if stride < 0 or offset < 0:
        raise ValueError(f"stride and offset are 0 or more, got {stride} and {offset}")
    count = offset + (WARP - 1) * stride + 1
    words = -(-count * size // 4)
    run = emulator.launch(
        emulator.Source.read(path()),
        1,
        WARP,
        (np.zeros(words, np.float32), emulator.Out((WARP * size // 4,)), stride, offset),
        kernel="strided",
        defines=(f"ELEMENT={ELEMENTS[size]}",),
    )
    if run.faults:
        raise RuntimeError("; ".join(map(str, run.faults)))
    return run.counts
