"""Frames of a real warp: every step, its line, its lanes, and whether the model agrees."""

from __future__ import annotations

from dataclasses import replace

import pytest
from drawings import check, words

from softmax_lab import emulator, reference
from softmax_lab.excerpts import source_line
from softmax_lab.lane_art import brief
from softmax_lab.replay import replay
from softmax_lab.trace_frames import agreement, labels, steps


@pytest.fixture(scope="module")
def real():
    return replay(emulator.run("warp", reference.inputs("normal", 2, 48), trace=(1, 0)).trace)


def test_every_step_has_its_frame(real):
    frames = steps(real, "warp")
    check(frames)
    assert len(frames) == len(real) == len(labels(real)) == 18
    assert labels(real)[2:8] == [
        *(f"{k}: max, offset {o}" for k, o in zip(range(3, 8), (16, 8, 4, 2, 1), strict=True)),
        "8: max, broadcast",
    ]
    for frame, each in zip(frames, real, strict=True):
        code = source_line("warp", each.step.file, each.step.line)
        assert frame.alt.endswith(f"Source: {each.step.file}, line {each.step.line}: {code}")
        drawn = words(frame)
        assert drawn[0] == f"{each.step.file}:{each.step.line}"
        for lane, value in enumerate(each.step.after):
            assert value is None or brief(value) in drawn, lane


def test_loads_name_addresses_sectors_and_lanes(real):
    first, second = steps(real, "warp")[:2]
    assert "32 lanes read 128 bytes in 4 sectors, as the model says: 100%" in first.note
    assert "16 lanes read 64 bytes in 2 sectors" in second.note
    # Row 1 of 48 floats begins at byte 192.
    assert {"192: lanes 0–7", "288: lanes 24–31", "192", "316"} <= set(words(first))


def test_shuffles_say_whether_the_model_agrees(real):
    frames = steps(real, "warp")
    assert "equal in all 32 lanes, bit for bit" in frames[2].note
    said = [frame.note.partition(":")[0] for frame in frames[2:8]]
    assert said == [*(f"Maximum, round {k} of 5" for k in range(1, 6)), "Maximum, broadcast"]
    spoilt = replace(real[2], differing=(3, 4))
    assert "lanes 3–4 differ" in steps([spoilt], "warp")[0].note


def test_agreement_counts(real):
    assert str(agreement(real)).startswith("Sectors of 6 of 6 loads and stores")
    assert "12 of 12 shuffles" in str(agreement(real))
    spoilt = [replace(each, differing=(1,)) if each.round else each for each in real]
    assert "0 of 12 shuffles" in str(agreement(spoilt))


def test_an_access_that_does_not_fit_is_refused():
    x = reference.inputs("normal", 32, 64)
    run = emulator.run("online", x, trace=(0, 0))
    with pytest.raises(ValueError, match="got 32"):
        steps(replay(run.trace, ()), "online")
