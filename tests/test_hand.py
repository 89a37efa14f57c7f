"""The example that is followed by hand, digit for digit."""

from __future__ import annotations

import pytest
from drawings import check, words

from softmax_lab import hand, online

ROW = [3, 1, 2, 0, 6, 4, 5, 1]


def test_four_threads_read_eight_columns_in_two_steps():
    frames = hand.reading(ROW, 4)
    check(frames)
    assert len(frames) == 2
    assert "m = 6, L = 1.0498; thread 1 holds m = 4" in frames[1].alt
    assert {"m 6", "L 1.0498", "L 1.3679", "7", "thread 3"} <= set(words(frames[1]))
    assert "thread 0 holds m = 3, L = 1;" in frames[0].alt


def test_partials_digit_for_digit():
    table = hand.partials(ROW, 4)
    assert [row[2] for row in table.rows] == ["6", "4", "5", "1"]
    assert [row[3] for row in table.rows] == ["1.0498", "1.0498", "1.0498", "1.3679"]
    assert [row[5] for row in table.rows] == ["1.0498", "0.1421", "0.3862", "0.0092"]
    assert table.rows[1][1] == "1, 4"


def test_sentences_digit_for_digit():
    assert "4.5172 where the row's is 1.5873: 2.85× as much" in str(hand.raw(ROW, 4))
    assert "add up to 0.351" in str(hand.raw(ROW, 4))
    sums = "(1.0498, 0.1421, 0.3862, 0.0092) → (1.4360, 0.1513) → 1.5873"
    assert sums in str(hand.tree(ROW, 4))
    assert "(6, 4, 5, 1) → (6, 4) → 6" in str(hand.tree(ROW, 4, "max"))
    assert "0.0314, 0.0042, 0.0115, 0.0016, 0.6300, 0.0853, 0.2318, 0.0042" in str(
        hand.results(ROW)
    )
    assert "meets 2 new maxima, 4 threads meet 8" in str(hand.rises(ROW, 4))


def test_correction_makes_the_parts_add_up():
    total = online.scan(ROW)[-1].sum
    assert sum(hand.correct(online.lanes(ROW, 4))) == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize(("row", "threads"), [([], 4), ([1] * 9, 4), ([1] * 8, 5), ([1], 0)])
def test_what_does_not_fit_is_refused(row, threads):
    with pytest.raises(ValueError, match="8 columns and 4 threads"):
        hand.reading(row, threads)
