"""The kernels in the page against the native emulator: the same counts, steps and faults.

The page module runs under Node here; tests/test_live_browser.py opens it in browsers.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from nodes import ask

from softmax_lab import (
    cost,
    emulator,
    lane_art,
    ledger,
    live,
    livefile,
    merging,
    online,
    planted,
    reference,
    registry,
    replay,
    svg,
)
from softmax_lab.cuts import WRONG, cuts, without
from softmax_lab.cuts import run as run_cut
from softmax_lab.emulator import Out, Source, page
from softmax_lab.facts import WARP
from softmax_lab.frames import lane_list, sector_box

ROOT = Path(__file__).resolve().parent.parent
STATIC = ROOT / "book" / "_static"
SHAPES = [(1, 1), (5, 7), (37, 100)]
KERNELS = [kernel.name for kernel in livefile.shown()]
STEPS = {"block": 0, "warp": 0, "first": 0, "steps": 4096, "order": 4096}
CLOCK = "nanoseconds"

needs_node = pytest.mark.node
needs_tools = pytest.mark.skipif(
    not livefile.TOOLS.is_dir() and os.environ.get("SOFTMAX_LAB_REQUIRE_TOOLS") != "1",
    reason="compiling the page module takes 500 MB of tools: `make live` fetches them",
)


def coded(array) -> str:
    return base64.b64encode(np.ascontiguousarray(array, "<f4").tobytes()).decode()


def decoded(text: str, dtype: str = "<f4") -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype)


def under_node(*asked: dict, file: Path = livefile.FILE) -> list[dict]:
    """What the page module answers; NaN and infinities come back as floats."""
    answers = ask(asked, ROOT / "tests" / "live.mjs", STATIC, file)
    words = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}

    def mended(value):
        if isinstance(value, list):
            return [mended(each) for each in value]
        if isinstance(value, dict):
            return {key: mended(each) for key, each in value.items()}
        return words.get(value, value) if isinstance(value, str) else value

    return mended(answers)


def matrix(shape, name="normal"):
    return reference.inputs(name, *shape, seed=3)


@cache
def arrays(kernel: str, shape: tuple[int, int], name="normal") -> tuple[np.ndarray, ...]:
    """Inputs of the kernel's family."""
    return registry.get(kernel).family.inputs(name, *shape, 3)


described = cache(livefile.describe)


def shapes(kernel: str) -> list[tuple[int, int]]:
    """Shapes of every kernel, and one of several blocks."""
    per_row = registry.get(kernel).threads_per_row
    return [*SHAPES, (200 if per_row <= WARP else 6, 3)]


def on(kernel: str, shape: tuple[int, int], name="normal") -> dict:
    """The kernel and its inputs, as the scripts are asked."""
    rows, cols = shape
    given = list(map(coded, arrays(kernel, shape, name)))
    return {"kernel": kernel, "arrays": given, "rows": rows, "cols": cols}


@cache
def native(kernel: str, shape: tuple[int, int]):
    return emulator.run(kernel, *arrays(kernel, shape), sanitize=True, trace=(0, 0))


