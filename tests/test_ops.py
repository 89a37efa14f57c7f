"""The operators, clause by clause of the contract: on the host, on a GPU, and every kernel."""

from __future__ import annotations

import ctypes
import inspect
import os
import subprocess
import sys
import textwrap
import warnings
from array import array
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import fake_gpu
import numpy as np
import pytest

import softmax_lab
from softmax_lab import (
    KERNELS,
    arguments,
    choice,
    emulator,
    families,
    gpu,
    ops,
    records,
    reference,
    registry,
)
from softmax_lab.contract import CLAUSES, OPERATORS

ROOT = Path(__file__).resolve().parent.parent
FAMILIES = {"softmax": families.SOFTMAX, "log_softmax": families.LOG_SOFTMAX}
HERE = [pytest.param(c, marks=[pytest.mark.slow] * bool(c.scope)) for c in CLAUSES.values()]

clauses = pytest.mark.parametrize("clause", HERE, ids=list(CLAUSES))
both = pytest.mark.parametrize("operator", OPERATORS)

CLOSE = {"float16": 1e-3, "float32": 3e-6, "float64": 1e-14}
"""Relative error allowed to the small rows of the contract: some roundings of each type."""


def host(array) -> np.ndarray:
    return array.get() if hasattr(array, "get") else array


def frozen(size: int) -> np.ndarray:
    out = np.zeros(size)
    out.flags.writeable = False
    return out


def kept(out) -> bytes:
    return b"" if out is None else host(out).tobytes()


def judge(clause, operator, x, y) -> None:
    """y is what the clause wants of x; of a large one both ends are looked at."""
    assert (y.shape, str(y.dtype)) == (np.shape(x), clause.dtype)
    wanted = np.broadcast_to(np.array(clause.wanted(operator)), y.shape)
    if clause.scope == "large":
        y, wanted = y[:: len(y) - 1], wanted[:2]
    y = host(y)
    np.testing.assert_allclose(y, wanted, rtol=CLOSE[clause.dtype])
    np.testing.assert_array_equal(y[wanted == 1], 1)  # a certainty, to the last bit


def hold(clause, operator, x, keywords) -> None:
    """The operator keeps the clause, and where it refuses, leaves `out` as it was."""
    run, out = getattr(softmax_lab, operator), keywords.get("out")
    before = kept(out)
    if isinstance(clause.wanted(operator), type):
        with pytest.raises(clause.wanted(operator)):
            run(x, **keywords)
        assert kept(out) == before
    else:
        y = run(x, **keywords)
        assert out is None or y is out
        judge(clause, operator, x, y)


# --- on the host ----------------------------------------------------------------------------------


@both
@clauses
def test_the_host_keeps_the_contract_without_a_warning(clause, operator, monkeypatch):
    if clause.scope == "gpu":
        pytest.skip("two memories: see the tests on a GPU")
    x, keywords = clause.call()
    if clause.scope == "large":
        monkeypatch.setattr(ops, operator.upper(), one_row_for_all(FAMILIES[operator]))
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        hold(clause, operator, x, keywords)


def one_row_for_all(family: families.Family) -> families.Family:
    """The family for a matrix that repeats a row by stride 0: a slab's answer is its first row's.

    The oracle never sees where a slab lies: all that depends on it is done, exponentials are not.
    """

    def oracle(x):
        assert x.strides[0] == 0
        return np.broadcast_to(family.oracle(x[:1]).astype(x.dtype), x.shape)

    return replace(family, oracle=oracle)


@both
@pytest.mark.parametrize("kind", reference.INPUTS)
def test_a_result_is_float64_rounded_once(operator, kind):
    x = reference.inputs(kind, 7, 33)
    with np.errstate(over="ignore", under="ignore"):
        for dtype in ("float16", "float32", "float64"):
            given = x.astype(dtype)
            wanted = FAMILIES[operator].oracle(given).astype(dtype)
            assert np.array_equal(getattr(ops, operator)(given), wanted, equal_nan=True)


