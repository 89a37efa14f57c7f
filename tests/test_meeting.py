"""How the threads of a row meet: the price by hand, and faults that row sums do not show."""

from __future__ import annotations

import numpy as np
import pytest

from softmax_lab import cuts, ledger, meeting, reference, versus
from softmax_lab.cuts import WRONG
from softmax_lab.units import number


@pytest.fixture(scope="module")
def books():
    names = ("warp", "block_tree", "block_warp", "block_online")
    return [ledger.ledger(name, 9, 100, counted=False) for name in names]


def test_the_price_of_a_row_by_hand(books):
    # 9 rows: block_warp has 12 rows in its three blocks, and executes for all of them
    warp, tree, eight, online = meeting.per_row(books).rows
    assert warp == ("`warp`", "32", "0", "12", "0", "384", "32")
    assert tree[1:] == ("512", "21", "0", "184", "1\u202f022", "0")
    assert eight[2:4] == ("4", "107") and eight[5] == "3\u202f432"  # 12/9 of 80 and of 2574
    assert online[1:] == ("256", "9", "0", "80", "1\u202f020", "255")


def test_steps_and_threads_at_work():
    short, long = meeting.at_work((8, 1024), (32, 256)).rows
    assert short == ("8", "1", "25%", "1", "3.12%")
    assert long == ("1\u202f024", "32", "100%", "4", "100%")


def test_row_sums_do_not_see_what_the_oracle_refuses():
    x = reference.inputs("normal", 4, 50)
    want = reference.softmax(x).astype(np.float32)
    good = str(meeting.row_sums(want, x))
    assert "0 of 4 rows" in good and "passes it" in good
    uniform = np.full_like(want, 1 / 50)
    bad = str(meeting.row_sums(uniform, x))
    assert "4 of 4 rows" in bad and "refuses it" in bad


def test_a_maximum_in_an_integer():
    table = meeting.cut_off((0.9, -0.9, -(2.0**31) - 256, float("inf")))
    assert [row[1] for row in table.rows[:2]] == ["0", "0"]
    assert table.rows[2][1:] == ("−2\u202f147\u202f483\u202f648", "0")
    assert table.rows[3][2] == "∞"


def test_a_barrier_ties_rows_together(books):
    said = str(meeting.waiting(books[2]))
    assert "32 warps, 8 on each of 4 rows" in said and "24 of the others" in said


def test_slots_of_threads_and_of_warps(books):
    said = str(meeting.slots(books[2]))  # [4][2][256] floats as published, [4][2][8] used
    assert number(8192 / 1e3) in said and "256\u202fB" in said


def test_the_first_fault_is_told():
    assert "no fault" in str(meeting.said_by(()))
    x = reference.inputs("normal", 5, 8)
    said = str(meeting.said_by(cuts.run("block_warp-stay", x).faults))
    assert "barrier after exit" in said and "768 threads had returned" in said


def test_merging_threads_is_putting_a_row_together(books):
    said = str(versus.merge_share(books[3]))  # subtraction, multiplication, addition a merge
    assert "takes 765 FLOPs" in said and "765 as executed" in said  # 255 merges


def test_repairs_stand_beside_what_was_published():
    (gone,) = (cut for cut in cuts.cuts() if cut.name == "block_tree-reuse")
    (held,) = (cut for cut in cuts.cuts() if cut.name == "block_warp-float")
    first, second = meeting.undone([gone, held]).rows
    assert first == ("`block_tree.cu`, line 32", "`__syncthreads();`", "–", "shared race")
    assert second[1] == "`const float row_max = maxima[mine][0];`"
    assert second[2] == "`const int row_max = int(maxima[mine][0]);`"


BLOCKS = [cut for cut in cuts.cuts() if cut.kernel.name.startswith("block")]


@pytest.mark.parametrize("cut", BLOCKS, ids=lambda cut: cut.name)
def test_a_line_that_is_gone_is_seen(cut):
    row = cut.line.row
    x = np.array([row], np.float32) if row else reference.inputs("normal", *cut.line.shape)
    found = cuts.run(cut.name, x)
    if cut.line.outcome == WRONG:
        assert not found.faults and not reference.compare(found.y, x).ok
    else:
        assert cut.line.outcome in {fault.kind for fault in found.faults}


@pytest.mark.parametrize("shape", [(256, 1024), (250, 1001), (32, 65536)])
def test_warps_that_are_switched_off_make_up_the_difference(shape):
    book = ledger.ledger("block_tree", *shape, counted=False)
    said = str(meeting.switched_off(book))
    if book.measured is None:
        pytest.skip(book.not_measured)
    seen = book.measured.counts
    assert seen.shared_requests == 928 * book.rows  # 2 trees, 16 warps, 3 accesses in 9 rounds, 2
    assert seen.shared_wavefronts == book.executed.shared_wavefronts
    assert f"make 928 a row, {number(seen.shared_requests)} in all" in said
