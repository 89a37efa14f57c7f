"""Closed forms of kernels in which a block's threads share rows, phase by phase (see `cost`)."""

from __future__ import annotations

from softmax_lab.cost import LOAD_WARPS, SHARE, STORE_WARPS, WRITE_TEXTBOOK, Phase


def _tree(operation: str) -> dict[str, str]:
    """T values, one a thread, put into shared memory, halved until one is left and read by all.

    A level takes two loads and a store: of T/2, …, 32 threads, whole warps, T/W - 1 of them in all,
    then five times of a part of the first warp, which the guard splits.
    """
    accesses = "M*(2*ceil(T, W) + 3*(ceil(T, W) - 1 + lg(W)))"
    return {
        operation: "M*(T - 1)",
        "barriers": "M*(lg(T) + 1)",
        "shared_requests": accesses,
        "shared_wavefronts": accesses,  # neighbours use neighbouring banks, or all the same word
        "branches": "M*ceil(T, W)*lg(T)",
        "diverged": "M*lg(W)",
    }


_GUARD = Phase("guard", {"branches": "M*ceil(T, W)"})

TREE_EXECUTED = (
    _GUARD,
    Phase("maxima of the threads", LOAD_WARPS | {"compare": "M*N"}),
    Phase("maximum of the row", _tree("compare")),
    Phase("before the reuse", {"barriers": "M"}),
    Phase("sums of the threads", LOAD_WARPS | {"sub": "M*N", "exp": "M*N", "add": "M*N"}),
    Phase("sum of the row", _tree("add")),
    Phase("write", LOAD_WARPS | SHARE | STORE_WARPS),
)
"""`block_tree`: three passes, and after the first two of them a tree in shared memory."""

THREE_PASSES_TEXTBOOK = (
    Phase(
        "maxima of the threads",
        {"compare": "M*(N - min(N, T))", "load_bytes": "E*M*N"},
    ),
    Phase("maximum of the row", {"compare": "M*(min(N, T) - 1)"}),
    Phase(
        "sums of the threads",
        {"sub": "M*N", "exp": "M*N", "add": "M*(N - min(N, T))", "load_bytes": "E*M*N"},
    ),
    Phase("sum of the row", {"add": "M*(min(N, T) - 1)"}),
    WRITE_TEXTBOOK,
)
"""The useful work is that of one thread, N - 1 comparisons and additions a row: min(N, T) threads
have a first element, and meeting costs one step less than there are of them."""
