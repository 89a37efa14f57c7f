"""Times beside each other: every cell is a record's, every verdict follows from two of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from softmax_lab import clock, ledger
from softmax_lab.counts import ZERO
from softmax_lab.records import Measured
from softmax_lab.units import MISSING

ROWS, COLS = 64, 128


@pytest.fixture(scope="module")
def books():
    return {n: ledger.ledger(n, ROWS, COLS, counted=False) for n in ("naive", "online")}


def timed(book, seconds):
    run = Measured("x", "float32", ROWS, COLS, "nvidia-h200", counts=ZERO, seconds=seconds)
    return replace(book, measured=replace(run, p20=seconds, p80=seconds))


def test_race_without_and_with_records(books):
    assert MISSING in str(clock.race({"naive": [None], "online": [None]}))
    a, b = (timed(books["naive"], t).measured for t in (3e-6, 2e-6))
    table = clock.race({"naive": [a, None, a], "online": [b, None, None]})
    assert [row[1:] for row in table.rows] == [("3", "2", "1.5×"), ("3", MISSING, MISSING)]


def test_steps_multiply_to_the_whole_gain(books):
    runs = [timed(books["naive"], t).measured for t in (6e-6, 3e-6, 2e-6)]
    told = dict(zip(("", "twice the rows", "a hint"), ([run, run] for run in runs), strict=True))
    told["a hint"][1] = None  # a shape that lacks one is left out
    table = clock.steps(told)
    assert table.heads == ("shape", "`x` [µs]", "twice the rows", "a hint", "`x` [µs]")
    assert [row[1:] for row in table.rows] == [("6", "2×", "1.5×", "2")]
    assert "not measured" in str(clock.steps({"": [None], "a hint": [runs[0]]}))


@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [
        (0.75e-6, "comes close"),
        (0.9e-6, "less than the ratio"),
        (0.5e-6, "more than"),
        (1.1e-6, "no gain"),
    ],
)
def test_a_gain_is_judged_by_what_the_bytes_promise(books, seconds, verdict):
    before, after = timed(books["naive"], 1e-6), timed(books["online"], seconds)
    assert verdict in str(clock.gain(before, after, 4 / 3, "bytes asked for"))
    without = replace(before, measured=None)
    assert MISSING in str(clock.gain(without, after, 4 / 3, "bytes asked for"))


def test_kernels_that_no_ratio_tells_apart_are_set_beside_each_other(books):
    before, after = timed(books["naive"], 3e-6), timed(books["online"], 2e-6)
    assert "2 µs against 3 µs, 1.5× as fast" in str(clock.beside(before, after)).replace(
        "\u202f", " "
    ).replace("\u00a0", " ")
    assert MISSING in str(clock.beside(replace(before, measured=None), after))


def test_a_gain_is_said_with_its_range(books):
    a, b, c = (timed(books["naive"], t).measured for t in (3e-6, 2e-6, 6e-6))
    wide = replace(b, rows=2 * ROWS)
    kernels = {"a": [a, a, c, a], "b": [b, None, wide, replace(a, seconds=None)]}
    said = str(clock.gains(kernels, ROWS))
    assert "Over the 2 recorded shapes of 64 rows or more" in said
    assert "between 1.5× (64" in said and "and 3× (64" in said
    assert MISSING in str(clock.gains(kernels, ROWS + 1))
    assert "`online` is 2× as fast".replace("`", "") in str(
        clock.gain(timed(books["naive"], 2e-6), timed(books["online"], 1e-6), 2, "bytes")
    )


def test_where_a_gain_is_largest_and_smallest(books):
    b = timed(books["online"], 1e-6).measured
    after = [replace(b, rows=rows) for rows in (1, 2, 3, 4)]
    before = [replace(a, seconds=t * 1e-6) for a, t in zip(after, (2, 4, 1, 3), strict=True)]
    said = str(clock.ends({"a": [*before, None], "b": [*after, b]})).replace("\u00a0", " ")
    assert said == (
        "Of 4 recorded shapes it gains most on 2 × 128 (4×) and 4 × 128 (3×), "
        "and least on 3 × 128 (1×)."
    )
    one = str(clock.ends({"a": before, "b": after}, top=1)).replace("\u00a0", " ")
    assert "most on 2 × 128 (4×), and" in one
    assert MISSING in str(clock.ends({"a": before[:2], "b": after[:2]}))


def test_how_far_kernels_are_apart(books):
    a, b = (timed(books["naive"], t).measured for t in (3e-6, 2e-6))
    assert "1 shapes" in str(clock.spread({"a": [a, None], "b": [b, b]}))
    assert "differ by 50% at most, on 64 × 128" in str(clock.spread({"a": [a], "b": [b]}))
    assert MISSING in str(clock.spread({"a": [a], "b": [None]}))
