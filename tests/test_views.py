"""What pages compute by themselves equals what Python says: closed forms, expected values, words.

The scripts run under Node here; tests/test_views_browser.py opens them in a browser.
"""

from __future__ import annotations

import re
import shutil
from functools import cache
from itertools import product

import pytest
from nodes import ask

from softmax_lab import alive, cost, explorers, ledger, livefile, online, registry, roofline, units
from softmax_lab.facts import SECTOR

needs_node = pytest.mark.skipif(not shutil.which("node"), reason="no node to run the scripts under")
RUNNER = livefile.FOLDER / "tests" / "views.mjs"
KERNELS = [*registry.KERNELS]
ROWS = (1, 5, 31, 32, 33, 150, 256, 65536)
COLS = (1, 2, 7, 8, 9, 31, 33, 45, 100, 1001, 1024)
DERIVED = 1e-12
"""How far expected values may be apart: both sum the same terms, in another order."""


def under_node(asked: list[dict], shared: dict | None = None) -> list:
    """What the scripts answer; an error of theirs is an AssertionError here."""
    question = {"shared": shared or {}, "asked": asked}
    answers = ask(question, RUNNER, *(alive.STATIC / name for name in alive.SCRIPTS))
    wrong = [answer["error"] for answer in answers if "error" in answer]
    assert not wrong, wrong
    return [answer.get("is") for answer in answers]


@cache
def explored(family: str = "softmax") -> dict:
    """What the cost explorer of a family's kernels hands to the page."""
    first = next(k for k in registry.KERNELS.values() if k.family.name == family)
    return dict(explorers.costs(first.name).data)


def same(there: float, here: float) -> bool:
    if isinstance(here, int):
        return there == here  # to the unit
    return there == pytest.approx(here, rel=DERIVED)


# ---- Closed forms ----


@needs_node
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 5])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_count_is_python_s_to_the_unit(kernel, step):
    """On all shapes in all types, and on every fifth of them, which meets each length."""
    data = explored(registry.get(kernel).family.name)
    found = registry.get(kernel)
    grid = list(product(ROWS, COLS, ("float32", "float16")))[::step]
    assert {rows for rows, *_ in grid} == set(ROWS) and {cols for _, cols, _ in grid} == set(COLS)
    sizes = {each["name"]: each["size"] for each in data["types"]}
    asked = [
        {"what": "bill", "kernel": kernel, "rows": m, "cols": n, "size": sizes[dtype]}
        for m, n, dtype in grid
    ]
    for (m, n, dtype), there in zip(grid, under_node(asked, {"data": data}), strict=True):
        lookup = ledger.symbols(found, {"rows": m, "cols": n}, dtype)
        forms = {"did": found.executed, "useful": found.textbook}
        counts = {form: cost.evaluate(phases, lookup) for form, phases in forms.items()}
        for form, phases in forms.items():
            here = counts[form]
            stated = {field for phase in phases for field in phase.formulas}
            assert stated == there[form].keys() - {"flops", "bytes", "moved", "intensity"}
            for field in (*stated, "flops", "bytes", "intensity"):
                assert same(there[form][field], getattr(here, field)), (m, n, dtype, form, field)
        did = counts["did"]
        assert there["did"]["moved"] == SECTOR * (did.load_sectors + did.store_sectors)
        once = found.family.once(m, n, dtype)
        assert [each["bytes"] for each in there["floors"]] == [
            *(once, did.bytes, there["did"]["moved"])
        ]
        for floor in there["floors"]:
            here = [
                roofline.floor_time(floor["bytes"], roof["bandwidth"], did.flops, data["peak"])
                for roof in data["roofs"]
            ]
            assert floor["times"] == pytest.approx(here, rel=DERIVED)


@needs_node
def test_the_largest_shape_is_exact():
    data = explored()
    most = explorers.MOST
    (there,) = under_node(
        [{"what": "bill", "data": data, "kernel": "naive", "rows": most, "cols": most, "size": 4}]
    )
    assert there["did"]["load_bytes"] == 3 * 4 * most**2
    assert there["did"]["flops"] == 4 * most**2
    assert max(v for v in there["did"].values() if v is not None) < 2**53


@needs_node
def test_expected_rises_and_splits_are_python_s():
    shapes = [
        (m, n, t) for m in (1, 7, 33, 100) for n in (1, 31, 100, 5000) for t in (1, 4, 32, 512)
    ]
    asked = [
        {"what": "symbol", "symbol": symbol, "rows": m, "cols": n, "threads": t}
        for m, n, t in shapes
        for symbol in ("R_T", "D", "R_X", "R_Y")
    ]
    answers = iter(under_node(asked))
    for shape in shapes:
        assert next(answers) == pytest.approx(online.expected_updates(*shape), rel=DERIVED)
        assert next(answers) == pytest.approx(online.expected_diverged(*shape), rel=1e-9, abs=1e-9)
        for butterfly in (True, False):
            here = online.expected_merge_rises(*shape, butterfly)
            assert next(answers) == pytest.approx(here, rel=DERIVED)
    long = [{"what": "symbol", "symbol": "R", "rows": 1, "cols": 10**6, "threads": 1}]
    assert under_node(long) == [pytest.approx(online.expected_updates(1, 10**6), rel=DERIVED)]


