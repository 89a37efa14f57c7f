"""What a page draws by itself: data and scripts in one HTML output, the same in the book and in
JupyterLab, and what stands there without a script."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from softmax_lab.live import IN_THE_BOOK
from softmax_lab.livefile import FOLDER

STATIC = FOLDER / "book" / "_static"
SCRIPTS = (
    *("page.js", "formulas.js", "views.js", "explore.js", "predict.js"),
    *("live_art.js", "merging.js"),
)
STYLE = "views.css"


@dataclass(frozen=True)
class View:
    """One of the views that `views.js` brings to life: its `kind`, its `data` as plain JSON, and
    the HTML that is there `still`, without a script. `words` say what it is in plain text."""

    kind: str
    data: Mapping[str, Any]
    still: str
    words: str

    def _repr_html_(self) -> str:
        held = json.dumps(self.data, ensure_ascii=False, separators=(",", ":"))
        held = held.replace("<", "\\u003c")  # or a text in it could end the script element
        host = (
            f'<div class="lab-view" data-view="{self.kind}"><script type="application/json">{held}'
            f'</script><div class="lab-still">{self.still}</div></div>'
        )
        return host if in_the_book() else host + _brought_along()

    def __str__(self) -> str:
        return self.words

    __repr__ = __str__


def styled(html: str) -> str:
    """HTML with the style of views, for a widget outside the book."""
    style = (STATIC / STYLE).read_text(encoding="utf-8")
    return f'<style>{style}</style><div class="lab-view">{html}</div>'


def in_the_book() -> bool:
    """Whether a page of the book is being built, which loads the scripts itself."""
    return bool(os.environ.get(IN_THE_BOOK))


def _brought_along() -> str:
    """For JupyterLab, which loads no files of ours."""
    if not STATIC.is_dir():
        raise FileNotFoundError(f"{STATIC} is missing: work in a checkout of the project")
    texts = [(STATIC / name).read_text(encoding="utf-8") for name in SCRIPTS]
    style = (STATIC / STYLE).read_text(encoding="utf-8")
    return f"<style>{style}</style>" + "".join(
        f"<script>{text}</script>" for text in (*texts, "SoftmaxLab.views.mount();")
    )
