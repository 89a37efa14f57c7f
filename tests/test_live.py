"""The kernels in the page against the native emulator: the same counts, steps and faults.

The page module runs under Node here; tests/test_live_browser.py opens it in browsers.
"""

from __future__ import annotations

import base64
import gzip
import json
import shutil
import subprocess
from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from softmax_lab import cost, emulator, ledger, live, livefile, reference, registry, replay
from softmax_lab.cuts import WRONG, cuts
from softmax_lab.emulator import Out, Source, page

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "book" / "_static" / "live.js"
SHAPES = [(1, 1), (5, 7), (37, 100), (200, 3)]
KERNELS = list(registry.KERNELS)
CLOCK = "nanoseconds"

needs_node = pytest.mark.skipif(not shutil.which("node"), reason="no node to run the module under")


def coded(array) -> str:
    return base64.b64encode(np.ascontiguousarray(array, "<f4").tobytes()).decode()


def decoded(text: str, dtype: str = "<f4") -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype)


def under_node(*asked: dict, file: Path = livefile.FILE) -> list[dict]:
    """What the page module answers; NaN and infinities come back as floats."""
    done = subprocess.run(
        ["node", ROOT / "tests" / "live.mjs", SCRIPT, file],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    words = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}

    def mended(value):
        if isinstance(value, list):
            return [mended(each) for each in value]
        if isinstance(value, dict):
            return {key: mended(each) for key, each in value.items()}
        return words.get(value, value) if isinstance(value, str) else value

    return mended(json.loads(done.stdout))


def matrix(shape, name="normal"):
    return reference.inputs(name, *shape, seed=3)


@cache
def native(kernel: str, shape: tuple[int, int]):
    return emulator.run(kernel, matrix(shape), sanitize=True, trace=(0, 0))


@cache
def paged(kernel: str) -> list[dict]:
    return under_node(
        *(
            {
                "what": "softmax",
                "kernel": kernel,
                "x": coded(matrix(shape)),
                "rows": shape[0],
                "cols": shape[1],
                "steps": 4096,
            }
            for shape in SHAPES
        )
    )


# ---- The file ----


def test_the_file_is_made_from_these_sources():
    mark, about, wasm = livefile.embedded(livefile.FILE.read_text(encoding="utf-8"))
    assert wasm.startswith(b"\0asm")
    assert mark == livefile.fingerprint(), "the kernels or the headers have changed: `make live`"
    assert [each["name"] for each in about["kernels"]] == KERNELS


def test_the_fingerprint_sees_a_changed_kernel_and_a_changed_description():
    sources = livefile.sources()
    before = page.fingerprint(sources)
    changed = sources | {"kernel_naive": Source(sources["kernel_naive"].text + "\n", "naive.cu")}
    assert page.fingerprint(changed) != before
    assert page.fingerprint(sources, "more") != before


@pytest.mark.slow
@needs_node
def test_made_again_it_has_the_same_bytes():
    again = livefile.made(page.tools(livefile.TOOLS))
    before = livefile.FILE.read_text(encoding="utf-8")
    # What gzip writes depends on the zlib that Python was built with; what is packed does not.
    assert livefile.embedded(again) == livefile.embedded(before)


# ---- Equal to the native emulator ----


@needs_node
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_counter_is_the_native_one(kernel):
    for shape, there in zip(SHAPES, paged(kernel), strict=True):
        here = native(kernel, shape)
        known = here.counts.known() | here.extra
        counters = {name: value for name, value in there["counters"].items() if name in known}
        assert set(there["counters"]) == set(known)
        assert counters | {CLOCK: 0} == known | {CLOCK: 0}, shape
        assert there["faults"] == [] and not here.faults
        assert there["unwritten"][1] == here.unwritten == 0
        assert [asdict(site) for site in here.sites] == there["sites"]


@needs_node
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_step_is_the_native_one(kernel):
    for shape, there in zip(SHAPES, paged(kernel), strict=True):
        here = [asdict(step) for step in native(kernel, shape).trace]
        assert len(here) == len(there["steps"]) > 0
        for mine, other in zip(here, map(dict, there["steps"]), strict=True):
            values = [(mine.pop(k), other.pop(k)) for k in ("before", "after")]
            assert json.loads(json.dumps(mine)) == other
            for one, two in values:
                assert [v is None for v in one] == [v is None for v in two]
                one, two = (
                    np.array([v for v in each if v is not None], "f4") for each in (one, two)
                )
                if mine["op"] == "load":
                    np.testing.assert_array_equal(one, two)
                else:  # the page's expf is musl's: its last bit differs from glibc's now and then
                    np.testing.assert_allclose(one, two, rtol=2e-6)


