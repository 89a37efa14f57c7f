"""The checker of y = A x fails wrong answers, and kernels take any alignment."""

import numpy as np
import pytest

from softmax_lab import KERNELS, emulator, launch, products
from softmax_lab.emulator import Out, Source

GEMV = [name for name in KERNELS if name.startswith("gemv/")]
ROWS, COLS = 40, 257


def right(A, x):
    return products.gemv(A, x).astype("f4")


WRONG = {
    "zeros": lambda A, x: np.zeros(len(A), "f4"),
    "lost tail": lambda A, x: right(A[:, :-1], x[:-1]),
    "lost first": lambda A, x: right(A[:, 1:], x[1:]),
    "transposed use": lambda A, x: right(A[:, ::-1], x),
    "half precision": lambda A, x: right(A.astype("f2"), x.astype("f2")),
    "rows swapped": lambda A, x: right(A[::-1], x),
    "magnitudes": lambda A, x: right(np.abs(A), np.abs(x)),
    "last row kept": lambda A, x: np.append(right(A, x)[:-1], np.float32(0)),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_answers_fail(wrong):
    A, x = products.inputs("normal", ROWS, COLS)
    assert products.compare(right(A, x), A, x).ok
    verdict = products.compare(WRONG[wrong](A, x), A, x)
    assert not verdict.ok
    assert verdict.message.startswith("y[")


def test_a_lost_tail_shows_alone():
    A, x = products.inputs("unit", 3, 5)
    assert x.tolist() == [0, 0, 0, 0, 1]
    assert products.compare(A[:, -1], A, x).ok
    assert not products.compare(np.zeros(3, "f4"), A, x).ok


def test_cancellation_is_forgiven_and_nothing_else():
    A, x = products.inputs("cancelling", ROWS, COLS)
    y = right(A, x)
    scale = np.abs(A) @ np.abs(x)
    assert products.compare((y + 2**-24 * scale).astype("f4"), A, x).ok
    assert not products.compare((y + 1e-4 * scale).astype("f4"), A, x).ok


def test_what_is_not_finite_goes_through():
    A, x = products.inputs("special", 6, 8)
    want = products.gemv(A, x)
    assert np.isneginf(want[1]) and np.isposinf(want[2]) and np.isnan(want[3])
    assert np.isposinf(want[4]) and np.isnan(want[5])
    assert products.compare(want.astype("f4"), A, x).ok
    for row, bad in ((1, np.inf), (2, 3e38), (3, 0), (0, np.nan), (0, np.inf)):
        y = want.astype("f4")
        y[row] = bad
        verdict = products.compare(y, A, x)
        assert not verdict.ok
        assert verdict.message.startswith(f"y[{row}] is")


def test_bad_shapes_and_kinds_are_named():
    A, x = products.inputs("normal", 3, 4)
    with pytest.raises(ValueError, match=r"\(3,\), \(3, 4\) and \(3,\)"):
        products.compare(np.zeros(3), A, np.zeros(3))
    with pytest.raises(ValueError, match="no input 'x'; there are normal"):
        products.inputs("x", 3, 4)
    assert products.compare(np.zeros(0), np.zeros((0, 4)), x).ok


@pytest.mark.parametrize("name", GEMV)
@pytest.mark.parametrize("by", [(0, 1), (1, 0), (1, 1), (2, 3), (3, 3)])
@pytest.mark.parametrize("shape", [(5, 7), (6, 12), (9, 128), (3, 131)])
def test_pointers_may_start_anywhere(name, by, shape):
    """The emulator's arrays start at a page; the source is moved on by a few elements instead."""
    kernel, (rows, cols) = KERNELS[name], shape
    A, x = products.inputs("normal", rows, cols)
    text = kernel.path.read_text()
    assert text.count("A += row * cols;") == 1
    text = text.replace("A += row * cols;", f"A += row * cols + {by[0]}; x += {by[1]};")
    moved = [
        np.concatenate([np.full(b, np.nan, "f4"), a.ravel()])
        for b, a in zip(by, (A, x), strict=True)
    ]
    run = emulator.launch(
        Source(text, kernel.path.name, kernel.path.parent),
        *kernel.geometry(rows),
        (*moved, Out((rows,)), rows, cols),
        kernel=kernel.symbol,
    )
    assert not run.faults
    assert products.compare(run.y, A, x).ok


@pytest.mark.parametrize("name", GEMV)
def test_matrices_without_columns_give_zeros(name):
    # N10: gemv A(0, 4) @ x(4) is empty, A(4, 0) @ x(0) is four zeros.
    none, some = np.zeros((0, 4), "f4"), np.zeros((4, 0), "f4")
    assert launch(name, none, np.ones(4, "f4"), device="cpu").shape == (0,)
    assert launch(name, some, np.ones(0, "f4"), device="cpu").tolist() == [0] * 4
