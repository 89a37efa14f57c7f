"""Formulas of the pages as MathML, made when the book is built: they need no script to be read.

A formula that cannot be typeset ends the build, with its file and line.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util.math import get_node_equation_number

from softmax_lab.mathml import CLASSES, mathml

FORMULA = rf'<span class="{CLASSES}"[^>]*><math>.*?</math></span>'
WITH_SIGNS = re.compile(rf"([(\[]*){FORMULA}([,.;:!?)\]]*)", re.DOTALL)


def typeset(node: nodes.math | nodes.math_block) -> str:
    """The `<math>` element of a formula of the text."""
    try:
        return mathml(node.astext(), display=isinstance(node, nodes.math_block))
    except ValueError as error:
        at = node
        while at.line is None and at.parent is not None:
            at = at.parent
        raise ExtensionError(f"{node.document['source']}, line {at.line}: {error}") from None


def within_a_line(translator, node: nodes.math) -> None:
    """Write a formula that stands within a sentence."""
    translator.body.append(translator.starttag(node, "span", "", CLASS=CLASSES))
    translator.body.append(f"{typeset(node)}</span>")
    raise nodes.SkipNode


def on_its_own(translator, node: nodes.math_block) -> None:
    """Write a formula that stands alone: it scrolls in a box, its number stays beside it."""
    write = translator.body.append
    write(translator.starttag(node, "div", CLASS=CLASSES))
    write(f'<div class="lab-formula">{typeset(node)}</div>')
    if node["number"]:
        write(f'<span class="eqno">({get_node_equation_number(translator, node)})')
        translator.add_permalink_ref(node, "Link to this equation")
        write("</span>")
    write("</div>\n")
    raise nodes.SkipNode


def keep_signs(app, pagename, templatename, context, doctree) -> None:
    """Sphinx's html-page-context: no line breaks between a formula and a bracket or stop beside it.

    Browsers allow that break, unlike TeX.
    """

    def kept(match: re.Match) -> str:
        alone = not (match[1] or match[2])
        return match[0] if alone else f'<span class="lab-keep">{match[0]}</span>'

    if "body" in context:
        context["body"] = WITH_SIGNS.sub(kept, context["body"])


def setup(app) -> dict[str, bool]:
    """Sphinx's entry point."""
    app.connect("html-page-context", keep_signs)
    app.add_html_math_renderer("mathml", (within_a_line, None), (on_its_own, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
