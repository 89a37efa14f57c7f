"""The emulator as an instrument: results, counts from every build, failures, the cache."""

import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from softmax_lab import emulator, registry
from softmax_lab.counts import Counts
from softmax_lab.emulator import (
    Limits,
    Out,
    Source,
    Virtual,
    build,
    compilers,
    launching,
    process,
    sites,
    translate,
)

FOLDER = Path(__file__).parent / "emulator"
TYPES = Source.read(FOLDER / "types.cu")
ACCESS = Source.read(FOLDER / "access.cu")
NAIVE = Source.read(registry.get("naive").path)
RNG = np.random.default_rng(7)
SHAPES = [(1, 1), (5, 7), (37, 100), (70, 33), (129, 8), (256, 64)]


def kernel(body, parameters="const float* x, float* y, int n", before=""):
    """A kernel of one's own; its body starts on line 3."""
    return Source(
        f'{before}\nextern "C" __global__ void k({parameters}) {{\n{body}\n}}\n', "mine.cu"
    )


def softmax64(x):
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def naive(x, **more):
    return emulator.launch(NAIVE, -(-len(x) // 128), 128, (x, Out(x.shape), *x.shape), **more)


# ---- results and counts


@pytest.mark.parametrize("shape", SHAPES, ids="{0[0]}x{0[1]}".format)
def test_naive_computes_softmax(shape):
    x = RNG.standard_normal(shape).astype(np.float32)
    for y in (emulator.run("naive", x).y, emulator.plain("naive", x)):
        np.testing.assert_allclose(y, softmax64(x), rtol=1e-5, atol=1e-30)


def test_naive_counts_what_its_source_says():
    rows, cols = 256, 64
    run = emulator.run("naive", RNG.standard_normal((rows, cols)).astype(np.float32), sanitize=True)
    n = rows * cols
    assert not run.faults and run.unwritten == 0
    counts = run.counts
    assert (counts.add, counts.sub, counts.div, counts.exp, counts.compare) == (
        n,
        2 * n,
        n,
        2 * n,
        n,
    )
    assert (counts.load_bytes, counts.store_bytes) == (12 * n, 4 * n)
    assert counts.load_requests == 3 * cols * rows // 32 and counts.load_sectors == 3 * n
    assert run.unique_load_sectors == run.unique_store_sectors == n // 8
    assert counts.l2_sectors is None and counts.dram_bytes is None
    by_line = {(site.op, site.line): site.lanes for site in run.sites}
    lines = NAIVE.text.split("\n")
    loads = [i for i, text in enumerate(lines, 1) if "x[i]" in text]
    assert {line for op, line in by_line if op == "load"} == set(loads)
    assert all(by_line["load", line] == n for line in loads)


def test_without_lockstep_only_what_concerns_warps_is_unknown():
    x = RNG.standard_normal((70, 33)).astype(np.float32)
    free, locked = naive(x, lockstep=False).counts.known(), naive(x).counts.known()
    assert set(locked) - set(free) == set(launching.LOCKSTEP_ONLY)
    assert free.items() <= locked.items()


def available(*builds):
    missing = lambda c: pytest.mark.skip(f"{c} is not installed")  # noqa: E731
    return [
        pytest.param(c, o, id=c + o, marks=[] if shutil.which(c) else missing(c)) for c, o in builds
    ]


@pytest.mark.parametrize(
    ("compiler", "optimise"),
    available(("g++", "-O0"), ("g++", "-O2"), ("clang++", "-O0"), ("clang++", "-O1")),
)
def test_every_build_counts_the_same(compiler, optimise):
    how = {"compiler": compiler, "optimise": optimise, "sanitize": True}
    x = RNG.standard_normal((70, 33)).astype(np.float32)
    launches = [
        lambda **how: naive(x, **how),
        *(lambda name=name, **how: run_type(name, **how) for name in TYPE_LAUNCHES),
    ]
    for one in launches:
        here, reference = one(**how), one(sanitize=True)
        assert here.counts == reference.counts
        assert here.sites == reference.sites
        assert here.faults == reference.faults
        np.testing.assert_array_equal(here.y, reference.y)


LINE32 = np.linspace(-3, 3, 32, dtype=np.float32)
TYPE_LAUNCHES = {
    "mixture": (1, (LINE32, Out((32,)), 32, 0.5), {}),
    "doubles<3>": (1, (LINE32, Out((32,))), {}),
    "halves": (1, (LINE32.astype(np.float16), Out((32,), "float16")), {}),
    "vectors": (1, (np.arange(128, dtype=np.float32), Out((128,))), {}),
    "warp_work": (1, (LINE32, Out((32,)), 2.0), {}),
    "cluster": (2, (np.arange(64, dtype=np.float32), Out((64,))), {"cluster": 2, "shared": 128}),
}


def run_type(name, **how):
    grid, arguments, more = TYPE_LAUNCHES[name]
    return emulator.launch(TYPES, grid, 32, arguments, kernel=name, **more, **how)


def test_mixture_counts_every_operation():
    run = run_type("mixture", sanitize=True)
    assert not run.faults
    counts = run.counts
    per_thread = {
        f: getattr(counts, f) / 32 for f in ("mul", "add", "sub", "div", "exp", "compare", "f64")
    }
    assert per_thread == {"mul": 4, "add": 10, "sub": 1, "div": 2, "exp": 1, "compare": 5, "f64": 0}
    assert counts.load_bytes == counts.store_bytes == 128, (
        "constants and shared memory are not global traffic"
    )
    assert counts.barriers == 1
    np.testing.assert_array_equal(run.y, run_type("mixture", count=False).y)


def test_doubles_are_counted_apart():
    run = run_type("doubles<3>")
    assert (run.counts.f64, run.counts.add, run.counts.mul) == (64, 0, 0)
    np.testing.assert_allclose(run.y, LINE32 * 0.5 + 3)


def test_halves_move_two_bytes_and_round_once():
    run = run_type("halves", sanitize=True)
    x = LINE32.astype(np.float16)
    np.testing.assert_array_equal(
        run.y, ((x + x).astype(np.float32) * np.float32(0.25)).astype(np.float16)
    )
    assert (run.counts.load_bytes, run.counts.load_sectors, run.counts.add, run.counts.mul) == (
        64,
        2,
        32,
        32,
    )
    assert run.unwritten == 0 and not run.faults


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sixteen_bit_conversions_round_like_numpy(dtype):
    kind = {"float16": "__half", "bfloat16": "__nv_bfloat16"}[dtype]
    convert = {"float16": "__float2half", "bfloat16": "__float2bfloat16"}[dtype]
    source = kernel(
        f"y[threadIdx.x + blockIdx.x * 256] = {convert}(x[threadIdx.x + blockIdx.x * 256]);",
        f"const float* x, {kind}* y",
        "#include <cuda_fp16.h>",
    )
    x = RNG.integers(0, 2**32, 4096, dtype=np.uint32).view(np.float32)
    x[:8] = [65519.0, 65520.0, 2**-24, 2**-25, 1.5 * 2**-24, -0.0, np.inf, 6.1e-5]
    y = emulator.launch(source, 16, 256, (x, Out((4096,), "uint16")), count=False).y
    real = ~np.isnan(x)
    if dtype == "float16":
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(y[real], x[real].astype(np.float16).view(np.uint16))
    else:
        bits = x.view(np.uint32).astype(np.uint64)
        np.testing.assert_array_equal(y[real], ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)[real])
    assert np.isnan(
        y[~real].view(np.float16)
        if dtype == "float16"
        else (y[~real].astype("u4") << 16).view("f4")
    ).all()


def test_wide_accesses_are_one_request_whatever_their_type():
    counts = run_type("vectors").counts
    assert (counts.load_requests, counts.load_sectors, counts.load_bytes, counts.store_sectors) == (
        1,
        16,
        512,
        16,
    )


def test_warp_work():
    run = run_type("warp_work", sanitize=True)
    assert run.counts.shuffles == 5 + 2 * 5 and run.extra["votes"] == 1 and not run.faults
    np.testing.assert_allclose(run.y, np.full(32, 0 + 2 * (3 + 31) + 1), rtol=1e-6)


def test_clusters_share_their_memory():
    run = run_type("cluster", sanitize=True)
    assert not run.faults
    assert run.extra["group_barriers"] == 2
    np.testing.assert_array_equal(run.y, 3 * np.roll(np.arange(64), 32))


def test_asynchronous_copies_are_copies_that_must_be_awaited():
    x = np.arange(64, dtype=np.float32)
    run = emulator.launch(TYPES, 1, 64, (x, Out((64,))), kernel="copies_ahead", sanitize=True)
    assert not run.faults
    np.testing.assert_array_equal(run.y, x[::-1])
    early = emulator.launch(TYPES, 1, 64, (x, Out((64,))), kernel="reads_too_early", sanitize=True)
    assert {fault.kind for fault in early.faults} & {"shared race", "shared uninitialised"}


def test_atomics_add_up_and_are_accesses():
    largest, counter = np.zeros(1, np.int32), np.zeros(2, np.uint32)
    y = np.zeros(1, np.float32)
    run = emulator.launch(
        TYPES, 2, 64, (np.ones(64, np.float32), y, largest, counter), kernel="atomics"
    )
    assert run.counts.add == 128
    source = kernel("atomicAdd(&y[0], x[threadIdx.x]); y[1] = 1.0f;", "const float* x, float* y")
    run = emulator.launch(source, 1, 64, (np.ones(64, np.float32), Out((2,))))
    assert run.counts.store_requests == 4 and run.counts.load_requests == 2


def test_memory_that_is_not_watched_is_unknown_not_zero():
    index = np.arange(32, dtype=np.int32)[::-1].copy()
    run = emulator.launch(TYPES, 1, 32, (LINE32, index, Out((32,))), kernel="gathers")
    np.testing.assert_array_equal(run.y, LINE32[::-1])
    assert (
        run.counts.load_bytes is None and run.counts.store_sectors is None and run.counts.add == 0
    )


# ---- sectors, requests and banks

PATTERNS = [
    # kernel, stride, offset, load (sectors, useful bytes) of the warp's one load
    ("strided", 1, 0, (4, 128)),
    ("strided", 1, 1, (5, 128)),
    ("strided", 2, 0, (8, 128)),
    ("strided", 4, 0, (16, 128)),
    ("strided", 8, 0, (32, 128)),
    ("strided", 32, 0, (32, 128)),
    ("strided", -1, 31, (4, 128)),
    ("strided", 0, 5, (1, 4)),
    ("broadcast", 0, 9, (1, 4)),
    ("quads", 0, 0, (16, 512)),
]


@pytest.mark.parametrize(("name", "stride", "offset", "expected"), PATTERNS)
def test_sectors_of_the_classic_patterns(name, stride, offset, expected):
    x = np.zeros(2048, np.float32)
    counts = emulator.launch(ACCESS, 1, 32, (x, Out((32,)), stride, offset), kernel=name).counts
    assert counts.load_requests == 1
    assert (counts.load_sectors, counts.load_useful_bytes) == expected
    assert (counts.store_requests, counts.store_sectors) == (1, 4)


@pytest.mark.parametrize(
    ("name", "stride", "wavefronts"),
    [
        ("banks", 1, 1),
        ("banks", 2, 2),
        ("banks", 32, 32),
        ("banks", 33, 1),
        ("banks", 0, 1),
        ("wide_banks", 0, 4),
    ],
)
def test_bank_conflicts(name, stride, wavefronts):
    run = emulator.launch(
        ACCESS, 1, 32, (np.zeros(4, np.float32), Out((32,)), stride, 0), kernel=name
    )
    assert (run.counts.shared_requests, run.counts.shared_wavefronts) == (1, wavefronts)


def test_elements_never_stored_are_counted():
    run = emulator.launch(
        kernel("if (threadIdx.x < 20) y[threadIdx.x] = 1.0f;"), 1, 32, (LINE32, Out((32,)), 0)
    )
    assert run.unwritten == 12
    assert np.isnan(run.y[20:]).all()


# ---- the trace


def test_trace_of_one_warp():
    x = np.arange(64 * 2, dtype=np.float32).reshape(64, 2)
    run = naive(x, trace=(0, 1))
    loads = [step for step in run.trace if step.op == "load"]
    assert [step.line for step in loads] == sorted(step.line for step in loads)
    first = loads[0]
    assert (first.file, first.array, first.space, first.size, first.mask) == (
        "naive.cu",
        "x",
        "global",
        4,
        0xFFFFFFFF,
    )
    assert first.address == tuple(8 * (32 + lane) for lane in range(32))
    assert first.after == tuple(float(x[32 + lane, 0]) for lane in range(32))
    assert first.sectors == 8
    stores = [step for step in run.trace if step.op == "store"]
    assert len(stores) == 2 and stores[1].array == "y"
    np.testing.assert_array_equal(np.float32(stores[1].after), run.y[32:, 1])
    assert json.loads(json.dumps([asdict(step) for step in run.trace]))[0]["mask"] == 0xFFFFFFFF
    assert naive(x).trace is None


def test_trace_of_shuffles_and_inactive_lanes():
    run = run_type("warp_work", trace=(0, 0))
    shuffles = [step for step in run.trace if step.op == "shuffle"]
    assert len(shuffles) == 10
    assert shuffles[0].address == tuple(lane ^ 16 for lane in range(32))
    assert shuffles[0].before[0] == shuffles[0].after[16] == float(LINE32[0])
    assert shuffles[-1].before[0] == (3.0, 31.0) or len(shuffles[-1].before[0]) == 2
    half = emulator.launch(
        kernel("if (threadIdx.x < 4) y[threadIdx.x] = 1.0f;"),
        1,
        32,
        (LINE32, Out((32,)), 0),
        trace=(0, 0),
    )
    (store,) = half.trace
    assert store.mask == 0xF and store.after[3] == 1.0 and store.after[4] is None


# ---- failures in plain words


def test_a_compile_error_shows_the_readers_line():
    with pytest.raises(
        emulator.CompileError, match=r"(?s)mine.cu does not compile.*mine\.cu:4:"
    ) as error:
        emulator.launch(
            kernel("float a = x[0];\ny[0] = a + missing;"), 1, 1, (LINE32, Out((1,)), 0)
        )
    assert "Scalar" not in str(error.value), "the message is the plain build's"


def test_valid_code_outside_the_dialect_says_so():
    with pytest.raises(
        emulator.CompileError, match=r"(?s)is valid, but the counting build.*mine\.cu:3:"
    ):
        emulator.launch(kernel("if (int a = n; a > 0) y[0] = x[0];"), 1, 1, (LINE32, Out((1,)), 0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__device__ void f() {}", "no kernel"),
        (
            '#include <vector>\nextern "C" __global__ void k(float* y) {}',
            "mine.cu:1: the emulator has no vector",
        ),
        (
            '#include "absent.cuh"\nextern "C" __global__ void k(float* y) {}',
            "mine.cu:1: the emulator has no absent",
        ),
        (
            'extern "C" __global__ void k(float* y) {}\nint main() { k<<<1, 1>>>(0); }',
            "mine.cu:2: a kernel file",
        ),
    ],
)
def test_files_that_are_no_kernel_files(text, message):
    with pytest.raises(emulator.SourceError, match=message):
        translate.translate(Source(text, "mine.cu"))


def test_a_crash_is_a_message():
    source = kernel("int* p = reinterpret_cast<int*>(size_t(n)); *p = 1; y[0] = x[0];")
    for count in (True, False):
        with pytest.raises(
            emulator.EmulatorCrash,
            match=r"k crashed: invalid memory access in block \(0,0,0\), thread \(0,0,0\)",
        ):
            emulator.launch(source, 1, 1, (LINE32, Out((1,)), 64), count=count)


def test_a_stack_overflow_is_called_one():
    source = kernel(
        "y[0] = deep(n);",
        before="__device__ __noinline__ int deep(int n) "
        "{ volatile int a[256]; a[n % 256] = n; return n ? deep(n - 1) + a[0] : 0; }",
    )
    with pytest.raises(emulator.EmulatorCrash, match="stack overflow: a thread has 64 KiB"):
        emulator.launch(source, 1, 1, (LINE32, Out((1,)), 100000))


def test_division_by_zero_is_called_one():
    if os.uname().machine != "x86_64":
        pytest.skip("only x86 traps an integer division by zero")
    with pytest.raises(emulator.EmulatorCrash, match="integer division by zero"):
        emulator.launch(kernel("y[0] = int(x[0] + 40.0f) / n;"), 1, 1, (LINE32, Out((1,)), 0))


def test_a_loop_that_never_ends_is_stopped():
    started = time.monotonic()
    source = kernel("while (n >= 0) { y[0] = x[0]; }")
    with pytest.raises(emulator.EmulatorTimeout, match=r"k ran longer than 0\.5 s"):
        emulator.launch(source, 1, 1, (LINE32, Out((1,)), 0), limits=Limits(seconds=0.5))
    assert time.monotonic() - started < 30


def test_the_memory_limit_is_a_message():
    x = np.zeros((4096, 4096), np.float32)
    with pytest.raises(
        emulator.EmulatorCrash, match=r"out of memory: .* limit of 33,554,432 bytes"
    ):
        naive(x, limits=Limits(bytes=32 << 20), blocks=(0, 1))


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        (1, 1025, "a block has up to 1024, 1024, 64 along x, y, z, got 1025"),
        (1, (32, 33), "1 to 1024 threads"),
        (1, (1, 1, 65), "a block has up to"),
        ((1, 65536), 32, "a grid has up to 2147483647, 65535, 65535 along x, y, z"),
        (2**31, 32, "a grid has up to"),
        (0, 32, "grid is one to three sizes"),
        ((1, 2, 3, 4), 1, "grid is one to three"),
    ],
)
def test_impossible_launches(grid, block, message):
    with pytest.raises(ValueError, match=message):
        emulator.launch(kernel("y[0] = x[0];"), grid, block, (LINE32, Out((1,)), 0))


