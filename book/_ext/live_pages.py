"""The live bench in the pages: its script and style, which cells then need not bring.

Where a notebook runs for the book, this process is its parent: cells learn it from the environment.
"""

from __future__ import annotations

import os
from pathlib import Path

from softmax_lab.live import BUNDLE, IN_THE_BOOK, bundle


def write_bundle(app, exception) -> None:
    """Sphinx's build-finished: the bench's parts as one file."""
    if exception is None:
        (Path(app.outdir) / "_static" / BUNDLE).write_text(bundle(), "utf-8")


def setup(app) -> dict:
    """Registers the extension with Sphinx."""
    os.environ[IN_THE_BOOK] = "1"
    app.connect("build-finished", write_bundle)
    app.add_css_file("live.css")
    app.add_js_file("live.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
