"""Closed forms of the block kernels against what is known of them, before anything is counted."""

import pytest

from softmax_lab import derive

M, N = 256, 1024


def test_block_tree_is_three_passes_and_two_trees():
    did, threads = derive("block_tree", M, N), 512
    assert did.flops == M * (4 * N + threads - 1)
    assert (did.exp, did.bytes) == (2 * M * N, 16 * M * N)
    assert did.compare == M * (N + threads - 1)
    assert did.barriers == M * (2 * 9 + 3)
    assert did.shuffles == 0
    # Two trees: each warp stores once and reads slot 0 once; T/W - 1 whole warps and five times a
    # part of one load two values and store one.
    assert did.shared_requests == did.shared_wavefronts == M * 2 * (16 + 3 * (15 + 5) + 16)


@pytest.mark.parametrize("cols", [1, 5, 512, 1024])
def test_however_many_threads_share_a_row_the_useful_work_is_that_of_one(cols):
    book, one = (derive(name, M, cols, form="textbook") for name in ("block_tree", "naive"))
    assert book == one


def test_block_warp_ties_four_rows_together():
    did = derive("block_warp", M, N)
    # Five rounds of 256 lanes, then seven more in the row's first thread, for maximum and sum.
    assert did.flops == M * (4 * N + 5 * 256 + 7)
    assert did.compare == M * (N + 5 * 256 + 7)
    assert (did.exp, did.bytes) == (2 * M * N, 16 * M * N)
    assert did.shuffles == 80 * M
    assert did.barriers == 4 * M / 4
    assert derive("block_warp", 4 * 7, 50).shuffles == derive("block_warp", 4 * 7 - 3, 50).shuffles


def test_warp_merge_pays_for_every_lane_at_every_level():
    did, book = (derive("warp_merge", M, N, form=form) for form in ("executed", "textbook"))
    assert did.flops == 5 * M * N + 15 * 32 * M
    assert did.exp == 2 * M * N + 5 * 32 * M
    assert did.compare == M * N + 5 * 32 * M + 32 * M  # the last are the tests for +inf
    assert (did.bytes, did.shuffles, did.barriers) == (12 * M * N, 10 * M, 0)
    assert book.exp - 2 * M * N == 31 * M  # useful merges, where 160 are executed


def test_block_online_has_one_tree_where_block_tree_has_two():
    did, book = (derive("block_online", M, N, form=form) for form in ("executed", "textbook"))
    assert did.barriers == M * (8 + 1)
    assert (did.bytes, did.shuffles) == (12 * M * N, 0)
    assert did.exp == book.exp == 2 * M * N + 255 * M  # every merge is of use
    assert did.compare - book.compare == 256 * M  # the tests for +inf
    # Each warp stores two words and reads two at the end; 7 whole warps and five times a part of
    # one load a pair and store one.
    assert did.shared_requests == did.shared_wavefronts == M * 4 * (8 + 7 + 5)


@pytest.mark.parametrize(
    ("name", "like", "threads"),
    [
        ("online_thread", "online", 1),
        ("online_warp", "warp", 32),
        ("online_block", "block_online", 256),
    ],
)
def test_log_softmax_saves_an_exponential_and_a_division_an_element(name, like, threads):
    for form, logarithms in (("executed", threads), ("textbook", 1)):
        saved = derive(like, M, N, form=form) - derive(f"log_softmax/{name}", M, N, form=form)
        assert (saved.exp, saved.div, saved.sub) == (M * N, M * N, -M * N)
        assert (saved.log, saved.bytes, saved.compare) == (-logarithms * M, 0, 0)
