"""Steppers and explorers: plain ipywidgets, joined in the browser, no kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets as w

MAX_FRAMES = 400
"""Frames of one page together [frames]: each is in the page whether shown or not."""

Frame = Any  # an HTML string, a widget, or anything with _repr_html_


def stack(frames: Sequence[Frame]) -> w.Stack:
    """One of `frames` at a time; HTML ones share a Layout and a Style, which keeps pages small."""
    if not 1 <= len(frames) <= MAX_FRAMES:
        raise ValueError(f"a stack holds 1 to {MAX_FRAMES} frames, got {len(frames)}")
    layout, style = w.Layout(width="100%"), w.HTML().style
    children = [
        frame if isinstance(frame, w.Widget) else w.HTML(_html(frame), layout=layout, style=style)
        for frame in frames
    ]
    return w.Stack(children, selected_index=0, layout=w.Layout(width="100%"))


def slider(labels: Sequence[Any], description: str) -> w.SelectionSlider:
    """A slider over `labels`; `description` is its accessible name."""
    options = [plain_label(str(label)) for label in labels]
    if len(set(options)) != len(options):
        raise ValueError(f"slider labels must differ, got {options}")
    return w.SelectionSlider(
        options=options,
        description=plain_label(description),
        layout=w.Layout(width="auto", flex="1 1 18rem"),
        style={"description_width": "initial"},
    )


def stepper(
    frames: Sequence[Frame], labels: Sequence[Any] | None = None, *, description: str = "Step"
) -> w.VBox:
    """A play button and a slider that walk through `frames`."""
    labels = labels or [f"{k + 1} of {len(frames)}" for k in range(len(frames))]
    _same_length(frames, labels)
    shown, choice = stack(frames), slider(labels, description)
    play = w.Play(min=0, max=len(frames) - 1, value=0, interval=900, show_repeat=False)
    play.description = f"Play {description}"
    play.tooltip = f"Play: {description}"
    w.jslink((play, "value"), (choice, "index"))
    w.jslink((choice, "index"), (shown, "selected_index"))
    return w.VBox([_bar(play, choice), shown])


def explorer(
    values: Sequence[Any],
    frame: Callable[[Any], Frame],
    *,
    description: str,
    start: Any = None,
) -> w.VBox:
    """A slider over `values`; each shows `frame(value)`, drawn now. It begins at `start`, or at the
    first; that frame is also what a page without JavaScript shows."""
    shown, choice = stack([frame(value) for value in values]), slider(values, description)
    if start is not None:
        choice.index = shown.selected_index = list(values).index(start)
    w.jslink((choice, "index"), (shown, "selected_index"))
    return w.VBox([_bar(choice), shown])


def grid(
    rows: Sequence[Any],
    cols: Sequence[Any],
    frame: Callable[[Any, Any], Frame],
    *,
    row: str,
    col: str,
) -> w.VBox:
    """Two sliders choose `frame(row, col)`, drawn now: a stack of stacks."""
    return panel({row: rows, col: cols}, frame)


def panel(
    axes: Mapping[str, Sequence[Any]],
    frame: Callable[..., Frame],
    *,
    start: Mapping[str, Any] | None = None,
) -> w.VBox:
    """A slider for each of `axes`, by its name; together they choose `frame(value, …)`, drawn now.

    `start` gives the values shown first, where they are not the first ones. Raises ValueError for
    more frames than a page holds and for a start that is no value.
    """
    amount = math.prod(map(len, axes.values()))
    if not 1 <= amount <= MAX_FRAMES:
        sizes = " × ".join(str(len(values)) for values in axes.values())
        raise ValueError(f"1 to {MAX_FRAMES} frames, got {sizes}")
    first = {name: values[0] for name, values in axes.items()} | dict(start or {})
    for name, value in first.items():
        if name not in axes or value not in axes[name]:
            raise ValueError(f"{name!r} cannot start at {value!r}")
    sliders = {name: slider(values, name) for name, values in axes.items()}
    places = {name: list(values).index(first[name]) for name, values in axes.items()}
    for name, each in sliders.items():
        each.index = places[name]

    def level(names: Sequence[str], chosen: tuple) -> Frame:
        if not names:
            return frame(*chosen)
        name, *rest = names
        shown = stack([level(rest, (*chosen, value)) for value in axes[name]])
        shown.selected_index = places[name]
        w.jslink((sliders[name], "index"), (shown, "selected_index"))
        return shown

    return w.VBox([_bar(*sliders.values()), level(list(axes), ())])


def _bar(*controls: w.Widget) -> w.Box:
    return w.Box(
        list(controls), layout=w.Layout(display="flex", flex_flow="row wrap", width="100%")
    )


def _html(frame: Frame) -> str:
    if isinstance(frame, str):
        return frame
    if not hasattr(frame, "_repr_html_"):
        raise TypeError(
            f"a frame is an HTML string, a widget or has _repr_html_, got {type(frame).__name__}"
        )
    return frame._repr_html_()


def plain_label(label: str) -> str:
    """JupyterLab typesets labels that hold TeX's delimiters, the pages do not: so none may."""
    if "$" in label or "\\(" in label:
        raise ValueError(f"a label is plain text without $ or \\(, got {label!r}")
    return label


def _same_length(one: Sequence[Any], other: Sequence[Any]) -> None:
    if len(one) != len(other):
        raise ValueError(f"as many labels as frames are needed, got {len(other)} for {len(one)}")
