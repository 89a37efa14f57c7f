"""Tables of GEMV say what the ledgers hold, and "not measured yet" where they hold nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from softmax_lab import access, bench, gpu, ledger, probe, profiler, runs
from softmax_lab.counts import Counts
from softmax_lab.records import Measured
from softmax_lab.units import MISSING, number

NAMES = [f"gemv/row_per_{who}" for who in ("thread", "warp", "warp_vec4")]
ABOUT = {"GPU": "NVIDIA H200", "date": "2026-11-30 10:00 UTC"}


def book(name, rows=256, cols=1024, **more):
    """A ledger without records, whatever is recorded by now."""
    made = ledger.ledger(name, rows, cols, counted=False)
    return replace(made, **{"measured": None, "counted": made.executed} | more)


def run(name, rows=256, cols=1024, **more):
    base = {"kernel": name, "dtype": "float32", "rows": rows, "cols": cols, "gpu": "nvidia-h200"}
    base |= {"seconds": 1e-5, "p20": 1e-5, "p80": 1e-5, "copy_seconds": 1e-5}
    return Measured(**(base | {"provenance": ABOUT, "counters_provenance": ABOUT} | more))


def test_loads_by_array():
    table = access.by_array([book(name) for name in NAMES])
    found = {row[:2]: row[4:] for row in table.rows}
    assert found == {
        ("`row_per_thread`", "A"): ("32", "12.5%"),
        ("`row_per_thread`", "x"): ("1", "12.5%"),
        ("`row_per_warp`", "A"): ("4", "100%"),
        ("`row_per_warp`", "x"): ("4", "100%"),
        ("`row_per_warp_vec4`", "A"): ("16", "100%"),
        ("`row_per_warp_vec4`", "x"): ("16", "100%"),
    }


def test_three_ratios_at_three_levels():
    apart, beside = book(NAMES[0]), book(NAMES[1])
    assert access.promise(apart, beside) == {"A": 8, "loads": 33 / 8, "once": 1}
    said = str(access.promised(apart, beside))
    assert "8× fewer sectors" in said
    assert "33 bytes move at L1 for each element of A, then 8" in said
    assert said.endswith("the ratio is 1×.")


def test_patterns_hold_three_columns_or_say_what_is_missing():
    here = book(NAMES[0])
    seen = replace(Counts(), load_sectors=270_337)
    measured = run(NAMES[0], counts=seen, counters={"some": 1})
    table = access.patterns({"a": here, "b": replace(here, measured=measured)})
    assert table.rows[0][2:] == ("32", number(270_336), number(270_336), MISSING)
    assert table.rows[1][2:] == ("32", number(270_336), number(270_336), number(270_337))
    assert "NVIDIA H200, 2026-11-30" in table.note
    assert MISSING in access.patterns({"a": here}).note


def test_alignment_is_counted_and_timed_where_both_are_known():
    def count_at(cols):
        return tuple(ledger.derive(name, 64, cols) for name in NAMES[1:])

    def recorded(cols):
        if cols == 1025:
            return None, run(NAMES[2])
        return run(NAMES[1], 65536, cols), run(NAMES[2], 65536, cols, seconds=5e-6)

    table = access.alignment((1024, 1025, 1026, 1028), 64, count_at, recorded)
    assert [row[1] for row in table.rows] == ["100%", "25%", "50%", "100%"]
    assert table.rows[0][2:] == ("4×", "256", "256", "2×")
    assert table.rows[1][5] == MISSING
    assert f"{number(65536)} rows, NVIDIA H200" in table.note
    none = access.alignment((1024,), 64, count_at, lambda cols: (None, None))
    assert none.note.endswith(f"Faster: {MISSING}.")


def test_rates_are_compared_by_the_bytes_that_each_has_to_move():
    # GEMV reads a matrix, the copy reads and writes one: in the same time it has half the rate.
    once = 4 * (256 * 1024 + 256 + 1024) / (8 * 256 * 1024)
    assert runs.share_of_copy(run(NAMES[0])) == pytest.approx(once)
    assert runs.share_of_copy(run("naive")) == 1
    assert runs.share_of_copy(run(NAMES[0], copy_seconds=None)) is None
    table = access.useful_rates({"a": [run(NAMES[0]), None], "b": [None, None]})
    assert [row[1:] for row in table.rows] == [("50.2%", MISSING)]
    assert MISSING in str(access.useful_rates({"a": [None]}))
    said = str(runs.against_copy(run(NAMES[0])))
    assert "50.2% of the copy's rate" in said
    assert "slower" not in said
    assert runs.times([run(NAMES[0])]).rows[0][4] == "50.2%"


def test_a_line_of_the_benchmark_knows_its_family():
    timing = bench._timings(
        {NAMES[0]: [1e-5], "copy 1": [1e-5]},
        gpu.fitting([NAMES[0]], "float32", 90),
        ("run", "float32", 256, 1024),
        ("graph", "DRAM", 1),
    )
    assert bench.table(timing).splitlines()[1].split()[-1] == "0.502"


def test_each_family_has_its_shapes():
    kernels = gpu.by_family(gpu.fitting(None, "float32", 90))
    for shapes in (bench.SHAPES_OF, profiler.SHAPES_OF):
        assert set(shapes) == set(kernels)
        assert all(len(set(each)) == len(each) for each in shapes.values())
    assert [kernel.name for kernel in kernels["gemv"]] == NAMES
    assert set(profiler.SHAPES_OF["gemv"]) <= set(bench.SHAPES_OF["gemv"])


def test_one_load_of_a_is_derived_and_counted_by_itself():
    apart, four = book("gemv/row_per_thread"), book("gemv/row_per_warp_vec4")
    assert access.per_load(apart, probe.strided(1024)) == {"derived": 32, "counted": 32}
    assert access.per_load(four, probe.strided(1, size=16)) == {"derived": 16, "counted": 16}
    assert access.per_load(apart, Counts(load_sectors=12, load_requests=2))["counted"] == 6