@both
@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
def test_every_axis_in_slabs_of_any_size(operator, axis, monkeypatch):
    x = np.random.default_rng(0).standard_normal((3, 5, 4))[:, ::-1]
    whole = np.moveaxis(FAMILIES[operator].oracle(np.moveaxis(x, axis, -1)), -1, axis)
    for most in (1, 5, 13, 2**20):
        monkeypatch.setitem(ops.SLAB, "host", most)
        assert np.array_equal(getattr(ops, operator)(x, axis), whole)
        y = x.copy()
        assert getattr(ops, operator)(y, axis, y) is y
        assert np.array_equal(y, whole)


@both
@pytest.mark.parametrize("name", ["out is x", "out overlaps x"])
def test_an_out_that_overlaps_is_right_in_the_smallest_slabs(operator, name, monkeypatch):
    monkeypatch.setitem(ops.SLAB, "host", 3)
    hold(CLAUSES[name], operator, *CLAUSES[name].call())


def test_what_goes_in_stays_as_it_was():
    x = reference.inputs("special", 12, 9)
    before = x.tobytes()
    ops.softmax(x), ops.log_softmax(x, 0)
    assert x.tobytes() == before


ENDLESS: list = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    ("x", "keywords", "error", "words"),
    [
        (np.zeros(3, "c8"), {}, TypeError, "got complex64"),
        (np.zeros(3, "g"), {}, TypeError, "an integer or boolean, got (float128|longdouble)"),
        (np.array(["a"]), {}, TypeError, "got <U1"),
        (None, {}, TypeError, "got NoneType$"),
        ([["a", 1]], {}, TypeError, "got a list of str$"),
        (ENDLESS, {}, TypeError, "got lists without an end"),
        (memoryview(b"ab"), {}, TypeError, r"got memoryview; np.asarray\(x\) makes one"),
        (array("f", [1, 2]), {}, TypeError, r"got array; np.asarray\(x\) makes one"),
        ([[1, 2], [memoryview(b"ab")]], {}, TypeError, "got a list of memoryview"),
        ([[1, 2], [3]], {}, TypeError, "lists of equal lengths: .*inhomogeneous"),
        (np.ma.masked, {}, TypeError, "its mask would be lost"),
        ([np.ma.masked_less(np.zeros(2), 1)], {}, TypeError, "its mask would be lost"),
        (np.zeros((2, 3)), {"axis": -3}, ValueError, r"in -2 … 1 for an array of shape \(2, 3\)"),
        (np.zeros(()), {"axis": 1}, ValueError, r"in -1 … 0 for an array of shape \(\)"),
        (np.zeros(3), {"axis": 0.0}, TypeError, "axis must be an integer, got 0.0"),
        (np.zeros((2, 3)), {"axis": True}, TypeError, "axis must be an integer, got True"),
        (np.zeros((2, 3)), {"axis": (0, 1)}, TypeError, "axis must be an integer"),
        (np.zeros(3), {"out": [0, 0, 0]}, TypeError, "out must be a NumPy array as x is, got list"),
        (np.zeros(3), {"out": np.zeros(3, ">f8")}, TypeError, "out must be float64, got >f8"),
        (np.zeros(3, "i4"), {"out": np.zeros(3, "i4")}, TypeError, "out must be float32"),
        (np.zeros(3), {"out": np.ma.zeros(3)}, TypeError, "plain array"),
        (
            np.zeros((2, 3)),
            {"out": np.lib.stride_tricks.as_strided(np.zeros(3), (2, 3), (0, 8))},
            ValueError,
            "softmax: out must not repeat elements",
        ),
        (np.zeros(3), {"out": np.zeros(2)}, ValueError, "softmax: out must have the shape"),
        (np.zeros(3), {"out": frozen(3)}, ValueError, "softmax: out must be writable"),
    ],
)
@both
def test_refusals_say_what_was_got_and_what_is_allowed(operator, x, keywords, error, words):
    with pytest.raises(error, match=words):
        getattr(ops, operator)(x, **keywords)


