"""Give every widget of a page a picture that shows where JavaScript is off.

The widget manager draws from the state that the page carries; without scripts a reader would see
nothing. So each widget view is followed by a <noscript> with what it first shows, from that state.
"""

from __future__ import annotations

import html
import json
import re

from myst_nb.sphinx_ import NbMetadataCollector

VIEW = re.compile(
    r'<script type="application/vnd\.jupyter\.widget-view\+json">(.*?)</script>', re.DOTALL
)
REFERENCE = "IPY_MODEL_"


def first_shown(state: dict[str, dict], model: str) -> list[str]:
    """HTML that the widget `model` shows before anyone touches it: texts, chosen frames only."""
    widget = state[model]
    values = widget["state"]
    name = widget["model_name"]
    if name in ("HTMLModel", "HTMLMathModel"):
        return [values.get("value", "")]
    if name == "LabelModel":
        return [html.escape(values.get("value", ""))]
    children = values.get("children", [])
    if name == "StackModel":
        chosen = values.get("selected_index")
        children = [] if chosen is None else children[chosen : chosen + 1]
    return [
        part for child in children for part in first_shown(state, child.removeprefix(REFERENCE))
    ]


def add_pictures(app, pagename, templatename, context, doctree) -> None:
    """Sphinx's html-page-context: put the <noscript> after each widget view of the page's body."""
    _, held = NbMetadataCollector.get_js_files(app.env, pagename).get(
        "ipywidgets_state", (None, {})
    )
    if not held:
        return
    state = json.loads(held["body"])["state"]

    def with_picture(view: re.Match) -> str:
        parts = "".join(first_shown(state, json.loads(view[1])["model_id"]))
        note = "<p>With JavaScript switched on, this figure has controls.</p>"
        return f'{view[0]}<noscript><div class="lab-static">{parts}{note}</div></noscript>'

    context["body"] = VIEW.sub(with_picture, context["body"])


def setup(app) -> dict[str, bool]:
    """Sphinx's entry point."""
    app.connect("html-page-context", add_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
