"""A real warp beside the models: the emulator's shuffles and sectors are those they foretell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from softmax_lab import coalescing, emulator, online, reference, shuffle
from softmax_lab.replay import replay

TRACED = [("normal", 64), ("normal", 1024), ("outliers", 100), ("rising", 33), ("constant", 32)]
TRACED += [("masked", 100), ("deep", 48), ("normal", 7), ("normal", 1)]


def trace(kind: str, cols: int, block: int = 1, kernel: str = "warp"):
    x = reference.inputs(kind, 3, cols)
    return x[block], emulator.run(kernel, x, trace=(block, 0)).trace


def moves(steps) -> tuple[list, list]:
    """The shuffles of the maximum and of the sum."""
    found = [step for step in steps if step.op == "shuffle"]
    assert len(found) == shuffle.steps_per_row(32)
    return found[:6], found[6:]


@pytest.mark.parametrize(("kind", "cols"), TRACED)
def test_the_shuffles_of_a_real_warp_are_the_simulated_ones_bit_for_bit(kind, cols):
    row, steps = trace(kind, cols)
    maxima, sums = moves(steps)
    pairs = online.lanes(row, 32)
    # The maxima are exact, so the simulation starts from its own; the sums start from the emulated
    # lanes, for the two exponentials may differ in their last bit, the order of additions may not.
    for real, model in (
        (maxima, shuffle.reduce([m for m, _ in pairs], "max")),
        (sums, shuffle.reduce(sums[0].before, "sum")),
    ):
        for step, each in zip(real, model, strict=True):
            assert step.before == each.shuffle.before
            assert step.after == each.shuffle.after
            assert step.address == each.shuffle.source
            assert step.mask == each.shuffle.mask == 0xFFFFFFFF


@pytest.mark.parametrize(("kind", "cols"), TRACED)
def test_the_lanes_of_a_real_warp_hold_what_the_recurrence_says(kind, cols):
    row, steps = trace(kind, cols)
    _, sums = moves(steps)
    pairs = online.lanes(row, 32)
    top = max(m for m, _ in pairs)
    with np.errstate(under="ignore", over="ignore"):
        want = [total * np.exp(np.float64(m) - top) for m, total in pairs]
    # m_t - m is rounded to float32 before the exponential multiplies its error by as much.
    np.testing.assert_allclose(sums[0].before, want, rtol=1e-5, atol=1e-40)


@pytest.mark.parametrize("kernel", ["warp", "warp_rescale"])
@pytest.mark.parametrize(("kind", "cols"), TRACED)
def test_every_step_agrees_with_its_model(kernel, kind, cols):
    _, steps = trace(kind, cols, kernel=kernel)
    replayed = replay(steps)
    assert [each.step for each in replayed] == list(steps)
    assert all(each.agrees for each in replayed)
    accesses = [each for each in replayed if each.request]
    assert len(accesses) == 3 * -(-cols // 32)
    for each in accesses:
        addresses = [a for a in each.step.address if a is not None]
        assert each.request == coalescing.request(addresses, 4)
        assert len(each.request.sectors) == each.step.sectors


def test_rounds_are_numbered():
    replayed = [each for each in replay(trace("normal", 32)[1]) if each.round]
    assert [(each.operator, each.place, each.places) for each in replayed] == [
        (operator, k, 6) for operator in ("max", "sum") for k in range(1, 7)
    ]


def test_a_warp_of_another_order_is_seen():
    _, steps = trace("normal", 64)
    (at, *_) = [k for k, step in enumerate(steps) if step.op == "shuffle"]
    after = list(steps[at].after)
    after[3] = float(np.nextafter(np.float32(after[3]), np.float32(9)))
    wrong = (*steps[:at], replace(steps[at], after=tuple(after)), *steps[at + 1 :])
    spoilt = replay(wrong)[at]
    assert spoilt.differing == (3,) and not spoilt.agrees
    load = replace(steps[0], sectors=steps[0].sectors + 1)
    assert not replay((load, *steps[1:]))[0].agrees
    butterfly = replace(steps[at], address=tuple(lane ^ 16 for lane in range(32)))
    assert replay((*steps[:at], butterfly, *steps[at + 1 :]))[at].differing == tuple(range(16, 32))


def test_a_trace_of_other_shuffles_is_refused():
    _, steps = trace("normal", 64)
    with pytest.raises(ValueError, match="12 shuffles, got 13"):
        replay((*steps, next(step for step in steps if step.op == "shuffle")))
    assert replay(()) == ()
