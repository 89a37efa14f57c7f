"""Closed forms of y = A x: what each kernel of the family costs, phase by phase (see `cost`)."""

from __future__ import annotations

from softmax_lab.cost import GUARD, LOAD_ROWS, LOAD_WARPS, Phase

_PRODUCTS = Phase("products", {"mul": "M*N", "add": "M*N"})

_THREAD = (
    GUARD,
    Phase("A", LOAD_ROWS),
    Phase(
        "x",
        {
            "load_bytes": "E*M*N",
            "load_useful_bytes": "E*ceil(M, W)*N",
            "load_requests": "ceil(M, W)*N",
            "load_sectors": "ceil(M, W)*N",
        },
    ),
    _PRODUCTS,
    Phase(
        "store",
        {
            "store_bytes": "E*M",
            "store_useful_bytes": "E*M",
            "store_requests": "ceil(M, W)",
            "store_sectors": "ceil(E*M, 32)",
        },
    ),
)
"""A thread walks a row of A; all lanes of a warp want the same element of x at a time."""

_WARPS = Phase("guard", {"branches": "ceil(M, P)*P"})
_LANES = Phase("sum of the lanes", {"add": "M*W*lg(W)", "shuffles": "M*(lg(W) + 1)"})
_BY_LANE_0 = Phase(
    "store",
    {
        **dict.fromkeys(("store_bytes", "store_useful_bytes"), "E*M"),
        **dict.fromkeys(("store_requests", "store_sectors", "branches", "diverged"), "M"),
    },
)
"""`if (lane == 0)` splits every warp, and its one float is a request and a sector of its own."""

_WARP = (
    _WARPS,
    Phase("A", LOAD_WARPS),
    Phase("x", LOAD_WARPS | {"load_sectors": "M*ceil(E*N, 32)"}),
    _PRODUCTS,
    _LANES,
    _BY_LANE_0,
)
"""A warp walks a row of A and all of x."""

_BY_FOUR = {
    **dict.fromkeys(("load_bytes", "load_useful_bytes"), "E*M*N"),
    "load_requests": "Q4(M, N)",
}
_VEC4 = (
    _WARPS,
    Phase("aligned?", {"branches": "M"}),
    Phase("A", _BY_FOUR | {"load_sectors": "V4(M, N)"}),
    Phase("x", _BY_FOUR | {"load_sectors": "X4(M, N)"}),
    _PRODUCTS,
    _LANES,
    _BY_LANE_0,
)
"""Rows that start at 16 bytes go four floats a lane and their last N % 4 floats in one request;
other rows as in `_WARP`."""

EXECUTED = {"thread": _THREAD, "warp": _WARP, "vec4": _VEC4}
"""The kernels as written, by who walks a row. Matrix and vectors start at a sector's boundary."""


def _textbook(*lanes: Phase) -> tuple[Phase, ...]:
    return (
        Phase("A", {"load_bytes": "E*M*N"}),
        Phase("x", {"load_bytes": "E*N"}),
        _PRODUCTS,
        *lanes,
        Phase("store", {"store_bytes": "E*M"}),
    )


TEXTBOOK = {
    1: _textbook(),
    32: _textbook(Phase("sum of the lanes", {"add": "M*(W - 1)", "shuffles": "M*lg(W)"})),
}
"""The useful work, by threads of a row: 2MN FLOPs, and A, x and y moved once; lanes that share a
row add W - 1 times and hand the sum to nobody."""
