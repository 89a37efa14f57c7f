"""Failures of comparable software, each with the right answer; `cases.json` names their tests.

Those about numbers are here, run by every registered kernel, with the very inputs of the reports.
"""

import ast
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from softmax_lab import KERNELS, LADDER, emulator, launch, log_softmax, reference, registry, softmax

ROOT = Path(__file__).resolve().parent.parent
CASES = {case["id"]: case for case in json.loads((ROOT / "tests" / "cases.json").read_text())}

IDS = (
    "N01 N02 N04 N05 N06 N07 N10 N11 N13 N14 N15 N17 N18 N19 C01 C03 C04 C06 C07 C08 B01 B02 B05 "
    "J01 J02 J03 J04 J06 J07 J09 J11 J12 J13 R01 R02 R03 R05 R06 R08"
).split()

every_kernel = pytest.mark.parametrize("name", [kernel.name for kernel in LADDER])
every_log = pytest.mark.parametrize(
    "name", [name for name, kernel in KERNELS.items() if kernel.family is registry.LOG_SOFTMAX]
)


def run(name, x):
    return launch(name, np.ascontiguousarray(x, dtype=np.float32), device="cpu")


@cache
def functions(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_no_case_is_missing():
    assert sorted(CASES) == sorted(IDS)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_case_is_held_by_tests_that_exist(case):
    assert case["tests"]
    for test in case["tests"]:
        file, _, function = test.partition("::")
        assert function.startswith("test_")
        assert function in functions(file), f"{case['id']} names {test}, which is not there"


def masked_but_for_few(cols: int) -> tuple[np.ndarray, list[int]]:
    """Rows with one finite value each, first, in the middle and last, and where; a row with two."""
    spots = [0, cols // 2, cols - 1]
    x = np.full((4, cols), -np.inf, "f4")
    x[range(3), spots] = 10
    x[3, [0, 2]] = 1, 2
    return x, spots


@every_kernel
@pytest.mark.parametrize("cols", [8, 33, 1024, 100_000])
def test_n01_one_finite_value_among_masked_ones(name, cols):
    x, spots = masked_but_for_few(cols)
    y = run(name, x)
    for row, spot in zip(y, spots, strict=False):
        assert np.flatnonzero(row).tolist() == [spot] and row[spot] == 1
    assert np.flatnonzero(y[3]).tolist() == [0, 2]
    assert y[3, [0, 2]] == pytest.approx([0.26894142, 0.73105858], rel=1e-6)


@every_log
@pytest.mark.parametrize("cols", [8, 33, 1024, 100_000])
def test_n01_logarithms_of_rows_that_are_masked_but_for_few(name, cols):
    x, spots = masked_but_for_few(cols)
    y = run(name, x)
    for row, spot in zip(y, spots, strict=False):
        assert np.flatnonzero(np.isfinite(row)).tolist() == [spot] and row[spot] == 0
    assert np.flatnonzero(np.isfinite(y[3])).tolist() == [0, 2]
    assert y[3, [0, 2]] == pytest.approx([-1.31326169, -0.31326169], rel=1e-6)
    assert (y[~np.isfinite(y)] == -np.inf).all()


@every_log
@pytest.mark.parametrize("cols", [4, 64, 5000])
def test_n02_rows_without_logarithms_are_nan_throughout(name, cols):
    x = np.zeros((4, cols), "f4")
    x[0], x[1, :4], x[2, :4] = -np.inf, [1, np.inf, 2, 0], [np.inf, np.inf, 0, 0]
    y = run(name, x)
    assert np.isnan(y[:3]).all() and np.isfinite(y[3]).all()


@every_log
def test_n04_large_offsets_keep_the_logarithm(name):
    thirds = [-2.40760596, -1.40760596, -0.40760596]
    for row, want in (
        ([-1e7, -1e7 + 1, -1e7 + 2], thirds),
        ([-60000, -60001, -60002], thirds[::-1]),
        ([-1e4, -1e4], [-0.69314718] * 2),
        ([1000, 1001, 1002], thirds),
    ):
        assert run(name, [row])[0] == pytest.approx(want, rel=1e-6)
    assert run(name, [[3.4e38, -3.4e38, 0]])[0].tolist() == [0, -np.inf, np.float32(-3.4e38)]


@every_log
def test_n05_one_column_has_the_logarithm_0_and_the_tail_survives(name):
    assert run(name, [[0.7], [88.72284], [-1e30]]).tolist() == [[0], [0], [0]]
    assert run(name, [[0, -90], [0, -110]])[:, 1].tolist() == [-90, -110]
    near, far = run(name, [[16.942385, 0]])[0]
    assert -1.5e-7 <= near <= 0
    assert far == np.float32(-16.942385)


@every_kernel
@pytest.mark.parametrize("cols", [4, 64, 5000])
def test_n02_rows_without_a_distribution_are_nan_throughout(name, cols):
    x = np.zeros((4, cols), "f4")
    x[0] = -np.inf
    x[1, :4] = [1, np.inf, 2, 0]
    x[2, :4] = [np.inf, np.inf, 0, 0]
    x[3, :4] = [0, 1, 2, 3]
    y = run(name, x)
    assert np.isnan(y[:3]).all()
    assert reference.compare(y, x, terms=cols).ok  # equal terms: their roundings add up
    if cols == 4:
        assert y[3] == pytest.approx([0.0320586, 0.08714432, 0.23688282, 0.64391426], rel=1e-5)


@every_kernel
def test_n04_large_offsets_keep_the_answer(name):
    thirds = [0.09003057, 0.24472847, 0.66524096]
    for row, want in (
        ([-1e7, -1e7 + 1, -1e7 + 2], thirds),
        ([-60000, -60001, -60002], thirds[::-1]),
        ([-1e4, -1e4], [0.5, 0.5]),
        ([1000, 1001, 1002], thirds),
        ([3.4e38, -3.4e38, 0], [1, 0, 0]),
    ):
        assert run(name, [row])[0] == pytest.approx(want, rel=1e-6)


@every_kernel
def test_n05_one_column_is_one_and_the_tail_survives(name):
    assert run(name, [[0.7], [88.72284], [-1e30]]).tolist() == [[1], [1], [1]]
    tail = run(name, [[0, -90]])[0, 1]
    assert tail == pytest.approx(8.19e-40, rel=1e-2)


@every_kernel
def test_n06_types_not_offered_are_named(name):
    for dtype in ("float16", "float64"):
        if dtype not in registry.get(name).dtypes:
            with pytest.raises(TypeError, match=dtype):
                launch(name, np.zeros((1, 512), dtype), device="cpu")


@every_kernel
@pytest.mark.parametrize("cols", [1, 2, 3, 7, 11, 17, 31, 32, 33, 63, 65])
def test_n07_rows_narrower_than_a_warp(name, cols):
    x = np.full((10, cols), -200, "f4")
    x[5:] += np.float32(0.5) * np.arange(cols, dtype="f4")
    y = run(name, x)
    assert (y[:5] == np.float32(1) / np.float32(cols)).all()
    np.testing.assert_allclose(y[5:], reference.softmax(x[5:]), rtol=1e-5)


@pytest.mark.slow
@every_kernel
@pytest.mark.parametrize("cols", [12287, 12288, 12289, 65536, 65537, 131072])
def test_n13_long_rows(name, cols):
    x = np.tile(np.sin(np.arange(cols)), (2, 1)).astype("f4")
    # One thread's sum of so many terms has fewer digits than the sums of many threads.
    close = 1e-5 if registry.get(name).threads_per_row > 1 else 1e-4
    np.testing.assert_allclose(run(name, x), reference.softmax(x), rtol=close)


@every_kernel
def test_n17_integers_and_lists_are_refused_by_name(name):
    # Kernels take what their signature says; the operators on top of them convert.
    for x, word in (
        (np.array([[1, 2, 3]], "i4"), "int32"),
        (np.array([[0, 1, 255]], "u1"), "uint8"),
        (np.array([[True, False]]), "bool"),
        (np.array([[1j]], "c8"), "complex64"),
        ([[1.0, 2.0]], "list"),
    ):
        with pytest.raises(TypeError, match=word):
            launch(name, x, device="cpu")


def test_n17_the_operators_convert_integers_and_lists():
    for x, want in (
        (np.array([[1, 2, 3]], "i4"), [0.09003057, 0.24472847, 0.66524096]),
        (np.array([[0, 1, 255]], "u1"), [0, 0, 1]),
        (np.array([[True, False]]), [0.73105858, 0.26894142]),
        (np.array([[2**53, 2**53 + 1]]), [0.26894142, 0.73105858]),
        ([[1, 2, 3]], [0.09003057, 0.24472847, 0.66524096]),
    ):
        y = softmax(x)
        assert y.dtype == np.float32
        assert y[0] == pytest.approx(want, rel=1e-6)
    with pytest.raises(TypeError, match="complex64"):
        softmax(np.array([[1j]], "c8"))


@pytest.mark.parametrize(
    ("dtype", "cols"), [("f2", 70_000), pytest.param("f4", 2**25, marks=pytest.mark.slow)]
)
def test_n06_the_operators_sum_wider_than_they_store(dtype, cols):
    assert (softmax(np.zeros((1, cols), dtype)) == np.dtype(dtype).type(1 / cols)).all()


@pytest.mark.parametrize("cols", [1, 2, 3, 7, 11, 17, 31, 32, 33, 63, 65])
def test_n07_the_operators_on_narrow_rows(cols):
    assert (softmax(np.full((5, cols), -200, "f2")) == np.float16(1 / cols)).all()
    x = np.tile(-200 + 0.5 * np.arange(cols), (5, 1))
    for dtype, within, least in (("f4", 1e-5, 0), ("f2", 2e-3, 2.0**-25)):  # subnormal halves
        got = softmax(x.astype(dtype))
        np.testing.assert_allclose(got, reference.softmax(x.astype(dtype)), within, least)


@pytest.mark.parametrize("operator", [softmax, log_softmax])
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_n10_the_operators_on_nothing(operator, shape):
    y = operator(np.zeros(shape, "f4"))
    assert (y.shape, y.dtype) == (shape, np.float32)
    half = 0.5 if operator is softmax else -0.69314718
    assert operator(np.zeros((1, 2), "f4")) == pytest.approx(half, rel=1e-6)


def test_n14_the_operators_take_views():
    a = np.arange(12, dtype="f4").reshape(3, 4)
    assert softmax(a.T)[0] == pytest.approx([3.2932e-04, 1.79803e-02, 9.81690e-01], rel=1e-5)
    b = np.arange(264, dtype="f4").reshape(8, 33)
    for view in (a.T, b[:, 1:], b[::2], b[:, ::-1], np.broadcast_to(np.arange(5.0), (3, 5))):
        for operator in (softmax, log_softmax):
            assert np.array_equal(operator(view), operator(np.ascontiguousarray(view)))


@pytest.mark.parametrize("name", [name for name in KERNELS if name.startswith("gemv/")])
@pytest.mark.parametrize("shape", [(1, 1), (37, 1001), (1000, 3), (35, 19), (129, 257), (1, 129)])
def test_n19_matrices_of_any_shape_between_guards(name, shape):
    """An access outside of an array is a fault here, whatever lies there."""
    arrays = KERNELS[name].family.inputs("normal", *shape)
    found = emulator.run(name, *arrays, sanitize=True)
    assert not found.faults and not found.unwritten
    assert KERNELS[name].family.compare(found.y, *arrays).ok
