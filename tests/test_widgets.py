"""Widgets work without a kernel: every link is a browser's, all that is shown is in the page."""

from __future__ import annotations

import ipywidgets as w
import pytest

from softmax_lab import frames, widgets


def walk(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from walk(child)


def find(widget, kind):
    return [each for each in walk(widget) if type(each) is kind]


@pytest.fixture
def links(monkeypatch):
    """Pairs that were joined in the browser."""
    made = []
    monkeypatch.setattr(w, "jslink", lambda a, b: made.append((a, b)))
    return made


def test_stepper_joins_play_slider_and_frames(links):
    box = widgets.stepper(["<p>a</p>", "<p>b</p>", "<p>c</p>"])
    (play,), (slider,), (stack,) = (find(box, k) for k in (w.Play, w.SelectionSlider, w.Stack))
    assert links == [
        ((play, "value"), (slider, "index")),
        ((slider, "index"), (stack, "selected_index")),
    ]
    assert (play.min, play.max, stack.selected_index) == (0, 2, 0)
    assert slider.options == ("1 of 3", "2 of 3", "3 of 3")
    assert play.description
    assert slider.description


def test_explorer_shows_the_frame_of_each_value(links):
    lengths = (1, 4, 1024)
    box = widgets.explorer(lengths, frames.thread_per_row, description="Row length")
    (stack,) = find(box, w.Stack)
    shown = [child.value for child in stack.children]
    for cols, html in zip(lengths, shown, strict=True):
        assert frames.thread_per_row(cols).alt.split(":")[0] in html
    assert len(links) == 1


def test_frames_share_one_layout_and_one_style():
    shown = widgets.stack(["<p>a</p>", "<p>b</p>"]).children
    assert shown[0].layout is shown[1].layout
    assert shown[0].style is shown[1].style


def test_grid_is_a_stack_of_stacks(links):
    box = widgets.grid(
        ["a", "b"], [1, 2, 3], lambda r, c: f"<p>{r}{c}</p>", row="Row", col="Column"
    )
    outer, *inner = find(box, w.Stack)
    assert [[c.value for c in s.children] for s in inner] == [
        ["<p>a1</p>", "<p>a2</p>", "<p>a3</p>"],
        ["<p>b1</p>", "<p>b2</p>", "<p>b3</p>"],
    ]
    assert len(links) == 3
    assert outer.selected_index == 0


def test_a_panel_has_a_slider_for_each_axis(links):
    axes = {"Bytes": [2, 4], "Stride": [0, 1, 2], "Offset": [0, 1]}
    box = widgets.panel(axes, lambda *at: f"<p>{at}</p>", start={"Bytes": 4, "Stride": 2})
    bytes_, stride, offset = find(box, w.SelectionSlider)
    assert [each.index for each in (bytes_, stride, offset)] == [1, 2, 0]
    outer = find(box, w.Stack)[0]
    shown = outer
    while isinstance(shown, w.Stack):
        shown = shown.children[shown.selected_index]
    assert shown.value == "<p>(4, 2, 0)</p>"  # what a page without JavaScript shows, too
    joined = [target for source, target in links if source == (offset, "index")]
    assert len(joined) == 6  # every innermost stack
    assert len(links) == 1 + 2 + 6
    with pytest.raises(ValueError, match="'Stride' cannot start at 7"):
        widgets.panel(axes, str, start={"Stride": 7})
    with pytest.raises(ValueError, match="'Size' cannot start"):
        widgets.panel(axes, str, start={"Size": 7})
    with pytest.raises(ValueError, match="got 2 × 0"):
        widgets.panel({"a": [1, 2], "b": []}, str)


@pytest.mark.parametrize("text", ["cost in $", r"\(N\)"])
def test_labels_hold_no_maths(text):
    with pytest.raises(ValueError, match="plain text"):
        widgets.slider([text], "Cost")
    with pytest.raises(ValueError, match="plain text"):
        widgets.slider([1, 2], text)


def test_too_many_frames_are_refused():
    with pytest.raises(ValueError, match="400"):
        widgets.stack(["<p></p>"] * (widgets.MAX_FRAMES + 1))
    with pytest.raises(ValueError, match="400"):
        widgets.grid(range(21), range(20), lambda r, c: "", row="Row", col="Column")
    with pytest.raises(ValueError, match="frames"):
        widgets.stack([])


def test_other_nonsense_is_refused():
    with pytest.raises(ValueError, match="differ"):
        widgets.slider([1, 1], "N")
    with pytest.raises(ValueError, match="labels"):
        widgets.stepper(["<p></p>"], ["a", "b"])
    with pytest.raises(TypeError, match="frame"):
        widgets.stack([3])


def test_every_control_has_a_name():
    boxes = (
        widgets.stepper(["a", "b"]),
        widgets.explorer([1, 2], str, description="N"),
    )
    controls = (w.Play, w.SelectionSlider)
    found = [each for box in boxes for each in walk(box) if isinstance(each, controls)]
    assert len(found) == 3
    assert all(each.description for each in found)


def test_an_explorer_begins_where_it_is_told():
    box = widgets.explorer("abc", lambda value: f"<p>{value}</p>", description="Letter", start="b")
    bar, shown = box.children
    (choice,) = bar.children
    assert (choice.index, shown.selected_index, choice.value) == (1, 1, "b")
    with pytest.raises(ValueError, match="not in list"):
        widgets.explorer("abc", str, description="Letter", start="z")
