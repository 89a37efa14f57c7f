"""Frames of a tree in shared memory: they show the model's slots, and what a late warp reads."""

from __future__ import annotations

import numpy as np
import pytest
from drawings import check, words

from softmax_lab import lane_art as art
from softmax_lab import reference
from softmax_lab.tree_frames import TEAM, labels, reuse, rounds, too_early, tree

ROW = [3, 1, 2, 0, 6, 4, 5, 1]


def test_a_tree_halves():
    assert rounds(ROW, "max")[1] == (6, 4, 5, 1, 6, 4, 5, 1)
    assert [each[0] for each in rounds(ROW, "max")] == [3, 6, 6, 6]
    assert rounds(ROW, "sum")[-1][0] == sum(ROW)
    assert rounds([7], "sum") == ((7.0,),)
    with pytest.raises(ValueError, match="a power of two of values, got 6"):
        rounds(ROW[:6], "max")


def test_who_comes_too_late_is_wrong_and_sums_to_one():
    # By hand: thread 0's sum is exp(3 - 6); threads 4 to 7 take it for the maximum.
    wrong, y = too_early(ROW)
    assert wrong == pytest.approx(np.exp(-3))
    powers = [np.exp(v - (6 if t < TEAM else wrong)) for t, v in enumerate(ROW)]
    np.testing.assert_allclose(y, np.array(powers) / sum(powers))
    assert y.sum() == pytest.approx(1)
    want = reference.softmax(np.array([ROW], np.float32))[0]
    assert (np.abs(y - want) / want).max() > 0.99


def test_frames_show_the_slots():
    frames = tree(ROW)
    check(frames)
    assert len(frames) == 5 == len(labels(frames))
    for frame, slots in zip(frames[1:4], rounds(ROW, "max")[1:], strict=True):
        spoken = ", ".join(f"{t} {art.fixed(v)}" for t, v in enumerate(slots))
        assert frame.alt.endswith(f"by thread: {spoken}.")
    assert "Half = 1: thread 0 reads" in frames[3].note
    assert "the maximum, 6" in frames[-1].note and "the sum, 22" in tree(ROW, "sum")[-1].note


def test_frames_of_the_missing_barrier():
    frames = reuse(ROW)
    check(frames)
    wrong, y = too_early(ROW)
    assert art.fixed(wrong) in frames[1].note and art.fixed(wrong) in frames[2].note
    assert words(frames[2]).count(art.fixed(wrong)) == 1 + TEAM  # the slot, and who reads it
    assert "sum to 1." in frames[3].note
    assert f"4 {art.fixed(float(y[4]))}" in frames[3].alt
    assert f"4 {art.fixed(wrong)}" in frames[2].alt and "0 6" in frames[0].alt


@pytest.mark.parametrize("draw", [tree, reuse])
def test_eight_threads_are_drawn(draw):
    with pytest.raises(ValueError, match="8 threads hold one value each, got 4"):
        draw([1, 2, 3, 4])