def test_rows_along_the_y_of_a_grid_end_at_65535():
    # T18: a launch that asks for more is refused before it runs, and says so only to who looks.
    text = """extern "C" __global__ void rows(float* y, int rows) { y[blockIdx.y] = 1; }"""
    for rows in (65535, 65536):
        launched = partial(emulator.launch, Source(text), (1, rows), 1, (Out((rows,)), rows))
        if rows == 65535:
            assert launched(count=False).y.all()
        else:
            with pytest.raises(ValueError, match=r"no such launch: a grid .* got \(1, 65536\)"):
                launched(count=False)


def test_much_shared_memory_must_be_asked_for():
    # T19: 48 KiB are given without a word, more only after it.
    text = """extern "C" __global__ void last(float* y, int n) {
        extern __shared__ float s[];
        s[n - 1] = 7;
        y[0] = s[n - 1];
    }"""
    given = Source(text), 1, 1, (Out((1,)),)
    assert emulator.launch(*given[:3], (*given[3], 12288), shared=49152).y[0] == 7
    with pytest.raises(ValueError, match=r"49156 bytes of dynamic shared memory.*FuncSetAttribute"):
        emulator.launch(*given[:3], (*given[3], 12289), shared=49156)
    assert emulator.launch(*given[:3], (*given[3], 12289), shared=49156, opt_in=True).y[0] == 7
    assert emulator.launch(*given[:3], (*given[3], 12289), shared=49152, opt_in=True).faults