LAYOUTS = {
    "windows": ((3, 3), (4, 4), True),
    "windows backwards": ((3, 3), (4, -4), True),
    "half an element on": ((2, 2), (2, 8), True),
    "rows that meet at their ends": ((2, 3), (8, 4), True),
    "a meeting far along": ((3, 4), (12, 8), True),
    "broadcast": ((2, 1, 3), (0, 4, 4), True),
    "packed": ((3, 5, 2), (40, 8, 4), False),
    "transposed backwards": ((5, 3), (-4, 20), False),
    "interleaved, and never alike": ((2, 3), (12, 8), False),
    "of one element, any stride": ((1, 1), (0, 1), False),
    "empty": ((0, 3), (0, 0), False),
}


@pytest.mark.parametrize(("shape", "strides", "wanted"), LAYOUTS.values(), ids=LAYOUTS)
def test_an_overlap_with_itself_is_seen_exactly(shape, strides, wanted):
    places = np.indices(shape).reshape(len(shape), -1).T @ np.array(strides)
    touched = [byte for place in places for byte in range(place, place + 4)]
    assert (len(set(touched)) < len(touched)) == wanted
    buffer = np.zeros(400, np.uint8)[200:].view("V4")[0:1]
    assert (
        arguments.overlaps_itself(np.lib.stride_tricks.as_strided(buffer, shape, strides)) is wanted
    )


def test_layouts_of_any_strides_are_judged_as_their_bytes_say():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        shape, strides = rng.integers(1, 5, 3), rng.integers(-30, 31, 3)
        places = np.indices(shape).reshape(3, -1).T @ strides
        touched = (places[:, None] + np.arange(4)).ravel()
        view = SimpleNamespace(
            shape=tuple(shape), strides=tuple(strides), itemsize=4, size=int(shape.prod())
        )
        found.append(len(set(touched)) < touched.size)
        assert arguments.overlaps_itself(view) == found[-1], (shape, strides)
    assert 50 < sum(found) < 350  # both kinds are among them


@both
def test_a_signalling_nan_is_nan_and_no_warning(operator):
    for bits, dtype in ((0x7C01, "f2"), (0x7F800001, "f4"), (0x7FF0000000000001, "f8")):
        x = np.zeros((2, 3), dtype)
        x.view(f"u{x.itemsize}")[0, 1] = bits
        with np.errstate(all="raise"), warnings.catch_warnings():
            warnings.simplefilter("error")
            y = getattr(ops, operator)(x)
        assert np.isnan(y[0]).all() and np.isfinite(y[1]).all(), dtype


def test_differences_of_integers_are_exact_over_the_whole_range(cupy):
    low, high, top = -(2**63), 2**63 - 1, 2**64 - 1
    for dtype, row, below in (
        ("i8", [high, high - 1, low], (0, -1, -float(2**64))),
        ("i8", [low + 1, low, low + 3], (-2, -3, 0)),
        ("u8", [top, top - 3, 0], (0, -3, -float(2**64))),
        (">i8", [high - 2, high, high - 1], (-2, 0, -1)),
    ):
        x = np.array([row, row[::-1]], dtype)
        wanted = np.array([below, below[::-1]])
        for given in (x, *(mirrored(cupy, x) if x.dtype.isnative else ())):
            y = ops.softmax(given)
            assert y.dtype == np.float32
            np.testing.assert_allclose(host(y), reference.softmax(wanted), rtol=3e-7)
            y = ops.log_softmax(given)
            np.testing.assert_allclose(host(y), reference.log_softmax(wanted), rtol=3e-7)


def test_numbers_and_lists_are_what_numpy_makes_of_them():
    assert ops.softmax(True) == np.float32(1) and ops.softmax(True).shape == ()
    assert ops.softmax([0.0, 0.0]).dtype == np.float64
    assert ops.softmax([]).shape == (0,)
    assert type(ops.softmax(np.zeros((1, 2)).view(np.recarray))) is np.ndarray


