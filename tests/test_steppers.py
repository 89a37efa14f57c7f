"""A choice of steppers works without a kernel: buttons, sliders and frames joined in the page."""

from __future__ import annotations

import ipywidgets as w
import pytest

from softmax_lab import steppers, widgets
from softmax_lab.online_frames import scan


def walk(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from walk(child)


def test_buttons_choose_a_stepper(monkeypatch):
    links = []
    monkeypatch.setattr(w, "jslink", lambda a, b: links.append((a, b)))
    choices = {"a": scan([1, 2, 3]), "b": scan([3, 2])}
    box = steppers.choose(choices, ["start", "1", "2", "3"], description="Row")
    buttons, outer = box.children
    assert type(buttons) is w.ToggleButtons and buttons.options == ("a", "b")
    assert buttons.description == "Row" and buttons.index == 0
    assert ((buttons, "index"), (outer, "selected_index")) in links
    sliders = [each for each in walk(box) if type(each) is w.SelectionSlider]
    assert [s.options for s in sliders] == [("start", "1", "2", "3"), ("start", "1", "2")]
    assert len(links) == 1 + 2 * len(choices)
    assert all(child.layout.width == "100%" for child in outer.children)
    shown = [each.value for each in walk(outer.children[1]) if type(each) is w.HTML]
    assert [frame._repr_html_() for frame in choices["b"]] == shown


def test_too_much_for_a_page_is_refused():
    with pytest.raises(ValueError, match="400"):
        steppers.choose({"a": scan([1]) * (widgets.MAX_FRAMES // 2 + 1)}, description="Row")
    with pytest.raises(ValueError, match="400"):
        steppers.choose({}, description="Row")
    with pytest.raises(ValueError, match="plain text"):
        steppers.choose({"$m$": scan([1])}, description="Row")
