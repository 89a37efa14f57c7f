"""Closed forms: what a kernel costs, phase by phase. One formula text is evaluated, typeset and
exported."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from softmax_lab.coalescing import (
    shared_vectors_sectors,
    thread_per_row_sectors,
    vectors_per_row_requests,
    vectors_per_row_sectors,
    warp_per_row_sectors,
)
from softmax_lab.counts import FIELDS, HARDWARE_ONLY, ZERO, Counts
from softmax_lab.online import FORMS

FUNCTIONS: dict[str, tuple] = {
    "ceil": (lambda a, b: -(-a // b), r"\left\lceil {0}/{1} \right\rceil "),
    "min": (min, r"\min({0}, {1})"),
    "lg": (lambda a: a.bit_length() - 1, r"\log_2 {0}"),
    "S": (thread_per_row_sectors, r"S({0}, {1})", "E"),
    "V": (warp_per_row_sectors, r"V({0}, {1})", "E"),
    "V4": (vectors_per_row_sectors, r"V_4({0}, {1})"),
    "Q4": (vectors_per_row_requests, r"Q_4({0}, {1})"),
    "X4": (shared_vectors_sectors, r"X_4({0}, {1})"),
}
"""Functions a formula may call: how to evaluate and how to typeset them, and symbols that are
handed on to them unsaid. `ceil(a, b)` is ⌈a/b⌉ on integers, `lg(a)` the logarithm of a power of
two; `S(M, N)` and `V(M, N)` are the sectors of one pass over elements of E bytes with a thread and
with a warp to a row, `V4(M, N)` with a warp that loads four floats a lane, `Q4(M, N)` its requests
and `X4(M, N)` its sectors of the vector that all rows share (`coalescing`)."""


@dataclass(frozen=True)
class Phase:
    """A named part of a kernel and the closed form of each count it adds; a count it leaves out is
    zero."""

    name: str
    formulas: Mapping[str, str]

    def __post_init__(self):
        wrong = [field for field in self.formulas if field not in FIELDS or field in HARDWARE_ONLY]
        if wrong:
            raise ValueError(
                f"phase {self.name!r} states {', '.join(wrong)}: no count with a closed form"
            )


def evaluate(phases: Iterable[Phase], lookup: Callable[[str], float]) -> Counts:
    """The sum of the phases, each symbol of a formula resolved by `lookup(symbol)`."""
    total = ZERO
    for phase in phases:
        mine = {field: value(formula, lookup) for field, formula in phase.formulas.items()}
        total += Counts(**{field: mine.get(field, none) for field, none in ZERO.known().items()})
    return total


def value(formula: str, lookup: Callable[[str], float]) -> float:
    """The number a formula stands for: exact on integers, a float only where an expected value
    enters."""

    def walk(node: ast.expr) -> float:
        match node:
            case ast.Constant(value=number):
                return number
            case ast.Name(id=symbol):
                return lookup(symbol)
            case ast.BinOp(left=a, op=operator, right=b):
                return _OPERATORS[type(operator)][0](walk(a), walk(b))
            case ast.Call(func=ast.Name(id=name), args=arguments):
                apply, _, *given = FUNCTIONS[name]
                return apply(*map(walk, arguments), *map(lookup, given))
        raise AssertionError(ast.dump(node))  # _tree lets nothing else through

    return walk(_tree(formula))


def latex(formula: str) -> str:
    """The formula typeset for a maths environment."""

    def walk(node: ast.expr, tight: bool = False) -> str:
        match node:
            case ast.Constant(value=number):
                return str(number)
            case ast.Name(id=symbol):
                return symbol if len(symbol) == 1 else f"{symbol[0]}_{{{symbol[1:].strip('_')}}}"
            case ast.BinOp(op=ast.Mult(), left=a, right=b):
                left, right = walk(a, True), walk(b, True)
                return rf"{left} \cdot {right}" if right[0].isdigit() else left + right
            case ast.BinOp(left=a, op=operator, right=b):
                text = f"{walk(a)} {_OPERATORS[type(operator)][1]} {walk(b)}"
                return f"({text})" if tight else text
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return FUNCTIONS[name][1].format(*map(walk, arguments))
        raise AssertionError(ast.dump(node))

    return walk(_tree(formula))


DATA = ("R", "R_T", "D", "R_X", "R_Y")
"""Symbols that the data decide: rises of running maxima, warp steps whose lanes disagree, and
merges that find the larger maximum in the second of two parts, in a butterfly and in a tree."""


def data(phases: Iterable[Phase]) -> tuple[str, ...]:
    """Those of `DATA` that the formulas of the phases hold."""
    trees = [_tree(formula) for phase in phases for formula in phase.formulas.values()]
    held = {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return tuple(symbol for symbol in DATA if symbol in held)


_OPERATORS = {
    ast.Add: (lambda a, b: a + b, "+"),
    ast.Sub: (lambda a, b: a - b, "-"),
    ast.Mult: (lambda a, b: a * b, r"\cdot"),
    ast.Mod: (lambda a, b: a % b, r"\bmod"),
}


@cache
def _tree(formula: str) -> ast.expr:
    tree = ast.parse(formula, mode="eval").body
    for node in ast.walk(tree):
        ok = isinstance(node, (ast.Constant, ast.Name, ast.Load, ast.BinOp, ast.Call, *_OPERATORS))
        if isinstance(node, ast.Call):
            ok = isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and not node.keywords
        if not ok:
            raise ValueError(
                f"a formula holds numbers, symbols, +-*%, {', '.join(FUNCTIONS)}; got {formula!r}"
            )
    return tree


# ---------------------------------------------------------------------------------------- softmax
# Symbols: M rows, N columns; B threads and P rows of a block, T threads of a row, W = 32 lanes; E
# bytes of an element.


def traffic(way: str, requests: str, sectors: str) -> dict[str, str]:
    """One pass over all elements that loads or stores each of them once; `way` is load or store."""
    return {
        f"{way}_bytes": "E*M*N",
        f"{way}_useful_bytes": "E*M*N",
        f"{way}_requests": requests,
        f"{way}_sectors": sectors,
    }


LOAD_ROWS, STORE_ROWS = (traffic(way, "ceil(M, W)*N", "S(M, N)") for way in ("load", "store"))
"""A thread walks a row: a request is one column of 32 rows."""

LOAD_WARPS, STORE_WARPS = (traffic(way, "M*ceil(N, W)", "V(M, N)") for way in ("load", "store"))
"""Warps walk a row, one or several: a request is 32 columns of one row."""

SHARE = {"sub": "M*N", "exp": "M*N", "div": "M*N"}
"""exp(x - max) / sum for every element."""

GUARD = Phase("guard", {"branches": "ceil(M, B)*ceil(B, W)", "diverged": "min(1, M % W)"})
"""`if (row >= rows) return;`: met by every warp of the grid, split by the one that ends inside a
warp."""

NAIVE_EXECUTED = (
    GUARD,
    Phase("maximum", LOAD_ROWS | {"compare": "M*N"}),
    Phase("sum", LOAD_ROWS | {"sub": "M*N", "exp": "M*N", "add": "M*N"}),
    Phase("write", LOAD_ROWS | SHARE | STORE_ROWS),
)
"""`naive` as written: the maximum starts from -FLT_MAX and the sum from 0, so both take N steps."""

NAIVE_STORE_EXECUTED = (
    *NAIVE_EXECUTED[:2],
    Phase("sum", LOAD_ROWS | {"sub": "M*N", "exp": "M*N", "f64": "M*N"} | STORE_ROWS),
    Phase("divide", LOAD_ROWS | {"div": "M*N"} | STORE_ROWS),
)
"""`naive_store`: each exponential is computed once and waits in y, and the sum is taken in
double."""

WRITE_TEXTBOOK = Phase("write", SHARE | {"load_bytes": "E*M*N", "store_bytes": "E*M*N"})

NAIVE_TEXTBOOK = (
    Phase("maximum", {"compare": "M*(N - 1)", "load_bytes": "E*M*N"}),
    Phase("sum", {"sub": "M*N", "exp": "M*N", "add": "M*(N - 1)", "load_bytes": "E*M*N"}),
    WRITE_TEXTBOOK,
)
"""The useful work of three passes: N - 1 comparisons and additions a row (arithmetic and bytes
only)."""

_POWERS = {"exp": "M*N", "div": "M*N"}
"""exp(x) / sum for every element: nothing is subtracted."""

UNSHIFTED_EXECUTED = (
    GUARD,
    Phase("sum", LOAD_ROWS | {"exp": "M*N", "add": "M*N"}),
    Phase("write", LOAD_ROWS | _POWERS | STORE_ROWS),
)
"""The definition without its shift: `naive` less a pass and less its subtractions."""

UNSHIFTED_TEXTBOOK = (
    Phase("sum", {"exp": "M*N", "add": "M*(N - 1)", "load_bytes": "E*M*N"}),
    Phase("write", _POWERS | {"load_bytes": "E*M*N", "store_bytes": "E*M*N"}),
)

COPY_TEXTBOOK = (Phase("copy", {"load_bytes": "E*M*N", "store_bytes": "E*M*N"}),)
"""One read and one write of every element: what a roof moves, and what softmax must at least."""


_KEPT = {"load_bytes": "E*M*N", "store_bytes": "E*M*N"}
NAIVE_STORE_TEXTBOOK = (
    NAIVE_TEXTBOOK[0],
    Phase("sum", {"sub": "M*N", "exp": "M*N", "f64": "M*(N - 1)"} | _KEPT),
    Phase("divide", {"div": "M*N"} | _KEPT),
)
"""3MN - M operations, M(N - 1) of them in double, MN exponentials, 20MN bytes."""


def _step(form: str, updates: str) -> dict[str, str]:
    """Arithmetic of an online pass over all elements: `form` as in `online.FORMS`, `updates` the
    symbol of its rises."""
    common = {"compare": "M*N", "add": "M*N"}
    match form:
        case "branch":
            return common | {"sub": "M*N", "exp": "M*N", "mul": updates, "updates": updates}
        case "rescale":
            return common | {
                "sub": f"M*N + {updates}",
                "exp": f"M*N + {updates}",
                "mul": updates,
                "updates": updates,
            }
    return common | {"sub": "2*M*N", "exp": "2*M*N", "mul": "M*N"}


def _online(form: str) -> tuple[Phase, ...]:
    contract = (Phase("contract", {"compare": "M"}),) if form == "branch" else ()
    branches = {} if form == "branchfree" else {"branches": "ceil(M, W)*N", "diverged": "D"}
    return (
        GUARD,
        Phase("online pass", LOAD_ROWS | _step(form, "R") | branches),
        *contract,
        Phase("write", LOAD_ROWS | SHARE | STORE_ROWS),
    )


ONLINE_EXECUTED = {form: _online(form) for form in FORMS}
"""The online kernels by form. `contract` is the test for +inf that makes such a row NaN throughout;
the other forms, and the correction of a warp, meet exp(inf - inf) = NaN and need none."""

ONLINE_TEXTBOOK = (
    Phase("online pass", {**_step("branch", "R"), "load_bytes": "E*M*N"}),
    WRITE_TEXTBOOK,
)
"""4MN + R FLOPs, 2MN exponentials, 12MN bytes: the branch form is the one that does no work
twice."""

_CORRECTION = Phase("correction", {"sub": "M*W", "exp": "M*W", "mul": "M*W"})
"""Each lane's sum, re-based to the maximum of the row."""