@cache
def paged(kernel: str) -> list[dict]:
    return under_node(
        *({"what": "run", "trace": STEPS} | on(kernel, shape) for shape in shapes(kernel))
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
@needs_tools
def test_made_again_it_has_the_same_bytes():
    again = livefile.made(page.tools(livefile.TOOLS))
    before = livefile.FILE.read_text(encoding="utf-8")
    # What gzip writes depends on the zlib that Python was built with; what is packed does not.
    assert livefile.embedded(again) == livefile.embedded(before)


# ---- Equal to the native emulator ----


@needs_node
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_counter_is_the_native_one(kernel):
    for shape, there in zip(shapes(kernel), paged(kernel), strict=True):
        here = native(kernel, shape)
        known = here.counts.known() | here.extra
        counters = {name: value for name, value in there["counters"].items() if name in known}
        assert set(there["counters"]) == set(known)
        assert counters | {CLOCK: 0} == known | {CLOCK: 0}, shape
        assert there["faults"] == [] and not here.faults
        assert there["unwritten"][-1] == here.unwritten == 0
        assert [asdict(site) for site in here.sites] == there["sites"]


@needs_node
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_step_is_the_native_one(kernel):
    for shape, there in zip(shapes(kernel), paged(kernel), strict=True):
        here = [dict(vars(step)) for step in native(kernel, shape).trace]
        assert len(here) == len(there["steps"]) > 0
        for mine, other in zip(here, map(dict, there["steps"]), strict=True):
            values = [(mine.pop(k), other.pop(k)) for k in ("before", "after")]
            assert json.loads(json.dumps(mine)) == other
            for one, two in values:
                assert [v is None for v in one] == [v is None for v in two]
                one, two = (
                    np.array([v for v in each if v is not None], "f4") for each in (one, two)
                )
                if mine["op"] == "load" and mine["space"] == "global" and mine["array"] != "y":
                    np.testing.assert_array_equal(one, two)
                else:  # the page's expf is musl's: its last bit differs from glibc's now and then
                    np.testing.assert_allclose(one, two, rtol=2e-6)


@needs_node
@pytest.mark.parametrize("kernel", KERNELS)
def test_results_are_right_and_judged_so(kernel):
    family = livefile.judged(registry.get(kernel))
    for shape, there in zip(shapes(kernel), paged(kernel), strict=True):
        given, y = arrays(kernel, shape), decoded(there["y"]).reshape(family.result(*shape))
        assert family.compare(y, *given).ok
        verdict, terms = there["verdict"], -(-shape[1] // registry.get(kernel).threads_per_row)
        terms = terms if terms > reference.SUM_ERROR * shape[1] ** 0.5 else None
        assert verdict["ok"]
        worst = family.compare(y, *given, terms=terms).worst
        assert verdict["worst"] == pytest.approx(worst, rel=1e-6)
        np.testing.assert_allclose(
            decoded(there["verdict"]["want"], "<f8").reshape(y.shape),
            family.oracle(*given),
            rtol=1e-14,
            atol=0 if family is registry.SOFTMAX else 1e-12,  # terms that cancel
        )


@needs_node
@pytest.mark.parametrize(
    "row", [[89, 0, 1], [85] * 1024, [-104, -105, -106], [-102, -103, -104], [2, 0, 1]], ids=str
)
def test_the_kernel_without_the_shift_fails_in_the_page_as_it_does_natively(row):
    x = np.array([row], np.float32)
    about = {"arrays": [coded(x)], "rows": 1, "cols": x.size}
    (there,) = under_node({"what": "run", "kernel": "foil/unshifted"} | about)
    here = emulator.run("foil/unshifted", x)
    np.testing.assert_allclose(decoded(there["y"]), here.y[0], rtol=2e-6)
    assert there["verdict"]["ok"] == reference.compare(here.y, x).ok == (row == [2, 0, 1])
    assert {k: there["counters"][k] for k in here.counts.known()} == here.counts.known()


@needs_node
@pytest.mark.parametrize("name", livefile.ANSWERED)
def test_results_are_judged_as_python_does_on_every_input(name):
    """Right answers, wrong ones, and what is not finite."""
    (family,) = {k.family for k in registry.KERNELS.values() if k.family.name == name}
    rows, cols = shape = (24, 19)
    asked, here = [], []
    for kind in family.kinds:
        given = family.inputs(kind, *shape, 3)
        with np.errstate(over="ignore"):
            right = family.oracle(*given).astype(np.float32)
        shifted = right.copy()
        shifted.flat[5] = np.nextafter(np.nextafter(right.flat[5], np.float32(9)), np.float32(9))
        for y in (right, np.zeros_like(right), np.full_like(right, np.nan), shifted, -right):
            about = {"arrays": list(map(coded, given)), "rows": rows, "cols": cols}
            asked.append({"what": "judge", "family": name, "y": coded(y)} | about)
            here.append(family.compare(y, *given))
    for there, mine in zip(under_node(*asked), here, strict=True):
        assert there["ok"] == mine.ok
        assert there["worst"] == pytest.approx(mine.worst, rel=1e-6, abs=1e-9)
    assert {verdict.ok for verdict in here} == {True, False}


@needs_node
def test_the_page_knows_the_families_that_it_is_said_to():
    (found,) = under_node({"what": "families"})
    assert found == {"answered": list(livefile.ANSWERED), "given": list(livefile.ANSWERED)}


@pytest.mark.slow
@needs_node
def test_a_large_matrix_counts_the_same():
    """A megabyte by one kernel, which is about the machine; several blocks of long rows by all."""
    sizes = dict.fromkeys(KERNELS, (40, 1024)) | {"naive": (256, 1024)}
    asked = [{"what": "run", "sanitize": False} | on(*each) for each in sizes.items()]
    for (name, shape), there in zip(sizes.items(), under_node(*asked), strict=True):
        here = emulator.run(name, *arrays(name, shape))
        assert {k: there["counters"][k] for k in here.counts.known()} == here.counts.known()


@needs_node
def test_planted_defects_are_reported_in_the_same_words():
    source = Source.read(planted.FILE)
    about = described()["planted"]
    x = np.arange(1, planted.SIZE + 1, dtype=np.float32)
    assert sum(bool(each["fault"]) for each in about) > 20
    answers = under_node(*({"what": "planted", "of": each} for each in about))
    for each, there in zip(about, answers, strict=True):
        here = emulator.launch(
            source,
            each["grid"],
            each["block"],
            (x, Out(x.shape), x.size),
            kernel=each["name"],
            shared=each["shared"],
            cooperative=each["group"] > 1,
            sanitize=True,
        )
        assert [fault["text"] for fault in there["faults"]] == list(map(str, here.faults)), each
        assert bool(here.faults) == bool(each["fault"])
        for mine, other in zip(here.faults, there["faults"], strict=True):
            assert json.loads(json.dumps(asdict(mine))) == {k: other[k] for k in asdict(mine)}


def test_what_a_reader_sees_of_a_planted_defect_does_not_give_it_away():
    text = described()["texts"][planted.FILE.name]
    assert "//" not in text
    for each in planted.planted():
        assert not each.fault or f" {each.name}(" not in text
    assert text.count("\n") == planted.FILE.read_text("utf-8").count("\n")


def test_puzzles_are_numbered_and_show_their_launch():
    titles = [each.title for each in planted.planted() if each.fault]
    assert [title.partition(":")[0] for title in titles] == [
        f"puzzle {k}" for k in range(1, len(titles) + 1)
    ]
    assert all(re.search(r"\d blocks? of \d+ threads", title) for title in titles)


def told(name: str) -> dict:
    return next(each for each in described()["cuts"] if each["name"] == name)


@needs_node
@pytest.mark.parametrize("cut", cuts(), ids=lambda cut: cut.name)
def test_a_line_taken_away_is_seen(cut):
    row = cut.line.row
    x = np.array([row], np.float32) if row else matrix(cut.line.shape)
    rows, cols = x.shape
    grid, block = cut.kernel.geometry(rows)
    asked = {"what": "launch", "index": told(cut.name)["index"], "grid": grid, "threads": block}
    asked |= {"shared": cut.kernel.shared_bytes}
    (there,) = under_node(asked | {"args": [coded(x), {"out": rows * cols}, rows, cols]})
    here = run_cut(cut.name, x)
    assert [fault["text"] for fault in there["faults"]] == list(map(str, here.faults))
    if cut.line.outcome == WRONG:
        y = decoded(there["outputs"][0]).reshape(x.shape)
        assert not there["faults"]
        assert not reference.compare(y, x).ok
        (judged,) = under_node(
            {"what": "judge", "family": cut.kernel.family.name, "y": coded(y)}
            | {"arrays": [coded(x)], "rows": rows, "cols": cols}
        )
        assert not judged["ok"]
    else:
        assert cut.line.outcome in {fault["kind"] for fault in there["faults"]}


@needs_node
def test_an_infinity_made_an_integer_saturates_in_the_page_as_on_a_gpu():
    asked = {"what": "launch", "index": told("block_warp-float")["index"], "grid": 1}
    block_warp = registry.get("block_warp")
    asked |= {"threads": block_warp.geometry(1)[1], "shared": block_warp.shared_bytes}
    x = np.float32([0, 1, np.inf, 2])
    (there,) = under_node(asked | {"args": [coded(x), {"out": 4}, 1, 4]})
    assert str(decoded(there["outputs"][0])) == "[ 0.  0. nan  0.]"


@needs_node
@pytest.mark.parametrize("line", planted.LINES, ids=lambda line: f"{line.kernel}-{line.name}")
def test_a_twin_without_its_barrier_is_seen(line):
    name = f"{line.kernel}-{line.name}"
    (twin,) = (each for each in described()["planted"] if each["name"] == line.kernel)
    whole, broken = under_node(
        {"what": "planted", "of": twin},
        {"what": "planted", "of": twin | {"index": told(name)["index"]}},
    )
    number, _, source = planted.cut(line)
    x = np.arange(1, planted.SIZE + 1, dtype=np.float32)
    here = emulator.launch(
        source,
        twin["grid"],
        twin["block"],
        (x, Out(x.shape), x.size),
        cooperative=twin["group"] > 1,
        sanitize=True,
    )
    assert whole["faults"] == []
    assert [fault["text"] for fault in broken["faults"]] == list(map(str, here.faults))
    assert broken["faults"][0]["kind"] == line.outcome
    assert number == told(name)["line"]


def test_a_line_to_take_away_must_be_meant_clearly():
    line = planted.LINES[0]
    with pytest.raises(ValueError, match="has it 2×"):
        without("        __syncthreads();\n" * 2, line, "a.cu")
    assert without("a\n        __syncthreads();\nb", line, "a.cu") == (2, "", "a\n\nb")


# ---- Any block, any warp, any number of steps ----


@needs_node
@pytest.mark.parametrize(
    "kernel", [k for k in KERNELS if len(livefile.blocks(registry.get(k))) > 1]
)
def test_every_block_that_a_reader_may_choose_is_counted_right(kernel):
    found, shape = registry.get(kernel), (37, 45)
    offered = livefile.blocks(found)
    asked = [{"what": "run", "block": block} | on(kernel, shape) for block in offered]
    for block, there in zip(offered, under_node(*asked), strict=True):
        other = replace(found, rows_per_block=block // found.threads_per_row)
        here = emulator.run(other, *arrays(kernel, shape), sanitize=True)
        assert {k: there["counters"][k] for k in here.counts.known()} == here.counts.known()
        assert not there["faults"] and there["verdict"]["ok"]
        derived = ledger.derive(other, *arrays(kernel, shape)).known()
        assert {k: there["counters"].get(k, 0) for k in derived} == derived


def test_a_block_can_be_chosen_where_a_kernel_asks_for_its_size():
    sizes = {name: livefile.blocks(registry.get(name)) for name in KERNELS}
    assert sizes["naive"] == sizes["warp_merge"] == [32, 64, 128, 256, 512, 1024]
    for name in KERNELS:
        assert registry.get(name).block in sizes[name]
        assert (
            len(sizes[name]) == 1
            or "blockDim" in registry.get(name).path.read_text("utf-8")
            or ("meta_group_size" in registry.get(name).path.read_text("utf-8"))
        )


@needs_node
@pytest.mark.parametrize(
    ("kernel", "block", "warp"),
    [("online", 1, 2), ("online", 1, 3), ("warp", 36, 0), ("gemv/row_per_warp_vec4", 3, 2)],
)
def test_steps_of_any_warp_come_in_parts_that_make_the_whole(kernel, block, warp):
    shape = (200, 40) if kernel == "online" else (37, 100)
    here = emulator.run(kernel, *arrays(kernel, shape), trace=(block, warp)).trace
    asked = {"what": "run"} | on(kernel, shape)
    asked |= {"blocks": [block, block + 1], "judged": False, "sanitize": False}
    parts = under_node(
        *(
            asked | {"trace": STEPS | {"block": block, "warp": warp, "first": first, "steps": 50}}
            for first in range(0, len(here) + 50, 50)
        )
    )
    there = [step for part in parts for step in part["steps"]]
    assert [(s["op"], s["line"], s["mask"]) for s in there] == [
        (s.op, s.line, s.mask) for s in here
    ]
    about = described()["ops"]
    for part in parts:
        assert part["traced"] == len(here)
        assert [about[op] for op in decoded(part["order"], "u1")] == [s.op for s in here]


# ---- One visual language ----

VALUES = (
    *(0.125, -0.375, 0.625, 1 / 3, -0.0, -0.001, 1e-30, 7.0, -12.0, 1234.5, 99999.5),
    *(123456.0, -1e6, 3.4e38, -3.4028234663852886e38, np.inf, -np.inf, 2.5, 1e10),
)


@needs_node
def test_the_page_draws_as_lane_art_does():
    kinds = ["live", "idle", "lost", "absent"] * 8
    lines = [(f"{lane}.5", "<&'\">") for lane in range(32)]
    sources = [min(lane + 16, 31) if lane < 16 else lane for lane in range(32)]
    strong = set(range(8))
    values = np.array(VALUES, np.float32)
    there = under_node(
        {"what": "squares", "y": 24, "kinds": kinds},
        {"what": "wires", "sources": sources, "strong": sorted(strong)},
        {"what": "registers", "y": 186, "lines": lines, "kinds": kinds},
        {"what": "sector", "used": [0, 3, 4]},
        {"what": "words", "x": coded(values)},
        {"what": "lanes", "lanes": [3, 1, 2, 9, 31, 30]},
        {"what": "lanes", "lanes": [5]},
    )
    centre = lane_art.square_centre
    assert there[0] == "".join(lane_art.squares(24, kinds))
    assert there[1] == "".join(lane_art.wires(sources, centre, 46, 132, strong))
    assert there[2] == "".join(lane_art.registers(186, lines, kinds))
    assert there[3] == "".join(sector_box(8, 30, {0, 3, 4}))
    for v, (whole, short) in zip(map(float, values), there[4], strict=True):
        assert short == lane_art.brief(v)
        assert whole == lane_art.fixed(v) or abs(v) > 1e21
    assert there[5:] == [lane_list([3, 1, 2, 9, 31, 30]), lane_list([5])]


def _one_of_each(steps: list[dict]) -> list[dict]:
    """One step of each kind, space, array and mask."""
    kinds = {(s["op"], s["space"], s["array"], s["mask"]): s for s in steps}
    return [*kinds.values()]


@needs_node
def test_every_step_has_a_picture_and_a_sentence():
    steps = [
        step | {"before": [0.0] * 32}  # what JSON can hold
        for kernel in KERNELS
        for run in paged(kernel)
        for step in (*run["steps"][:6], *_one_of_each(run["steps"]), *run["steps"][-6:])
    ]
    drawn = under_node(*({"what": "draw", "step": step} for step in steps))
    for step, (picture, said) in zip(steps, drawn, strict=True):
        assert "undefined" not in picture + said and "NaN" not in picture
        assert (step["op"] == "shuffle") == ("exchange" in said)
        boxes = picture.count('fill="none" stroke="currentColor" stroke-width="1.5"/>')
        assert boxes == (step["sectors"] if step["space"] == "global" else 0)
        if step["space"] == "global":
            assert f"{step['sectors']} sector" in said
        if step["space"] == "shared":
            assert f"{step['wavefronts']} wavefront" in said and "bank 31" in picture
    assert {step["space"] for step in steps if step["op"] == "load"} == {"global", "shared"}
    assert {"barrier", "shuffle"} < {step["op"] for step in steps}


def test_colours_and_sizes_are_those_of_the_python_pictures():
    look = described()["look"]
    assert look["width"] == svg.WIDTH and look["live"] == svg.colour(lane_art.LIVE)
    for script in STATIC.glob("live*.js"):
        for colour in svg.PALETTE.values():
            assert colour.lower() not in script.read_text("utf-8").lower(), script


def shared_step(size: int, words: list[int | None], op: str = "load", wavefronts: int = 1) -> dict:
    """A step of shared memory: lane l takes the word words[l] of `tile`."""
    on = [w is not None for w in words]
    about = {"op": op, "file": "a.cu", "line": 1, "space": "shared", "array": "tile", "size": size}
    about |= {"mask": sum(1 << lane for lane, is_on in enumerate(on) if is_on)}
    values = [1.0 if is_on else None for is_on in on]
    about |= {"before": values, "after": values, "sectors": 0, "argument": 0}
    address = [None if w is None else 4 * w for w in words]
    return about | {"address": address, "wavefronts": wavefronts}


@needs_node
def test_banks_of_shared_memory_are_drawn_and_told():
    cases = {
        "32 words in 32 banks, 1 wavefront.": shared_step(4, [*range(32)]),
        "1 word in 1 bank, 1 wavefront.": shared_step(4, [7] * 32),
        "32 words in 8 banks, 4 wavefronts. Bank 0 has 4 of the words": shared_step(
            4, [4 * lane for lane in range(32)], "store", 4
        ),
        "2 words in 1 bank, 2 wavefronts. Bank 1 has 2 of the words": shared_step(
            4, [33, 65, *[None] * 30], wavefronts=2
        ),
    }
    drawn = under_node(*({"what": "draw", "step": step} for step in cases.values()))
    lost, live = (
        f'fill="{svg.colour(ink)}" stroke="{svg.LINE}"' for ink in (lane_art.LOST, lane_art.LIVE)
    )
    for (words, step), (picture, said) in zip(cases.items(), drawn, strict=True):
        assert words in said and f"{'read' if step['op'] == 'load' else 'write'}" in said
        assert (lost in picture) == ("Bank" in said)
        assert live in picture


@needs_node
def test_a_pair_moves_in_one_shuffle_and_both_words_are_told():
    kernel, shape = "warp_merge", (37, 100)
    there = paged(kernel)[SHAPES.index(shape)]["steps"]
    shuffles = [step for step in there if step["op"] == "shuffle"]
    rounds = [r for r in merging.meet(arrays(kernel, shape)[0][0]) if r.kind == "merge"]
    assert len(shuffles) == len(rounds) == 5
    held = np.array(shuffles[0]["before"])
    for step, mine in zip(shuffles, rounds, strict=True):
        assert step["size"] == 8 and step["address"] == list(mine.source)
        np.testing.assert_allclose(step["before"], held, rtol=1e-6)  # the page's expf is musl's
        np.testing.assert_array_equal(step["after"], np.array(step["before"])[step["address"]])
        top, total = online.merge_all(np.array(step["before"]).T, np.array(step["after"]).T)
        held = np.stack([top, total], axis=1)
        np.testing.assert_allclose(held, mine.pairs, rtol=3e-6)
        ((picture, said),) = under_node({"what": "draw", "step": step})
        assert "receives (" in said and "undefined" not in picture


@needs_node
@pytest.mark.parametrize(
    "kernel",  # those whose lanes add and compare; warp_merge's are held above
    [k for k in KERNELS if registry.get(k).threads_per_row == 32 and "warp_merge" not in k],
)
def test_the_page_steps_as_the_simulated_shuffle_does(kernel):
    there = paged(kernel)[SHAPES.index((37, 100))]["steps"]
    steps = [
        emulator.Step(**{k: tuple(v) if isinstance(v, list) else v for k, v in step.items()})
        for step in there
    ]
    operators = {"gemv": ("sum",)}.get(registry.get(kernel).family.name, replay.OPERATORS)
    replayed = replay.replay(steps, operators)
    assert sum(each.step.op == "shuffle" for each in replayed) == 6 * len(operators)
    assert all(each.agrees for each in replayed)


# ---- Closed forms as data ----


@needs_node
@pytest.mark.parametrize("kernel", KERNELS)
def test_closed_forms_have_the_same_values(kernel):
    grid = [(m, n) for m in (1, 5, 33, 128, 150) for n in (1, 3, 8, 31, 32, 45, 100)]
    kinds = {"normal", "rising", "masked"} & {*registry.get(kernel).family.kinds}
    asked = [(shape, name) for shape in grid for name in sorted(kinds)]
    answers = under_node(*({"what": "derive"} | on(kernel, shape, name) for shape, name in asked))
    for (shape, name), there in zip(asked, answers, strict=True):
        counts = ledger.derive(kernel, *arrays(kernel, shape, name))
        here = {k: v for k, v in counts.known().items() if v}
        assert here == {k: there[k] for k in there if k in counts.known() and there[k]}
        assert there["flops"] == counts.flops


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


# ---- What a reader gives ----


@needs_node
def test_scores_are_what_their_names_say():
    (found,) = under_node({"what": "named", "family": "softmax", "rows": 3, "cols": 50})
    x = {name: decoded(text).reshape(3, 50) for name, (text,) in found.items()}
    assert abs(x["normal"].mean()) < 0.3 and 0.8 < x["normal"].std() < 1.2
    assert (np.diff(x["rising"]) >= 0).all() and (np.diff(x["falling"]) <= 0).all()
    assert np.ptp(x["all equal"]) == 0
    assert np.isfinite(x["huge"]).all() and np.abs(x["huge"]).min() > 3e38
    assert np.isneginf(x["all masked (−∞)"]).all()
    assert (np.isneginf(x["first half masked (−∞)"]) == (np.arange(50) < 25)).all()
    assert (np.isneginf(x["every third masked (−∞)"]) == (np.arange(50) % 3 == 0)).all()


@needs_node
def test_entries_of_a_product_are_what_their_names_say():
    (found,) = under_node({"what": "named", "family": "gemv", "rows": 3, "cols": 50})
    made = {name: [decoded(text) for text in texts] for name, texts in found.items()}
    shapes = {tuple(each.size for each in arrays) for arrays in made.values()}
    assert shapes == {(150, 50)}
    A, x = {name: arrays[0].reshape(3, 50) for name, arrays in made.items()}, made
    assert 0.8 < A["normal"].std() < 1.2 and 0.5 < x["normal"][1].std() < 1.5
    assert (A["normal"][0] != A["normal"][1]).all()
    cancelled = A["large ones that nearly cancel"].sum(axis=1)
    assert np.abs(A["large ones that nearly cancel"]).max() > 1e4 > 10 > np.abs(cancelled).max()
    assert x["x picks the last column"][1].tolist() == [0.0] * 49 + [1.0]
    assert np.isinf(A["an infinity in each row"][:, 0]).all()
    typed = {"what": "fromRow", "family": "gemv", "row": [1, 2, 3], "vector": [1, -1], "rows": 2}
    ((A, x),) = under_node(typed)
    assert decoded(A).tolist() == [1, 2, 3, 1, 2, 3] and decoded(x).tolist() == [1, -1, 1]


@needs_node
def test_a_typed_row_is_read():
    good, signs, wrong, empty = under_node(
        *({"what": "typed", "text": text} for text in ("1, 2;3 -inf", "−1.5 ∞ nan", "1 two", " "))
    )
    assert good == "1 2 3 -inf"
    assert signs == "-1.5 inf nan"
    assert "“two”" in wrong["error"] and "at least one" in empty["error"]


def test_kernels_that_a_page_cannot_run_say_why():
    about = described()
    known = {*registry.KERNELS, *registry.EXHIBITS, "probe/strided"}
    assert {k["name"] for k in about["kernels"] + about["absent"]} == known
    assert {k["name"] for k in about["absent"]} == {"roof/copy", "roof/empty", "probe/strided"}
    assert all(k["why"] for k in about["absent"])
    naive = registry.get("naive")
    assert not livefile.why_not(naive)
    assert "float16" in livefile.why_not(replace(naive, dtypes=("float16",)))
    other = replace(naive.family, name="other")
    assert "the family other" in livefile.why_not(replace(naive, family=other))


# ---- Edges ----


@needs_node
def test_a_launch_that_cannot_be_is_refused_and_the_next_one_runs():
    x = coded(np.ones(8, np.float32))
    about = {"what": "launch", "index": 0, "args": [x, {"out": 8}, 2, 4], "grid": 1}
    wrong, right = under_node(about | {"threads": 2000}, about | {"threads": 32})
    assert "1 to 1024 threads" in wrong["error"]
    assert decoded(right["outputs"][0]).tolist() == [0.25] * 8


def of_its_own(text: str, folder: Path) -> Path:
    """A page module of this source alone."""
    module = page.build({"own": Source(text, "own.cu")}, page.tools(livefile.TOOLS))
    about = described() | {
        "sites": module.sites,
        "variables": module.variables,
        "files": module.unit.files,
        "parameters": module.unit.parameters,
    }
    own = folder / "own.js"
    own.write_text(livefile.script("0", livefile.packed(about, module.wasm)), "utf-8")
    return own


TURNED = """extern "C" __global__ void turned(const float* x, float* y, int rows, int cols) {
    extern __shared__ float tile[];
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    const int turn = threadIdx.x * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) tile[turn] = x[size_t(row) * cols + col];
    %s
    if (row < rows && col < cols) y[size_t(col) * rows + row] = 2.0f * tile[turn];
    if (row == 0 && col == 0) y[0] += tile[blockDim.y];
}
"""


@pytest.mark.slow
@needs_node
@needs_tools
@pytest.mark.parametrize("barrier", ["__syncthreads();", ""])
def test_a_block_of_two_dimensions_with_dynamic_shared_memory(tmp_path, barrier):
    source, x = Source(TURNED % barrier, "own.cu"), matrix((20, 13))
    shape = {"grid": (2, 4), "block": (8, 6), "shared": 8 * 6 * 4}
    arguments = (x, Out((13, 20)), 20, 13)
    run = emulator.launch(source, arguments=arguments, sanitize=True, trace=(5, 1), **shape)
    short = emulator.launch(source, arguments=arguments, sanitize=True, **shape | {"shared": 64})
    asked = {"what": "launch", "index": 0, "args": [coded(x), {"out": 260}, 20, 13]}
    asked |= {"grid": [2, 4], "threads": [8, 6], "trace": STEPS | {"block": 5, "warp": 1}}
    asked = [asked | {"shared": shared} for shared in (192, 64)]
    answers = under_node(*asked, file=of_its_own(source.text, tmp_path))
    for here, there in zip((run, short), answers, strict=True):
        known = here.counts.known() | here.extra | {CLOCK: 0}
        assert there["counters"] | {CLOCK: 0} == known
        assert [fault["text"] for fault in there["faults"]] == list(map(str, here.faults))
        assert [asdict(site) for site in here.sites] == there["sites"]
    steps = [(step["op"], step["line"], step["mask"]) for step in answers[0]["steps"]]
    assert steps == [(step.op, step.line, step.mask) for step in run.trace] and steps
    assert {fault.kind for fault in run.faults} == (set() if barrier else {"shared race"})
    assert "shared out of bounds" in {fault.kind for fault in short.faults}


KEPT = """__constant__ float table[4] = {1, 2, 3, 4};
__device__ float total[2];
extern "C" __global__ void kept(const float* x, float* y, int n) {
    __shared__ float s[32];
    float mine[4];
    s[0] = 0.0f;
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (int i = 0; i < 4; ++i) mine[i] = s[(threadIdx.x + i) % 32] * table[i];
    total[threadIdx.x & 1] = mine[0];
    y[threadIdx.x] = mine[threadIdx.x % 4] + total[1];
}
"""


@pytest.mark.slow
@needs_node
@needs_tools
def test_of_a_kernel_s_variables_only_locals_go_unwatched(tmp_path):
    source, x = Source(KEPT, "own.cu"), matrix((1, 32))
    run = emulator.launch(source, 1, 32, (x, Out((1, 32)), 32), sanitize=True, trace=(0, 0))
    asked = {"what": "launch", "index": 0, "args": [coded(x), {"out": 32}, 32], "grid": 1}
    asked |= {"threads": 32, "shared": 0, "trace": STEPS}
    (there,) = under_node(asked, file=of_its_own(KEPT, tmp_path))
    assert there["counters"] | {CLOCK: 0} == run.counts.known() | run.extra | {CLOCK: 0}
    assert [asdict(site) for site in run.sites] == there["sites"]
    assert [fault["text"] for fault in there["faults"]] == list(map(str, run.faults)) != []
    assert {step["array"] for step in there["steps"]} >= {"x", "y", "s"}


@pytest.mark.slow
@needs_node
@needs_tools
def test_a_stack_that_overflows_is_called_one(tmp_path):
    text = """extern "C" __global__ void deep(const float* x, float* y, int n) {
    volatile int a[3000];
    for (int i = 2999; i >= 0; --i) a[i] = n;
    __syncthreads();
    int last = a[n];
    y[threadIdx.x] = x[threadIdx.x] + last;
}
"""
    x = coded(np.ones(32, np.float32))
    asked = {"what": "launch", "index": 0, "grid": 1, "threads": 32, "args": [x, {"out": 32}, 5]}
    (there,) = under_node(asked, file=of_its_own(text, tmp_path))
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
    assert all((STATIC / name).read_text("utf-8") in lab for name in live.SCRIPTS)


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


@needs_node
@pytest.mark.parametrize("kernel", ["warp", "log_softmax/online_warp", "gemv/row_per_thread"])
def test_the_still_picture_is_of_the_numbers_that_the_page_draws(kernel):
    family, (rows, cols) = registry.get(kernel).family, (37, 41)
    (named,) = under_node({"what": "named", "family": family.name, "rows": rows, "cols": cols})
    drawn = [decoded(text) for text in named["normal"]]
    mine = live._drawn(family, rows, cols)
    for there, here in zip(drawn, mine, strict=True):
        # A logarithm or cosine that is rounded another way is a last bit at most.
        np.testing.assert_allclose(here.ravel(), there, rtol=2e-7)
    shapes = [family.extents(rows, cols)[name] for name in family.inputs_named]
    assert [each.shape for each in mine] == shapes
    y = emulator.run(kernel, *mine).y.ravel()[:8]
    html = live.bench(kernel, rows=rows, cols=cols)._repr_html_()
    assert ", ".join(f"{value:.4g}" for value in y) in html


NOT_OURS = {"vendor", "logo.svg", "favicon.svg"}


def test_what_the_pages_load_of_ours_is_small():
    """All scripts and styles beside the widget manager, as a server packs them."""
    ours = [path for path in STATIC.iterdir() if path.name not in NOT_OURS]
    packed = {path.name: len(gzip.compress(path.read_bytes(), 9)) for path in ours}
    assert set(packed) >= {*live.SCRIPTS, live.STYLE, "book.css", "offline.js", "views.js"}
    assert sum(packed.values()) <= 120_000, packed


def test_a_page_loads_the_bench_s_parts_as_one_script():
    whole = live.bundle()
    assert [whole.index((STATIC / name).read_text("utf-8")) for name in live.PARTS] == [
        sum(len((STATIC / before).read_text("utf-8")) for before in live.PARTS[:k])
        for k in range(len(live.PARTS))
    ]
