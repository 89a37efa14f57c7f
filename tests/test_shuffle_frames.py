"""Frames of a reduction: their lanes, values and words are those of the simulated shuffles."""

from __future__ import annotations

import numpy as np
import pytest
from drawings import check, words

from softmax_lab import lane_art as art
from softmax_lab import online, reference, shuffle
from softmax_lab.hand import correct
from softmax_lab.shuffle_frames import labels, reduction

PAIRS = online.lanes([3, 1, 2, 0, 6, 4, 5, 1], 4)
FOUR = {"max": [m for m, _ in PAIRS], "sum": list(correct(PAIRS))}
WIDE = online.lanes(reference.inputs("normal", 1, 64)[0], 32)
WARP = {"max": [m for m, _ in WIDE], "sum": list(correct(WIDE))}


@pytest.mark.parametrize("how", ["down", "butterfly"])
@pytest.mark.parametrize("operator", ["max", "sum"])
@pytest.mark.parametrize("values", [FOUR, WARP], ids=["4", "32"])
def test_frames_are_the_rounds_of_the_model(values, operator, how):
    held = values[operator]
    frames, rounds = reduction(held, operator, how=how), shuffle.reduce(held, operator, how=how)
    check(frames)
    assert len(frames) == 1 + len(rounds) == len(labels(frames))
    write = art.fixed if len(held) == 4 else art.brief
    for frame, each in zip(frames[1:], rounds, strict=True):
        drawn = words(frame)
        for value in each.values:
            assert write(value) in drawn
        spoken = ", ".join(f"lane {k} {art.fixed(v)}" for k, v in enumerate(each.values))
        assert frame.alt.endswith(f"After it: {spoken}.")
        if each.operator:
            assert f"{each.executed} " in frame.note and f" {each.useful}" in frame.note
    kind = {"down": "__shfl_down_sync", "butterfly": "__shfl_xor_sync"}[how]
    assert kind in words(frames[1])[0]


def test_the_teaching_row_digit_for_digit():
    maximum, total = reduction(FOUR["max"], "max"), reduction(FOUR["sum"], "sum")
    assert "(6, 4, 5, 1)" in maximum[0].note
    assert "lane l reads lane l + 2, lanes 2–3 keep their own" in maximum[1].note.lower()
    assert (
        "lanes 0–1 (6, 4)" in maximum[1].note and "the result is in lane 0 (6)" in maximum[2].note
    )
    assert words(maximum[1])[10:14] == ["received", "5", "1", "5"]
    assert "(1.0498, 0.1421, 0.3862, 0.0092)" in total[0].note
    assert "(1.4360, 0.1513)" in total[1].note
    assert "1.5873" in total[2].note and "broadcast: 1.5873" in total[3].note


def wires(frame, look: str) -> int:
    return sum(
        part.split('"')[0].count("L") for part in frame.markup.split(' d="')[1:] if look in part
    )


def test_who_reads_whom_is_drawn():
    first = reduction(WARP["max"], "max")[1]
    # An arrow is a line and the two strokes of its head; a lane that keeps its own is one line.
    assert wires(first, 'stroke-dasharray="2 4"') == 16
    assert first.markup.count("L") >= 3 * 16


def test_a_missing_lane_is_undefined_and_flagged():
    frames = reduction(FOUR["max"], "max", mask=0b1011)
    check(frames)
    assert "leaves out lane 2" in frames[0].note
    assert "Lane 0 reads an absent lane: undefined" in frames[1].note
    assert words(frames[1]).count("?") == 2  # received, and what became of it
    assert "lane 0 undefined" in frames[1].alt
    assert "it is undefined" in frames[3].note
    wide = reduction(WARP["max"], "max", mask=0xFFFEFFFF)
    check(wide)
    assert "?" in words(wide[1])


@pytest.mark.parametrize("values", [[1.0] * 3, [1.0] * 8, [1.0] * 64])
def test_other_numbers_of_lanes_are_refused(values):
    with pytest.raises(ValueError, match="2, 4 or 32"):
        reduction(values, "max")


def test_nan_is_refused():
    with pytest.raises(ValueError, match="NaN"):
        reduction([1, np.nan, 2, 3], "max")


@pytest.mark.parametrize(
    ("value", "written"),
    [(6.0, "6"), (1.43598, "1.4360"), (-0.5, "−0.5000"), (-1e-9, "0.0000"), (online.LOWEST, "low"),
     (np.inf, "∞"), (-np.inf, "−∞"), (np.nan, "NaN")],
)  # fmt: skip
def test_values_as_they_are_written(value, written):
    assert art.fixed(value) == written


@pytest.mark.parametrize("value", [0.0, -12.345, 123.456, 1e9 + 0.5, -3e38, -3e-5, online.LOWEST])
def test_brief_values_fit_a_cell(value):
    assert len(art.brief(value)) <= 5


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (-0.7, "−0.7"),
        (float(np.float32(-1.3)), "−1.3"),
        (-0.699, "−0.70"),
        (0.999, "1.00"),
        (1e-9, "0.00"),
        (-12.345, "−12.3"),
        (-123.4, "−123"),
        (-3e38, "−3e38"),
        (20.0, "20"),
    ],
)
def test_brief_values_drop_places_that_say_nothing(value, written):
    assert art.brief(value) == written
