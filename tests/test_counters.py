"""What hardware counters say of how busy a GPU was: by hand, and never more than all of it."""

from __future__ import annotations

import pytest

from softmax_lab import counters, facts, records

H200 = facts.GPUS["nvidia-h200"]
CLOCKS = 1000
SEEN = {
    "sm__cycles_active.avg": CLOCKS,
    "smsp__inst_executed.sum": 132 * 4 * 250,
    f"{counters.OPCODES}.MUFU": 132 * 100,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 132 * 700,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 132 * 100,
    "sm__warps_active.avg.pct_of_peak_sustained_active": 48.2,
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": 47.3,
}


def test_shares_by_hand():
    # A scheduler issued in 250 of 1000 clocks; an exponential of a warp takes two clocks of 16
    # lanes; 800 sectors of 32 bytes are a fifth of 128 bytes a clock.
    busy = counters.busy(SEEN, H200)
    expected = {"warps": 0.482, "issue": 0.25, "special": 0.2, "L1": 0.2, "DRAM": 0.473}
    assert busy == pytest.approx(expected)
    assert tuple(busy) == counters.BUSY


@pytest.mark.parametrize("name", SEEN)
def test_a_missing_counter_leaves_out_what_needs_it(name):
    less = counters.busy({k: v for k, v in SEEN.items() if k != name}, H200)
    assert set(less) < set(counters.BUSY)
    assert all(less[part] == counters.busy(SEEN, H200)[part] for part in less)


def test_no_recorded_launch_is_busier_than_can_be():
    seen = [records.lookup(*key, gpu="nvidia-h200") for key in recorded()]
    assert seen
    for run in seen:
        busy = counters.busy(run.counters, H200)
        idle = {"special"} if run.kernel.startswith("gemv/") else set()  # it has no exponential
        assert set(busy) == set(counters.BUSY) - idle
        assert all(0 < share < 1 for share in busy.values()), (run.kernel, busy)


def recorded() -> list[tuple[str, int, int]]:
    rows = records.table("profile", "nvidia-h200").rows
    return list(dict.fromkeys((row.kernel, row.rows, row.cols) for row in rows))
