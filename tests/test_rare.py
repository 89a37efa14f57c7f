"""The rare path of a division: the steps that take it, and the tables that say what they cost."""

from __future__ import annotations

import numpy as np
import pytest

from softmax_lab import published, rare, reference
from softmax_lab.published import Again
from softmax_lab.recordrows import Rerun
from softmax_lab.units import MISSING

SHAPE = (4, 70)


def test_a_step_counts_when_one_lane_has_a_tiny_power():
    x = np.zeros((6, 70), "f4")  # three steps, the last of six lanes
    x[1, 3] = -np.inf
    x[2, [3, 40, 69]] = -71  # e^-71 is just below 2^-102, e^-70 above
    x[3] = -70
    x[3, 0] = 0
    x[4, 69] = -200
    x[5] = np.nan
    assert rare.steps(x) == pytest.approx([0, 1 / 3, 1, 0, 1 / 3, 0])


def test_the_kinds_of_scores_differ_in_just_that():
    met = {kind: rare.steps(reference.inputs(kind, 64, 512)).mean() for kind in published.DATA}
    assert {kind for kind, share in met.items() if share > 0.9} == {"deep", "masked"}
    assert all(met[kind] == 0 for kind in ("normal", "rising", "falling", "constant", "negative"))


def again(**graph: float) -> Again:
    """Invented runs: every kind takes 10 µs warm and 20 µs cold unless said."""
    rows = []
    for kind in published.DATA:
        where = ("r", "block_online", "f", "float32", *SHAPE, kind, 3, 20)
        warm = graph.get(kind, 10e-6)
        rows.append(Rerun(*where, 30e-6, warm, 2 * warm, 1e-5, 1e-5, "DRAM", 1e-7))
    return Again("nvidia-h200", tuple(rows), {"GPU": "NVIDIA H200", "date": "now"})


def test_times_stand_beside_the_steps_and_the_random_ones():
    table = rare.by_data(again(masked=15e-6), SHAPE, SHAPE)
    assert [row[0] for row in table.rows] == 2 * list(published.DATA.values())
    assert [place for place, _ in table.groups] == [0, len(published.DATA)]
    assert table.rows[0][1:] == ("0%", "0", "10", "1×", "20", "1×")
    assert table.rows[-1] == ("every third masked", "100%", "4", "15", "1.5×", "30", "1.5×")
    assert r"below \(2^{-102}\) in one lane" in table.note and "NVIDIA H200, now" in table.note


def test_what_tiny_powers_cost_is_told_apart():
    said = str(rare.cost(again(masked=15e-6, deep=18e-6, rising=9e-6), SHAPE))
    assert "the other scores without a tiny power take 0.9× to 1× the time" in said
    assert "up to 1.8× (down to 95 below the largest at 4" in said


def test_what_nobody_timed_says_so():
    rest = tuple(row for row in again().rows if row.data != rare.RANDOM)
    for runs in (None, Again("nvidia-h200", rest)):
        assert MISSING in str(rare.by_data(runs, SHAPE))
        assert MISSING in str(rare.cost(runs, SHAPE))
    some = Again(
        "nvidia-h200", tuple(row for row in again().rows if row.data in ("normal", "deep"))
    )
    assert len(rare.by_data(some, SHAPE).rows) == 2
    assert MISSING in str(rare.cost(some, SHAPE))