def test_the_wrong_number_of_arguments():
    with pytest.raises(ValueError, match="takes 3 arguments, the launch has 2"):
        emulator.launch(kernel("y[0] = x[0];"), 1, 1, (LINE32, Out((1,))))


def test_arrays_the_kernel_does_not_take():
    with pytest.raises(TypeError, match="x must be float32, got float64"):
        emulator.run("naive", np.zeros((2, 2)))
    with pytest.raises(TypeError, match="naive takes NumPy arrays here, got list"):
        emulator.run("naive", [[1.0, 2.0]])
    with pytest.raises(ValueError, match="must be C-contiguous"):
        emulator.run("naive", np.zeros((4, 4), np.float32)[:, ::2])
    with pytest.raises(ValueError, match="no kernel 'nave'"):
        emulator.run("nave", LINE32)


def test_printf_comes_back():
    source = kernel(
        'if (threadIdx.x == 3) printf("x[%d] = %.2f\\n", 3, x[3]); y[threadIdx.x] = 0.0f;'
    )
    assert (
        emulator.launch(source, 1, 32, (LINE32, Out((32,)), 0)).printed
        == f"x[3] = {LINE32[3]:.2f}\n"
    )


def test_int_overflow_of_an_index_is_seen_without_the_memory():
    # 70000 * 32768 elements, 9.2 GB: rows from 65536 on overflow `row * cols`.
    source = kernel(
        "int row = blockIdx.x * blockDim.x + threadIdx.x;\nif (row < n) y[row] = x[row * cols];",
        "const float* x, float* y, int n, int cols",
    )
    arguments = (Virtual((70000, 32768)), Out((70000,)), 70000, 32768)
    small = emulator.launch(source, 274, 256, arguments, blocks=(0, 256))
    assert not small.faults
    (fault,) = emulator.launch(source, 274, 256, arguments, blocks=(256, 274)).faults
    assert (fault.kind, fault.line, fault.block) == ("out of bounds", 4, (256, 0, 0))
    assert fault.detail == "8589934592 bytes before the start of x"


