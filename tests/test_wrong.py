"""Wrong kernels are refused, by the sanitizer with name and line or by the checker, and the kernels
they were made from are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from wrong import ELSEWHERE, FAR, FARTHER, VALUES, WRONG, Wrong, edited, run, strayed

from softmax_lab import emulator, reference, registry
from softmax_lab.emulator import Fault, Out, Run, Source, Virtual

NAMES = [each.name for each in WRONG]
OURS = [wrong for wrong in WRONG if not wrong.kernel.endswith(".cu")]
FOREIGN = [wrong for wrong in WRONG if wrong.kernel.endswith(".cu")]
RACY = WRONG[NAMES.index("block_tree without the barrier between its trees")]
FOLDER = Path(__file__).resolve().parent / "foreign"

every_fault = pytest.mark.parametrize("wrong", OURS, ids=lambda wrong: wrong.name)


def matrices(wrong: Wrong, x) -> tuple:
    """The kernel's inputs: rows of scores, normal ones of a shape, or an array of addresses."""
    if isinstance(x, Virtual):
        return (x,)
    if isinstance(x[0], tuple):
        return (np.array(x, "f4"),)
    return registry.get(wrong.kernel).family.inputs("normal", *x)


def ran(wrong: Wrong, arrays: tuple, **how) -> Run:
    how = {"sanitize": True} | how
    return run(wrong.kernel, arrays, *wrong.edits, threads=wrong.threads, **how)


def judge(wrong: Wrong, y, *arrays) -> reference.Verdict:
    return registry.get(wrong.kernel).family.compare(y, *arrays)


def line_of(fault: Fault, source: Source) -> str:
    """The text of the line that a fault names, in the kernel's file or in a header of ours."""
    if fault.file != source.name:
        source = Source.read(registry.kernel_folder() / fault.file)
    return source.text.splitlines()[fault.line - 1].strip()


def said(wrong: Wrong, found: Run) -> list[tuple[str, str]]:
    """Kind and line of every fault that was found."""
    source = edited(wrong.kernel, *wrong.edits)
    return [(fault.kind, line_of(fault, source)) for fault in found.faults]


def shows(wrong: Wrong, arrays: tuple) -> bool:
    """Whether these inputs bring out the verdict."""
    found = ran(wrong, arrays)
    if wrong.verdict == VALUES:
        return not found.faults and not judge(wrong, found.y, *arrays).ok
    return any(kind == wrong.verdict and wrong.line in line for kind, line in said(wrong, found))


# ---------------------------------------------------------------------------- the verdicts


@every_fault
def test_what_is_wrong_is_refused(wrong):
    arrays = matrices(wrong, wrong.x)
    if isinstance(wrong.x, Virtual):
        found = ran(wrong, arrays, sanitize=False)
        if wrong.verdict == ELSEWHERE:
            lines = edited(wrong.kernel, *wrong.edits).text.splitlines()
            assert not found.faults
            assert wrong.line in lines[strayed(wrong.kernel, found, *wrong.x.shape)[0] - 1]
            return
        assert {kind for kind, _ in said(wrong, found)} == {wrong.verdict}
        assert wrong.line in said(wrong, found)[0][1]
        assert found.faults[0].detail == "8589934592 bytes before the start of x"
        return
    assert shows(wrong, arrays), said(wrong, ran(wrong, arrays))


@pytest.mark.parametrize("wrong", FOREIGN, ids=lambda wrong: wrong.name)
def test_what_none_of_our_kernels_could_do_is_refused(wrong):
    x = reference.inputs("normal", 1, 6)
    source = Source.read(FOLDER / wrong.kernel)
    outs = Out(x.shape), Out((1, 2))
    found = emulator.launch(source, 2, 1, (x, *outs, *x.shape), sanitize=True)
    assert (wrong.verdict, wrong.line) in [(f.kind, line_of(f, source)) for f in found.faults]


@pytest.mark.parametrize("wrong", [w for w in OURS if w.spared], ids=lambda wrong: wrong.name)
def test_the_smallest_input_that_fails_has_neighbours_that_do_not(wrong):
    for spared in wrong.spared:
        arrays = matrices(wrong, spared)
        found = ran(wrong, arrays)
        assert not found.faults
        assert judge(wrong, found.y, *arrays).ok


@every_fault
def test_the_kernel_itself_is_right_there(wrong):
    for x in (wrong.x, *wrong.spared):
        arrays = matrices(wrong, x)
        if isinstance(x, Virtual):
            assert within_its_rows(wrong.kernel, x)
            continue
        found = run(wrong.kernel, arrays, sanitize=True)
        assert not found.faults
        assert judge(wrong, found.y, *arrays).ok


