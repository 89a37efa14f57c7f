"""Facts that no code of ours decides: sizes of the CUDA machine and data-sheet peaks, with their
source."""

from __future__ import annotations

from dataclasses import dataclass

WARP = 32
"""Lanes of a warp (CUDA C++ Programming Guide, "SIMT Architecture")."""

SECTOR = 32
"""Bytes of a sector, the unit in which global memory moves (CUDA C++ Best Practices Guide,
"Coalesced Access")."""

LINE = 128
"""Bytes of a cache line: four sectors that share a tag."""

BANKS = 32
"""Shared-memory banks, each 4 bytes wide (CUDA C++ Programming Guide, "Shared Memory")."""

GRID, BLOCK = (2**31 - 1, 65535, 65535), (1024, 1024, 64)
"""Most blocks of a grid and threads of a block along x, y and z; a block has 1024 in all (CUDA C++
Programming Guide, "Technical Specifications per Compute Capability")."""

WITHOUT_OPT_IN = 48 * 1024
"""Bytes of dynamic shared memory that any kernel may be launched with; more must be asked for once
(CUDA C++ Programming Guide, "Shared Memory", compute capability 7.x and later)."""

OLDEST_DRIVER = 525
"""NVIDIA's first driver for CUDA 12, which CuPy and NVRTC are of (CUDA Toolkit Release Notes)."""

L1_BYTES_A_CLOCK = 4 * BANKS
"""Bytes that L1 of one multiprocessor hands over in a clock at most: a word from each bank, for it
is one memory with shared memory (CUDA C++ Programming Guide, "Shared Memory")."""

ITEMSIZE = {"float32": 4, "float16": 2, "bfloat16": 2}
"""Bytes of an element, by the names the kernels' `dtypes` use."""


@dataclass(frozen=True)
class Gpu:
    """One GPU's peaks as its maker states them; what a run reached is in the records, never here.

    `dram_bytes_per_s` [B/s], `fp32_flops_per_s` [FLOP/s, FMA = 2, no tensor cores], `l2_bytes` [B].
    """

    name: str
    slug: str
    compute_capability: int
    multiprocessors: int
    dram_bytes_per_s: float
    fp32_flops_per_s: float
    l2_bytes: int
    source: str

    @property
    def arch(self) -> str:
        """The compiler's name of the architecture, such as `sm_90`."""
        return f"sm_{self.compute_capability}"


@dataclass(frozen=True)
class Multiprocessor:
    """What one multiprocessor can hold at a time, and in what portions it deals it out.

    `shared_bytes` [B] of all blocks together; a block also takes `reserved_bytes` [B] for the
    system. Registers go to warps by 256. Each of the `schedulers` issues one instruction of a warp
    in a clock; `special_a_clock` lanes of exponentials and reciprocals begin in one.
    """

    warps: int
    blocks: int
    shared_bytes: int
    reserved_bytes: int = 1024
    registers: int = 65536
    register_portion: int = 256
    shared_portion: int = 128
    schedulers: int = 4
    special_a_clock: int = 16


_KIB = 1 << 10
MULTIPROCESSORS = {
    75: Multiprocessor(32, 16, 64 * _KIB, reserved_bytes=0, shared_portion=256),
    80: Multiprocessor(64, 32, 164 * _KIB),
    86: Multiprocessor(48, 16, 100 * _KIB),
    89: Multiprocessor(48, 24, 100 * _KIB),
    90: Multiprocessor(64, 32, 228 * _KIB),
    100: Multiprocessor(64, 32, 228 * _KIB),
    120: Multiprocessor(48, 24, 100 * _KIB),
}
"""Limits by compute capability (CUDA C++ Programming Guide, "Technical Specifications" and
"Arithmetic Instructions")."""

_MIB = 1 << 20
GPUS = {
    gpu.slug: gpu
    for gpu in (
        Gpu(
            "NVIDIA H200",
            "nvidia-h200",
            90,
            132,
            4.8e12,
            67e12,
            50 * _MIB,
            "NVIDIA H200 data sheet, SXM",
        ),
        Gpu(
            "NVIDIA H100 80GB HBM3",
            "nvidia-h100",
            90,
            132,
            3.35e12,
            67e12,
            50 * _MIB,
            "NVIDIA H100 data sheet, SXM",
        ),
        Gpu(
            "NVIDIA A100-SXM4-80GB",
            "nvidia-a100",
            80,
            108,
            2.039e12,
            19.5e12,
            40 * _MIB,
            "NVIDIA A100 data sheet",
        ),
        Gpu("NVIDIA L4", "nvidia-l4", 89, 58, 300e9, 30.3e12, 48 * _MIB, "NVIDIA L4 data sheet"),
        Gpu("Tesla T4", "tesla-t4", 75, 40, 320e9, 8.1e12, 4 * _MIB, "NVIDIA T4 data sheet"),
        Gpu(
            "NVIDIA GeForce RTX 3070",
            "geforce-rtx-3070",
            86,
            46,
            448e9,
            20.3e12,
            4 * _MIB,
            "NVIDIA GA102 white paper",
        ),
        Gpu(
            "NVIDIA GeForce RTX 4090",
            "geforce-rtx-4090",
            89,
            128,
            1008e9,
            82.6e12,
            72 * _MIB,
            "NVIDIA Ada white paper",
        ),
    )
}
"""Data-sheet peaks by slug. A GPU that is missing here still runs; its roofs are then the measured
ones alone."""


def slug(name: str) -> str:
    """Folder name of a GPU from the name its driver reports: `"NVIDIA H200"` → `"nvidia-h200"`."""
    known = next((gpu.slug for gpu in GPUS.values() if gpu.name == name), None)
    return known or "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def gpu_for(name: str) -> Gpu | None:
    """The data sheet of the GPU that its driver calls `name`, or None where we have none."""
    return GPUS.get(slug(name))