@needs_node
@pytest.mark.parametrize("kernel", KERNELS)
def test_results_are_right_and_judged_so(kernel):
    for shape, there in zip(SHAPES, paged(kernel), strict=True):
        y = decoded(there["y"]).reshape(shape)
        assert reference.compare(y, matrix(shape)).ok
        assert there["verdict"]["ok"]
        np.testing.assert_allclose(
            decoded(there["verdict"]["want"], "<f8").reshape(shape),
            reference.softmax(matrix(shape)),
            rtol=1e-14,
        )


@pytest.mark.slow
@needs_node
def test_a_large_matrix_counts_the_same():
    asked = [
        {"what": "softmax", "kernel": name, "x": coded(matrix((256, 1024))), "trace": None}
        | {"rows": 256, "cols": 1024, "sanitize": False}
        for name in KERNELS
    ]
    for name, there in zip(KERNELS, under_node(*asked), strict=True):
        here = emulator.run(name, matrix((256, 1024)))
        assert {k: there["counters"][k] for k in here.counts.known()} == here.counts.known()


def launched(each: dict) -> dict:
    x = coded(np.arange(1, 129, dtype=np.float32))
    how = {key: each[key] for key in ("index", "grid", "block", "shared", "group")}
    return {"what": "launch", "args": [x, {"out": 128}, 128], **how}


@needs_node
def test_planted_defects_are_reported_in_the_same_words():
    source = Source.read(livefile.DEFECTS)
    about = livefile.describe()["defects"]
    x = np.arange(1, 129, dtype=np.float32)
    assert sum(bool(each["fault"]) for each in about) > 20
    for each, there in zip(about, under_node(*map(launched, about)), strict=True):
        here = emulator.launch(
            source,
            each["grid"],
            each["block"],
            (x, Out((128,)), 128),
            kernel=each["name"],
            shared=each["shared"],
            cooperative=each["group"] > 1,
            sanitize=True,
        )
        assert [fault["text"] for fault in there["faults"]] == list(map(str, here.faults)), each
        assert bool(here.faults) == bool(each["fault"])
        for mine, other in zip(here.faults, there["faults"], strict=True):
            assert json.loads(json.dumps(asdict(mine))) == {k: other[k] for k in asdict(mine)}


@needs_node
@pytest.mark.parametrize("cut", cuts(), ids=lambda cut: cut.name)
def test_a_line_taken_away_is_seen(cut):
    rows, cols = cut.shape
    x = matrix(cut.shape)
    index = next(c["index"] for c in livefile.describe()["cuts"] if c["name"] == cut.name)
    grid, block = cut.kernel.geometry(rows)
    asked = {"what": "launch", "index": index, "grid": grid, "block": block}
    (there,) = under_node(asked | {"args": [coded(x), {"out": rows * cols}, rows, cols]})
    arguments = (x, Out(x.shape), rows, cols)
    here = emulator.launch(
        cut.source, grid, block, arguments, kernel=cut.kernel.symbol, sanitize=True
    )
    assert [fault["text"] for fault in there["faults"]] == list(map(str, here.faults))
    if cut.outcome == WRONG:
        y = decoded(there["outputs"][0]).reshape(cut.shape)
        assert not there["faults"]
        assert not reference.compare(y, x).ok
        (judged,) = under_node(
            {"what": "judge", "y": coded(y), "x": coded(x), "rows": rows, "cols": cols}
        )
        assert not judged["ok"]
    else:
        assert cut.outcome in {fault["kind"] for fault in there["faults"]}


@needs_node
@pytest.mark.parametrize("kernel", [k for k in KERNELS if registry.get(k).threads_per_row == 32])
def test_the_page_steps_as_the_simulated_shuffle_does(kernel):
    there = paged(kernel)[SHAPES.index((37, 100))]["steps"]
    steps = [
        emulator.Step(**{k: tuple(v) if isinstance(v, list) else v for k, v in step.items()})
        for step in there
    ]
    replayed = replay.replay(steps)
    assert sum(each.step.op == "shuffle" for each in replayed) == 12
    assert all(each.agrees for each in replayed)


# ---- Closed forms as data ----


