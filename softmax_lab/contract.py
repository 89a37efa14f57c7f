"""The contract of the operators and kernels: one list of promises, each with an input to try it on.

The table of the book, the docstrings of the operators, the tests of both operators on the host and
the GPU, those of every registered kernel, and what other libraries are asked, come from it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable

import numpy as np
from numpy.lib.stride_tricks import as_strided

from softmax_lab.promises import (
    INF,
    RISING,
    SCORES,
    TYPES,
    Clause,
    L,
    P,
    column,
    f4,
    made,
    on,
    refused,
    thirds,
)


def _misaligned(rows) -> np.ndarray:
    values = f4(rows)
    buffer = np.zeros(values.nbytes + 1, np.uint8)
    view = buffer[1:].view(np.float32).reshape(values.shape)
    view[...] = values
    return view


def _frozen(rows) -> np.ndarray:
    values = f4(rows)
    values.flags.writeable = False
    return values


def _out(x_from: int, out_from: int) -> tuple[np.ndarray, dict]:
    """Rows of three in one buffer, x from one element on and out from another."""
    buffer = np.zeros(18, np.float32)
    x, out = (buffer[k : k + 9].reshape(3, 3) for k in (x_from, out_from))
    x[...] = RISING
    return x, {"out": out}


_LAYOUTS = (
    thirds(
        "sliced",
        "x[::2, 1:4]",
        "as its copy",
        made(lambda: f4([[9, 0, 1, 2, 9], [9] * 5, [7, 4, 5, 6, 7]])[::2, 1:4]),
        kernel=ValueError,
    ),
    thirds(
        "transposed",
        "x.T",
        "as its copy",
        made(lambda: f4([[0, 10], [1, 11], [2, 12]]).T),
        kernel=ValueError,
    ),
    thirds(
        "reversed",
        "x[:, ::-1]",
        "as its copy",
        made(lambda: f4([[2, 1, 0], [12, 11, 10]])[:, ::-1]),
        kernel=ValueError,
    ),
    thirds(
        "broadcast",
        "a row, repeated by stride 0",
        "as its copy",
        made(lambda: np.broadcast_to(f4([0, 1, 2]), (4, 3))),
        kernel=ValueError,
    ),
    thirds(
        "misaligned",
        "from an odd byte on",
        "as its copy",
        made(lambda: _misaligned(RISING)),
        kernel=ValueError,
    ),
    thirds("read-only", "x not writable", "x is only read", made(lambda: _frozen(RISING))),
    thirds(
        "other byte order",
        "big-endian float32",
        "float32 in this machine's order",
        made(lambda: np.array(RISING, ">f4")),
        kernel=TypeError,
    ),
    thirds(
        "x on another GPU",
        "on GPU 1, while GPU 0 is current",
        "computed on GPU 1, and left there",
        on(RISING),
        scope="gpu",
    ),
)

_SHAPES = (
    Clause("number", "shape ()", "1, as a row of one; log 0", on(3), 1, 0, kernel=ValueError),
    thirds("vector", "shape (3,)", "one row", on([5, 6, 7]), kernel=ValueError),
    Clause(
        "axis 0",
        "shape (3, 2), axis=0",
        "down the columns",
        on([[0, 10], [1, 11], [2, 12]], axis=0),
        column(P),
        column(L),
        kernel=None,
    ),
    Clause(
        "axis in the middle",
        "shape (2, 3, 2), axis=1",
        "along that axis",
        on([[[0, 10], [1, 11], [2, 12]]] * 2, axis=1),
        column(P),
        column(L),
        kernel=ValueError,
    ),
    thirds(
        "four axes",
        "shape (2, 1, 2, 3), axis=3",
        "along that axis",
        on([[[[0, 1, 2], [4, 5, 6]]]] * 2, axis=3),
        kernel=ValueError,
    ),
    refused("axis out of range", "axis=2 of 2", ValueError, on(RISING, axis=2), kernel=None),
    refused("no axis", "axis=None", TypeError, on(RISING, axis=None), kernel=None),
    Clause(
        "more than 2³¹ elements",
        "shape (2²⁰ + 1, 2¹¹)",
        "right to the last row: offsets have 64 bits",
        made(lambda: np.broadcast_to(np.float16([0, 1, 2] + [-INF] * 2045), (2**20 + 1, 2048))),
        (*P, *[0] * 2045),
        (*L, *[-INF] * 2045),
        dtype="float16",
        scope="large",
    ),
)

_OUTS = (
    thirds("out", "out=y", "y, with the result", lambda: _out(0, 9)),
    thirds("out is x", "out=x", "right, in place", lambda: _out(0, 0), kernel=ValueError),
    thirds("out overlaps x", "out=x, a row on", "right", lambda: _out(0, 3), kernel=ValueError),
    thirds(
        "out not contiguous",
        "out=y.T",
        "right",
        lambda: (f4(RISING), {"out": np.empty((3, 3), np.float32).T}),
        kernel=ValueError,
    ),
    refused(
        "out of another shape",
        "out of shape (3,)",
        ValueError,
        lambda: (f4(RISING), {"out": np.zeros(3, np.float32)}),
        kernel=ValueError,
    ),
    refused(
        "out of another type",
        "float64 for float32",
        TypeError,
        lambda: (f4(RISING), {"out": np.zeros((3, 3))}),
        kernel=TypeError,
    ),
    refused(
        "out read-only",
        "out not writable",
        ValueError,
        lambda: (f4(RISING), {"out": _frozen(RISING)}),
        kernel=ValueError,
    ),
    refused(
        "out overlaps itself",
        "windows of three, one on",
        ValueError,
        lambda: (f4(RISING), {"out": as_strided(np.zeros(5, np.float32), (3, 3), (4, 4))}),
        "ValueError, for one element would have two values",
        kernel=ValueError,
    ),
    refused(
        "out in another memory",
        "on a GPU, x on the host or another GPU",
        ValueError,
        on(RISING),
        "ValueError naming both places",
        kernel=ValueError,
        scope="gpu",
    ),
)

GROUPS: dict[str, tuple[Clause, ...]] = {
    "Scores": SCORES,
    "Element types": TYPES,
    "Layouts": _LAYOUTS,
    "Shapes and axes": _SHAPES,
    "Where to write": _OUTS,
}
"""The contract, group by group."""

CLAUSES: dict[str, Clause] = {each.name: each for group in GROUPS.values() for each in group}
"""Every clause by name."""

OPERATORS = ("softmax", "log_softmax")


def stated(function):
    """A decorator: the clauses, word by word, below the docstring of an operator."""
    return _with(function, "The contract:", ((c, c.says) for c in CLAUSES.values()))


def stated_for_kernels(function):
    """A decorator: what a launch of a softmax or log-softmax kernel does, below its docstring."""
    takes_out = "out" in inspect.signature(function).parameters
    said = (
        (clause, clause.of_a_kernel)
        for clause in CLAUSES.values()
        if clause.kernel is not None and (takes_out or clause not in _OUTS)
    )
    return _with(function, "The contract, for kernels of softmax and log-softmax:", said)


def _with(function, head: str, said: Iterable[tuple[Clause, str]]):
    lines = [inspect.getdoc(function) or "", "", head, ""]
    lines += [f"- {clause.name} ({clause.given}): {words}." for clause, words in said]
    function.__doc__ = "\n".join(lines)
    return function
