"""The roofline: what a machine can attain at an intensity, and how long a job must take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from softmax_lab.counts import Counts
from softmax_lab.facts import L1_BYTES_A_CLOCK, MULTIPROCESSORS, SECTOR, WARP, gpu_for

LEVELS = ("L1", "L2", "DRAM")  # from the multiprocessor outwards


def attainable(intensity: Any, peak: float, bandwidth: float) -> Any:
    """Upper bound on performance [FLOP/s] at `intensity` [FLOP/B]; number or array.

    `peak` [FLOP/s], `bandwidth` [B/s]. 0 gives 0, infinity gives the peak, NaN stays NaN. Raises
    ValueError for a rate that is not above 0 or an intensity below it.
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
    """Intensity [FLOP/B] from which `peak` [FLOP/s] limits and `bandwidth` [B/s] does not.

    Raises ValueError unless both are above 0.
    """
    _positive(peak=peak, bandwidth=bandwidth)
    return peak / bandwidth


def floor_time(moved: float, bandwidth: float, flops: float = 0, peak: float = math.inf) -> float:
    """Least time [s] to move `moved` [B] at `bandwidth` [B/s] and to do `flops` [FLOP] at `peak`
    [FLOP/s], the two perfectly overlapped.

    Raises ValueError for a rate that is not above 0 or an amount below it.
    """
    _positive(peak=peak, bandwidth=bandwidth)
    if moved < 0 or flops < 0:
        raise ValueError(f"bytes and FLOPs are 0 or more, got {moved} and {flops}")
    return max(moved / bandwidth, flops / peak)


@dataclass(frozen=True)
class Line:
    """A launch that moves bytes, as two numbers: it takes `start` [s] whatever it moves, and goes
    on at `bandwidth` [B/s]."""

    start: float
    bandwidth: float

    def time(self, moved: float) -> float:
        """Time [s] of a launch that moves so many bytes [B]."""
        return self.start + moved / self.bandwidth

    @property
    def half(self) -> float:
        """Bytes [B] that take as long to move as the launch takes to start: half the bandwidth."""
        return self.start * self.bandwidth


def line(small: tuple[float, float], large: tuple[float, float]) -> Line:
    """The `Line` through two runs, each (bytes [B], time [s]).

    Raises ValueError where the larger one is not the slower one.
    """
    (less, soon), (more, late) = small, large
    if not (less < more and soon < late):
        raise ValueError(f"a line needs a small and a large run, got {small} and {large}")
    bandwidth = (more - less) / (late - soon)
    return Line(soon - less / bandwidth, bandwidth)


@dataclass(frozen=True)
class Occupancy:
    """Warps that a multiprocessor holds at a time, of how many, and what keeps it from more.

    `limits` gives the blocks that each resource alone would allow; `limited_by` names those that
    allow the fewest.
    """

    blocks: int
    warps: int
    most_warps: int
    limits: Mapping[str, int]

    @property
    def share(self) -> float:
        """Resident warps over the most there can be; 1 is full."""
        return self.warps / self.most_warps

    @property
    def limited_by(self) -> tuple[str, ...]:
        """The resources that run out first."""
        return tuple(name for name, blocks in self.limits.items() if blocks == self.blocks)


def occupancy(
    compute_capability: int,
    threads: int,
    registers: int,
    shared_bytes: int = 0,
    blocks_there_are: float = math.inf,
) -> Occupancy:
    """Blocks of `threads` threads, `registers` a thread and `shared_bytes` [B] that fit on one
    multiprocessor at a time; `blocks_there_are` is the launch's share of it, if that is fewer.

    Raises ValueError for an unknown compute capability or a block that no launch may have.
    """
    if compute_capability not in MULTIPROCESSORS:
        known = ", ".join(map(str, MULTIPROCESSORS))
        raise ValueError(f"compute capability is one of {known}, got {compute_capability}")
    if not 1 <= threads <= 1024 or not 0 <= registers <= 255 or shared_bytes < 0:
        raise ValueError(
            "a block has 1 to 1024 threads of up to 255 registers and no negative shared memory, "
            f"got {threads}, {registers}, {shared_bytes}"
        )
    chip = MULTIPROCESSORS[compute_capability]
    warps = -(-threads // WARP)
    of_a_warp = _portions(registers * WARP, chip.register_portion)
    of_a_block = _portions(shared_bytes + chip.reserved_bytes, chip.shared_portion)
    limits = {"warps": chip.warps // warps, "blocks": chip.blocks}
    if of_a_warp:
        limits["registers"] = chip.registers // of_a_warp // warps
    if of_a_block:
        limits["shared memory"] = chip.shared_bytes // of_a_block
    if blocks_there_are < min(limits.values()):
        limits["launch"] = math.ceil(blocks_there_are)
    fit = min(limits.values())
    return Occupancy(fit, fit * warps, chip.warps, limits)


def registers_for_all(compute_capability: int) -> int:
    """Most registers of a thread with which all of a multiprocessor's places for warps can be
    taken."""
    chip = MULTIPROCESSORS[compute_capability]
    of_a_warp = chip.registers // chip.warps
    return of_a_warp // chip.register_portion * chip.register_portion // WARP


def l1_bandwidth(multiprocessors: int, clock: float) -> float:
    """Bytes a second [B/s] that the L1 caches hand over together at most, at `clock` [Hz]."""
    _positive(multiprocessors=multiprocessors, clock=clock)
    return L1_BYTES_A_CLOCK * multiprocessors * clock


def bytes_in_flight(warps: int, loads: int, size: int = 4, multiprocessors: int = 1) -> int:
    """Bytes asked for and not yet there [B] when every lane of `warps` warps on each of
    `multiprocessors` waits for `loads` independent loads of `size` bytes."""
    if min(warps, loads, size, multiprocessors) < 0:
        raise ValueError(
            "warps, loads, size and multiprocessors are 0 or more, got "
            f"{warps}, {loads}, {size}, {multiprocessors}"
        )
    return warps * WARP * loads * size * multiprocessors


def bytes_needed(bandwidth: float, latency: float) -> float:
    """Bytes [B] in flight that sustain `bandwidth` [B/s] at `latency` [s]: Little's law."""
    _positive(bandwidth=bandwidth, latency=latency)
    return bandwidth * latency


def _portions(amount: int, portion: int) -> int:
    return -(-amount // portion) * portion


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
