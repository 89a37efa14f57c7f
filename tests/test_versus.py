"""Kernels beside each other: every cell and sentence says what the models and the data say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from softmax_lab import ledger, online, reference, versus
from softmax_lab.units import number

ROWS, COLS = 64, 128
X = reference.inputs("normal", ROWS, COLS)
FORMS = [f"online{form}" for form in ("", "_rescale", "_branchfree")]


@pytest.fixture(scope="module")
def books():
    return {name: ledger.ledger(name, ROWS, COLS) for name in ["naive", "warp", *FORMS]}


def test_forms_are_the_closed_forms(books):
    table = versus.forms([books[name] for name in FORMS], "online pass", ["sub", "exp", "diverged"])
    assert [row[1:] for row in table.rows] == [
        (r"\(MN\)", r"\(MN\)", r"\(D\)"),
        (r"\(MN + R\)", r"\(MN + R\)", r"\(D\)"),
        (r"\(2MN\)", r"\(2MN\)", "–"),
    ]


def test_counts_are_counted(books):
    table = versus.counts([books[name] for name in FORMS], ["flops", "exp"])
    for column, name in enumerate(FORMS, start=1):
        counted = ledger.count(name, X)
        assert [row[column] for row in table.rows] == [number(counted.flops), number(counted.exp)]


def test_exact_tells_zero_from_not_zero(books):
    none = books["warp"].counted - books["warp"].executed
    assert "zero in all 23 counts, for warp" in str(versus.exact({"warp": none}))
    off = replace(none, exp=1, add=-2)
    assert "differ: warp in additions and exponentials" in str(versus.exact({"warp": off}))


def test_what_the_scores_of_a_row_change():
    given = {"random": "normal", "in order": "rising", "all alike": "constant"}

    def table_of(name, cols):
        counted = {k: ledger.count(name, reference.inputs(v, 4, cols)) for k, v in given.items()}
        return versus.by_data(ledger.ledger(name, 4, cols, counted=False), counted)

    table = table_of("block_online", 512)  # 256 threads, two columns each
    diverged = table.heads.index("branches that diverged")
    multiplied = table.heads.index("multiplications")
    random, rising, constant = table.rows
    assert (rising[diverged], constant[diverged]) == ("20", "20")  # the tree's last five rounds
    assert int(random[diverged]) > 20
    tree = 255  # merges of a row; a rise of each thread at its first column, and at its second
    assert int(constant[multiplied].replace("\u202f", "")) == 4 * (256 + tree)
    assert int(rising[multiplied].replace("\u202f", "")) == 4 * (512 + tree)
    for same in ("exponentials", "bytes loaded", "barriers"):
        assert same in table.note and same not in table.heads
    (_, *moved) = table_of("online_branchfree", 64).heads
    assert moved == []  # neither a branch nor an order comparison


def test_rises_expected_and_seen():
    table = versus.rises((1, 128), ROWS, lambda m, n: reference.inputs("normal", m, n))
    assert table.rows[0] == ("1", "1", "1", "100%", "0%")
    assert table.rows[1][1] == number(online.harmonic(128))
    assert table.rows[1][2] == number(online.updates(X) / ROWS)
    assert f"rises {number(online.updates(X))} times" in str(versus.rise_share(X))
    assert f"32 walks meet {number(online.updates(X, 32))}" in str(versus.walks(X, 32))


def test_the_price_of_the_merge(books):
    said = str(versus.merge_share(ledger.ledger("warp", 256, 1024)))
    assert "95 FLOPs by the textbook and 224 as executed" in said
    assert "2.32% and 5.46%" in said


def test_row_lengths_agree_with_the_emulator():
    lengths = (1, 7, 33, 100, 1001)
    table = versus.row_lengths(
        lengths, 32, lambda n: ledger.count("warp", reference.inputs("normal", 32, n))
    )
    assert all(row[1] == row[2] for row in table.rows)
    used = {row[0]: row[3] for row in table.rows}
    assert (used["7"], used["33"], used["100"], used[number(1001)]) == (
        "50%",
        "70.2%",
        "86.2%",
        "81.7%",
    )
    assert table.rows[0][4] == "100%"


def test_bytes_moved_and_intensity(books):
    one = str(versus.moved(books["online"]))
    assert "12 bytes an element asked for, 96 moved at L1" in one
    assert "12 moved at L1" in str(versus.moved(books["warp"]))


def test_divergence_is_counted(books):
    said = str(versus.divergence(books["warp"]))
    assert (
        f"{number(books['warp'].counted.diverged)} of the {number(ROWS * COLS // 32)} steps" in said
    )
    assert online.diverged(X, 32) == books["warp"].counted.diverged


def test_blocks_and_warps_of_a_launch(books):
    said = str(versus.crowd([ledger.ledger(n, 256, 8, counted=False) for n in ("online", "warp")]))
    assert "online launches 2 blocks, 8 warps and warp launches 256 blocks, 256 warps" in said
    assert "132 multiprocessors" in said


def test_a_ledger_derives_from_the_matrix_that_it_counts(books):
    for name, book in books.items():
        assert book.executed == ledger.derive(name, X)
        assert not (book.counted - book.executed).known().keys() - book.executed.known().keys()
        assert book.disagreements() == {} or book.measured
        assert book.symbol("R") == online.updates(X)
    unseen = ledger.ledger("online", ROWS, COLS, counted=False)
    assert unseen.symbol("R") == pytest.approx(ROWS * online.harmonic(COLS))
