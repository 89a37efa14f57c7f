"""Formulas as MathML, which browsers show and screen readers speak without a script."""

from __future__ import annotations

import re
from functools import cache
from html import unescape

CLASSES = "math notranslate nohighlight"
"""Of the element around a formula; Sphinx's own, so that its search and styles know formulas."""


@cache
def mathml(tex: str, *, display: bool = False) -> str:
    """The formula `tex` as a `<math>` element, on a line of its own if `display`.

    Raises ValueError for what is no formula and for commands that the converter does not know:
    nothing is ever shown half.
    """
    import math_core  # not for those who only count and measure

    words = re.sub(r"\\begin\{(.+?)\}.*\\end\{\1\}", "", tex, flags=re.DOTALL)
    if not tex.strip():
        raise ValueError("an empty formula cannot be typeset")
    if r"\\" in words:  # the converter would drop the break in silence
        raise ValueError(f"the formula {tex!r} breaks a line outside aligned, cases or the like")
    try:
        element = math_core.LatexToMathML(fancy_error=False).convert_with_local_state(
            tex, displaystyle=display
        )
    except math_core.LatexError as error:
        raise ValueError(f"the formula {tex!r} cannot be typeset, character {error}") from None
    # HTML's names of characters are none of XML's, and pages are read as both.
    return re.sub(r"&(?!amp;|lt;|gt;|quot;)\w+;", lambda name: unescape(name[0]), element)


def inline(tex: str) -> str:
    """The formula `tex` as it stands within a sentence."""
    return f'<span class="{CLASSES}">{mathml(tex)}</span>'
