"""On a GPU under pressure: many launches at once, memory refused, sources that do not compile; and
the reports of comparable software that need one."""

from __future__ import annotations

import dataclasses
import gc
import shutil
import threading

import numpy as np
import pytest
from test_gpu import check, given, poisoned, shifted

from softmax_lab import gpu, log_softmax, reference, registry, softmax
from softmax_lab.registry import KERNELS

pytestmark = pytest.mark.gpu

THREADS, ROUNDS = 8, 40
SHAPES = ((250, 1001), (37, 33), (1, 4099), (600, 7))


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


def prepared(cupy, name: str, shape: tuple[int, int], seed: int) -> tuple[list, object]:
    """Inputs that no other launch has, and a poisoned output."""
    family = KERNELS[name].family
    arrays = [cupy.asarray(each) for each in family.inputs("normal", *shape, seed)]
    return arrays, poisoned(cupy, name, *shape)


def jobs(cupy, many: int) -> list[tuple]:
    """(kernel, inputs, output) of launches of every kernel and shape in turn."""
    names = list(KERNELS)
    out = []
    for k in range(many):
        name, shape = names[k % len(names)], SHAPES[k // len(names) % len(SHAPES)]
        out.append((name, *prepared(cupy, name, shape, k)))
    cupy.cuda.Device().synchronize()
    return out


def all_right(done: list[tuple]) -> None:
    for name, arrays, y in done:
        check(y, *arrays, name=name)


def test_different_kernels_on_many_streams_at_once(cupy):
    work = jobs(cupy, 4 * len(KERNELS))
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(16)]
    for k, (name, arrays, y) in enumerate(work):
        with streams[k % len(streams)]:
            gpu.launch(name, *arrays, out=y)
    for stream in streams:
        stream.synchronize()
    all_right(work)


def test_different_kernels_from_many_threads_at_once(cupy):
    """Kernels are not even loaded when they start, so that threads load the same ones."""
    work = [jobs(cupy, ROUNDS) for _ in range(THREADS)]
    gpu._FUNCTIONS.clear()
    together, failed = threading.Barrier(THREADS), []

    def launch_all(mine: list[tuple], first: int) -> None:
        try:
            stream = cupy.cuda.Stream(non_blocking=True)
            together.wait()
            with stream:
                for k in range(ROUNDS):
                    name, arrays, y = mine[(first + k) % ROUNDS]
                    gpu.launch(name, *arrays, out=y)
                stream.synchronize()
        except BaseException as error:  # a thread's own would be lost
            failed.append(error)

    threads = [
        threading.Thread(target=launch_all, args=(mine, 5 * k)) for k, mine in enumerate(work)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    for mine in work:
        all_right(mine)


def test_an_output_allocated_by_each_thread_is_its_own(cupy):
    x = given(cupy, "warp", 64, 1001)[0]
    want = gpu.launch("warp", x).get()
    cupy.cuda.Device().synchronize()
    found: dict[int, list] = {k: [] for k in range(THREADS)}

    def launch_all(k: int) -> None:
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            found[k] = [gpu.launch("warp", x) for _ in range(ROUNDS)]
            stream.synchronize()

    threads = [threading.Thread(target=launch_all, args=(k,)) for k in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    every = [y for ys in found.values() for y in ys]
    assert len({y.data.ptr for y in every}) == THREADS * ROUNDS
    assert all(np.array_equal(y.get(), want) for y in every)


# ---------------------------------------------------------------------------- what goes wrong


def still_right(cupy) -> None:
    """Every kernel, on inputs and an output that are new."""
    all_right([(name, a, gpu.launch(name, *a)) for name, a, _ in jobs(cupy, len(KERNELS))])


def test_memory_that_is_refused_leaves_the_process_usable(cupy):
    x = given(cupy, "naive", 4096, 1024)[0]
    pool = cupy.get_default_memory_pool()
    gc.collect()  # or an array that nobody has any more gives its room back below
    pool.free_all_blocks()
    pool.set_limit(size=pool.total_bytes())
    assert pool.free_bytes() < x.nbytes
    try:
        with pytest.raises(cupy.cuda.memory.OutOfMemoryError):
            gpu.launch("naive", x)  # no out=, and no room for one
        with pytest.raises(cupy.cuda.memory.OutOfMemoryError):
            softmax(x)
    finally:
        pool.set_limit(size=0)
    check(gpu.launch("naive", x), x)
    with pytest.raises(cupy.cuda.memory.OutOfMemoryError):
        cupy.empty(1 << 48, "uint8")  # the driver itself refuses
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError):
        cupy.cuda.runtime.malloc(1 << 48)
    still_right(cupy)


def test_a_source_that_does_not_compile_leaves_the_process_usable(cupy, tmp_path, monkeypatch):
    x = given(cupy, "warp", 37, 33)[0]
    check(gpu.launch("warp", x), x, name="warp")
    shutil.copytree(registry.kernel_folder(), tmp_path / "kernels")
    file = tmp_path / "kernels" / "softmax" / "warp.cu"
    file.write_text(file.read_text().replace("float max =", "float max ="[:-1]))
    gpu.forget("warp")
    with monkeypatch.context() as patch:
        patch.setattr(registry, "kernel_folder", lambda: tmp_path / "kernels")
        for _ in range(2):  # a failure is not taken for the kernel
            with pytest.raises(gpu.CompileError, match=r"warp\.cu\(\d+\): error"):
                gpu.launch("warp", x)
    check(gpu.launch("warp", x), x, name="warp")
    still_right(cupy)


def test_a_launch_that_is_refused_leaves_the_process_usable(cupy):
    x = given(cupy, "block_tree", 37, 33)[0]
    greedy = dataclasses.replace(registry.get("block_tree"), shared_bytes=1 << 20)
    with pytest.raises(cupy.cuda.driver.CUDADriverError):
        gpu.launch(greedy, x)
    check(gpu.launch("block_tree", x), x, name="block_tree")
    still_right(cupy)


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
