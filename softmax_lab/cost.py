"""Closed forms: what a kernel costs, phase by phase. One formula text is evaluated, typeset and
exported."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from softmax_lab.coalescing import thread_per_row_sectors
from softmax_lab.counts import FIELDS, HARDWARE_ONLY, ZERO, Counts

FUNCTIONS: dict[str, tuple[Callable, str]] = {
    "ceil": (lambda a, b: -(-a // b), r"\left\lceil {0}/{1} \right\rceil "),
    "min": (min, r"\min({0}, {1})"),
    "S": (thread_per_row_sectors, r"S({0}, {1})"),
}
"""Functions a formula may call: how to evaluate and how to typeset them. `ceil(a, b)` is ⌈a/b⌉ on
integers; `S(M, N)` the sectors of one thread-per-row pass (`coalescing.thread_per_row_sectors`)."""


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
                return FUNCTIONS[name][0](*map(walk, arguments))
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
# Symbols: M rows, N columns, B threads of a block, W = 32 lanes, E bytes of an element.


def _walk_rows(**arithmetic: str) -> dict[str, str]:
    """One pass of thread-per-row loads over x, with the arithmetic it does on each element."""
    return {
        "load_bytes": "E*M*N",
        "load_useful_bytes": "E*M*N",
        "load_requests": "ceil(M, W)*N",
        "load_sectors": "S(M, N)",
        **arithmetic,
    }


_STORE_ROWS = {
    "store_bytes": "E*M*N",
    "store_useful_bytes": "E*M*N",
    "store_requests": "ceil(M, W)*N",
    "store_sectors": "S(M, N)",
}

NAIVE_EXECUTED = (
    Phase("guard", {"branches": "ceil(M, B)*ceil(B, W)", "diverged": "min(1, M % W)"}),
    Phase("maximum", _walk_rows(compare="M*N")),
    Phase("sum", _walk_rows(sub="M*N", exp="M*N", add="M*N")),
    Phase("write", _walk_rows(sub="M*N", exp="M*N", div="M*N") | _STORE_ROWS),
)
"""`naive` as written: the maximum starts from -FLT_MAX and the sum from 0, so both take N steps."""

NAIVE_TEXTBOOK = (
    Phase("maximum", {"compare": "M*(N - 1)", "load_bytes": "E*M*N"}),
    Phase("sum", {"sub": "M*N", "exp": "M*N", "add": "M*(N - 1)", "load_bytes": "E*M*N"}),
    Phase(
        "write",
        {"sub": "M*N", "exp": "M*N", "div": "M*N", "load_bytes": "E*M*N", "store_bytes": "E*M*N"},
    ),
)
"""The useful work of three passes: N - 1 comparisons and additions a row (arithmetic and bytes
only)."""

TEXTBOOK_FIELDS = (
    *("add", "sub", "mul", "div", "f64", "exp", "log", "compare", "updates"),
    *("load_bytes", "store_bytes", "shuffles"),
)
"""Counts that a textbook form states; requests, sectors and branches belong to a machine, not to a
textbook."""
