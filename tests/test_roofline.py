"""The roofline model: edges (public case R05), peaks (R03), rates (R02), one point a level."""

from __future__ import annotations

import math

import numpy as np
import pytest

from softmax_lab import KERNELS, facts, records, roofline
from softmax_lab.counts import ZERO, Counts
from softmax_lab.roofline import Point, attainable, dram_bandwidth, floor_time, points, rate, ridge

PEAK, BANDWIDTH = 67e12, 4.8e12


@pytest.mark.parametrize(
    ("intensity", "bound"),
    [
        (0, 0),
        (math.inf, 67e12),
        (1e-300, 4.8e-288),
        (13.9375, 66.9e12),
        (1e9, 67e12),
        (0.25, 1.2e12),
    ],
)
def test_attainable(intensity, bound):
    assert attainable(intensity, PEAK, BANDWIDTH) == pytest.approx(bound, rel=1e-12)


def test_attainable_keeps_nan_and_takes_arrays():
    assert math.isnan(attainable(math.nan, PEAK, BANDWIDTH))
    found = attainable(np.array([0, 1, np.inf]), PEAK, BANDWIDTH)
    np.testing.assert_allclose(found, [0, 4.8e12, 67e12])


def test_both_roofs_meet_at_the_ridge():
    corner = ridge(PEAK, BANDWIDTH)
    assert attainable(corner, PEAK, BANDWIDTH) == pytest.approx(PEAK)
    assert attainable(corner / 2, PEAK, BANDWIDTH) == pytest.approx(PEAK / 2)
    assert attainable(corner * 2, PEAK, BANDWIDTH) == PEAK


def test_floor_time_is_the_longer_of_the_two():
    assert floor_time(4.8e12, BANDWIDTH) == 1
    assert floor_time(4.8e12, BANDWIDTH, flops=134e12, peak=PEAK) == 2
    assert floor_time(0, BANDWIDTH) == 0


def test_rate():
    assert rate(134_217_728, 0.05e-3) == pytest.approx(2684.35456e9)
    assert rate(0, 1e-6) == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: attainable(-1, PEAK, BANDWIDTH),
        lambda: attainable(1, 0, BANDWIDTH),
        lambda: ridge(PEAK, 0),
        lambda: floor_time(-1, BANDWIDTH),
        lambda: rate(1, 0),
        lambda: rate(1, math.nan),
        lambda: points("a", 1, {"L3": 1}),
    ],
)
def test_nonsense_is_refused(call):
    with pytest.raises(ValueError, match=r"got|allowed"):
        call()


@pytest.mark.parametrize(
    ("clock", "width", "peak"),
    [(3_996_000, 7680, 7672.32e9), (5_005_000, 256, 320.32e9), (7_000_000, 352, 616e9)],
)
def test_peak_bandwidth_from_device_properties(clock, width, peak):
    found = dram_bandwidth({"name": "unlisted", "memoryClockRate": clock, "memoryBusWidth": width})
    assert found == pytest.approx(peak)


@pytest.mark.parametrize(
    "properties",
    [{}, {"name": b"unlisted", "memoryBusWidth": 256}, {"memoryClockRate": 0, "memoryBusWidth": 1}],
)
def test_an_unknown_peak_is_none_not_zero(properties):
    assert dram_bandwidth(properties) is None


@pytest.mark.parametrize("gpu", facts.GPUS.values(), ids=lambda gpu: gpu.slug)
def test_a_listed_gpu_needs_no_clock(gpu):
    assert dram_bandwidth({"name": gpu.name.encode()}) == gpu.dram_bytes_per_s
    assert dram_bandwidth({"name": gpu.name, "memoryClockRate": 1, "memoryBusWidth": 1}) > 1e9


def test_h200_is_within_5_percent_of_its_data_sheet():
    assert dram_bandwidth({"name": "NVIDIA H200"}) == pytest.approx(4.8e12, rel=0.05)


def test_one_point_for_each_known_level():
    counts = Counts(load_sectors=96, store_sectors=32, l2_sectors=64)
    moved = roofline.moved_bytes(counts)
    assert moved == {"L1": 4096, "L2": 2048}
    found = points("k", 1024, moved, seconds=1e-6)
    assert found == (Point("k", "L1", 0.25, 1.024e9), Point("k", "L2", 0.5, 1.024e9))
    assert [each.flaw for each in found] == [None, None]
    assert points("k", 1024, moved)[0].flops_per_s is None
    assert points("k", 1, {"DRAM": 0})[0].intensity == math.inf
    assert roofline.moved_bytes(Counts()) == {}
    assert roofline.moved_bytes(ZERO) == {"L1": 0}


