"""A choice of steppers: pick what to watch, then step through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ipywidgets as w

from softmax_lab import widgets
from softmax_lab.svg import Svg


def choose(
    choices: Mapping[str, Sequence[Svg]],
    labels: Sequence[str] | None = None,
    *,
    description: str,
    step: str = "Step",
) -> w.VBox:
    """Buttons that choose one of the steppers in `choices`, by name; each keeps its place.

    `labels` name the positions of all, where they have as many frames. Raises ValueError for more
    frames together than a page holds.
    """
    frames = sum(map(len, choices.values()))
    if not choices or frames > widgets.MAX_FRAMES:
        raise ValueError(f"1 to {widgets.MAX_FRAMES} frames together, got {frames}")
    names = [widgets.plain_label(name) for name in choices]
    buttons = w.ToggleButtons(options=names, index=0, description=widgets.plain_label(description))
    buttons.style.description_width = "initial"
    buttons.style.button_width = "auto"
    inner = [
        widgets.stepper(each, labels and labels[: len(each)], description=step)
        for each in choices.values()
    ]
    for each in inner:
        each.layout.width = "100%"  # a box in a stack is else as wide as its slider
    shown = widgets.stack(inner)
    w.jslink((buttons, "index"), (shown, "selected_index"))
    return w.VBox([buttons, shown])
