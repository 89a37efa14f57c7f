"""Wrong kernels are refused, by the sanitizer with name and line or by the checker, and the kernels
they were made from are not."""

import numpy as np
import pytest
from wrong import INT_OFFSETS, VALUES, WRONG, Wrong, edited, run

from softmax_lab import reference, registry
from softmax_lab.emulator import Fault, Source, Virtual

NAMES = [each.name for each in WRONG]
RACY = WRONG[NAMES.index("block_tree without the barrier between its trees")]


def matrix(x) -> np.ndarray:
    """Rows of scores, or normal ones of a shape."""
    return np.array(x, "f4") if isinstance(x[0], tuple) else reference.inputs("normal", *x)


def judge(wrong: Wrong, y, x) -> reference.Verdict:
    return registry.get(wrong.kernel).family.compare(y, x)


def line_of(fault: Fault, source: Source) -> str:
    """The text of the line that a fault names, in the kernel's file or in a header of ours."""
    if fault.file != source.name:
        source = Source.read(registry.kernel_folder() / fault.file)
    return source.text.splitlines()[fault.line - 1].strip()


@pytest.mark.parametrize("wrong", WRONG, ids=NAMES)
def test_what_is_wrong_is_refused(wrong):
    x = matrix(wrong.x)
    found = run(wrong.kernel, x, *wrong.edits, sanitize=True)
    if wrong.verdict == VALUES:
        assert not found.faults, found.faults
        assert not judge(wrong, found.y, x).ok
        return
    source = edited(wrong.kernel, *wrong.edits)
    said = [(fault.kind, line_of(fault, source)) for fault in found.faults]
    assert any(kind == wrong.verdict and wrong.line in line for kind, line in said), said


@pytest.mark.parametrize("wrong", [w for w in WRONG if w.spared], ids=lambda wrong: wrong.name)
def test_the_smallest_input_that_fails_has_neighbours_that_do_not(wrong):
    for spared in map(matrix, wrong.spared):
        found = run(wrong.kernel, spared, *wrong.edits, sanitize=True)
        assert not found.faults
        assert judge(wrong, found.y, spared).ok


@pytest.mark.parametrize("wrong", WRONG, ids=NAMES)
def test_the_kernel_itself_is_right_there(wrong):
    for x in map(matrix, (wrong.x, *wrong.spared)):
        found = run(wrong.kernel, x, sanitize=True)
        assert not found.faults
        assert judge(wrong, found.y, x).ok


def test_faults_are_told_apart_by_name_and_kernels_are_of_the_list():
    assert len(set(NAMES)) == len(NAMES)
    assert {wrong.kernel for wrong in WRONG} <= set(registry.KERNELS)


def test_row_sums_do_not_see_the_missing_barrier():
    # Every row still sums to 1, and yet an element is off by nearly all it should be.
    x = reference.inputs("normal", 64, 1024)
    y = run(RACY.kernel, x, *RACY.edits, count=False).y
    assert np.abs(y.sum(axis=1, dtype=np.float64) - 1).max() < 2e-7
    want = reference.softmax(x)
    assert 0.9 < (np.abs(y - want) / want).max() < 1
    assert not reference.compare(y, x).ok


FAR = Virtual((2**16 + 1, 2**15))  # its last row starts at element 2^31


@pytest.mark.parametrize("name", registry.KERNELS)
def test_offsets_reach_beyond_two_to_the_31(name):
    assert not run(name, FAR, lockstep=False).faults


@pytest.mark.parametrize("name", ["block_tree", "block_online"])
def test_int_offsets_wrap_there(name):
    faults = run(name, FAR, *INT_OFFSETS, lockstep=False).faults
    assert {fault.kind for fault in faults} == {"out of bounds"}
    assert faults[0].detail == "8589934592 bytes before the start of x"
