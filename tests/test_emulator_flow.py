"""Divergence and defects: what the emulator says of control flow, races and barriers."""

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from softmax_lab import emulator
from softmax_lab.emulator import Out, Source, report

FOLDER = Path(__file__).parent / "emulator"
FLOW = Source.read(FOLDER / "flow.cu")
DEFECTS = Source.read(FOLDER / "defects.cu")
BUILDS = [("g++", "-O0"), ("g++", "-O1"), ("clang++", "-O0"), ("clang++", "-O1")]


def builds():
    import shutil

    return [
        pytest.param(
            *build,
            id="{}{}".format(*build),
            marks=[]
            if shutil.which(build[0])
            else pytest.mark.skip(f"{build[0]} is not installed"),
        )
        for build in BUILDS
    ]


def expected_requests():
    pattern = r'extern "C" __global__ void (\w+)\([^)]*\) \{  // (\d+) loads, (\d+) stores'
    return [
        (name, int(loads), int(stores)) for name, loads, stores in re.findall(pattern, FLOW.text)
    ]


def planted():
    """(kernel, launch settings, fault kind or None, its lines) of each kernel in defects.cu.

    A race has two sides. In lockstep the line with FAULT comes second and is named; without, it may
    be the other one.
    """
    found = []
    pieces = re.split(r"^// (grid [^\n]*)$", DEFECTS.text, flags=re.M)
    line = pieces[0].count("\n") + 1
    for settings, text in zip(pieces[1::2], pieces[2::2], strict=True):
        name = re.search(r"__global__ void (\w+)", text)[1]
        fault = re.search(r"// FAULT ([^\n]+)", text)
        sides = re.finditer("// (FAULT|OR HERE)", text)
        lines = [line + text.count("\n", 0, side.start()) for side in sides]
        found.append((name, settings, fault and fault[1], lines))
        line += text.count("\n")
    return found


def run_defect(name, settings, **more):
    number = {word: int(n) for word, n in re.findall(r"(\w+) (\d+)", settings)}
    x = np.arange(1, 129, dtype=np.float32)
    return emulator.launch(
        DEFECTS,
        number["grid"],
        number["block"],
        (x, Out((128,)), 128),
        kernel=name,
        shared=number.get("shared", 0),
        cooperative="cooperative" in settings,
        sanitize=True,
        **more,
    )


def test_the_files_say_what_to_expect():
    assert len(expected_requests()) == 12 == FLOW.text.count("__global__")
    kinds = {kind for _, _, kind, _ in planted() if kind}
    assert kinds == set(report.KINDS) - {""}, "every kind of fault has a planted defect"


@pytest.mark.parametrize(("compiler", "optimise"), builds())
def test_lanes_meet_again_as_on_hardware(compiler, optimise):
    x = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    wrong = []
    for name, loads, stores in expected_requests():
        run = emulator.launch(
            FLOW, 1, 32, (x, Out((32,))), kernel=name, optimise=optimise, compiler=compiler
        )
        plain = emulator.launch(
            FLOW, 1, 32, (x, Out((32,))), kernel=name, count=False, compiler=compiler
        )
        assert not run.faults
        np.testing.assert_array_equal(run.y, plain.y)
        if (run.counts.load_requests, run.counts.store_requests) != (loads, stores):
            wrong.append((name, run.counts.load_requests, run.counts.store_requests, loads, stores))
    assert not wrong, "kernel, loads, stores, expected loads, expected stores"


@pytest.mark.parametrize("lockstep", [True, False], ids=["lockstep", "free"])
@pytest.mark.parametrize(
    ("name", "settings", "kind", "lines"), planted(), ids=[p[0] for p in planted()]
)
def test_planted_defects_are_named(name, settings, kind, lines, lockstep):
    faults = run_defect(name, settings, lockstep=lockstep).faults
    if kind is None:
        assert not faults, [str(fault) for fault in faults]
        return
    named = [fault for fault in faults if fault.kind == kind]
    assert named, f"{name}: no {kind}, but {[str(fault) for fault in faults]}"
    line = named[0].line
    assert named[0].file == "defects.cu" and line in (lines[-1:] if lockstep else lines), str(
        named[0]
    )
    assert f"defects.cu:{line}, block (" in str(named[0]) and ", thread (" in str(named[0])


@pytest.mark.parametrize(("compiler", "optimise"), builds())
@pytest.mark.slow
def test_every_build_reports_the_same(compiler, optimise):
    for name, settings, _, _ in planted():
        here = run_defect(name, settings, compiler=compiler, optimise=optimise)
        assert here.faults == run_defect(name, settings).faults, name
        assert here.counts == run_defect(name, settings).counts, name


@pytest.mark.parametrize(
    ("name", "block", "thread", "detail"),
    [
        ("reads_one_too_many", (0, 0, 0), (128, 0, 0), "0 bytes after the end of x"),
        ("writes_without_guard", (1, 0, 0), (0, 0, 0), "0 bytes after the end of y"),
        ("negative_index", (0, 0, 0), (0, 0, 0), "4 bytes before the start of x"),
        ("misaligned_vector", (0, 0, 0), (0, 0, 0), "byte 4 of x is not a multiple of 16"),
        (
            "dynamic_shared_too_small",
            (0, 0, 0),
            (64, 0, 0),
            "0 bytes after the end of dynamic shared memory",
        ),
        ("overwrites_while_others_read", (0, 0, 0), (0, 0, 0), "byte 0 of s, against thread"),
        ("barrier_after_some_returned", (0, 0, 0), (0, 0, 0), "28 threads had returned"),
    ],
)
def test_faults_name_block_thread_and_distance(name, block, thread, detail):
    settings = next(p[1] for p in planted() if p[0] == name)
    fault = run_defect(name, settings).faults[0]
    assert (fault.block, fault.thread) == (block, thread)
    assert fault.detail.startswith(detail)


def test_branches_by_line():
    # Lanes 0-15 take the `if`: one warp of two disagrees.
    source = Source(
        'extern "C" __global__ void k(float* y) {\n'
        "    float v = 1.0f;\n"
        "    if (threadIdx.x < 16)\n"
        "        v = 2.0f;\n"
        "    y[threadIdx.x] = v;\n"
        "}\n"
    )
    run = emulator.launch(source, 1, 64, (Out((64,)),))
    (branch,) = [site for site in run.sites if site.op == "branch"]
    assert (branch.line, branch.requests, branch.lanes, branch.taken, branch.diverged) == (
        3,
        2,
        64,
        16,
        1,
    )
    assert (run.counts.branches, run.counts.diverged) == (2, 1)
    assert {field.name for field in fields(run.counts)} > {"branches", "diverged"}