@needs_node
def test_every_function_and_operator_of_a_formula_is_there():
    symbols = {"M": 37, "N": 21, "W": 32, "E": 4, "K": 64}
    forms = [
        form for kernel in registry.KERNELS.values() for form in (kernel.executed, kernel.textbook)
    ]
    texts = " ".join(text for form in forms for phase in form for text in phase.formulas.values())
    calls = {name: f"{name}(M, N)" for name in cost.FUNCTIONS if f"{name}(" in texts}
    assert calls.keys() == cost.FUNCTIONS.keys()
    calls |= {
        "lg": "lg(K)",
        "ceil": "ceil(M, W)",
    }
    formulas = [*calls.values(), "M*(N - 1) + M % W", "min(1, M - 3*N)"]
    trees = [
        {"what": "evaluate", "tree": livefile.tree(formula), "symbols": symbols}
        for formula in formulas
    ]
    here = [cost.value(formula, symbols.__getitem__) for formula in formulas]
    assert under_node(trees) == here


@needs_node
def test_unknown_names_are_errors_and_never_zero():
    with pytest.raises(AssertionError, match="no function nap"):
        under_node([{"what": "evaluate", "tree": ["nap", 1], "symbols": {}}])
    with pytest.raises(AssertionError, match="no symbol Q"):
        under_node([{"what": "symbol", "symbol": "Q", "rows": 1, "cols": 1, "threads": 1}])
    with pytest.raises(AssertionError, match="no function constructor"):
        under_node([{"what": "evaluate", "tree": ["constructor", "M"], "symbols": {"M": 1}}])


@pytest.mark.parametrize("name", alive.SCRIPTS)
def test_no_text_is_evaluated(name):
    """A content security policy without 'unsafe-eval' has to be possible."""
    text = (alive.STATIC / name).read_text("utf-8")
    assert not re.search(r"\beval\(|new Function|setTimeout\(\s*[\"'`]", text)


# ---- Words ----

NUMBERS = (0, 3, -3, 786432, 4023.7, 12.5, 1 / 24, 0.9999, 2.5e-7, 1234567, 0.03125, 0.3125, 0.1875)
NUMBERS += (1.125, 99.95, 1e15, 1.5e15, 1e-4, 9.99e-5, 2**40, 67.25, 0.5, 1e20, 123456.5)


@needs_node
@pytest.mark.parametrize("digits", [2, 3, 6])
def test_numbers_are_written_alike(digits):
    asked = [{"what": "write", "function": "number", "args": [n, digits]} for n in NUMBERS]
    assert under_node(asked) == [units.number(float(n), digits) for n in NUMBERS]


@needs_node
def test_quantities_are_written_alike():
    pairs = [(value, base) for value in (*map(abs, NUMBERS), None) for base in ("s", "B", "FLOP/s")]
    asked = [{"what": "write", "function": "scaled", "args": pair} for pair in pairs]
    assert under_node(asked) == [units.scaled(*pair) for pair in pairs]


JUDGED = [
    (32, 32, "exactly"),
    (32, 8, "4× too high"),
    (2, 8, "4× too low"),
    (10.2, 10, "within 2%"),
    (10.001, 10, "within 0.01%"),
    (5, 0, "5 too high"),
    (0, 5, "5 too low"),
    (-1, 4, "5 too low"),
    (3, None, units.MISSING),
]
TYPED = [
    *(("32", "", 32), (" 12.5 ", "%", 12.5), ("12,5 %", "%", 12.5), ("1 024", "", 1024)),
    *(("1,048,576", "", 1048576), ("1/24", "", 1 / 24), ("7×", "times", 7), ("7x", "", 7)),
    *(("2 times", "times", 2), ("1e6", "", 1e6), ("−3", "", -3), (".5", "", 0.5)),
    *(("", "", None), ("many", "", None), ("1/0", "", None), ("3 4x5", "", None)),
]


@needs_node
def test_predictions_are_held_against_the_truth():
    asked = [{"what": "write", "function": "judged", "args": pair} for *pair, _ in JUDGED]
    said = under_node(asked)
    assert [(*pair, word) for (*pair, _), word in zip(JUDGED, said, strict=True)] == JUDGED


@needs_node
def test_numbers_as_people_type_them():
    asked = [{"what": "typed", "text": text, "unit": unit} for text, unit, _ in TYPED]
    found = under_node(asked)
    assert [(*each[:2], value) for each, value in zip(TYPED, found, strict=True)] == TYPED
