"""Readings in words: each number is the series', a verdict follows the data, nothing is made up."""

from __future__ import annotations

import statistics
from dataclasses import replace

import pytest

from softmax_lab import clock_frames, clock_plots, overhead
from softmax_lab.series import CLOCKS, COPY, EMPTY, LARGE, MIDDLE, SMALL, Readings, Series
from softmax_lab.units import MISSING, number

WORDS = [
    overhead.clocks,
    overhead.asynchronous,
    overhead.nothing,
    overhead.first,
    overhead.stragglers,
    overhead.lengths,
    overhead.rotation,
    clock_plots.warm_up,
    clock_plots.rotation,
]


def series(kernel, size, clock, seconds, pairs=1, launches=1) -> Series:
    return Series(kernel, *size, clock, pairs, launches, tuple(seconds))


def readings(warm=2e-6, call=4e-6) -> Readings:
    """Invented series: an empty launch takes 1 µs in a graph, a large copy 130 µs."""
    first = [0.3, 20e-6, *[10e-6] * 7, 40e-6]
    return Readings(
        "nvidia-h200",
        (
            series(COPY, SMALL, "wait", first),
            *(series(EMPTY, SMALL, clock, [9, 9, 5e-6, 5e-6]) for clock in ("wait", "events")),
            *(series(EMPTY, SMALL, "graph", [9, 9, n * 1e-6], launches=n) for n in (1, 64)),
            *(series(COPY, SMALL, "graph", [9, 9, n * 2e-6], launches=n) for n in (1, 64)),
            series(COPY, LARGE, "call", [9, 9, call]),
            series(COPY, LARGE, "events", [9, 9, 130e-6]),
            series(COPY, MIDDLE, "graph", [9, 9, 96 * warm], pairs=1, launches=96),
            series(COPY, MIDDLE, "graph", [9, 9, 96 * 5.5e-6], pairs=32, launches=96),
        ),
        {"GPU": "NVIDIA H200", "date": "2026-12-01 10:00 UTC"},
    )


@pytest.mark.parametrize("view", WORDS, ids=lambda view: f"{view.__module__}.{view.__name__}")
def test_what_nobody_recorded_says_so(view):
    for nobody in (None, Readings("nvidia-h200", ())):
        shown = view(nobody)
        assert MISSING in str(shown)


def test_one_launch_by_four_clocks():
    table = overhead.clocks(readings())
    assert [row[0] for row in table.rows] == list(CLOCKS.values())
    call, wait, events, graph = (row[1:] for row in table.rows)
    assert call == (MISSING, MISSING, "4")
    assert wait == ("5", "10", MISSING)
    assert events == ("5", MISSING, "130")
    assert graph == ("1", "2", MISSING)  # of one launch, in the longest graph
    assert "64, 64" in table.note
    assert "Data of 256\xa0×\xa01\u202f024 in L2." in table.note
    large = series(COPY, LARGE, "graph", [9, 9, 130e-6])
    more = overhead.clocks(replace(readings(), series=(*readings().series, large)))
    assert "in L2 and of 65\u202f536\xa0×\xa01\u202f024 in DRAM." in more.note
    assert "2026-12-01" in table.note


def test_a_call_that_returned_early_is_called_impossible():
    claimed = 8 * LARGE[0] * LARGE[1] / 4e-6
    said = str(overhead.asynchronous(readings()))
    assert f"{number(claimed / 1e12)}\u202fTB/s" in said
    assert "No memory can do that" in said
    assert "No memory" not in str(overhead.asynchronous(readings(call=1e-3)))


def test_the_first_launch_moves_the_mean_and_not_the_median():
    said = str(overhead.first(readings()))
    values = readings().one(COPY, "wait").seconds
    assert "300\u202fms" in said
    assert f"{number(statistics.mean(values) / 10e-6)}×" in said
    assert said.endswith("with the first, is 10\u202fµs.")
    late = str(overhead.stragglers(readings()))
    assert "slowest took 40\u202fµs, 4× the median" in late
    assert "; 1 took more than 1.5×" in late


def test_graphs_by_length():
    table = overhead.lengths(readings())
    assert table.rows == (("1", "1", "2"), ("64", "1", "2"))
    assert table.note.startswith("Data of 256\xa0×\xa01\u202f024 in L2. ")
    said = str(overhead.nothing(readings()))
    assert "1\u202fµs as one of 64" in said
    assert "say 5× as much" in said


def test_a_rate_beyond_dram_is_named_as_the_caches():
    useful = 8 * MIDDLE[0] * MIDDLE[1]
    fast = str(overhead.rotation(readings(warm=2e-6)))
    assert f"{number(useful / 2e-6 / 1e12)}\u202fTB/s" in fast
    assert "The first rate is more than the data sheet" in fast
    slow = str(overhead.rotation(readings(warm=5e-6)))
    assert "nothing looks wrong" in slow
    assert "out of L2 and the second, of the same" in fast and "and yet it comes" in slow


def test_charts_name_machine_and_date_and_speak_their_points():
    for chart in (clock_plots.warm_up(readings()), clock_plots.rotation(readings())):
        assert "NVIDIA H200, 2026-12-01" in chart.note
        assert chart.note.removesuffix(".") in chart.alt
    assert "First reading 300\u202fms" in clock_plots.warm_up(readings()).alt
    assert "537\u202fMB" in clock_plots.rotation(readings()).alt


def test_each_clock_has_a_drawing_of_its_own():
    drawn = clock_frames.frames()
    assert len({frame.markup for frame in drawn.values()}) == len(CLOCKS)
    assert all(frame.note and frame.alt for frame in drawn.values())
    with pytest.raises(ValueError, match="a clock is call, wait, events, graph, got 'sun'"):
        clock_frames.frame("sun")


@pytest.mark.parametrize(("call", "place"), [(128e-6, 0), (100e-6, 1), (4e-6, 2), (200e-6, 3)])
def test_what_a_clock_shows_that_nobody_waits_for(call, place):
    assert overhead.stopped(readings(call=call)) == place


def test_answers_to_predictions_are_the_readings():
    assert overhead.empty(readings()) == {"measured": pytest.approx(1)}
    assert "Clocks: NVIDIA H200, 2026-12-01" in str(overhead.source(readings()))
    for nobody in (None, Readings("nvidia-h200", ())):
        assert overhead.stopped(nobody) is None
        assert overhead.empty(nobody) == {"measured": None}
    assert MISSING in str(overhead.source(None))