@needs_node
@pytest.mark.parametrize("kernel", KERNELS)
def test_closed_forms_have_the_same_values(kernel):
    grid = [(m, n) for m in (1, 5, 33, 128, 150) for n in (1, 3, 8, 31, 32, 45, 100)]
    asked = [(shape, name) for shape in grid for name in ("normal", "rising", "masked")]
    answers = under_node(
        *(
            {"what": "derive", "kernel": kernel, "x": coded(matrix(shape, name))}
            | dict(zip(("rows", "cols"), shape, strict=True))
            for shape, name in asked
        )
    )
    for (shape, name), there in zip(asked, answers, strict=True):
        here = ledger.derive(kernel, matrix(shape, name)).known()
        assert {k: v for k, v in here.items() if v} == {k: v for k, v in there.items() if v}


def test_a_formula_becomes_a_tree():
    assert livefile.tree("3*M*(N - 1) + ceil(M, W)") == [
        *("+", ["*", ["*", 3, "M"], ["-", "N", 1]]),
        ["ceil", "M", "W"],
    ]
    with pytest.raises(ValueError, match="cannot evaluate"):
        livefile.tree("M if N else 2")


def test_every_closed_form_is_a_tree_of_known_functions():
    known = set(cost.FUNCTIONS) | set("+-*%")

    def functions(tree):
        return {tree[0]}.union(*map(functions, tree[1:])) if isinstance(tree, list) else set()

    for kernel in registry.KERNELS.values():
        for _, formulas in livefile.phases(kernel.executed):
            for formula in formulas.values():
                assert functions(formula) <= known


# ---- Edges ----


@needs_node
def test_a_launch_that_cannot_be_is_refused_and_the_next_one_runs():
    x = coded(np.ones(8, np.float32))
    about = {"what": "launch", "index": 0, "args": [x, {"out": 8}, 2, 4], "grid": 1}
    wrong, right = under_node(about | {"block": 2000}, about | {"block": 32})
    assert "1 to 1024 threads" in wrong["error"]
    assert decoded(right["outputs"][0]).tolist() == [0.25] * 8


@pytest.mark.slow
@needs_node
def test_a_stack_that_overflows_is_called_one(tmp_path):
    text = """extern "C" __global__ void deep(const float* x, float* y, int n) {
    volatile int a[3000];
    for (int i = 2999; i >= 0; --i) a[i] = n;
    __syncthreads();
    int last = a[n];
    y[threadIdx.x] = x[threadIdx.x] + last;
}
"""
    module = page.build({"own": Source(text, "own.cu")}, page.tools(livefile.TOOLS))
    about = livefile.describe() | {
        "sites": module.sites,
        "variables": module.variables,
        "files": module.unit.files,
        "parameters": module.unit.parameters,
    }
    own = tmp_path / "own.js"
    own.write_text(livefile.script("0", livefile.packed(about, module.wasm)), "utf-8")
    x = coded(np.ones(32, np.float32))
    asked = {"what": "launch", "index": 0, "grid": 1, "block": 32, "args": [x, {"out": 32}, 5]}
    (there,) = under_node(asked, file=own)
    assert "stack overflow" in there["error"]


# ---- The bench as a cell shows it ----


def test_a_cell_of_the_book_brings_no_script_and_one_of_jupyterlab_all(monkeypatch):
    one = live.bench("naive", row=[2, 0, 1, -1])
    monkeypatch.setenv(live.IN_THE_BOOK, "1")
    page_html = one._repr_html_()
    assert "<script" not in page_html
    assert 'data-row="2 0 1 -1"' in page_html
    assert "0.6439, 0.08714, 0.2369, 0.03206" in page_html
    monkeypatch.delenv(live.IN_THE_BOOK)
    lab = one._repr_html_()
    assert lab.startswith(page_html)
    assert livefile.FILE.read_text("utf-8") in lab and SCRIPT.read_text("utf-8") in lab


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kernel": "none"}, "no kernel"),
        ({"cut": "naive-sum"}, "naive-guard"),
        ({"row": []}, "row"),
    ],
)
def test_a_bench_that_cannot_be_says_why(wrong, message):
    with pytest.raises(ValueError, match=message):
        live.bench(**{"kernel": "naive"} | wrong)


def test_what_a_page_loads_is_small():
    names = ("live.js", "live.css", "kernels.wasm.js")
    packed = [len(gzip.compress((SCRIPT.parent / name).read_bytes())) for name in names]
    assert sum(packed) < 120_000, packed
