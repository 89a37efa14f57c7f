"""derive, count and measure agree: the promise of the book, on every kernel that is registered."""

from dataclasses import replace
from itertools import product

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
    pytest.param((256, 1024), marks=pytest.mark.slow),
]
RANDOM = np.random.default_rng(20261130)
RANDOM_SHAPES = [
    (int(RANDOM.integers(1, 300)), int(RANDOM.integers(1, 12 if i % 3 == 0 else 160)))
    for i in range(100)
]


def assert_counted_as_derived(kernel, kind, shape, seed=0):
    arrays = kernel.family.inputs(kind, *shape, seed)
    run = emulator.run(kernel, *arrays, sanitize=True)  # races and uninitialised shared memory too
    assert not run.faults, run.faults
    assert run.unwritten == 0
    derived = derive(kernel.name, *arrays)
    differ = {
        field: (value, getattr(run.counts, field))
        for field, value in derived.known().items()
        if value != getattr(run.counts, field)
    }
    assert not differ, f"{kernel.name} {shape}, field: (derived, counted) {differ}"
    terms = shape[1] if kind in kernel.family.biased else None
    assert kernel.family.compare(run.y, *arrays, terms=terms).ok


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("shape", PROTOTYPE_SHAPES, ids="{0[0]}x{0[1]}".format)
def test_count_equals_derive(kernel, shape):
    assert_counted_as_derived(kernel, "normal", shape)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_count_equals_derive_on_random_shapes(kernel):
    kinds = kernel.family.kinds
    most = 2**14 // kernel.threads_per_row  # rows: dozens of blocks show what hundreds would
    for i, (rows, cols) in enumerate(RANDOM_SHAPES):
        assert_counted_as_derived(kernel, kinds[i % len(kinds)], (min(rows, most), cols), seed=i)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_count_equals_derive_on_every_input(kernel):
    # Five rows end inside a block of several; 1301 columns take the threads of the widest block
    # more than one step, the last one partly.
    for kind in kernel.family.kinds:
        assert_counted_as_derived(kernel, kind, (5, 1301))


# Neighbouring lengths around a sector, a warp and a block; rows that leave a block and a warp
# partly empty.
EDGES = ((5, 1), (33, 7), (130, 32), (3, 33), (17, 257))


def assert_right(kernel, kind, shape):
    arrays = kernel.family.inputs(kind, *shape)
    verdict = kernel.family.compare(launch(kernel.name, *arrays, device="cpu"), *arrays)
    assert verdict.ok, f"{kind} {shape}: {verdict.message}"


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_plain_build_is_right_on_every_input_at_some_edge(kernel):
    for i, kind in enumerate(kernel.family.kinds):
        assert_right(kernel, kind, EDGES[i % len(EDGES)])


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_plain_build_is_right_on_every_input_at_every_edge(kernel):
    for kind, shape in product(kernel.family.kinds, EDGES):
        assert_right(kernel, kind, shape)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_empty_matrices(kernel, shape):
    # N10: nothing is launched, nothing fails, and the next call is right.
    family = kernel.family
    arrays = family.inputs("constant", *shape)
    y = launch(kernel.name, *arrays, device="cpu")
    assert y.shape == family.result(*shape)
    assert (y == 0).all()  # a sum of no terms
    assert count(kernel.name, *arrays).flops == 0
    arrays = family.inputs("constant", 2, 3)
    assert family.compare(launch(kernel.name, *arrays, device="cpu"), *arrays).ok


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


def test_a_ledger_of_another_family_counts_its_own_inputs():
    page = ledger("gemv/row_per_warp", 37, 100)
    assert page.counted.flops == page.executed.flops == 37 * (2 * 100 + 160)
    assert page.textbook.bytes == 4 * (37 * 100 + 37 + 100)
    assert "gemv/row_per_warp" in page.not_measured


def test_measure_names_the_nearest_recorded_shape():
    with pytest.raises(LookupError, match="naive"):
        measure("naive", 123, 457)


VERBS = {
    "derive": lambda x: derive("naive", x),
    "derive, sizes": lambda x: derive("naive", *x.shape),
    "textbook": lambda x: derive("naive", *x.shape, form="textbook"),
    "count": lambda x: count("naive", x),
    "launch": lambda x: launch("naive", x, device="cpu"),
    "launch, gpu": lambda x: launch("naive", x, device="gpu"),
    "measure": lambda x: measure("naive", *x.shape),
    "ledger": lambda x: ledger("naive", *x.shape, counted=False),
}
every_verb = pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)


@every_verb
def test_every_verb_refuses_the_rows_that_the_kernel_cannot_sum(verb):
    with pytest.raises(
        ValueError, match="naive takes rows of up to 16777216 columns, got 16777217"
    ):
        verb(np.empty((1, 2**24 + 1), "f4"))  # pages nobody touches cost nothing


def test_measuring_now_keeps_the_same_limits(monkeypatch):
    monkeypatch.setenv("SOFTMAX_LAB_LIVE", "1")
    with pytest.raises(ValueError, match="up to 16777216 columns"):
        measure("naive", 1, 2**24 + 1)


MATRICES = {name: verb for name, verb in VERBS.items() if name in ("derive", "count", "launch")}


@pytest.mark.parametrize("verb", MATRICES.values(), ids=MATRICES)
def test_a_mask_is_refused_and_not_dropped(verb):
    x = np.ma.masked_less(reference.inputs("normal", 3, 4), 0)
    for masked in (x, np.ma.masked_array(x.data)):  # one that masks nothing would hide the habit
        with pytest.raises(TypeError, match=r"x must be a plain array, got a masked .*its filled"):
            verb(masked)
    verb(x.filled(-np.inf))


@pytest.mark.parametrize("dtype", ["float32", "f4", np.float32, np.dtype("f4")], ids=str)
def test_measure_and_derive_take_a_dtype_for_a_dtype(dtype):
    assert measure("naive", 256, 1024, dtype=dtype) == measure("naive", 256, 1024)
    assert derive("naive", 256, 1024, dtype=dtype) == derive("naive", 256, 1024)


@pytest.mark.parametrize("verb", [measure, derive])
@pytest.mark.parametrize("dtype", ["junk", np.float16, None, 3])
def test_a_type_that_is_not_offered_is_refused_by_name(verb, dtype):
    with pytest.raises(ValueError, match="naive takes float32, got"):
        verb("naive", 256, 1024, dtype=dtype)


def test_no_message_prints_an_array():
    x = reference.inputs("normal", 256, 1024)
    for refused in (
        lambda: measure("naive", x),
        lambda: measure("naive", 256, x),
        lambda: measure(x, "naive"),
        lambda: measure("naive", 256, 1024, dtype=[x]),
        lambda: derive(x, "naive"),
        lambda: derive("naive", 256, x),
        lambda: derive("naive", x, form=x),
        lambda: derive("naive", [x, x]),
        lambda: count("naive", x, x),
        lambda: count(x),
        lambda: launch("naive", x, device=x),
        lambda: launch("naive", x, x, device="cpu"),
        lambda: launch("naive", [x], device="cpu"),
    ):
        with pytest.raises((ValueError, TypeError)) as raised:
            refused()
        said = str(raised.value).replace(", ".join(KERNELS), "all of them")
        assert len(said) < 120, said
    with pytest.raises(ValueError, match=r"rows, cols; got 1: ndarray of shape \(256, 1024\)"):
        measure("naive", x)


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
