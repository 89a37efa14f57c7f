"""The roofline: what a machine can attain at an intensity, and how long a job must take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from softmax_lab.counts import Counts
from softmax_lab.facts import SECTOR, gpu_for

LEVELS = ("L1", "L2", "DRAM")  # from the multiprocessor outwards


def attainable(intensity: Any, peak: float, bandwidth: float) -> Any:
    """Upper bound on performance [FLOP/s] at `intensity` [FLOP/B]; number or array.

    `peak` [FLOP/s], `bandwidth` [B/s]. 0 gives 0, infinity gives the peak, NaN stays NaN.
    Source: Williams, Waterman and Patterson 2009.
    """
    _positive(peak=peak, bandwidth=bandwidth)
    intensity = np.asarray(intensity, dtype=np.float64)
    if np.any(intensity < 0):
        raise ValueError(f"an intensity is 0 FLOP/B or more, got {intensity.min()}")
    with np.errstate(over="ignore"):
        bound = np.minimum(peak, intensity * bandwidth)
    return float(bound) if bound.ndim == 0 else bound


def ridge(peak: float, bandwidth: float) -> float:
    """Intensity [FLOP/B] from which `peak` [FLOP/s] limits and `bandwidth` [B/s] does not."""
    _positive(peak=peak, bandwidth=bandwidth)
    return peak / bandwidth


def floor_time(moved: float, bandwidth: float, flops: float = 0, peak: float = math.inf) -> float:
    """Least time [s] to move `moved` [B] and to do `flops`, the two perfectly overlapped."""
    _positive(peak=peak, bandwidth=bandwidth)
    if moved < 0 or flops < 0:
        raise ValueError(f"bytes and FLOPs are 0 or more, got {moved} and {flops}")
    return max(moved / bandwidth, flops / peak)


def rate(amount: float, seconds: float) -> float:
    """`amount` per second: bytes give [B/s], FLOPs give [FLOP/s]."""
    if not seconds > 0:
        raise ValueError(f"a rate needs a time above 0 s, got {seconds}")
    return amount / seconds


def dram_bandwidth(properties: Mapping[str, Any]) -> float | None:
    """Peak DRAM bandwidth [B/s] of a GPU from its device properties; None = unknown.

    A GPU of our table is looked up by name. Else `memoryClockRate` [kHz] and `memoryBusWidth`
    [bit] decide, at two transfers a clock; CUDA 13 no longer fills in the clock.
    """
    name = properties.get("name", "")
    known = gpu_for(name.decode() if isinstance(name, bytes) else name) if name else None
    if known is not None:
        return known.dram_bytes_per_s
    clock = properties.get("memoryClockRate") or 0
    width = properties.get("memoryBusWidth") or 0
    return 2 * clock * 1e3 * width / 8 or None


@dataclass(frozen=True)
class Point:
    """One kernel at one level of the memory: intensity [FLOP/B], performance [FLOP/s] if timed."""

    label: str
    level: str
    intensity: float
    flops_per_s: float | None = None

    @property
    def flaw(self) -> str | None:
        """Why a log-log chart cannot show this point, or None."""
        for name, value in (("intensity", self.intensity), ("performance", self.flops_per_s)):
            if value is not None and not (math.isfinite(value) and value > 0):
                return f"{name} {value:g}"
        return None


def moved_bytes(counts: Counts) -> dict[str, float]:
    """Bytes that crossed each level, for the levels `counts` knows."""
    moved: dict[str, float] = {}
    if counts.load_sectors is not None and counts.store_sectors is not None:
        moved["L1"] = SECTOR * (counts.load_sectors + counts.store_sectors)
    if counts.l2_sectors is not None:
        moved["L2"] = SECTOR * counts.l2_sectors
    if counts.dram_bytes is not None:
        moved["DRAM"] = counts.dram_bytes
    return moved


def points(
    label: str, flops: float, moved: Mapping[str, float], seconds: float | None = None
) -> tuple[Point, ...]:
    """One `Point` for each level in `moved` [B]; without a time [s] they have no performance."""
    performance = None if seconds is None else rate(flops, seconds)
    unknown = set(moved) - set(LEVELS)
    if unknown:
        raise ValueError(f"unknown levels {sorted(unknown)}; allowed: {', '.join(LEVELS)}")
    return tuple(
        Point(label, level, flops / moved[level] if moved[level] else math.inf, performance)
        for level in LEVELS
        if level in moved
    )


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{name} must be above 0, got {value}")
