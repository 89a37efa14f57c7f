"""Hypothesis walks shapes, pitches, alignments and values over every kernel on the emulator.

Each example is judged by the sanitizer and by the checker of the kernel's family. The same come
every time; `pytest tests/test_walk.py --hypothesis-profile=long` takes many more, and new ones.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wrong import edited

from softmax_lab import emulator, registry
from softmax_lab.emulator import Out, Source

EDGES = (32, 128, 256, 512, 1024)
PALETTE = np.array(
    [
        0,
        -0.0,
        1,
        -1,
        88.7,
        -88.7,
        104,
        -104,
        3.4e38,
        -3.4e38,
        1e-45,
        -1e-40,
        np.inf,
        -np.inf,
        np.nan,
    ]
)
"""Scores that mean trouble: edges of the exponential, largest and smallest floats, no numbers."""

MASKED = np.array([-np.inf, -np.inf, -np.inf, 2, -np.inf])

sides = st.one_of(
    st.integers(1, 70),
    st.builds(lambda edge, by: edge + by, st.sampled_from(EDGES), st.integers(-1, 1)),
)


def movable(name: str) -> Source:
    """The kernel with one more argument a pointer: how many elements past its start it begins."""
    kernel = registry.get(name)
    text = edited(name).text
    pointers = [*kernel.family.inputs_named, "y"]
    more = "".join(f", int {each}_from" for each in pointers)
    moves = "".join(f"{each} += {each}_from; " for each in pointers)
    signature = rf"(__global__ void {kernel.symbol}\([^)]*)\) {{"
    text, found = re.subn(signature, rf"\1{more}) {{ {moves}", text)
    assert found == 1
    return Source(text, kernel.path.name, kernel.path.parent)


@st.composite
def values(draw, name: str):
    """(kind, input arrays): one of the family's kinds, or scores of a palette for the matrix."""
    kernel = registry.get(name)
    rows, cols = draw(sides), draw(sides)
    rows = min(rows, max(1, 20_000 // cols))  # the emulator's time, not the kernel's limits
    kinds = kernel.family.kinds
    matrices = () if kernel.family.name == "gemv" else ("palette", "masked", "mixed")
    kind = draw(st.sampled_from((*kinds, *matrices)))
    seed = draw(st.integers(0, 2**32 - 1))
    if kind in kinds:
        return kind, kernel.family.inputs(kind, rows, cols, seed)
    rng = np.random.default_rng(seed)
    x = rng.choice(MASKED if kind == "masked" else PALETTE, (rows, cols)).astype(np.float32)
    if kind == "mixed":  # rows without trouble between
        x[::2] = rng.standard_normal((len(x[::2]), cols))
    return kind, (x,)


def pitched(array: np.ndarray, more: int) -> np.ndarray:
    """The same values as a view of a buffer whose rows are `more` elements longer."""
    buffer = np.full((*array.shape[:-1], array.shape[-1] + more), np.nan, np.float32)
    view = buffer[..., : array.shape[-1]]
    view[...] = array
    return view


def moved(array: np.ndarray, by: int) -> np.ndarray:
    """The values from `by` elements on, behind scores that nobody may take for theirs."""
    return np.concatenate([np.full(by, np.nan, np.float32), array.reshape(-1)])


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.KERNELS)
@given(data=st.data())
def test_a_walk_over_shapes_pitches_alignments_and_values(name, data):
    kernel = registry.get(name)
    kind, arrays = data.draw(values(name))
    more = data.draw(st.integers(0, 3), "pitch beyond the row")
    starts = [data.draw(st.integers(0, 3), f"start of {k}") for k in range(len(arrays) + 1)]
    view = pitched(arrays[0], more)
    if not view.flags.c_contiguous:  # kernels take packed rows only, and say so
        with pytest.raises(ValueError, match="C-contiguous"):
            emulator.run(kernel, view, *arrays[1:])
    else:
        kernel.check(view, *arrays[1:])
    rows, cols = arrays[0].shape
    grid, block = kernel.geometry(rows)
    shape = kernel.family.result(rows, cols)
    size = int(np.prod(shape))
    found = emulator.launch(
        movable(name),
        grid,
        block,
        (*map(moved, arrays, starts[:-1]), Out((starts[-1] + size,)), rows, cols, *starts),
        kernel=kernel.symbol,
        shared=kernel.shared_bytes,
        sanitize=True,
    )
    assert not found.faults, found.faults
    assert found.unwritten == starts[-1]  # all of the result, and nothing before it
    y = found.y[starts[-1] :].reshape(shape)
    terms = kernel.family.roundings(kind, cols, kernel.threads_per_row)
    verdict = kernel.family.compare(y, *arrays, terms=terms)
    assert verdict.ok, f"{kind} {rows}x{cols}: {verdict.message}"


def test_a_kernel_can_be_moved_and_notices():
    """Where the kernel itself does not look at its alignment, the emulator does."""
    name = "gemv/row_per_warp_vec4"
    source = movable(name)
    trusting = source.text.replace("if (by_sixteen(A) && by_sixteen(x)) {", "{")
    assert trusting != source.text
    kernel = registry.get(name)
    A, x = kernel.family.inputs("normal", 1, 8)
    for by, kinds in ((0, set()), (1, {"misaligned"})):
        found = emulator.launch(
            Source(trusting, source.name, source.folder),
            *kernel.geometry(1),
            (moved(A, by), x, Out((1,)), 1, 8, by, 0, 0),
            kernel=kernel.symbol,
        )
        assert {fault.kind for fault in found.faults} == kinds
