"""The staircase of a running maximum: as many steps as the maximum rises."""

from __future__ import annotations

import re

import pytest
from drawings import check

from softmax_lab import online, reference
from softmax_lab.climbs import MOST, ORDERS, climb
from softmax_lab.units import number


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("cols", [1, 8, 64, 1024])
def test_a_staircase_has_a_step_for_each_rise(order, cols):
    frame = climb(order, cols)
    seen = online.updates(reference.inputs(ORDERS[order], 1, cols))
    stairs = re.findall(r'd="(M[^"]*V[^"]*)"', frame.markup)[0]
    assert stairs.count("V") == seen
    assert f"rises {number(seen)} time" in frame.alt
    dots = max(re.findall(r'd="([^"]*)"', frame.markup), key=lambda path: path.count("h0"))
    assert dots.count("h0") == cols


def test_the_orders_reach_both_ends():
    assert "rises 1 time." in climb("falling", 64).alt
    assert "rises 1 time." in climb("constant", 64).alt
    assert "rises 64 times" in climb("rising", 64).alt


def test_frames_are_drawn_like_all_others():
    check([climb(order, cols) for order in ORDERS for cols in (8, 64)])


@pytest.mark.parametrize(("order", "cols"), [("sideways", 8), ("random", 0), ("random", MOST + 1)])
def test_what_is_not_drawn_is_refused(order, cols):
    with pytest.raises(ValueError, match="got"):
        climb(order, cols)
