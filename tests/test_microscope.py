"""The microscope: what it draws is the model's, what it says was counted by running a kernel."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from softmax_lab import coalescing, frames, microscope, nvrtc, probe
from softmax_lab.counts import Counts
from softmax_lab.units import number

SETTINGS = [
    (1, 0, 4),
    (1, 1, 4),
    (2, 0, 4),
    (8, 0, 4),
    (0, 0, 4),
    (1, 0, 16),
    (1, 1, 16),
    (3, 1, 2),
]


@pytest.mark.parametrize(("stride", "offset", "size"), SETTINGS)
def test_model_and_emulator_find_the_same_request(stride, offset, size):
    model = coalescing.strided(stride * size, base=offset * size, size=size)
    counted = probe.strided(stride, offset, size)
    assert counted.load_sectors == len(model.sectors)
    assert counted.load_useful_bytes == model.useful_bytes
    assert (counted.load_requests, counted.load_bytes) == (1, model.asked_bytes)
    assert counted.store_sectors == size  # 32 elements side by side


def test_the_known_numbers():
    # Worklog section 4: 4, 5, 8, 9, 1 and 16 sectors.
    known = {(1, 0, 4): 4, (1, 1, 4): 5, (2, 0, 4): 8, (2, 1, 4): 8, (0, 0, 4): 1, (1, 0, 16): 16}
    for setting, sectors in known.items():
        assert probe.strided(*setting).load_sectors == sectors, setting
    assert probe.strided(2, 7, 4).load_sectors == 9


@pytest.mark.parametrize(
    ("call", "words"),
    [((1, 0, 3), "2, 4, 8, 16 bytes, got 3"), ((-1, 0, 4), "got -1 and 0"), ((1, -2), "1 and -2")],
)
def test_a_load_that_cannot_be_made_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        probe.strided(*call)


def test_the_probe_compiles_for_the_gpu():
    try:
        nvrtc.include_folders()
    except nvrtc.ToolkitError as error:
        pytest.skip(str(error))
    source = probe.path().read_text()
    for element in probe.ELEMENTS.values():
        made = nvrtc.compile_source(f"#define ELEMENT {element}\n{source}", "strided", "sm_75")
        assert made.checked().registers > 0


def paths(markup: str) -> list[str]:
    return [each.get("d") for each in ET.fromstring(markup).iter() if each.tag.endswith("path")]


@pytest.mark.parametrize(("stride", "offset", "size"), SETTINGS)
def test_a_frame_draws_every_sector_and_every_used_byte(stride, offset, size):
    model = coalescing.strided(stride * size, base=offset * size, size=size)
    frame = microscope.look(stride, offset, size, Counts(load_sectors=len(model.sectors)))
    spare, hatched, used, outlines = paths(frame.markup)[-4:]
    assert spare.count("M") == 32 - len(model.sectors)
    assert hatched == outlines
    assert outlines.count("M") == len(model.sectors)
    widths = [float(width) for width in re.findall(r"h([\d.]+)v", used)]
    assert sum(widths) == pytest.approx(model.useful_bytes * frames.CELL * frames.FLOATS / 32)
    for sector in model.sectors:
        assert f">byte {32 * sector}<" in frame.markup
    assert f"{len(model.sectors)} sector" in frame.alt
    assert f"{number(100 * model.efficiency)}% is used" in frame.alt
    assert frame.alt.endswith(f"Counted by running it: {len(model.sectors)}.")
    assert not re.findall(r'(?:fill|stroke)="(#[^"]*)"', frame.markup)  # the page's colours only


def test_a_frame_shows_a_count_as_it_is():
    assert microscope.look(1, 0, 4, Counts(load_sectors=7)).alt.endswith("it: 7.")
    assert microscope.look(1, 0, 4).alt.endswith("it: not measured yet.")


def test_all_frames_have_one_size():
    boxes = {re.search(r'viewBox="[^"]+"', microscope.look(*s).markup)[0] for s in SETTINGS}
    assert len(boxes) == 1


def test_agreement_is_found_not_claimed():
    said = str(microscope.agreement((0, 1), (0,), (4,), probe.strided))
    assert said.startswith("In all 2 positions")
    wrong = str(microscope.agreement((0, 1), (0,), (4,), lambda *_: Counts(load_sectors=4)))
    assert wrong == "Model and count differ at stride 0, offset 0, 4 bytes."


def test_two_mappings_of_one_matrix():
    apart, beside = microscope.walks().values()
    assert (len(apart), len(beside)) == (8, 2)
    assert all("4 sectors move, 128 bytes" in frame.alt for frame in apart)
    assert all("1 sector moves, 32 bytes" in frame.alt for frame in beside)
    for frame in (*apart, *beside):
        lanes = re.findall(r">l (\d)<", frame.markup)
        assert sorted(lanes) == ["0", "1", "2", "3"]
        assert not re.findall(r'(?:fill|stroke)="(#[^"]*)"', frame.markup)
    with pytest.raises(ValueError, match="1 to 4 lanes are drawn, got 5"):
        microscope.walks(5)
