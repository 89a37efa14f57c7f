"""What stands in for a widget where no script runs: all frames, under the words of its controls."""

from __future__ import annotations

import sys
from pathlib import Path

import ipywidgets as w
import pytest
from bs4 import BeautifulSoup
from ipywidgets.embed import dependency_state

from softmax_lab import steppers, widgets
from softmax_lab.svg import Svg

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "book" / "_ext"))
import without_script


def unfolded(widget: w.Widget) -> BeautifulSoup:
    state = dependency_state(widget, drop_defaults=False)
    html = without_script.unfolded(state, without_script.controls(state), widget.model_id)
    return BeautifulSoup(html, "html.parser")


def choices(page: BeautifulSoup) -> list[tuple[str, str, bool]]:
    """(summary, what it opens, whether it is open) of each outer <details>."""
    found = []
    for each in page.find_all("details", recursive=False):
        name = each.summary.extract().get_text()
        found.append((name, each.get_text(" ", strip=True), each.has_attr("open")))
    return found


def test_a_sequence_lies_side_by_side():
    page = unfolded(widgets.stepper(["one", "two", "three"], ["a", "<b>", "c"], description="Step"))
    assert [item.get_text(" ") for item in page.select("ol.lab-strip > li")] == [
        "a one",
        "<b> two",
        "c three",
    ]
    assert page.ol["tabindex"] == "0" and page.ol["aria-label"] == "Step"
    assert "3 pictures" in page.get_text()
    assert not page.details


def test_a_choice_opens_and_the_chosen_one_is_open():
    page = unfolded(widgets.explorer([1, 8], lambda n: f"{n} floats", description="Row length"))
    assert choices(page) == [
        ("Row length: 1", "1 floats", True),
        ("Row length: 8", "8 floats", False),
    ]


def test_a_grid_is_a_choice_of_choices():
    page = unfolded(widgets.grid([1, 2], [8], lambda r, c: f"{r}x{c}", row="Rows", col="Columns"))
    assert choices(page) == [
        ("Rows: 1", "Columns: 8 1x8", True),
        ("Rows: 2", "Columns: 8 2x8", False),
    ]


def test_each_choice_of_steppers_holds_its_sequence():
    frames = {"sum": [Svg("<svg/>", "", "s0"), Svg("<svg/>", "", "s1")], "max": [Svg("", "", "m0")]}
    page = unfolded(steppers.choose(frames, ["start", "end"], description="Show"))
    assert [len(each.select("li")) for each in page.find_all("details")] == [2, 1]
    assert [name for name, *_ in choices(page)] == ["Show: sum", "Show: max"]


def test_a_stack_without_a_control_is_an_error():
    with pytest.raises(KeyError):
        unfolded(widgets.stack(["never shown"]))
