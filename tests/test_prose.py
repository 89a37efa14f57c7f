"""Computed sentences and tables: one content as HTML, Markdown and plain text."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from softmax_lab.prose import Table, html, names, plain, say, seen_columns, together
from softmax_lab.units import MISSING

MARKED = r"`a<b` is **bold `x`** & \(N < 8\)"


def test_marks_become_html_and_the_rest_is_escaped():
    assert html(MARKED) == (
        "<code>a&lt;b</code> is <strong>bold <code>x</code></strong> &amp; "
        '<span class="math notranslate nohighlight">'
        "<math><mi>N</mi><mo>&lt;</mo><mn>8</mn></math></span>"
    )
    assert html("<script>") == "&lt;script&gt;"


def test_one_sentence_three_ways():
    said = say("`{n}` of {share:%}: **{t:s}**", n=24576, share=0.125, t=None)
    assert said._repr_html_() == (
        '<p class="lab-note"><code>24\u202f576</code> of 12.5%: '
        "<strong>not measured yet</strong></p>"
    )
    assert said._repr_markdown_().startswith("`24\u202f576` of 12.5%")
    assert str(said) == "24\u202f576 of 12.5%: not measured yet"
    assert plain(MARKED) == "a<b is bold `x` & N < 8"


def test_maths_is_dollars_in_markdown():
    assert say(r"\(4MN\) FLOPs")._repr_markdown_() == "$4MN$ FLOPs"


@pytest.mark.parametrize("make", [say, lambda words: Table(("form",), ((words,),))])
def test_a_formula_that_cannot_be_typeset_is_refused_at_once(make):
    """IPython hides the errors of a display, so the cell itself has to fail."""
    with pytest.raises(ValueError, match=r"foo.*cannot be typeset"):
        make(r"It is \(\foo + 1\).")


def table() -> Table:
    rows = (("sum", r"\(MN\)", "262 144"), ("all", "–", "1"))
    return Table(("phase", "form", "bytes [B]"), rows, frozenset({2}), total=True, note="A note.")


def test_table_has_headers_units_and_a_total():
    root = ET.fromstring(f"<div>{table()._repr_html_()}</div>")
    heads = root.findall(".//thead/tr/th")
    assert [head.get("scope") for head in heads] == ["col"] * 3
    assert [head.get("class") for head in heads] == [None, None, "num"]
    assert heads[2].find("span").text == "[B]"
    first, last = root.findall(".//tbody/tr")
    assert first.find("th").get("scope") == "row"
    assert (first.get("class"), last.get("class")) == (None, "total")
    assert root.find("p").text == "A note."
    assert root.find("div").get("class") == "lab-scroll"


def test_table_as_text():
    assert str(table()).splitlines() == [
        "phase  form  bytes [B]",
        "sum    MN      262 144",
        "all    –             1",
        "A note.",
    ]
    assert "| phase | form | bytes [B] |\n| --- | --- | ---: |" in table()._repr_markdown_()


def test_a_heading_inside_a_table_stands_above_its_row():
    grouped = replace(table(), total=False, groups=((1, "as `x`"),))
    root = ET.fromstring(f"<div>{grouped._repr_html_()}</div>")
    first, second = root.findall(".//tbody")
    assert len(first.findall("tr")) == 1
    heading, row = second.findall("tr")
    cell = heading.find("th")
    assert (cell.get("scope"), cell.get("colspan"), cell.find("code").text) == (
        "rowgroup",
        "3",
        "x",
    )
    assert row.find("th").text == "all"
    assert str(grouped).splitlines()[2:4] == ["as x", "all    –             1"]
    assert "| **as `x`** |  |  |\n| all |" in grouped._repr_markdown_()


def test_a_heading_above_the_first_row_leaves_no_empty_part():
    grouped = replace(table(), total=False, groups=((0, "first"), (1, "second")))
    parts = ET.fromstring(f"<div>{grouped._repr_html_()}</div>").findall(".//tbody")
    assert [len(part.findall("tr")) for part in parts] == [2, 2]


def test_a_ragged_table_is_refused():
    with pytest.raises(ValueError, match="2 cells"):
        Table(("a", "b"), (("1", "2"), ("1",)))


def test_several_are_one_display():
    both = together(say("a"), table())
    assert both._repr_html_() == say("a")._repr_html_() + table()._repr_html_()
    assert str(both).startswith("a\nphase")


@pytest.mark.parametrize(
    ("words", "said"), [(["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_names(words, said):
    assert names(words) == said


def test_columns_that_nobody_has_are_left_out():
    heads, rows = seen_columns("abc", [("1", MISSING, MISSING), ("2", MISSING, "3")])
    assert (heads, rows) == (("a", "c"), (("1", MISSING), ("2", "3")))


def test_names_in_heads_may_go_on_in_a_new_line_and_many_columns_are_set_closer():
    few = Table(("`log_softmax/online_warp` [µs]", "a/b"), (("`warp_merge`, 1 × 8", "`c/d`"),))
    shown = few._repr_html_()
    assert "<code>log_<wbr>softmax/<wbr>online_<wbr>warp</code>" in shown
    assert "<code>warp_<wbr>merge</code>, 1 × 8" in shown
    assert ">a/b<" in shown and "<code>c/d</code>" in shown  # words and cells stay as they are
    assert "lab-many" not in shown and "<wbr>" not in few._repr_markdown_() + str(few)
    assert "lab-many" in Table(tuple("abcdef"), (tuple("123456"),))._repr_html_()
