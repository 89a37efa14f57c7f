"""What the emulator does not see: each spot is shown, so that the list in the book stays true."""

from __future__ import annotations

from pathlib import Path

import nbformat
import numpy as np
import pytest

from softmax_lab import emulator
from softmax_lab.emulator import Out, Source

TRIED = Path(__file__).resolve().parent.parent / "book" / "tried.ipynb"
X = np.arange(1, 5, dtype="f4")


def faults(body: str, n: int, threads: int = 1):
    """Faults of a kernel whose body is on line 2, and what it left in y."""
    text = f'extern "C" __global__ void k(const float* x, float* y, int n) {{\n{body}\n}}\n'
    arguments = X, Out((threads,)), n
    found = emulator.launch(Source(text, "blind.cu"), 1, threads, arguments, sanitize=True)
    return found.faults, found.y


SPOTS = {
    "An array of a thread's own": (
        ("float held[4] = {1, 2, 3, 4}; *y = held[n];", 4, 1),
        ("float held[4]; held[0] = 1; *y = held[n];", 2, 1),
    ),
    "Integers": (
        # Each thread reads what another wrote, with no barrier between.
        (
            "__shared__ int held[32]; held[threadIdx.x] = n;"
            "y[threadIdx.x] = float(held[31 - threadIdx.x]);",
            *(1, 32),
        ),
    ),
    "A float that no `int` can hold, made an `int`": (("*y = float(int(1e10f * x[0]));", 0, 1),),
    "An offset that wraps round and lands inside": (("*y = x[n * n];", 65536, 1),),
    "A plain store before atomics": (("if (threadIdx.x == 0) *y = 0; atomicAdd(y, x[0]);", 0, 64),),
}
"""What the page calls a spot, and kernels (body, n, threads) that are wrong there unnoticed."""

SEEN_BESIDE = {
    "an array of the block's": ("__shared__ float held[4]; held[0] = 1; *y = held[n];", 4, 1),
    "never written, shared": ("__shared__ float held[4]; held[0] = 1; *y = held[n];", 2, 1),
    "floats in shared memory": (
        "__shared__ float held[32]; held[threadIdx.x] = 1;y[threadIdx.x] = held[31 - threadIdx.x];",
        *(1, 32),
    ),
    "an offset that wraps round and leaves": ("*y = x[n * n];", 46341, 1),
    "a plain store beside atomics": ("if (threadIdx.x) atomicAdd(y, x[0]); else *y = 0;", 0, 64),
}
"""The nearest kernels in which the same is found."""


def blind() -> str:
    """The list of the book."""
    (cell,) = (
        cell
        for cell in nbformat.read(TRIED, as_version=4).cells
        if cell.cell_type == "markdown" and "(emulator-blind)=" in cell.source
    )
    return cell.source


@pytest.mark.parametrize("spot", SPOTS)
def test_what_the_sanitizer_does_not_see(spot):
    assert f"**{spot}.**" in blind()
    for kernel in SPOTS[spot]:
        assert faults(*kernel)[0] == (), "it is found now: take it from the list in the book"


@pytest.mark.parametrize("kernel", SEEN_BESIDE.values(), ids=SEEN_BESIDE)
def test_what_it_sees_beside(kernel):
    assert faults(*kernel)[0]


def test_an_access_before_a_shared_array_is_named_by_another():
    assert "**Whose place it was.**" in blind()
    body = (
        "__shared__ float a[32], b[32]; a[threadIdx.x] = b[threadIdx.x] = 1; __syncthreads();"
        "if (threadIdx.x == 0) *y = {}[n - 1];"
    )
    for name in "ab":
        ((fault,), _) = faults(body.format(name), 0, 32)
        assert "out of bounds" in fault.kind
        assert (fault.line, fault.thread) == (2, (0, 0, 0))
        assert not fault.detail.endswith(f"of {name}"), "it is named now: take it from the list"


def test_an_offset_that_wraps_round_reads_another_element():
    _, y = faults("*y = x[n * n];", 65536)
    assert y[0] == X[0]


def test_integers_that_are_handed_in_leave_the_counts_of_memory_unknown():
    text = 'extern "C" __global__ void k(const int* x, float* y) { *y = float(x[9]); }'
    given = Source(text, "ints.cu"), 1, 1, (np.zeros(4, "i4"), Out((1,)))
    found = emulator.launch(*given, sanitize=True)
    assert found.faults == (), "it is found now: take it from the list in the book"
    assert found.counts.load_bytes is None
    assert found.counts.load_requests is None
