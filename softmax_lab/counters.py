"""Hardware counters by their Nsight Compute names, and what they say in the terms of `Counts`."""

from __future__ import annotations

from collections.abc import Mapping

from softmax_lab.counts import Counts
from softmax_lab.facts import WARP

OPCODES = "sass__inst_executed_per_opcode"
"""Warp instructions executed, in all and by opcode; a record calls one opcode's share `….SHFL`."""

METRICS = (
    "gpu__time_duration.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
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


def _whole(value: float) -> float:
    return int(value) if value == int(value) else value
