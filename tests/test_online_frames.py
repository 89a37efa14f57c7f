"""Frames of the online pass say what the recurrence does, digit for digit."""

from __future__ import annotations

import numpy as np
import pytest
from drawings import check, words

from softmax_lab import online
from softmax_lab.lane_art import fixed
from softmax_lab.online_frames import equation, labels, scan

ROW = [3, 1, 2, 0, 6, 4, 5, 1]
ROWS = {
    "mixed": ROW,
    "rising": list(range(8)),
    "falling": list(range(7, -1, -1)),
    "constant": [2] * 8,
    "masked": [-np.inf, 1, 2],
    "one": [-4.5],
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_frames_are_the_steps_of_the_model(row):
    frames, steps = scan(row), online.scan(row)
    check(frames)
    assert len(frames) == 1 + len(row) == len(labels(frames))
    for frame, step in zip(frames[1:], steps, strict=True):
        drawn = words(frame)
        assert fixed(step.sum) in drawn
        assert equation(step) in drawn
        assert ("new maximum" in frame.note) == (step.rose and step.sum_before > 0)
        assert frame.alt.endswith(f"L = {fixed(step.sum)}.")


def test_the_teaching_row_digit_for_digit():
    frames = scan(ROW)
    assert "exp(3 − 6) = 0.0498" in frames[5].note
    assert "1.5530 · exp(3 − 6) + 1 = 1.0773" in words(frames[5])[-2]
    assert "L = 1.5873." in frames[-1].alt


def test_the_hole_and_its_cure():
    row = [-np.inf, 1, 2]
    printed, ours = scan(row, start=-np.inf), scan(row)
    check(printed)
    assert "NaN" in printed[1].note and "hatch" in printed[1].markup
    assert printed[-1].alt.endswith("L = NaN.")
    assert ours[1].alt.endswith("L = 0.") and "NaN" not in ours[-1].alt
    late = scan([1, -np.inf, 2], start=-np.inf)
    assert "NaN" not in "".join(frame.alt for frame in late)


def test_the_bar_is_as_long_as_the_sum():
    row = [3, 1, 2, 0]
    widths = []
    for frame in scan(row)[1:]:
        bars = [part for part in frame.markup.split("<rect")[1:] if 'height="34"' in part]
        widths.append(sum(float(part.split('width="')[1].split('"')[0]) for part in bars))
    sums = [step.sum for step in online.scan(row)]
    np.testing.assert_allclose(np.array(widths) / widths[0], sums, rtol=1e-3)


@pytest.mark.parametrize("row", [[], list(range(9))])
def test_rows_that_do_not_fit_are_refused(row):
    with pytest.raises(ValueError, match="1 to 8"):
        scan(row)
