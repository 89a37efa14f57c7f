"""Kernels beside the list: they do what they are shown for, and cost what is said."""

import difflib

import numpy as np
import pytest

from softmax_lab import count, derive, emulator, launch, reference, registry

FOIL = "foil/unshifted"


def unshifted(row):
    return launch(FOIL, np.array([row], np.float32), device="cpu")[0]


@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (33, 100), (130, 16)], ids=str)
@pytest.mark.parametrize("name", ["normal", "overflowing", "negative", "masked", "special"])
def test_the_unshifted_kernel_costs_what_is_derived_whatever_it_computes(shape, name):
    x = reference.inputs(name, *shape)
    assert set((count(FOIL, x) - derive(FOIL, x)).known().values()) == {0}


def test_a_shift_costs_a_read_a_comparison_and_two_subtractions_an_element():
    rows, cols = 64, 32
    price = derive("naive", rows, cols) - derive(FOIL, rows, cols)
    paid = {field: value / (rows * cols) for field, value in price.known().items() if value}
    assert (paid["load_bytes"], paid["sub"], paid["compare"]) == (4, 2, 1)
    assert "exp" not in paid
    assert "store_bytes" not in paid


def test_on_small_scores_it_is_right():
    x = reference.inputs("normal", 40, 100)
    assert reference.compare(launch(FOIL, x, device="cpu"), x).ok


def test_it_fails_in_three_ways():
    # Worklog section 1: a power overflows, only the sum overflows, every power vanishes.
    y = unshifted([89, 0, 1])
    assert np.isnan(y[0])
    assert y[1:].tolist() == [0, 0]
    assert unshifted([85] * 1024).tolist() == [0] * 1024
    assert np.isnan(unshifted([-104, -105])).all()


@pytest.mark.parametrize(
    ("good", "bad"), [(88.72283, 88.72284), (-103.972, -103.973)], ids=["overflow", "underflow"]
)
def test_a_row_of_one_score_fails_where_the_format_ends(good, bad):
    assert unshifted([good]).tolist() == [1]
    assert np.isnan(unshifted([bad])).all()


def test_the_sum_overflows_earlier_the_longer_the_row():
    limit = np.log(np.finfo(np.float32).max.astype(float)) - np.log(1024)
    assert unshifted([limit - 1e-3] * 1024) == pytest.approx(np.full(1024, 1 / 1024), rel=1e-5)
    assert unshifted([limit + 1e-3] * 1024).tolist() == [0] * 1024


def test_the_copy_moves_each_byte_once():
    x = reference.inputs("normal", 37, 12)
    run = emulator.run("roof/copy", x)
    assert not run.faults
    assert (run.y == x).all()
    useful = derive("roof/copy", 37, 12, form="textbook")
    assert (run.counts.load_bytes, run.counts.store_bytes) == (useful.load_bytes,) * 2


def test_what_has_no_closed_form_is_not_derived_as_nothing():
    with pytest.raises(ValueError, match="roof/copy has no closed form as executed"):
        derive("roof/copy", 3, 4)


@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (33, 100), (130, 16), (250, 67)], ids=str)
@pytest.mark.parametrize("kind", ["normal", "masked", "special"])
@pytest.mark.parametrize("name", [name for name in registry.EXHIBITS if name.startswith("apart/")])
def test_a_step_between_two_rungs_is_a_softmax_and_costs_what_is_derived(name, kind, shape):
    x = reference.inputs(kind, *shape)
    assert reference.compare(launch(name, x, device="cpu"), x).ok
    assert set((count(name, x) - derive(name, x)).known().values()) == {0}


def test_each_step_changes_one_thing():
    def body(name):
        text = registry.get(name).path.read_text(encoding="utf-8").partition('extern "C"')[2]
        return [line.partition("  //")[0] for line in text.splitlines()[1:]]

    def changed(before, after):
        told = difflib.ndiff(body(before), body(after))
        return [line[2:].strip() for line in told if line[0] in "+-" and line[2:].strip()]

    row, leave, lane = "row = ", "if (row", "const unsigned lane"
    for line in changed("warp", "apart/warp_four_rows"):
        assert row in line or leave in line or line.startswith(lane)
    assert len(changed("warp_merge", "apart/warp_merge_unhinted")) == 3
    assert all(
        "expf" in s or "for" in s for s in changed("warp_merge", "apart/warp_merge_unhinted")
    )
    assert registry.get("apart/naive_32").path == registry.get("naive").path
    assert registry.get("apart/naive_32").block == registry.get("naive_store").block


@pytest.mark.gpu
def test_the_gpu_fails_alike():
    rows = [[89, 0, 1], [85, 85, 85], [-104, -105, -106], [88.72283, 0, 0]]
    x = np.array(rows, np.float32)
    ours, theirs = (launch(FOIL, x, device=device) for device in ("cpu", "gpu"))
    assert (np.isnan(ours) == np.isnan(theirs)).all()
