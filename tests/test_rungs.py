"""The growing table of rungs: each cell is the model's or the record's number."""

from __future__ import annotations

from dataclasses import replace

import pytest

from softmax_lab import ledger, registry, rungs
from softmax_lab.units import MISSING, number, percent, times

SHAPE = (65536, 1024)


@pytest.fixture(scope="module")
def books():
    return [ledger.ledger(name, *SHAPE, counted=False) for name in ("naive", "online", "warp")]


def test_a_line_is_derived_and_measured(books):
    lines = rungs.table(books).rows
    assert [line[0] for line in lines] == ["`naive`", "`online`", "`warp`"]
    assert [line[1] for line in lines] == ["16", "12", "12"]  # bytes asked for, an element
    assert [line[2] for line in lines] == ["128", "96", "12"]  # whole sectors, an element
    for book, line in zip(books, lines, strict=True):
        mine, first = book.measured, books[0].measured
        assert line[4] == number(mine.seconds * 1e6)
        assert line[5] == times(first.seconds / mine.seconds)
        assert line[6] == percent(mine.copy_seconds / mine.seconds)


def test_a_rung_nobody_measured_says_so(books):
    bare = [replace(books[0], measured=None), books[1]]
    one, two = rungs.table(bare).rows
    assert one[4:] == (MISSING,) * 3
    assert two[4] != MISSING and two[5] == MISSING and two[6] != MISSING


def test_the_note_names_shape_machine_and_level(books):
    note = str(rungs.table(books).note)
    for word in ("65", "NVIDIA H200", "L1", "float32", books[0].measured.provenance["date"]):
        assert word in note


def test_the_note_says_whose_doubles_are_left_out(books):
    assert "double" not in rungs.table(books).note
    kept = ledger.ledger("naive_store", *SHAPE, counted=False)
    assert "(of `naive_store` without those in double)" in rungs.table([*books, kept]).note


def test_shapes_may_not_be_mixed(books):
    with pytest.raises(ValueError, match="one shape"):
        rungs.table([books[0], ledger.ledger("warp", 256, 1024, counted=False)])
    with pytest.raises(ValueError, match="none"):
        rungs.table([])


def test_so_far_is_the_ladder_up_to_a_rung():
    assert registry.so_far("online")[0] == "naive"
    assert registry.so_far("online")[-1] == "online"
    assert "warp" not in registry.so_far("online")
    with pytest.raises(ValueError, match="no kernel"):
        registry.so_far("nope")