NEITHER = """
import sys
sys.modules["cupy"] = None
import numpy as np
import softmax_lab as lab
x = np.float32([[0, 1], [-np.inf, np.inf]])
assert np.allclose(lab.softmax(x)[0].sum(), 1) and np.isnan(lab.log_softmax(x)[1]).all()
assert {"subprocess", "matplotlib"} & set(sys.modules) <= {"subprocess"}
print(sorted(name for name in sys.modules if name.startswith("cupy_")))
"""


def test_the_host_needs_no_compiler_and_no_gpu(tmp_path):
    gone = str(tmp_path / "gone")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(NEITHER)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": gone, "SOFTMAX_LAB_CXX": gone},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


@both
def test_the_docstring_has_the_whole_contract(operator):
    said = getattr(softmax_lab, operator).__doc__
    for clause in CLAUSES.values():
        assert f"- {clause.name} ({clause.given}): {clause.says}." in said


@pytest.mark.parametrize("launch", [gpu.launch, softmax_lab.launch])
def test_a_launch_says_of_each_clause_what_a_kernel_does(launch):
    said = launch.__doc__
    out = "out" in inspect.signature(launch).parameters
    for clause in CLAUSES.values():
        line = f"- {clause.name} ({clause.given}): {clause.of_a_kernel}."
        about_out = clause.name.startswith("out")
        assert (line in said) == (clause.kernel is not None and (out or not about_out)), clause.name
    assert "- complex (complex64): TypeError." in said
    assert "- NaN (0, NaN, 1): NaN throughout its row; other rows are untouched." in said


# --- every kernel ---------------------------------------------------------------------------------

KEPT = [name for name, kernel in KERNELS.items() if kernel.family.name in FAMILIES]


@pytest.mark.parametrize("name", KEPT)
def test_every_kernel_keeps_the_contract_by_being_registered(name):
    kernel = KERNELS[name]
    for clause in CLAUSES.values():
        if clause.kernel is None or clause.scope:
            continue
        x, keywords = clause.call()
        if clause.kernel == "same" or str(getattr(x, "dtype", "")) in kernel.dtypes[1:]:
            if "out" not in keywords:  # with it, it takes a GPU
                judge(clause, kernel.family.name, x, emulator.plain(kernel, x))
        elif "out" in keywords:
            before = kept(keywords["out"])
            with pytest.raises(clause.kernel, match=r"got|overlaps"):
                gpu.launch(kernel, x, **keywords)
            assert kept(keywords["out"]) == before
        else:
            with pytest.raises(clause.kernel, match=r"got|must start"):
                emulator.plain(kernel, x)


def test_a_kernel_that_breaks_a_clause_is_seen():
    """The foil overflows, so it cannot keep the contract."""
    clause = CLAUSES["huge"]
    x, _ = clause.call()
    with pytest.raises(AssertionError):
        judge(clause, "softmax", x, emulator.plain("foil/unshifted", x))


# --- on a GPU -------------------------------------------------------------------------------------


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.gpu)])
def cupy(request, monkeypatch):
    """CuPy, or as much of it as the operators use; `launched` notes the fake one's launches."""
    if request.param == "real":
        module = pytest.importorskip("cupy")
        yield module
        module.cuda.Device().synchronize()  # an access that failed shows here
        return
    stream = SimpleNamespace(ptr=1, capturing=False, is_capturing=lambda: stream.capturing)
    module = fake_gpu.computing(stream)
    module.stream, module.launched = stream, []
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setattr(gpu, "status", lambda: gpu.Status(available=True))
    monkeypatch.setattr(gpu, "function", fake_gpu.kernel_function(module.launched))
    yield module


