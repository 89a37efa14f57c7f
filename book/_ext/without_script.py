"""The pages for readers whose browser runs no script: widgets unfolded, the light theme whole.

The widget manager draws from the state that the page carries; without scripts nothing would be
drawn. So each widget view is followed by a <noscript> with all that the widget can show: a sequence
side by side, in a strip that scrolls, and each choice in a <details> that opens without a script.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

from myst_nb.sphinx_ import NbMetadataCollector

VIEW = re.compile(
    r'<script type="application/vnd\.jupyter\.widget-view\+json">(.*?)</script>', re.DOTALL
)


@dataclass(frozen=True)
class Control:
    """What turns over the frames of a Stack: its name, a label for each frame, and whether a play
    button goes through them in order."""

    name: str
    labels: tuple[str, ...]
    played: bool


def target(reference: str) -> str:
    """The model that `reference` names."""
    return reference.removeprefix("IPY_MODEL_")


def controls(state: dict[str, dict]) -> dict[str, Control]:
    """The control of each Stack, by the Stack's model."""
    ends = [
        (target(link["state"]["source"][0]), *map(target, link["state"]["target"]))
        for link in state.values()
        if link["model_name"] == "LinkModel"
    ]
    played = {aim for source, aim, _ in ends if state[source]["model_name"] == "PlayModel"}
    return {
        aim: Control(
            state[source]["state"]["description"],
            tuple(state[source]["state"]["_options_labels"]),
            source in played,
        )
        for source, aim, trait in ends
        if trait == "selected_index"
    }


def unfolded(state: dict[str, dict], turned: dict[str, Control], model: str) -> str:
    """HTML of all that the widget `model` can show; controls themselves are left out."""
    values, name = state[model]["state"], state[model]["model_name"]
    if name == "HTMLModel":
        return values["value"]
    parts = [unfolded(state, turned, target(child)) for child in values.get("children", [])]
    if name != "StackModel":
        return "".join(parts)
    control = turned[model]
    frames = list(zip(control.labels, parts, strict=True))
    if control.played:
        return strip(control.name, frames)
    return "".join(
        f"<details{' open' if k == values['selected_index'] else ''}>"
        f"<summary>{escape(control.name)}: {escape(label)}</summary>{frame}</details>"
        for k, (label, frame) in enumerate(frames)
    )


def strip(name: str, frames: list[tuple[str, str]]) -> str:
    """A sequence of frames side by side, each under its label."""
    hint = f'<p class="lab-note lab-source">{len(frames)} pictures, side by side</p>'
    items = "".join(
        f'<li><p class="lab-note"><b>{escape(label)}</b></p>{frame}</li>' for label, frame in frames
    )
    return f'{hint}<ol class="lab-strip" tabindex="0" aria-label="{escape(name)}">{items}</ol>'


def add_unfolded(app, pagename, templatename, context, doctree) -> None:
    """Sphinx's html-page-context: put the <noscript> after each widget view of the page's body."""
    _, held = NbMetadataCollector.get_js_files(app.env, pagename).get(
        "ipywidgets_state", (None, {})
    )
    if not held:
        return
    state = json.loads(held["body"])["state"]
    turned = controls(state)

    def followed(view: re.Match) -> str:
        shown = unfolded(state, turned, json.loads(view[1])["model_id"])
        return f'{view[0]}<noscript><div class="lab-static">{shown}</div></noscript>'

    context["body"] = VIEW.sub(followed, context["body"])


def name_theme(app, exception) -> None:
    """Sphinx's build-finished: each page names a theme that has colours.

    The theme's script sets another on loading; "auto", which it leaves in the file, has none.
    """
    if exception is None:
        for page in Path(app.outdir).rglob("*.html"):
            text = page.read_text("utf-8")
            page.write_text(text.replace('data-theme="auto"', 'data-theme="light"', 1), "utf-8")


def setup(app) -> dict[str, bool]:
    """Sphinx's entry point."""
    app.connect("html-page-context", add_unfolded)
    app.connect("build-finished", name_theme)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
