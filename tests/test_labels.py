"""Words of a chart: none stands on a line, on a point or on others."""

from __future__ import annotations

import pytest

from softmax_lab.labels import Label, meet, settle, square

LINE = ((0.0, 0.0), (100.0, 100.0))


@pytest.mark.parametrize(
    ("other", "touches"),
    [
        (square((50, 50), 3), True),
        (square((50, 60), 3), False),  # beside the line, though within the box around it
        (square((50, 56), 3), True),
        (((0, 100), (100, 0)), True),
        (((0, 1), (100, 101)), False),
        (((101, 101), (200, 200)), False),  # further along it
    ],
)
def test_convex_shapes_meet_where_no_line_parts_them(other, touches):
    assert meet(LINE, other) is meet(other, LINE) is touches


def test_a_turned_label_takes_the_room_along_its_slope():
    words = "as long as a roof's name"
    ((*corners,),) = Label(words, (0, 0), turn=45).shapes()
    assert not meet(square((60, 0), 5), tuple(corners))
    assert meet(square((60, 60), 5), tuple(corners))
    assert meet(square((60, 0), 5), Label(words, (0, 0)).shapes()[0])


def test_labels_settle_where_they_meet_nothing_and_change_for_one_another():
    near, far = Label("near", (0, 0)), Label("far", (0, 40))
    only = Label("only here", (0, 0))
    assert settle([[near, far]], []) == [near]
    assert settle([[near, far]], [square((0, 0), 4)]) == [far]
    assert settle([[near, far], [only]], []) == [far, only]


def test_where_all_is_taken_a_label_stands_where_it_meets_the_least():
    taken = [square((0, 0), 4), square((4, 0), 4), square((0, 40), 4)]
    assert settle([[Label("a", (0, 0)), Label("a", (0, 40))]], taken)[0].at == (0, 40)


def test_the_line_of_a_label_takes_room_too():
    tied = Label("L2", (0, 0), va="top", above=30)
    assert len(tied.shapes()) == 2
    assert any(meet(shape, square((0, 20), 3)) for shape in tied.shapes())