def mirrored(cupy, *arrays):
    """NumPy arrays on the device as they lie here: strides, alignment and overlaps the same."""
    spans = [arguments.reach(array) for array in arrays]
    low, high = min(s for s, _ in spans) & ~255, max(e for _, e in spans)
    buffer = cupy.zeros(high - low + 1, np.uint8)
    for start, end in spans:
        here = np.frombuffer(ctypes.string_at(start, end - start), np.uint8)
        if here.size:
            buffer[start - low : end - low].set(here)
    return [
        cupy.ndarray(
            a.shape, a.dtype, memptr=buffer.data + (a.ctypes.data - low), strides=a.strides
        )
        for a in arrays
    ]


def on_device(clause) -> bool:
    """Whether CuPy has such an input: its arrays hold numbers in this machine's byte order, and
    none is read-only."""
    x, _ = clause.call()
    plain = type(x) is np.ndarray and x.dtype.isnative
    known = plain and x.dtype.kind in "fiubc" and x.dtype.itemsize <= 8
    return known and clause.scope != "gpu" and clause.name != "out read-only"


DEVICE = [c for c in CLAUSES.values() if c.scope != "large" and on_device(c)]


def put(cupy, clause) -> tuple:
    """x and the keywords of a clause, on the device."""
    x, keywords = clause.call()
    out = keywords.pop("out", None)
    if out is None:
        return *mirrored(cupy, x), keywords
    apart = not np.may_share_memory(x, out)
    x, out = (*mirrored(cupy, x), *mirrored(cupy, out)) if apart else mirrored(cupy, x, out)
    return x, {**keywords, "out": out}


@both
@pytest.mark.parametrize("clause", DEVICE, ids=lambda clause: clause.name)
def test_a_gpu_keeps_the_contract(cupy, clause, operator):
    x, keywords = put(cupy, clause)
    before = kept(x)
    hold(clause, operator, x, keywords)
    assert "out" in keywords or kept(x) == before


@pytest.mark.parametrize("name", KEPT)
def test_a_launch_keeps_what_the_contract_says_of_out(cupy, name):
    kernel, seen = KERNELS[name], set()
    for clause in DEVICE:
        x, keywords = put(cupy, clause)
        if clause.kernel is None or "out" not in keywords:
            continue
        seen.add(clause.kernel)
        before = kept(keywords["out"])
        if clause.kernel == "same":
            assert gpu.launch(kernel, x, **keywords) is keywords["out"]
            judge(clause, kernel.family.name, x, keywords["out"])
        else:
            with pytest.raises(clause.kernel):
                gpu.launch(kernel, x, **keywords)
            assert kept(keywords["out"]) == before
    assert seen == {"same", ValueError, TypeError}


def test_most_clauses_can_be_put_to_a_gpu():
    assert len(DEVICE) > 0.7 * len(CLAUSES)


@pytest.mark.gpu
@pytest.mark.slow
@both
def test_a_gpu_keeps_the_contract_beyond_two_to_the_31(operator):
    cupy = pytest.importorskip("cupy")
    clause = CLAUSES["more than 2³¹ elements"]
    x, keywords = clause.call()
    (x,) = mirrored(cupy, x)
    hold(clause, operator, x, keywords)
    cupy.get_default_memory_pool().free_all_blocks()


@both
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64"])
def test_a_gpu_equals_the_oracle(cupy, operator, dtype):
    family = FAMILIES[operator]
    for cols in (1, 16, 17, 33, 1001, 2048, 2049):
        x = np.random.default_rng(cols).standard_normal((5, cols)) * 4
        x = x.astype(dtype)
        y = getattr(ops, operator)(mirrored(cupy, x)[0])
        if dtype in ("float16", "float64"):
            rtol, atol = (1e-3, 2.0**-25) if dtype == "float16" else (1e-12, 0)
            np.testing.assert_allclose(host(y), family.oracle(x), rtol=rtol, atol=atol)
        else:
            assert family.compare(host(y), x.astype(np.float64)).ok


