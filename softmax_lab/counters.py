"""Hardware counters by their Nsight Compute names, and what they say in the terms of `Counts`."""

from __future__ import annotations

from collections.abc import Mapping

from softmax_lab.counts import Counts
from softmax_lab.facts import L1_BYTES_A_CLOCK, MULTIPROCESSORS, SECTOR, WARP, Gpu

OPCODES = "sass__inst_executed_per_opcode"
"""Warp instructions executed, in all and by opcode; a record calls one opcode's share `….SHFL`."""

LOCAL_SECTORS = (
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
)
"""Sectors of local memory, where values live that found no register."""

STALLS = {
    "long_scoreboard": "an answer of L1, L2 or DRAM",
    "lg_throttle": "room in the queue of loads and stores",
    "short_scoreboard": "an exponential, a shuffle or shared memory",
    "wait": "the fixed time of its last instruction",
    "math_pipe_throttle": "an arithmetic unit",
    "barrier": "a barrier",
}
"""What a warp may wait for, by Nsight Compute's name of the reason; there are more reasons."""

WAITING = {
    reason: f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
    for reason in STALLS
}
"""Warps that wait for a reason, on average over the clocks in which a scheduler issues: clocks that
a warp waits for it between two of its instructions."""

ISSUING = "smsp__issue_active.avg.pct_of_peak_sustained_active"
L1_BUSY = "l1tex__throughput.avg.pct_of_peak_sustained_active"
L2_BUSY = "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts.sum"
BETWEEN_HALVES = "lts__t_sectors_srcunit_ltcfabric.sum"

OPTIONAL = (
    *WAITING.values(),
    ISSUING,
    L1_BUSY,
    L2_BUSY,
    WAVEFRONTS,
    BETWEEN_HALVES,
    "launch__shared_mem_per_block_static",
    "launch__shared_mem_per_block_dynamic",
)
"""What the profiler asks for as well: records from before lack them, and a profile that fails with
them is made without."""

METRICS = (
    "gpu__time_duration.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    *LOCAL_SECTORS,
    "l1tex__t_sector_hit_rate.pct",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "lts__t_sectors_op_read.sum",
    "lts__t_sectors_op_write.sum",
    "lts__t_sectors_srcunit_tex_op_read.sum",
    "lts__t_sectors_srcunit_tex_op_write.sum",
    "lts__t_sector_hit_rate.pct",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "smsp__inst_executed.sum",
    "smsp__inst_executed_pipe_xu.sum",
    "smsp__thread_inst_executed_per_inst_executed.ratio",
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum",
    "smsp__sass_branch_targets_threads_divergent.sum",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm__cycles_active.avg",
    "launch__registers_per_thread",
    "launch__shared_mem_per_block",
    "launch__grid_size",
    "launch__block_size",
    "launch__waves_per_multiprocessor",
    OPCODES,
)
"""What the profiler asks for. A chip that lacks one loses that one alone."""

COUNTED = {
    "load_requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",),
    "load_sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",),
    "store_requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",),
    "store_sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",),
    "l2_sectors": ("lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum"),
    "dram_bytes": ("dram__bytes_read.sum", "dram__bytes_write.sum"),
    "shared_wavefronts": (
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    ),
}
"""Fields of `Counts` that are sums of counters.

Shared wavefronts are those of loads and stores: the pipe's total has one more for every warp that
starts (seen on an H200 with a kernel that has no shared memory).

Arithmetic is not among them: an expf or a division expands to several instructions, and a branch
instruction is not an `if` statement.
"""


