"""On a GPU under pressure: many launches at once, memory refused, sources that do not compile; and
the reports of comparable software that need one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from test_gpu import check, given, python, shifted

from softmax_lab import gpu, log_softmax, pressure, reference, registry, softmax, trial
from softmax_lab.registry import KERNELS

pytestmark = pytest.mark.gpu


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


@pytest.mark.parametrize("name", pressure.TRIALS)
def test_nothing_goes_wrong_under_pressure(cupy, name):
    said = []
    under_way = trial.Trial(list(KERNELS.values()), said.append)
    pressure.TRIALS[name](under_way)
    assert not said
    assert all(each.launches and not each.failures for each in under_way.tallies.values())


def test_operators_and_arrays_of_numpy_where_memory_is_refused(cupy):
    x, out = given(cupy, "naive", 4096, 1024)[0], cupy.empty((4096, 1024), "float32")
    pool = cupy.cuda.MemoryPool()
    pool.set_limit(size=x.nbytes // 2)
    with cupy.cuda.using_allocator(pool.malloc):
        for call in (softmax, log_softmax, lambda x: gpu.launch("naive", x.get())):
            for _ in range(2):
                with pytest.raises(cupy.cuda.memory.OutOfMemoryError):
                    call(x)
        check(softmax(x, out=out), x)  # needs none
    check(softmax(x), x)
    with pytest.raises(cupy.cuda.memory.OutOfMemoryError):
        cupy.empty(1 << 48, "uint8")  # the driver itself refuses
    y = given(cupy, "naive", 37, 33)[0]
    check(softmax(y), y)


def test_an_access_outside_of_memory_ends_the_process_for_the_gpu():
    """Not to be survived, so nothing of it may reach a launch: CUDA keeps the error."""
    code = """
    import cupy, numpy as np
    from softmax_lab import gpu
    x, y = cupy.ones((4, 32), "float32"), cupy.empty((4, 32), "float32")
    check = lambda: print((gpu.launch("naive", x, out=y).get() == 1 / 32).all())
    check()
    run = gpu.function("naive", "float32", 0)
    run((1 << 20,), (256,), (x, y, np.int32(1 << 28), np.int32(1 << 20)))
    for _ in range(2):
        try:
            check()
        except RuntimeError as error:
            print("address" in str(error).lower())
    """
    assert python(code).split() == ["True"] * 3


def test_a_block_may_have_more_shared_memory_than_comes_without_asking(cupy):
    x = given(cupy, "block_tree", 37, 33)[0]
    large = dataclasses.replace(registry.get("block_tree"), shared_bytes=64 * 1024)
    gpu.forget("block_tree")
    check(gpu.launch(large, x), x, name="block_tree")
    gpu.forget("block_tree")


# ---------------------------------------------------------------------------- public reports


@pytest.mark.parametrize("name", [kernel.name for kernel in registry.LADDER])
def test_n13_rows_of_a_million(cupy, name):
    for cols in (12287, 12288, 12289, 65536, 65537, 131072, 2**20, 2**20 + 3):
        host = np.tile(np.sin(np.arange(cols)), (2, 1)).astype("f4")
        y = gpu.launch(name, cupy.asarray(host)).get()
        kernel = KERNELS[name]
        terms = kernel.family.roundings("position", cols, kernel.threads_per_row)
        assert reference.compare(y, host, terms=terms).ok
        if kernel.threads_per_row > 1:  # one thread's sum of a million terms has fewer digits
            assert y == pytest.approx(reference.softmax(host), rel=1e-5)


def test_n06_equal_scores_in_a_row_beyond_one_accumulator(cupy):
    zeros = cupy.zeros((1, 2**25), "float32")
    for kernel in registry.LADDER:
        if kernel.max_cols < zeros.shape[1]:
            with pytest.raises(ValueError, match="columns"):
                gpu.launch(kernel, zeros)
        else:
            assert (gpu.launch(kernel, zeros).get() == np.float32(2.0**-25)).all()
    assert (softmax(zeros).get() == np.float32(2.0**-25)).all()
    assert (softmax(cupy.zeros((1, 70_000), "float16")).get() == np.float16(1 / 70_000)).all()


@pytest.mark.parametrize("cols", [1, 2, 3, 7, 11, 17, 31, 32, 33, 63, 65])
def test_n07_narrow_rows_of_halves(cupy, cols):
    same = softmax(cupy.full((5, cols), -200, "float16")).get()
    assert (same == np.float16(1 / cols)).all()
    x = np.tile(-200 + 0.5 * np.arange(cols), (5, 1)).astype("f2")
    got = softmax(cupy.asarray(x)).get()
    assert got == pytest.approx(reference.softmax(x), rel=2e-3, abs=2.0**-25)  # subnormal halves


@pytest.mark.slow
def test_n11_more_rows_than_an_int_counts(cupy):
    rows = 2_200_000_000
    free = cupy.cuda.runtime.memGetInfo()[0]
    if free < 24 * rows:
        pytest.skip(f"needs 53 GB of GPU memory, {free / 1e9:.0f} GB are free")
    x = cupy.zeros((rows, 1), "float16")
    y = softmax(x)
    for part in (slice(0, 5), slice(rows // 2, rows // 2 + 5), slice(rows - 5, rows)):
        assert (y[part].get() == 1).all()
    del x, y
    cupy.get_default_memory_pool().free_all_blocks()


@pytest.mark.parametrize("shape", [(4, 32), (3, 33), (104, 1001)], ids=str)
def test_n15_operators_take_any_start(cupy, shape):
    x = given(cupy, "warp", *shape)[0]
    for by in (1, 2, 3):
        check(softmax(shifted(cupy, x, by)), x, name="warp")
        check(log_softmax(shifted(cupy, x, by)), x, name="log_softmax/online_warp")
    halves = x.get().astype("f2")
    for by in range(1, 8):
        buffer = cupy.zeros(halves.size + by, "float16")
        view = buffer[by:].reshape(shape)
        view.set(halves)
        y = softmax(view).get()
        assert y == pytest.approx(reference.softmax(halves), rel=2e-3, abs=2.0**-25)


@pytest.mark.parametrize("name", [name for name in KERNELS if name.startswith("gemv/")])
def test_n19_matrices_of_any_shape_between_guards(cupy, name):
    for rows, cols in ((1, 1), (37, 1001), (1000, 3), (35, 19), (129, 257), (1, 129)):
        arrays = given(cupy, name, rows, cols)
        buffer = cupy.asarray(np.full(rows + 128, 7, "float32"))
        check(gpu.launch(name, *arrays, out=buffer[64 : 64 + rows]), *arrays, name=name)
        assert (buffer[:64].get() == 7).all() and (buffer[64 + rows :].get() == 7).all()
