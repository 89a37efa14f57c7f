"""Label each work of the bibliography by the tag that the kernels' heads name it by.

The tag is BibTeX's field `shorthand`, as in [MSF]: what stands in a file can be looked up on the
References page. An entry without one ends the build.
"""

from __future__ import annotations

from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style
from pybtex.style.labels import BaseLabelStyle
from pybtex.style.sorting import BaseSortingStyle

TAG = "shorthand"


class Labels(BaseLabelStyle):
    """Tags as labels."""

    def format_labels(self, sorted_entries):
        return [entry.fields[TAG] for entry in sorted_entries]


class Order(BaseSortingStyle):
    """By tag, so that one is found where it is looked for."""

    def sorting_key(self, entry):
        return entry.fields[TAG].lower()


class Tagged(Style):
    """The plain style, but for labels and order."""

    default_label_style = Labels
    default_sorting_style = Order


def setup(app) -> dict[str, bool]:
    """Sphinx's entry point."""
    register_plugin("pybtex.style.formatting", "tagged", Tagged)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