def counts(counters: Mapping[str, float], block: int) -> Counts:
    """`Counts` of one launch with `block` threads a block; a field that lacks a counter is None.

    Shuffles, shared requests and barriers come from the opcode table: warp instructions SHFL, LDS
    and STS, and BAR over the warps of a block.
    """
    known = {
        field: sum(counters[name] for name in names)
        for field, names in COUNTED.items()
        if all(name in counters for name in names)
    }
    if any(name.startswith(f"{OPCODES}.") for name in counters):

        def executed(opcode: str) -> float:
            return counters.get(f"{OPCODES}.{opcode}", 0)

        warps = -(-block // WARP)
        known["shuffles"] = executed("SHFL")
        known["shared_requests"] = executed("LDS") + executed("STS")
        known["barriers"] = _whole(executed("BAR") / warps)
    return Counts(**known)


def warp_clocks(counters: Mapping[str, float], gpu: Gpu) -> float | None:
    """Clocks from one instruction of a warp to its next, on average over all warps that were there;
    None where a counter is missing."""
    names = (
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "sm__cycles_active.avg",
        "smsp__inst_executed.sum",
    )
    if not all(counters.get(name) for name in names):
        return None
    share, clocks, executed = (counters[name] for name in names)
    places = MULTIPROCESSORS[gpu.compute_capability].warps
    return share / 100 * places * clocks * gpu.multiprocessors / executed


def waited(counters: Mapping[str, float], gpu: Gpu) -> dict[str, float]:
    """Shares (0 to 1) of a warp's time from one instruction to its next that it waits for each of
    STALLS. Empty where a counter is missing."""
    whole = warp_clocks(counters, gpu)
    if whole is None or not all(name in counters for name in WAITING.values()):
        return {}
    return {reason: counters[name] / whole for reason, name in WAITING.items()}


def waited_for_memory(counters: Mapping[str, float], gpu: Gpu) -> float | None:
    """Clocks that all warps of a launch together waited for an answer of L1, L2 or DRAM; None where
    a counter is missing."""
    if not (shares := waited(counters, gpu)):
        return None
    each = shares["long_scoreboard"] * warp_clocks(counters, gpu)
    return each * counters["smsp__inst_executed.sum"]


BUSY = ("warps", "issue", "special", "L1", "DRAM")
"""Parts of a GPU whose work the counters tell."""


def requests(counters: Mapping[str, float]) -> float | None:
    """Requests of one launch to global memory, or None where they were not counted."""
    names = (*COUNTED["load_requests"], *COUNTED["store_requests"])
    if not all(name in counters for name in names):
        return None
    return sum(counters[name] for name in names)


def wavefronts_of_a_request(counters: Mapping[str, float]) -> float | None:
    """Wavefronts that L1 needed for one request, on average, or None where either is unknown."""
    asked = requests(counters)
    return counters[WAVEFRONTS] / asked if asked and WAVEFRONTS in counters else None


def busy(counters: Mapping[str, float], gpu: Gpu) -> dict[str, float]:
    """Shares (0 to 1) of their time or places that the parts BUSY of `gpu` used in one launch.

    All but `DRAM` are of the multiprocessors that had work, while they had it: `warps` of the
    places for warps, `issue` of the clocks in which a scheduler may issue an instruction, `special`
    of the special-function units' time, `L1` of the bytes it can hand over. Raises nothing: a part
    whose counters are missing is left out.
    """
    chip, found = MULTIPROCESSORS[gpu.compute_capability], {}
    clocks = gpu.multiprocessors * counters.get("sm__cycles_active.avg", 0)
    sectors = (*COUNTED["load_sectors"], *COUNTED["store_sectors"])
    clocks_each = {
        "issue": (1 / chip.schedulers, ("smsp__inst_executed.sum",)),
        "special": (WARP / chip.special_a_clock, (f"{OPCODES}.MUFU",)),
        "L1": (SECTOR / L1_BYTES_A_CLOCK, sectors),
    }
    for part, (each, names) in clocks_each.items():
        if clocks and all(name in counters for name in names):
            found[part] = each * sum(counters[name] for name in names) / clocks
    in_percent = {
        "warps": "sm__warps_active.avg.pct_of_peak_sustained_active",
        "DRAM": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    }
    found |= {part: counters[name] / 100 for part, name in in_percent.items() if name in counters}
    return {part: found[part] for part in BUSY if part in found}


def _whole(value: float) -> float:
    return int(value) if value == int(value) else value
