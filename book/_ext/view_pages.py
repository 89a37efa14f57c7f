"""The views that pages draw by themselves: their scripts and style, which cells then need not
bring."""

from __future__ import annotations

from softmax_lab.alive import SCRIPTS, STYLE


def setup(app) -> dict:
    """Registers the extension with Sphinx."""
    app.add_css_file(STYLE)
    for name in SCRIPTS:
        app.add_js_file(name, loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
