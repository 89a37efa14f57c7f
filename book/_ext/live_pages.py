"""The live bench in the pages: its script and style, which cells then need not bring.

Where a notebook runs for the book, this process is its parent: cells learn it from the environment.
"""

from __future__ import annotations

import os

from softmax_lab.live import IN_THE_BOOK


def setup(app) -> dict:
    """Registers the extension with Sphinx."""
    os.environ[IN_THE_BOOK] = "1"
    app.add_css_file("live.css")
    app.add_js_file("live.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
