"""Formulas as MathML: whole or not at all. Those of the text: test_notebooks."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from softmax_lab import cost
from softmax_lab.mathml import inline, mathml
from softmax_lab.registry import KERNELS


def test_a_formula_becomes_an_element():
    root = ET.fromstring(mathml(r"\frac{x}{2}"))
    assert root.tag == "math"
    assert [part.text for part in root.find("mfrac")] == ["x", "2"]
    assert root.get("display") is None
    assert ET.fromstring(mathml("x", display=True)).get("display") == "block"
    assert inline("x") == f'<span class="math notranslate nohighlight">{mathml("x")}</span>'


def test_signs_are_characters_and_less_than_is_escaped():
    """ET reads XML, which knows none of HTML's names but three."""
    root = ET.fromstring(mathml(r"\log_2 W < \max(a, b)"))
    assert "\u2061" in [part.text for part in root.iter("mo")]  # function application


@pytest.mark.parametrize(
    ("tex", "why"),
    [
        (r"\foo + 1", r'Unknown command "\\foo"'),
        (r"\frac{1}", "end of input"),
        (r"\left( a", r"\\right"),
        (r"\begin{nothing}a\end{nothing}", "Unknown environment"),
        ("a & b", "table"),
        ("x^2^3", "Duplicate"),
        ("$x$", "Unexpected"),
        (r"a \\ b", "breaks a line"),
        (r"\begin{aligned}a\end{aligned} \\ b", "breaks a line"),
        (" ", "empty"),
    ],
)
@pytest.mark.parametrize("display", [False, True])
def test_what_cannot_be_shown_whole_is_refused(tex, why, display):
    with pytest.raises(ValueError, match=why):
        mathml(tex, display=display)


def test_every_closed_form_is_typeset():
    phases = [p for kernel in KERNELS.values() for p in (*kernel.executed, *kernel.textbook)]
    forms = {cost.latex(formula) for phase in phases for formula in phase.formulas.values()}
    assert len(forms) > 10
    for tex in forms:
        assert "\\" not in mathml(tex)