@both
def test_rows_that_many_launches_take_and_slabs_of_any_size(cupy, operator, monkeypatch):
    monkeypatch.setattr(ops, "ROWS", 2)
    for dtype in ("float32", "float64"):
        x = np.random.default_rng(1).standard_normal((4, 6, 5)).astype(dtype)
        monkeypatch.setitem(ops.SLAB, "gpu", 7)
        for axis in range(3):
            wanted = np.moveaxis(FAMILIES[operator].oracle(np.moveaxis(x, axis, -1)), -1, axis)
            y = getattr(ops, operator)(mirrored(cupy, x)[0], axis)
            np.testing.assert_allclose(host(y), wanted, rtol=1e-5)


@both
def test_n18_every_axis_of_every_shape(cupy, operator):
    run, oracle = getattr(ops, operator), FAMILIES[operator].oracle
    for shape in ((3,), (2, 3, 4), (3, 4), (2, 1, 2, 3), (17, 2, 33)):
        x = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
        for axis in range(-len(shape), len(shape)):
            wanted = np.moveaxis(oracle(np.moveaxis(x, axis, -1)), -1, axis)
            for given in (x, *mirrored(cupy, x)):
                y = run(given, axis=axis)
                assert y.shape == shape
                np.testing.assert_allclose(host(y), wanted, rtol=1e-5, atol=1e-7)
        for given in (x, *mirrored(cupy, x)):
            with pytest.raises(ValueError, match="axis must be in"):
                run(given, axis=5)


def test_a_misaligned_out_is_written_byte_by_byte(cupy):
    (x,) = mirrored(cupy, reference.inputs("normal", 3, 5))
    raw = np.zeros(61, np.uint8)[1:].view(np.float32).reshape(3, 5)
    (out,) = mirrored(cupy, raw)
    assert ops.softmax(x, out=out) is out
    assert reference.compare(host(out), host(x)).ok


def test_an_out_that_repeats_elements_is_refused(cupy):
    (x,) = mirrored(cupy, np.zeros((2, 3), np.float32))
    (out,) = mirrored(cupy, np.broadcast_to(np.zeros(3, np.float32), (2, 3)))
    with pytest.raises(ValueError, match="must not repeat elements"):
        ops.softmax(x, out=out)


def test_both_memories_are_named(cupy):
    x = np.zeros((2, 3), np.float32)
    (y,) = mirrored(cupy, x)
    with pytest.raises(ValueError, match=r"softmax: .* x on the host \(NumPy\), out on GPU 0"):
        ops.softmax(x, out=y)
    with pytest.raises(ValueError, match=r"x on GPU 0, out on the host"):
        ops.softmax(y, out=x)
    with pytest.raises(TypeError, match="out must be a CuPy array as x is, got list"):
        ops.softmax(y, out=[0])


def fake_only(cupy):
    """The fake CuPy, which can have any number of devices and say what was launched."""
    if not hasattr(cupy, "launched"):
        pytest.skip("looks into the fake GPU")
    return cupy


def test_a_result_is_made_where_x_is(cupy):
    fake_only(cupy)
    for given in (np.zeros((2, 3), np.float32), np.zeros((3, 2), np.int64).T):
        with fake_gpu.Gpu(1):
            (x,) = mirrored(cupy, given)
        y = ops.softmax(x)
        assert (x.device.id, y.device.id, fake_gpu.Gpu.current) == (1, 1, 0)
        with pytest.raises(ValueError, match="x on GPU 1, out on GPU 0"):
            ops.softmax(x, out=mirrored(cupy, np.zeros((2, 3), np.float32))[0])


def test_kernels_compute_what_float32_holds_and_nothing_else(cupy):
    fake_only(cupy)
    for dtype in ("float16", "float32", "int8", "uint8", "int16", "uint16", "bool"):
        cupy.launched.clear()
        ops.softmax(mirrored(cupy, np.ones((4, 2049), dtype))[0])
        name = choice.best(families.SOFTMAX, 4, 2049).name
        assert cupy.launched == [(name, 4, 2049)], dtype
    cupy.launched.clear()
    for dtype in ("float64", "int32", "uint32", "int64", "uint64"):
        ops.softmax(mirrored(cupy, np.ones((4, 5), dtype))[0])
    ops.softmax(mirrored(cupy, np.ones((0, 5), "f4"))[0])
    assert not cupy.launched


