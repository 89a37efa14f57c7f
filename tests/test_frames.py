"""Frames: their numbers are the model's, their ids their own, their words seen and heard."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from softmax_lab import coalescing, frames, svg
from softmax_lab.units import number

LENGTHS = (1, 2, 3, 4, 7, 8, 9, 16, 33, 100, 1000, 1024, 131072)
HATCHED = re.compile(r'fill="url\(#lab\d+-hatch\)"')


def boxes(markup: str) -> int:
    """Sectors drawn: outlines eight floats wide that are not dashed."""
    found = [
        each
        for each in ET.fromstring(markup).iter("{http://www.w3.org/2000/svg}rect")
        if float(each.get("width")) == frames.CELL * frames.FLOATS
    ]
    return sum("stroke-dasharray" not in each.attrib for each in found)


@pytest.mark.parametrize("cols", LENGTHS)
def test_frame_shows_the_models_sectors(cols):
    model = coalescing.strided(4 * cols)
    frame = frames.thread_per_row(cols)
    assert boxes(frame.markup) == len(model.sectors)
    floats = frames.FLOATS * len(model.sectors)
    assert len(HATCHED.findall(frame.markup)) == floats - model.useful_bytes // 4
    assert f"{number(len(model.sectors))} sectors" in frame.alt
    assert f"{number(model.moved_bytes)} B" in frame.alt
    assert f"{number(100 * model.efficiency)}%" in frame.alt


@pytest.mark.parametrize("column", [0, 3, 6])
def test_frame_of_another_column_moves_the_used_floats(column):
    addresses = [4 * (lane * 7 + column) for lane in range(32)]
    assert boxes(frames.thread_per_row(7, column).markup) == len(
        coalescing.request(addresses).sectors
    )


def test_every_lane_is_in_one_box():
    addresses = [4 * (lane * 7) for lane in range(32)]
    touched = frames.lanes_of_sectors(addresses)
    assert sorted(lane for users in touched.values() for lane, _ in users) == list(range(32))
    for sector, users in touched.items():
        assert all(addresses[lane] == 32 * sector + 4 * place for lane, place in users)


def test_a_partial_warp_has_idle_lanes():
    frame = frames.thread_per_row(1024, lanes=5)
    assert boxes(frame.markup) == 5
    assert "5 lanes" in frame.alt


@pytest.mark.parametrize("column", [-1, 4])
def test_a_column_outside_the_row_is_refused(column):
    with pytest.raises(ValueError, match="column"):
        frames.thread_per_row(4, column)


def test_scores_are_drawn_with_their_softmax():
    frame = frames.scores([2.0, 1.0, 0.1, -1.0])
    assert "0.638, 0.235, 0.095, 0.032" in frame.alt
    for bad in ([], [1.0, float("nan")], [[1.0]], list(range(9))):
        with pytest.raises(ValueError, match="scores"):
            frames.scores(bad)


def test_all_frames_of_a_stepper_have_one_view_box():
    assert (
        len({re.search(r'viewBox="[^"]+"', frames.thread_per_row(n).markup)[0] for n in LENGTHS})
        == 1
    )


@pytest.mark.parametrize(
    ("draw", "seen"),
    [
        (lambda: frames.thread_per_row(7), "28 sectors move 896 B"),
        (lambda: frames.scores([1, 0]), "0.731"),
    ],
)
def test_frames_are_accessible_and_follow_the_theme(draw, seen):
    first, second = draw(), draw()
    assert not set(svg.ids(first.markup)) & set(svg.ids(second.markup))
    for frame in (first, second):
        root = ET.fromstring(frame.markup)
        assert root.get("role") == "img"
        named = root.get("aria-labelledby").split()
        assert set(named) <= set(svg.ids(frame.markup))
        assert len(svg.ids(frame.markup)) == len(set(svg.ids(frame.markup)))
        assert seen in frame.alt
        assert seen in frame.note or f">{seen}<" in frame.markup  # not only to be heard
        for text in root.iter("{http://www.w3.org/2000/svg}text"):
            assert text.get("fill") == "currentColor"
        drawn = set(re.findall(r'(?:fill|stroke)="(#[^"]*)"', frame.markup))
        assert not drawn  # every colour is a variable with a fallback


def test_words_are_escaped():
    frame = svg.drawing(10, "a < b", 'x & "y"', [svg.text(0, 0, "<i>")])
    assert ET.fromstring(frame.markup)[0].text == "a < b"
    assert "&lt;i&gt;" in frame.markup
