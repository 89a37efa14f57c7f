from dataclasses import replace

import numpy as np
import pytest

from softmax_lab import families, registry
from softmax_lab.registry import EXHIBITS, KERNELS, LADDER


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_each_kernel_has_its_source(kernel):
    text = kernel.path.read_text()
    assert f"__global__ void {kernel.symbol}(" in text
    assert 1 <= kernel.block <= 1024


def test_every_source_file_is_registered():
    files = {
        path
        for family in ("softmax", "log_softmax", "gemv", "sgemm")
        for path in registry.kernel_folder().glob(f"{family}/*.cu")
    }
    assert files == {kernel.path for kernel in KERNELS.values()}


def test_ladder_is_the_softmax_part():
    assert all(kernel.family is registry.SOFTMAX for kernel in LADDER)
    assert [kernel.name for kernel in LADDER] == [
        k for k, v in KERNELS.items() if v.family is registry.SOFTMAX
    ]


@pytest.mark.parametrize(("rows", "blocks"), [(1, 1), (128, 1), (129, 2), (2**31 - 1, 2**24)])
def test_geometry_covers_the_rows(rows, blocks):
    assert KERNELS["naive"].geometry(rows) == (blocks, (128,))


def test_rows_of_a_block_may_lie_along_y():
    kernel = replace(KERNELS["naive"], rows_per_block=4, threads_per_row=256)
    assert kernel.geometry(9) == (3, (1024,))
    assert replace(kernel, rows_along_y=True).geometry(9) == (3, (256, 4))


def test_get_names_the_kernels():
    assert registry.get("naive") is KERNELS["naive"]
    assert registry.get(KERNELS["naive"]) is KERNELS["naive"]
    for bad, told in (
        ("x", "'x'"),
        (None, "None"),
        (np.zeros((3, 4)), r"ndarray of shape \(3, 4\)"),
    ):
        with pytest.raises(ValueError, match=f"no kernel {told}; there are naive"):
            registry.get(bad)


def test_sizes_are_checked():
    assert families.checked_sizes((np.int64(3), 4)) == {"rows": 3, "cols": 4}
    for bad in ((3.0, 4), ("3", 4), (True, 4)):
        with pytest.raises(TypeError, match="rows must be an integer"):
            families.checked_sizes(bad)
    with pytest.raises(ValueError, match=r"one matrix \(rows, cols\)"):
        registry.SOFTMAX.shape(np.zeros(3))


def test_a_launch_is_checked_before_it_is_made():
    naive = KERNELS["naive"]
    assert naive.check(np.zeros((3, 4), "f4")) == {"rows": 3, "cols": 4}
    for x, error, message in (
        (np.zeros((3, 4)), TypeError, "naive: x must be float32, got float64"),
        ([[1.0, 2.0]], TypeError, "NumPy or CuPy array, got list"),
        (np.zeros((4, 3), "f4").T, ValueError, "C-contiguous"),
        (np.zeros((4, 6), "f4")[:, 1:], ValueError, "C-contiguous"),
        (np.broadcast_to(np.zeros(5, "f4"), (3, 5)), ValueError, "C-contiguous"),
        (np.zeros(4, "f4"), ValueError, r"one matrix \(rows, cols\)"),
        (np.zeros((1, 2, 3), "f4"), ValueError, r"one matrix \(rows, cols\)"),
    ):
        with pytest.raises(error, match=message):
            naive.check(x)
    with pytest.raises(TypeError, match=r"takes x, got 2: ndarray of shape .*, 7"):
        naive.check(np.zeros((3, 4), "f4"), 7)


def test_a_matrix_and_a_vector_must_fit():
    gemv, A = KERNELS["gemv/row_per_warp"], np.zeros((3, 4), "f4")
    assert gemv.check(A, np.zeros(4, "f4")) == {"rows": 3, "cols": 4}
    assert gemv.family.extents(3, 4) == {"A": (3, 4), "x": (4,), "y": (3,)}
    assert gemv.family.once(1000, 500) == 2_006_000  # R01
    for arrays, error, message in (
        ((A,), TypeError, "gemv/row_per_warp takes A, x, got 1: ndarray"),
        (
            (A, np.zeros(3, "f4")),
            ValueError,
            r"A \(rows, cols\) and x \(cols\), got shapes \(3, 4\)",
        ),
        ((A, np.zeros((4, 1), "f4")), ValueError, r"got shapes \(3, 4\) and \(4, 1\)"),
        ((A, np.zeros(4)), TypeError, "x must be float32, got float64"),
        ((A, np.zeros(8, "f4")[::2]), ValueError, "x must be C-contiguous"),
    ):
        with pytest.raises(error, match=message):
            gemv.check(*arrays)


def test_rows_longer_than_a_sum_can_take_are_refused():
    # N06: one fp32 accumulator sticks at 2^24, so a longer row would come out wrong without a word.
    assert np.float32(2**24) + np.float32(1) == 2**24
    with pytest.raises(ValueError, match="up to 16777216 columns, got 16777217"):
        KERNELS["naive"].check(np.empty((1, 2**24 + 1), "f4"))  # pages nobody touches cost nothing
    assert KERNELS["naive"].max_cols == 2**24
    with pytest.raises(ValueError, match="warp takes rows of up to 536870912 columns"):
        KERNELS["warp"].sizes((1, 2**29 + 1))


@pytest.mark.parametrize(
    "dtype", ["float32", "f4", "=f4", np.float32, np.dtype("f4"), np.zeros(1, "f4").dtype], ids=str
)
def test_a_dtype_is_a_dtype(dtype):
    assert KERNELS["naive"].dtype(dtype) == "float32"


@pytest.mark.parametrize(
    ("dtype", "got"),
    [
        ("junk", "'junk'"),
        ("f2", "float16"),
        ("bfloat16", "bfloat16"),
        (float, "float64"),
        (">f4", ">f4"),
        (None, "None"),
        (3, "3"),
        ([1, 2], r"\[1, 2\]"),
        ("x" * 99, "'xx"),
    ],
)
def test_another_dtype_is_refused_by_name(dtype, got):
    with pytest.raises(ValueError, match=f"naive takes float32, got {got}"):
        KERNELS["naive"].dtype(dtype)


def test_the_kernels_of_a_run_are_checked_before_it():
    every = list(KERNELS.values())
    assert registry.chosen(None) == every
    named = registry.chosen(["warp", KERNELS["naive"], "warp"])
    assert [kernel.name for kernel in named] == ["warp", "naive"]
    long = [(1, 4), (1, 2**24 + 1)]
    fit = registry.chosen(None, np.float32, long)
    assert fit == [kernel for kernel in every if kernel.threads_per_row > 1]
    for arguments, match in (
        ((["naive", "nope"],), "no kernel 'nope'"),
        ((["naive"], "float32", long), "naive takes rows of up to 16777216"),
        ((["naive"], "float16"), "naive takes float32, got float16"),
        ((None, "float16"), "no kernel fits: .* takes float32, got float16"),
        ((None, "float32", [(3, 4), (0, 4)]), r"without elements is never launched, got \(0, 4\)"),
        (([],), "no kernel was named"),
    ):
        with pytest.raises(ValueError, match=match):
            registry.chosen(*arguments)


def test_exhibits_are_found_by_name_and_are_no_rungs():
    for name, kernel in EXHIBITS.items():
        assert registry.get(name) is kernel
        assert name not in KERNELS
        assert kernel not in LADDER
    with pytest.raises(ValueError, match="no kernel 'x'") as refused:
        registry.get("x")
    assert "roof/copy" not in str(refused.value)