@pytest.mark.parametrize(
    ("intensity", "speed", "flaw"),
    [
        (0, 5e9, "intensity 0"),
        (math.inf, 5e12, "intensity inf"),
        (math.nan, 1, "intensity nan"),
        (2, 0, "performance 0"),
        (2, None, None),
    ],
)
def test_a_point_knows_why_it_cannot_be_drawn(intensity, speed, flaw):
    assert Point("k", "L1", intensity, speed).flaw == flaw


# ------------------------------------------------------------------------------ occupancy


@pytest.mark.parametrize(
    ("launch", "warps", "limited_by"),
    [
        # 32-thread blocks: an sm_90 multiprocessor takes 32 blocks, half of the warps it could hold
        ((90, 32, 29), 32, ("blocks",)),
        ((90, 128, 30), 64, ("warps", "registers")),
        ((90, 1024, 64), 32, ("registers",)),
        ((90, 256, 32, 100 * 1024), 16, ("shared memory",)),
        ((75, 32, 29), 16, ("blocks",)),
        ((89, 1024, 32), 32, ("warps",)),
    ],
)
def test_occupancy(launch, warps, limited_by):
    found = roofline.occupancy(*launch)
    assert (found.warps, found.limited_by) == (warps, limited_by)


@pytest.mark.parametrize(
    ("capability", "most"), [(75, 64), (80, 32), (86, 40), (90, 32), (120, 40)]
)
def test_registers_with_which_all_warps_fit(capability, most):
    assert roofline.registers_for_all(capability) == most
    full, short = (roofline.occupancy(capability, 128, each) for each in (most, most + 1))
    assert full.share == 1 > short.share


def test_l1_hands_over_a_word_from_each_bank():
    assert roofline.l1_bandwidth(132, 1.98e9) == pytest.approx(33.45e12, rel=1e-3)
    with pytest.raises(ValueError, match="clock must be above 0"):
        roofline.l1_bandwidth(132, 0)


def test_a_small_launch_does_not_fill_the_chip():
    found = roofline.occupancy(90, 128, 30, blocks_there_are=512 / 132)
    assert (found.blocks, found.limited_by, found.share) == (4, ("launch",), 0.25)


@pytest.mark.parametrize("name", KERNELS)
def test_no_recorded_occupancy_is_above_the_possible(name):
    """The H200 held at most, and at full launches nearly, the warps that the limits allow."""
    try:
        recorded = records.lookup(name, 65536, 1024, gpu="nvidia-h200")
    except LookupError:
        pytest.skip(f"{name} is not measured yet")
    achieved = recorded.counters["sm__warps_active.avg.pct_of_peak_sustained_active"] / 100
    kernel = KERNELS[name]
    possible = roofline.occupancy(
        90,
        kernel.block,
        int(recorded.counters["launch__registers_per_thread"]),
        int(recorded.counters["launch__shared_mem_per_block"]) - 1024,  # less what the system takes
        blocks_there_are=kernel.geometry(65536)[0] / facts.GPUS["nvidia-h200"].multiprocessors,
    ).share
    assert 0.85 * possible < achieved <= possible


@pytest.mark.parametrize("launch", [(42, 32, 8), (90, 0, 8), (90, 1025, 8), (90, 32, 256)])
def test_impossible_blocks_are_refused(launch):
    with pytest.raises(ValueError, match=r"compute capability|a block has"):
        roofline.occupancy(*launch)


def test_nothing_negative_is_in_flight():
    with pytest.raises(ValueError, match="0 or more"):
        roofline.bytes_in_flight(-1, 1)


def test_littles_law():
    # 4.8 TB/s at 0.6 µs: 2.88 MB must be on their way; 32 warps with one load each on 132
    # multiprocessors have 0.54 MB.
    assert roofline.bytes_needed(4.8e12, 0.6e-6) == pytest.approx(2.88e6)
    assert roofline.bytes_in_flight(32, 1, multiprocessors=132) == 32 * 32 * 4 * 132
