"""The stepper of the merge: Python's picture and the page's are one, and both name the birth."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from test_views import needs_node, under_node

from softmax_lab import livefile, merging, merging_frames, prose
from softmax_lab.merging_frames import STARTS, stepper, verdict, words

LOOK = livefile.look()
CELLS = {"pitch": LOOK["pitch"], "cell": LOOK["cell"]}


def rows() -> dict[str, list[float]]:
    scores = stepper().data["scores"]
    masked = list(scores[:40])
    masked[0] = masked[33] = -math.inf
    lengths = {str(n): scores[:n] for n in (1, 15, 16, len(scores))}
    return lengths | {"masked": masked, "nothing": [-math.inf] * 20}


def written(pair) -> tuple[float, ...]:
    return tuple(float(v.replace("Infinity", "inf")) for v in pair)


@needs_node
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 3])
@pytest.mark.parametrize("tree", merging.TREES)
def test_the_page_computes_says_and_draws_the_same(tree, step):
    """All rows in all ways, and every third of them, which meets each row and each way."""
    kinds = list(product(rows().values(), STARTS, (False, True)))[::step]
    assert len({str(row) for row, *_ in kinds}) == len(rows())
    assert len({(start, guarded) for _, start, guarded in kinds}) == 4
    asked = [
        {
            "what": "meet",
            "row": [None if x == -math.inf else x for x in row],  # JSON has no word for it
            "tree": tree,
            "start": start,
            "guarded": guarded,
        }
        for row, start, guarded in kinds
    ]
    answers = under_node(asked, {"look": LOOK, "cells": CELLS})
    for (row, start, guarded), there in zip(kinds, answers, strict=True):
        rounds = merging.meet(row, tree, start=STARTS[start], guarded=guarded)
        assert len(there["rounds"]) == len(rounds)
        for page, here in zip(there["rounds"], rounds, strict=True):
            for field in ("source", "matter", "alike", "born"):
                assert tuple(page[field]) == getattr(here, field)
            np.testing.assert_allclose(
                [written(pair) for pair in page["pairs"]], here.pairs, rtol=2e-6
            )
        assert there["verdict"] == verdict(rounds, tree)
        shown = range(len(rounds) + 1)
        assert [s["words"] for s in there["steps"]] == [
            words(rounds, at, tree, STARTS[start]) for at in shown
        ]
        bodies = [merging_frames._body(rounds, at, STARTS[start]) for at in shown]
        assert [s["body"] for s in there["steps"]] == [[h, "".join(body)] for h, body in bodies]


@needs_node
@pytest.mark.parametrize(
    ("text", "found"),
    [("", []), ("0", [0]), ("5-7, 0 6", [0, 5, 6, 7]), ("3–4;31", [3, 4, 31])]
    + [(wrong, None) for wrong in ("x", "1.5", "7-5", "32", "-1", "1 two")],
)
def test_columns_are_read_or_refused(text, found):
    (there,) = under_node([{"what": "masked", "text": text, "most": 32}])
    assert there == found if found is not None else "from 0 to 31" in there


def test_the_birth_is_named_with_step_lanes_and_expression():
    rounds = merging.meet([0.0] * 15, start=-math.inf)
    said = words(rounds, 2, "butterfly", -math.inf)
    assert "lane l xor 16" in said and "**NaN is born in lanes 15, 31**" in said
    assert "exp(−∞ − (−∞))" in said
    assert "step 2 of 6, in lanes 15, 31" in verdict(rounds, "butterfly")
    guarded = merging.meet([0.0] * 15, start=-math.inf, guarded=True)
    assert "guarded factor is 1" in words(guarded, 2, "butterfly", -math.inf)
    top = merging.meet([math.inf, *[0.0] * 15, math.inf])
    assert "exp(∞ − ∞)" in words(top, 2, "butterfly", merging.LOWEST)


@pytest.mark.parametrize(
    ("start", "guarded", "said"),
    [
        ("published", False, "born in step 1 of 6, in lanes 0–7 already"),
        ("published", True, "from m = −∞ and L = 8: each result is exp(−∞ − (−∞)) / 8"),
        (
            "finite",
            False,
            "from m = −FLT_MAX and L = 0: each result is exp(−∞ + FLT_MAX) / 0",
        ),
    ],
)
def test_a_row_that_is_masked_whole_is_neither_lost_nor_saved(start, guarded, said):
    """NaN is what the contract wants of it, and what all three ways end in."""
    rounds = merging.meet([-math.inf] * 8, start=STARTS[start], guarded=guarded)
    assert said in verdict(rounds, "butterfly")
    assert "masked whole: NaN, as the contract wants" in verdict(rounds, "butterfly")
    last = words(rounds, len(rounds), "butterfly", STARTS[start])
    assert last.endswith("The row is masked whole, and NaN is what it has to give.")
    m, d = np.float32(merging.result(rounds))
    with np.errstate(all="ignore"):
        assert np.isnan(np.exp(np.float32(-np.inf) - m) / d)


def test_low_is_explained_where_it_stands_in_a_cell():
    rounds = merging.meet([0.0] * 8, start=merging.LOWEST)
    drawn = merging_frames.picture(rounds, 0, "butterfly", merging.LOWEST)
    assert ">low<" in drawn.markup and "low is −FLT_MAX" in drawn.markup
    assert "lane 31: −FLT_MAX and 0" in drawn.alt
    other = merging_frames.picture(rounds, 0, "butterfly", -math.inf)
    assert "low" not in other.markup


def test_births_are_framed_and_lost_lanes_crossed():
    rounds = merging.meet([0.0] * 15, start=-math.inf)
    drawn = merging_frames.picture(rounds, 2, "butterfly", -math.inf)
    assert drawn.markup.count("l12 12m0 -12l-12 12") == 2
    assert drawn.markup.count("h20v20h-20z") >= 2 and 'stroke-width="4"' in drawn.markup
    assert "lane 31: −∞ and NaN" in drawn.alt
    fine = merging_frames.picture(rounds, 1, "butterfly", -math.inf).markup
    assert "l12 12m0" not in fine and 'stroke-width="4"' not in fine


def test_without_a_script_the_birth_is_what_is_seen():
    view = stepper("neighbours", 20, masked=[19])
    assert view.data["start"]["at"] == 1  # the mask kills its lane in the walk
    assert "NaN is born in lane 19" in prose.plain(str(view))
    assert stepper(start="finite").data["start"]["at"] == 6
    assert len(view._repr_html_()) < 100_000


@pytest.mark.slow  # test_merging.py has the lengths themselves
def test_the_table_of_lengths():
    rows = {row[0]: row[1:] for row in merging_frames.lengths().rows}
    assert rows[merging.TREES["butterfly"]] == ("32", "1 to 15", "none", "none")
    assert rows[merging.TREES["fold"]] == ("32", "none", "none", "none")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"start": "zero"}, "published, finite"),
        ({"cols": 0}, "1 to 256"),
        ({"cols": 257}, "1 to 256"),
        ({"cols": 4, "masked": [4]}, "among them"),
        ({"tree": "oak"}, "butterfly"),
    ],
)
def test_nonsense_is_refused(how, message):
    with pytest.raises(ValueError, match=message):
        stepper(**how)
