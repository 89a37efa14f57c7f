"""The least time: the line through two copies, the table of bounds, five rates of one time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from softmax_lab import clock_plots, facts, floors, ledger, roofline
from softmax_lab.counts import Counts
from softmax_lab.records import Measured
from softmax_lab.series import COPY, LARGE, SIZES, Readings, Series
from softmax_lab.units import MISSING

SHAPES = [(64, 16), (1024, 1024), (4096, 65536)]
START, BANDWIDTH = 2e-6, 4e12


def copied(rows, cols, off=1.0) -> Measured:
    seconds = off * (START + 8 * rows * cols / BANDWIDTH)
    about = {"GPU": "NVIDIA H200", "date": "2026-12-01 10:00 UTC"}
    run = Measured("naive", "float32", rows, cols, "nvidia-h200", seconds=9.0, level="DRAM")
    return replace(run, copy_seconds=seconds, provenance=about)


RUNS = [copied(*SHAPES[2]), None, copied(*SHAPES[1], off=1.25), copied(*SHAPES[0])]


def test_two_runs_make_a_line():
    line = roofline.line((10.0, 3.0), (50.0, 7.0))
    assert (line.start, line.bandwidth, line.half) == (2.0, 10.0, 20.0)
    assert line.time(10.0) == 3.0
    for small, large in (((10, 3), (10, 4)), ((10, 3), (50, 3)), ((50, 7), (10, 3))):
        with pytest.raises(ValueError, match="small and a large run"):
            roofline.line(small, large)


def test_the_line_is_found_from_the_ends_and_judged_by_the_middle():
    line = floors.line(RUNS)
    assert (line.start, line.bandwidth) == pytest.approx((START, BANDWIDTH))
    said = str(floors.two_numbers(RUNS))
    assert "2\u202fµs" in said
    assert "4\u202fTB/s" in said
    assert "other 1 copies are within 20%" in said  # 1 against 1.25
    assert "8\u202fMB" in said


def test_bounds_by_shape():
    table = floors.table(RUNS)
    peak = facts.GPUS["nvidia-h200"].dram_bytes_per_s
    assert [row[0].replace("\xa0", " ") for row in table.rows] == [
        "64 × 16",
        "1\u202f024 × 1\u202f024",
        "4\u202f096 × 65\u202f536",
    ]
    least = 1e6 * 8 * 4096 * 65536 / peak
    assert table.rows[-1][2] == f"{least:.0f}"
    assert "4.8\u202fTB/s" in table.note
    assert "2026-12-01" in table.note
    said = str(floors.bound(copied(*SHAPES[2])))
    assert f"{least:.0f}\u202fµs" in said


def test_what_nobody_recorded_says_so():
    for runs in ([], [None], RUNS[:1]):
        for view in (floors.two_numbers, floors.table, clock_plots.copies):
            assert MISSING in str(view(runs))
    assert MISSING in str(floors.bound(None))
    book = ledger.ledger("naive", 64, 16, counted=False)
    assert MISSING in str(floors.rates(replace(book, measured=None)))


def test_arithmetic_is_held_against_bytes():
    h200 = facts.GPUS["nvidia-h200"]
    share = (4 / h200.fp32_flops_per_s) / (8 / h200.dram_bytes_per_s)
    assert f"{100 * share:.2f}%" in str(floors.arithmetic(65536, 1024, 4))


def test_one_time_makes_five_rates_and_an_unknown_level_is_no_rate():
    book = ledger.ledger("naive", 64, 16, counted=False)
    run = replace(copied(64, 16), seconds=1e-6, counts=Counts(dram_bytes=4096))
    table = floors.rates(replace(book, measured=run))
    rates = {row[0]: row[2] for row in table.rows}
    assert rates["useful: read once, written once"] == "8.19"
    assert rates["asked for"] == "16.4"
    assert rates["moved at L1"] == "131"  # a sector for every element that a lane asks for
    assert rates["moved at L2"] == MISSING
    assert rates["moved at DRAM"] == "4.1"


def test_the_chart_of_copies_speaks_its_points():
    chart = clock_plots.copies(RUNS)
    assert "2.15\u202fGB" in chart.alt
    assert "NVIDIA H200, 2026-12-01" in chart.note


def test_the_least_time_is_derived_from_the_sheet_and_measured_as_the_copy():
    found = floors.least(RUNS[0])
    moved = 8 * SHAPES[2][0] * SHAPES[2][1]
    peak = facts.GPUS["nvidia-h200"].dram_bytes_per_s
    assert found["derived"] == pytest.approx(1e6 * moved / peak)
    assert found["measured"] == 1e6 * RUNS[0].copy_seconds
    for run in (None, replace(RUNS[0], copy_seconds=None)):
        assert set(floors.least(run).values()) == {None}


def test_the_times_of_one_copy_are_told_apart():
    def one(clock, seconds, launches=1):
        return Series(COPY, *LARGE, clock, 1, launches, (9.0, 9.0, seconds))

    clocks = {"wait": 170e-6, "events": 160e-6, "graph": 150e-6}
    alone = [one(clock, seconds) for clock, seconds in clocks.items()]
    readings = Readings("nvidia-h200", (*alone, one("graph", 8 * 145e-6, 8)))
    beside = replace(copied(*LARGE), copy_seconds=130e-6)
    best = replace(copied(*SHAPES[2]), copy_seconds=4e-4)
    said = str(floors.several_times(readings, [beside, None, best]))
    for words in ("170\u202fµs to a host", "160\u202fµs between", "150\u202fµs as the only launch"):
        assert words in said
    assert "As one of 8 in a graph it is 145\u202fµs" in said
    assert "that of 4\u202f096 × 65\u202f536, it would be 100\u202fµs. That is reckoned" in said
    never = Readings("nvidia-h200", tuple(alone))
    for lacking in ((None, [beside]), (never, [beside, best]), (readings, [best]), (readings, [])):
        assert MISSING in str(floors.several_times(*lacking))


def sized(vectors: int, pairs: int, start: float, bandwidth: float) -> list[Series]:
    """Copies of every size that are on one line."""
    out = []
    for shape in SIZES:
        each = start + 8 * shape[0] * shape[1] / bandwidth
        out.append(Series(COPY, *shape, "graph", pairs, 1, (9.0, 9.0, each), vectors))
    return out


PLACES = (*sized(1, 1, 1e-6, 4e12), *sized(1, 9, 2e-6, 4e12), *sized(4, 1, 1e-6, 8e12))


def test_a_cache_shortens_the_start_or_raises_the_rate():
    far = sized(4, 9, 2e-6, 4e12)
    readings = Readings("nvidia-h200", (*PLACES, *far))
    table = floors.two_places(readings)
    assert [row[:2] for row in table.rows] == [
        ("L2", "1"),
        ("DRAM", "1"),
        ("L2", "4"),
        ("DRAM", "4"),
    ]
    assert [row[-2:] for row in table.rows] == [("1", "4"), ("2", "4"), ("1", "8"), ("2", "4")]
    said = str(floors.what_a_cache_saves(readings))
    assert (
        "starts 1\u202fµs sooner" in said and "at 1× its rate. With 4 it moves them at 2×" in said
    )
    bent = replace(far[1], seconds=(9.0, 9.0, 1.25 * far[1].each))
    said = str(
        floors.what_a_cache_saves(Readings("nvidia-h200", (*PLACES, far[0], bent, *far[2:])))
    )
    assert "within 20% of what was timed" in said


def test_places_that_nobody_timed_say_so():
    for readings in (None, Readings("nvidia-h200", PLACES), Readings("nvidia-h200", ())):
        for view in (floors.two_places, floors.what_a_cache_saves):
            assert MISSING in str(view(readings))