# ---------------------------------------------------------------------------- the smallest input

SCORES = (
    *(0.0, 1.0, -1.0, 100.0, -100.0, -104.0, 1e7, -1e7, -2147483904.0),
    *(np.inf, -np.inf, np.nan),
)
"""Scores from plain to odd; the first float below -2^31 among them."""

LARGE = ((130, 300), (130, 64), (130, 3), (9, 5), (1, 7))
"""Shapes to search from: what does not show at the first needs short rows, or one row alone."""


def least(fails: Callable[[int], bool], bad: int) -> int:
    """A number from 1 up to `bad` that fails while the one before it does not, by halving."""
    good = 0
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if fails(middle) else (middle, bad)
    return bad


def smallest_shape(wrong: Wrong) -> tuple[int, int]:
    """From LARGE on, rows and columns are taken away in turn for as long as the verdict stays."""
    rows, cols = next(shape for shape in LARGE if shows(wrong, matrices(wrong, shape)))
    before = None
    while before != (rows, cols):
        before = rows, cols
        rows = least(lambda n: shows(wrong, matrices(wrong, (n, cols))), rows)  # noqa: B023
        cols = least(lambda n: shows(wrong, matrices(wrong, (rows, n))), cols)  # noqa: B023
    return rows, cols


def rows_of_scores() -> Iterator[np.ndarray]:
    """All rows of one score, then all of two, three, from the plainest scores on."""
    for cols in (1, 2, 3):
        yield np.array(list(product(SCORES, repeat=cols)), "f4")


def smallest_row(wrong: Wrong) -> tuple | None:
    """The first of `rows_of_scores` that fails, and fails alone; all of a length run together."""
    for x in rows_of_scores():
        y = ran(wrong, (x,)).y
        for k in range(len(x)):
            one = x[k : k + 1]
            if not judge(wrong, y[k : k + 1], one).ok and shows(wrong, (one,)):
                return (tuple(one[0].tolist()),)
    return None


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong", [w for w in OURS if not isinstance(w.x, Virtual)], ids=lambda wrong: wrong.name
)
def test_no_smaller_input_shows_it(wrong):
    if isinstance(wrong.x[0], tuple):
        assert str(smallest_row(wrong)) == str(wrong.x)  # NaN is not equal to itself
    else:
        assert smallest_shape(wrong) == wrong.x


def test_a_search_finds_where_it_begins():
    for edge in (1, 2, 63, 100):
        assert least(lambda n: n >= edge, 100) == edge  # noqa: B023


# ---------------------------------------------------------------------------- the list

TRAPS = {
    *(f"T{n}" for n in (*range(1, 18), 20)),
}
"""Numbers of the traps of published kernels that a kernel can fall into. T18 and T19 are launches
(test_emulator), T21 to T33 measurements, T34 is of a matrix product."""


def test_every_trap_that_a_kernel_can_fall_into_is_among_the_faults():
    named = {trap for wrong in WRONG for trap in wrong.traps}
    assert named == TRAPS


def test_faults_are_told_apart_by_name_and_kernels_are_of_the_list():
    assert len(set(NAMES)) == len(NAMES) > 50
    assert {wrong.kernel for wrong in OURS} <= set(registry.KERNELS)
    assert {path.name for path in FOLDER.glob("*.cu")} == {wrong.kernel for wrong in FOREIGN}
    assert all((wrong.verdict == VALUES) == (not wrong.line) for wrong in WRONG)
    assert all(wrong.why for wrong in WRONG)


def test_row_sums_do_not_see_the_missing_barrier():
    # Every row still sums to 1, and yet an element is off by nearly all it should be.
    x = reference.inputs("normal", 64, 1024)
    y = run(RACY.kernel, x, *RACY.edits, count=False).y
    assert np.abs(y.sum(axis=1, dtype=np.float64) - 1).max() < 2e-7
    want = reference.softmax(x)
    assert 0.9 < (np.abs(y - want) / want).max() < 1
    assert not reference.compare(y, x).ok


@pytest.mark.parametrize("far", [FAR, FARTHER], ids=["2^31", "2^32"])
@pytest.mark.parametrize("name", registry.KERNELS)
def test_offsets_reach_beyond_any_int(name, far):
    assert within_its_rows(name, far)


def within_its_rows(name: str, far: Virtual) -> bool:
    extents = registry.get(name).family.extents(*far.shape)
    arrays = tuple(Virtual(extents[each]) for each in registry.get(name).family.inputs_named)
    found = run(name, arrays)
    return not found.faults and not strayed(name, found, *far.shape)