def test_a_capture_takes_what_needs_no_memory(cupy):
    fake_only(cupy)
    packed, out = (mirrored(cupy, np.zeros((2, 3), np.float32))[0] for _ in "xy")
    turned = mirrored(cupy, np.zeros((3, 2), np.float32).T)[0]
    cupy.stream.capturing = True
    assert ops.softmax(packed, out=out) is out
    for x, keywords in (
        (packed, {}),
        (packed, {"out": packed}),
        (turned, {"out": out}),
        (packed, {"out": turned}),
        (packed, {"out": out, "axis": 0}),
        (mirrored(cupy, np.zeros((2, 3), np.int8))[0], {"out": out}),
    ):
        with pytest.raises(RuntimeError, match="captured into a graph: give it packed"):
            ops.softmax(x, **keywords)


@pytest.mark.gpu
def test_a_real_capture_takes_packed_rows():
    cupy = pytest.importorskip("cupy")
    x = cupy.asarray(reference.inputs("normal", 64, 100))
    y = cupy.zeros_like(x)
    ops.softmax(x, out=y)  # compiled before
    y.fill(0)
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        ops.softmax(x, out=y)
        with pytest.raises(RuntimeError, match="give it packed"):
            ops.softmax(x, out=x)
        graph = stream.end_capture()
        graph.launch(stream)
        stream.synchronize()
    assert reference.compare(y.get(), x.get()).ok


@pytest.mark.gpu
def test_two_gpus_have_each_their_own_result():
    cupy = pytest.importorskip("cupy")
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two GPUs")
    values = reference.inputs("normal", 5, 33)
    with cupy.cuda.Device(1):
        x = cupy.asarray(values)
        doubles = cupy.asarray(values, dtype=np.float64)
    for given in (x, x.T, doubles):
        y = ops.softmax(given)
        assert y.device.id == given.device.id == 1
        assert y.get() == pytest.approx(reference.softmax(given.get()), rel=1e-5)
    with pytest.raises(ValueError, match="x on GPU 1, out on GPU 0"):
        ops.softmax(x, out=cupy.zeros((5, 33), np.float32))


# --- the choice -----------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("cols", [1, 16, 17, 2048, 2049, 2**24 + 1, 2**31 - 1])
def test_each_length_has_a_kernel_that_takes_it(operator, cols):
    for rows in (1, 512, 513, 2**31 - 1):
        kernel = choice.best(FAMILIES[operator], rows, cols)
        assert kernel.family is FAMILIES[operator]
        assert kernel.sizes((rows, cols)) and "float32" in kernel.dtypes
    assert choice.best(FAMILIES[operator], 1, 2**31) is None
    assert choice.best(families.GEMV, 1, cols) is None


SLACK = 1.1
"""What the chosen kernel may take, at a recorded shape, times the fastest one recorded there."""


def test_the_choice_is_the_best_of_what_was_measured():
    times: dict[tuple, dict[str, float]] = {}
    for slug in records.gpus():
        for row in records.fresh("bench", slug).rows:
            kernel = registry.get(row.kernel)
            if kernel.name in KEPT and row.method == "graph" and row.dtype == "float32":
                at = slug, kernel.family.name, row.rows, row.cols
                times.setdefault(at, {})[kernel.name] = row.median_s
    slow = {}
    for (slug, family, rows, cols), found in times.items():
        chosen = choice.best(FAMILIES[family], rows, cols).name
        if chosen in found and found[chosen] > SLACK * min(found.values()):
            slow[slug, rows, cols] = chosen, found[chosen], min(found, key=found.get)
    assert not slow
