"""derive, count and measure agree: the promise of the book, on every kernel that is registered."""

from dataclasses import replace

import numpy as np
import pytest

from softmax_lab import KERNELS, count, derive, emulator, gpu, launch, measure, reference
from softmax_lab import ledger as verbs
from softmax_lab.ledger import ledger
from softmax_lab.nvrtc import Compiled

PROTOTYPE_SHAPES = [
    (64, 64),
    (37, 100),
    (5, 7),
    (70, 33),
    (33, 1000),
    (1, 1),
    (32, 8),
    (40, 31),
    (256, 1024),
]
RANDOM = np.random.default_rng(20261130)
RANDOM_SHAPES = [
    (int(RANDOM.integers(1, 300)), int(RANDOM.integers(1, 12 if i % 3 == 0 else 160)))
    for i in range(200)
]


def assert_counted_as_derived(kernel, x):
    run = emulator.run(kernel, x)
    assert not run.faults, run.faults
    assert run.unwritten == 0
    derived = derive(kernel.name, x)
    differ = {
        field: (value, getattr(run.counts, field))
        for field, value in derived.known().items()
        if value != getattr(run.counts, field)
    }
    assert not differ, f"{kernel.name} {x.shape}, field: (derived, counted) {differ}"
    assert reference.compare(run.y, x).ok


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("shape", PROTOTYPE_SHAPES, ids="{0[0]}x{0[1]}".format)
def test_count_equals_derive(kernel, shape):
    assert_counted_as_derived(kernel, reference.inputs("normal", *shape))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_count_equals_derive_on_random_shapes(kernel):
    names = list(reference.INPUTS)
    for i, shape in enumerate(RANDOM_SHAPES):
        assert_counted_as_derived(kernel, reference.inputs(names[i % len(names)], *shape, seed=i))


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("name", reference.INPUTS)
def test_plain_build_is_right_on_every_input(kernel, name):
    # Neighbouring lengths around a sector, a warp and a block; rows that leave a block and a warp
    # partly empty.
    for rows, cols in ((5, 1), (33, 7), (130, 32), (3, 33), (17, 257)):
        x = reference.inputs(name, rows, cols)
        verdict = reference.compare(launch(kernel.name, x, device="cpu"), x)
        assert verdict.ok, f"{(rows, cols)}: {verdict.message}"


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_empty_matrices(kernel, shape):
    # N10: nothing is launched, nothing fails, and the next call is right.
    x = np.zeros(shape, np.float32)
    assert launch(kernel.name, x, device="cpu").shape == shape
    assert count(kernel.name, x).flops == 0
    assert reference.compare(
        launch(kernel.name, np.ones((2, 3), "f4"), device="cpu"), np.ones((2, 3))
    ).ok


def test_ledger_columns_agree():
    page = ledger("naive", 37, 100)
    assert page.counted is not None
    assert not {
        field: row
        for field, row in page.disagreements().items()
        if row[0] is not None and row[0] != row[1]
    }
    assert page.surplus.flops == 37
    assert sum(counts.flops for _, counts in page.phases) == page.executed.flops


def test_measure_names_the_nearest_recorded_shape():
    with pytest.raises(LookupError, match="naive"):
        measure("naive", 123, 457)


def test_launch_refuses_nonsense():
    with pytest.raises(ValueError, match="device is auto, gpu or cpu"):
        launch("naive", np.zeros((2, 2), "f4"), device="tpu")
    with pytest.raises(TypeError, match="float64"):
        launch("naive", np.zeros((2, 2)), device="cpu")
    with pytest.raises(ValueError, match="C-contiguous"):
        launch("naive", np.zeros((4, 4), "f4").T[::2], device="cpu")
    with pytest.raises(ValueError, match="matrix"):
        launch("naive", np.zeros(4, "f4"), device="cpu")


# ------------------------------------------------------------------------------ as compiled


def made_by(compile, monkeypatch):
    """The ledger of `naive` when the compiler is `compile(name, arch)`."""
    monkeypatch.setattr(gpu, "compile", compile)
    verbs._compiled_once.cache_clear()
    try:
        return ledger("naive", 256, 1024, counted=False)
    finally:
        verbs._compiled_once.cache_clear()


def answer(spills: int):
    return lambda name, arch: Compiled(name, arch, b"", 30, 0, spills, 0, "", "NVRTC 1.2")


def test_a_ledger_holds_what_the_compiler_made_for_the_gpu_that_measured(monkeypatch):
    page = made_by(answer(0), monkeypatch)
    assert page.measured.gpu == "nvidia-h200"
    assert (page.compiled.arch, page.compiled.registers) == ("sm_90", 30)
    assert page.compiled.compiler == "NVRTC 1.2"


def test_a_spill_fails_the_ledger(monkeypatch):
    with pytest.raises(gpu.SpillError, match="naive for sm_90 spills 8 bytes a thread"):
        made_by(answer(8), monkeypatch)


def test_a_ledger_without_a_compiler_says_why(monkeypatch):
    def missing(name, arch):
        raise gpu.ToolkitError("pip install a compiler")

    page = made_by(missing, monkeypatch)
    assert page.compiled is None
    assert page.not_compiled == "pip install a compiler"
    assert page.measured is not None


@pytest.mark.parametrize(
    ("slug", "arch"), [("tesla-t4", "sm_75"), ("nvidia-l4", "sm_89"), ("some-gpu", "sm_90")]
)
def test_the_architecture_is_that_of_the_gpu_that_measured(slug, arch):
    run = measure("naive", 256, 1024)
    elsewhere = replace(run, gpu=slug)
    assert verbs._architecture(KERNELS["naive"], elsewhere) == arch
    newer = replace(KERNELS["naive"], requires=100)
    assert verbs._architecture(newer, None) == "sm_100"