def _warp(form: str) -> tuple[Phase, ...]:
    return (
        Phase("guard", {"branches": "M"}),
        Phase(
            "online pass",
            LOAD_WARPS | _step(form, "R_T") | {"branches": "M*ceil(N, W)", "diverged": "D"},
        ),
        Phase("maximum of the row", {"compare": "M*W*lg(W)", "shuffles": "M*(lg(W) + 1)"}),
        _CORRECTION,
        Phase("sum of the row", {"add": "M*W*lg(W)", "shuffles": "M*(lg(W) + 1)"}),
        Phase("write", LOAD_WARPS | SHARE | STORE_WARPS),
    )


WARP_EXECUTED = {form: _warp(form) for form in ("branch", "rescale")}
"""One warp per row: every lane of a tree level adds and compares, useful or not."""

WARP_TEXTBOOK = (
    *ONLINE_TEXTBOOK[:1],
    Phase("maximum of the row", {"compare": "M*(W - 1)", "shuffles": "M*(lg(W) + 1)"}),
    _CORRECTION,
    Phase("sum of the row", {"add": "M*(W - 1)", "shuffles": "M*(lg(W) + 1)"}),
    *ONLINE_TEXTBOOK[1:],
)
"""The useful work: a tree over W lanes needs W - 1 operations; R is that of one walk over the
row."""

TEXTBOOK_FIELDS = (
    *("add", "sub", "mul", "div", "f64", "exp", "log", "compare", "updates"),
    *("load_bytes", "store_bytes", "shuffles"),
)
"""Counts that a textbook form states; requests, sectors and branches belong to a machine, not to a
textbook."""