# ---- compilers and the cache


def test_no_compiler_names_the_command_that_brings_one(monkeypatch):
    monkeypatch.delenv("SOFTMAX_LAB_CXX", raising=False)
    monkeypatch.setattr(compilers.shutil, "which", lambda name: None)
    monkeypatch.setattr(compilers, "find_spec", lambda name: None)
    with pytest.raises(emulator.CompilerMissing, match="pip install ziglang"):
        emulator.compiler()


def test_a_compiler_that_does_not_run(monkeypatch):
    monkeypatch.setenv("SOFTMAX_LAB_CXX", "no-such-compiler --at-all")
    with pytest.raises(emulator.CompilerMissing, match="no-such-compiler --at-all does not run"):
        emulator.compiler()


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.skipif(not shutil.which("g++"), reason="no g++ on this machine")
@pytest.mark.parametrize("broken", ["exit 1", "echo g++ 99", "echo 'g++ 8'; [ $1 = --version ]"])
def test_a_broken_compiler_is_passed_over(tmp_path, monkeypatch, broken):
    monkeypatch.delenv("SOFTMAX_LAB_CXX", raising=False)
    real = shutil.which("g++")
    script(tmp_path / "g++", broken)
    script(tmp_path / "clang++", f'[ $1 = --version ] && echo clang 99 || exec {real} "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    compilers._tried.cache_clear()
    try:
        assert emulator.compiler().version == "clang 99"
        (tmp_path / "clang++").unlink()
        monkeypatch.setattr(compilers, "_there", lambda: iter([("g++",)]))
        with pytest.raises(emulator.CompilerMissing, match=r"compiler g\+\+ .*pip install ziglang"):
            emulator.compiler()
    finally:
        compilers._tried.cache_clear()


def test_a_compiler_for_another_machine_is_none(tmp_path, monkeypatch):
    script(
        tmp_path / "cross", '[ $1 = --version ] || { printf "\\177ELF" >trial; chmod +x trial; }'
    )
    with pytest.raises(emulator.CompilerMissing, match="builds no program that runs here"):
        emulator.compiler(str(tmp_path / "cross"))


def test_a_processor_that_is_not_known_is_named(monkeypatch):
    monkeypatch.setattr(compilers.platform, "machine", lambda: "sparc64")
    with pytest.raises(emulator.CompilerMissing, match=r"x86_64, aarch64, .*not on 'sparc64'"):
        emulator.run("naive", np.ones((2, 3), "f4"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plain", "smörgås と 猫", "with 'quotes' $HOME"])
def test_the_cache_may_be_anywhere(tmp_path, monkeypatch, name):
    monkeypatch.setenv("SOFTMAX_LAB_CACHE", str(tmp_path / name))
    x = RNG.standard_normal((3, 5)).astype(np.float32)
    source = Source(NAIVE.text, "größe.cu")
    how = {"optimise": "-O0"}  # compiled sooner
    run = emulator.launch(source, 1, 128, (x, Out(x.shape), 3, 5), **how)
    assert {site.file for site in run.sites} == {"größe.cu"} and all(
        site.line for site in run.sites
    )
    (entry,) = [path for path in (tmp_path / name).iterdir() if path.is_dir()]
    stamp = (entry / "run").stat().st_mtime_ns
    assert emulator.launch(source, 1, 128, (x, Out(x.shape), 3, 5), **how).counts == run.counts
    assert (entry / "run").stat().st_mtime_ns == stamp, "compiled once"
    assert len(list((tmp_path / name).iterdir())) == 1, "nothing left behind"


def test_a_cache_that_cannot_be_written_warns_once(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("a file where a folder should be")
    monkeypatch.setenv("SOFTMAX_LAB_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(build.tempfile, "tempdir", str(tmp_path))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        first, second = emulator.cache_folder(), emulator.cache_folder()
    assert first == second and first.parent == tmp_path
    assert len(seen) == 1 and "cannot write to the cache" in str(seen[0].message)
    assert first.stat().st_mode & 0o777 == 0o700  # nobody else may leave a program there
    monkeypatch.setattr(build.tempfile, "tempdir", str(tmp_path / "file"))
    with pytest.raises(
        PermissionError, match=r"nor to .*set SOFTMAX_LAB_CACHE to a folder of yours"
    ):
        emulator.cache_folder()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_spare_cache_of_another_user_is_not_used(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SOFTMAX_LAB_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(build.tempfile, "tempdir", str(tmp_path))
    (tmp_path / "softmax-lab-0").mkdir()
    os.chown(tmp_path / "softmax-lab-0", 65534, -1)
    with pytest.raises(PermissionError, match="belongs to another user"):
        emulator.cache_folder()


@pytest.mark.slow
def test_two_processes_may_build_the_same_at_once(tmp_path):
    code = (
        "import numpy as np\nfrom softmax_lab import emulator\n"
        "x = np.ones((3, 4), 'f4')\nprint(emulator.run('naive', x, optimise='-O0').counts.exp)"
    )
    environment = {**os.environ, "SOFTMAX_LAB_CACHE": str(tmp_path / "cache")}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    assert [each.communicate(timeout=300)[0] for each in both] == ["24\n", "24\n"]
    assert len(list((tmp_path / "cache").iterdir())) == 1


@pytest.mark.slow
def test_everything_that_matters_is_in_the_key(tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTMAX_LAB_CACHE", str(tmp_path))
    x = np.ones((2, 2), np.float32)
    for source in (NAIVE, Source(NAIVE.text + "// changed\n", NAIVE.name)):
        for how in ({}, {"count": False}, {"optimise": "-O0"}):
            emulator.launch(source, 1, 128, (x, Out(x.shape), 2, 2), **how)
    assert len(list(tmp_path.iterdir())) == 6


# ---- parts


def test_dynamic_shared_arrays_keep_their_lines():
    head = 'extern "C" __global__ void k(float* y) {\n'
    text = head + "  extern __shared__\n  float s[];\n  y[0] = 1.0f;\n}\n"
    run = emulator.launch(Source(text), 1, 1, (Out((1,)),), shared=4)
    assert [site.line for site in run.sites] == [4]


def test_kernels_and_their_parameters_are_found():
    unit = translate.translate(TYPES)
    assert unit.kernels == (
        "mixture", "doubles<3>", "halves", "vectors", "warp_work", "cluster", "atomics", "gathers",
            "copies_ahead", "reads_too_early",
    )  # fmt: skip
    assert unit.parameters[0] == ("x", "y", "n", "scale") and unit.parameters[1] == ("x", "y")
    assert unit.files == ("types.cu", "helpers.cuh") and unit.granule == 2


@pytest.mark.parametrize("cpu", ["x86_64", "aarch64", "wasm32"])
def test_sites_are_numbered_in_any_assembly(cpu):
    call = {"x86_64": "call", "aarch64": "bl", "wasm32": "call"}[cpu]
    text = '\t.file\t1 "/somewhere" "k.cu"\n\t.loc\t1 7 3\n'
    text += f"\t{call}\temu_watched_access\n\t{call}\tother\n"
    numbered = sites.number(text, ("k.cu",), cpu)
    assert numbered.places == (sites.UNKNOWN, (0, 7))
    assert numbered.text.count("emu_site") == (2 if cpu == "aarch64" else 1) + numbered.text.count(
        "emu_site_count"
    )


def test_the_driver_and_the_headers_share_one_list_of_counters():
    assert set(Counts().known()) == set()
    missing = {f for f in Counts.__dataclass_fields__ if f not in process.COUNTERS}
    assert missing == {"l2_sectors", "dram_bytes"}


# ---- cost


@pytest.mark.slow
def test_counting_costs_at_most_25_times_the_plain_run():
    x = RNG.standard_normal((256, 1024)).astype(np.float32)

    # A ratio within one run, of pairs run one after the other. Whatever else the machine does
    # disturbs the longer of the two more, so the quietest of three medians is the kernel's own.
    medians = [
        np.median([naive(x).seconds / naive(x, count=False).seconds for _ in range(9)])
        for _ in range(3)
    ]
    assert min(medians) <= 25, f"{medians} times"


def test_a_launch_with_a_megabyte_each_way():
    x = RNG.standard_normal((1024, 256)).astype(np.float32)
    source = kernel("size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;\ny[i] = x[i];")
    run = emulator.launch(source, 1024, 256, (x, Out(x.shape), 0), count=False)
    np.testing.assert_array_equal(run.y, x)


@pytest.mark.slow
def test_sixteen_million_accesses_fit_the_default_limits():
    x = RNG.standard_normal((4096, 1024)).astype(np.float32)
    run = naive(x, sanitize=True, limits=Limits(seconds=300))
    assert not run.faults and run.counts.load_sectors == 3 * x.size
