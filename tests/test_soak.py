"""Random launches: the plan repeats and reaches everything, and what is wrong is counted."""

from __future__ import annotations

import sys
from collections import Counter

import fake_gpu
import numpy as np
import pytest

from softmax_lab import gpu, provenance, recordfile, records, registry, soak
from softmax_lab.__main__ import main

KERNELS = tuple(registry.KERNELS.values())


@pytest.fixture
def pretend(monkeypatch):
    """A GPU whose launches are the oracle, rounded; the function in the list may do otherwise."""
    device = fake_gpu.Device()
    device_of_cupy = device.cupy()
    device_of_cupy.cuda.Device = lambda: type("", (), {"id": 0, "compute_capability": "90"})()
    monkeypatch.setitem(sys.modules, "cupy", device_of_cupy)
    monkeypatch.setattr(gpu, "status", lambda: gpu.Status(True, name="Toy GPU"))
    monkeypatch.setattr(provenance, "clocks_now", lambda device: [(1000, 2000)])
    about = {"GPU": "Toy GPU", "date": "2026-12-01 10:00 UTC"}
    monkeypatch.setattr(provenance, "collect", lambda *each: {**about, "protocol": each[1]})
    monkeypatch.setattr(soak, "MOST", 1 << 10)
    spoil = []

    def launch(kernel, *arrays, out):
        family = registry.get(kernel).family
        with np.errstate(over="ignore"):
            out.values[...] = family.oracle(*(each.values for each in arrays))
        for each in spoil:
            each(kernel, arrays, out)

    monkeypatch.setattr(gpu, "launch", launch)
    return spoil


def test_a_seed_is_one_plan_and_a_batch_depends_on_its_number_alone():
    batches = list(soak.plan(1000, 7, KERNELS))
    assert batches == list(soak.plan(1000, 7, KERNELS))
    assert batches[:5] == list(soak.plan(5 * soak.TOGETHER, 7, KERNELS))
    assert batches != list(soak.plan(1000, 8, KERNELS))
    assert sum(len(batch.starts) for batch in batches) == 1000
    assert list(soak.plan(1000, 7, KERNELS, 40)) == [batches[40]]


def test_a_plan_reaches_every_kernel_kind_stream_and_alignment_about_as_often():
    batches = list(soak.plan(20_000, 0, KERNELS))
    by_kernel = Counter(start.kernel for batch in batches for start in batch.starts)
    assert set(by_kernel) == set(registry.KERNELS)
    assert max(by_kernel.values()) < 1.5 * min(by_kernel.values())
    kinds = {(batch.family, batch.kind) for batch in batches}
    assert kinds == {(each.family.name, kind) for each in KERNELS for kind in each.family.kinds}
    starts = {(start.stream, start.shift) for batch in batches for start in batch.starts}
    assert starts == {(stream, shift) for stream in range(soak.STREAMS) for shift in range(4)}
    assert {batch.shift for batch in batches} == {0, 1, 2, 3}


def test_shapes_are_small_uneven_and_beside_every_edge():
    shapes = [(batch.rows, batch.cols) for batch in soak.plan(100_000, 0, KERNELS)]
    assert all(1 <= rows * cols <= soak.MOST for rows, cols in shapes)
    assert sum(rows * cols for rows, cols in shapes) / len(shapes) < soak.MOST / 4
    for side in (0, 1):
        seen = {shape[side] for shape in shapes}
        assert {edge + by for edge in soak.EDGES for by in (-1, 0, 1)} <= seen
        assert max(seen) > 10_000
    assert (1, 1) in shapes


def test_outputs_lie_apart_and_begin_where_the_plan_says():
    for batch in soak.plan(500, 3, KERNELS):
        starts, size, whole = soak.places(batch)
        ends = [at + size for at in starts]
        assert all(b - a >= soak.GUARD for a, b in zip(ends, starts[1:], strict=False))
        assert starts[0] >= soak.GUARD and whole - ends[-1] >= soak.GUARD
        assert [at % 4 for at in starts] == [start.shift for start in batch.starts]


def test_what_is_right_passes_and_is_recorded(pretend, tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTMAX_LAB_DATA", str(tmp_path))
    session, failed = soak.run(800, seed=5)
    assert failed == 0
    path = session.save()
    rows = recordfile.read(path).rows
    assert {row.kernel for row in rows} == set(registry.KERNELS)
    assert sum(row.launches for row in rows) == 800
    assert {row.seed for row in rows} == {5}
    assert all(0 < row.worst < 1 and not row.failures for row in rows)
    assert records.table("soak", "toy-gpu").runs


def broken(kernel: str, how):
    """Do `how` to outputs of that kernel."""
    return lambda name, arrays, out: how(arrays, out) if name == kernel else None


def unwritten(arrays, out):
    out.values[-1:].view(np.uint32)[...] = 0xFFFFFFFF


def too_far(arrays, out):
    flat = out.values.base
    while flat.base is not None:
        flat = flat.base
    at = (out.values.ctypes.data - flat.ctypes.data) // 4
    flat[at + out.values.size] = 0


FAULTS = {
    "elements unwritten": unwritten,
    "times the error allowed|must be": lambda arrays, out: out.values.fill(0.5),
    "written outside of the outputs": too_far,
}


@pytest.mark.parametrize("words", FAULTS)
def test_what_is_wrong_is_counted_and_told(pretend, words, capsys):
    pretend.append(broken("warp", FAULTS[words]))
    lines = []
    session, failed = soak.run(640, kernels=["warp", "naive"], say=lines.append)
    found = {row.kernel: row for row in session.rows}
    assert (
        failed
        >= found["warp"].failures
        > 0.9 * found["warp"].launches * (1 if "outside" not in words else 0.05)
    )
    assert found["naive"].failures == 0 or "outside" in words
    said = "\n".join(lines)
    assert any(word in said for word in words.split("|"))
    assert "warp in batch" in said or "one of" in said


def test_no_launches_are_refused_and_without_a_gpu_it_says_why():
    with pytest.raises(ValueError, match="one launch or more, got 0"):
        soak.run(0)
    if not gpu.status().available:
        with pytest.raises(RuntimeError, match=gpu.status().reason[:20]):
            soak.run(16)


def test_the_command_fails_where_a_launch_did(pretend, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SOFTMAX_LAB_DATA", str(tmp_path))
    call = ["soak", "--launches", "64", "--seed", "3", "--kernels", "warp,naive"]
    assert main(call) == 0
    assert "recorded in" in capsys.readouterr().out
    assert main([*call, "--batch", "2"]) == 0
    said = capsys.readouterr().out
    assert "16 launches, 0 failed" in said and "recorded" not in said
    pretend.append(broken("naive", FAULTS["elements unwritten"]))
    assert main(call) == 1


@pytest.mark.gpu
def test_a_short_soak_on_the_gpu_is_clean(capsys):
    session, failed = soak.run(2000, seed=1)
    assert not failed
    assert {row.kernel for row in session.rows} == set(registry.KERNELS)
