"""Closed forms of kernels in which a block's threads share rows, phase by phase (see `cost`)."""

from __future__ import annotations

from softmax_lab.cost import (
    LOAD_ROWS,
    LOAD_WARPS,
    ONLINE_EXECUTED,
    ONLINE_TEXTBOOK,
    SHARE,
    STORE_ROWS,
    STORE_WARPS,
    WARP_EXECUTED,
    WARP_TEXTBOOK,
    WRITE_TEXTBOOK,
    Phase,
)


def _tree(each: int, level: int) -> dict[str, str]:
    """What each thread of a row has is put into shared memory, halved until one is left and read by
    all: `each` accesses of a thread for that, `level` of one that is active in a round.

    T/2, …, 32 threads are active, whole warps, T/W - 1 of them in all, then five times a part of
    the first warp, which the guard splits.
    """
    accesses = f"M*({each}*ceil(T, W) + {level}*(ceil(T, W) - 1 + lg(W)))"
    return {
        "barriers": "M*(lg(T) + 1)",
        "shared_requests": accesses,
        "shared_wavefronts": accesses,  # neighbours use neighbouring banks, or all the same word
        "branches": "M*ceil(T, W)*lg(T)",
        "diverged": "M*lg(W)",
    }


_VALUES, _PAIRS = _tree(each=2, level=3), _tree(each=4, level=4)
"""Of values a round loads two and stores one; of (max, sum) pairs it loads the other and stores the
merged."""

_GUARD = Phase("guard", {"branches": "M*ceil(T, W)"})

_MAXIMA = Phase("maxima of the threads", LOAD_WARPS | {"compare": "M*N"})
_SUMS = Phase("sums of the threads", LOAD_WARPS | {"sub": "M*N", "exp": "M*N", "add": "M*N"})
_WRITE = Phase("write", LOAD_WARPS | SHARE | STORE_WARPS)

TREE_EXECUTED = (
    _GUARD,
    _MAXIMA,
    Phase("maximum of the row", {"compare": "M*(T - 1)"} | _VALUES),
    Phase("before the reuse", {"barriers": "M"}),
    _SUMS,
    Phase("sum of the row", {"add": "M*(T - 1)"} | _VALUES),
    _WRITE,
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

# P rows of a block meet at its barriers, whether they are there or not: P*ceil(M, P) rows in all.


def _fold(operation: str) -> dict[str, str]:
    """Each warp reduces by shuffles, lane 0 puts the result into shared memory, the row's first
    thread folds them one by one and all read what it leaves there."""
    return {
        operation: "P*ceil(M, P)*(T*lg(W) + ceil(T, W) - 1)",
        "shuffles": "P*ceil(M, P)*ceil(T, W)*lg(W)",
        "barriers": "2*ceil(M, P)",
        "shared_requests": "P*ceil(M, P)*3*ceil(T, W)",
        "shared_wavefronts": "P*ceil(M, P)*3*ceil(T, W)",
        "branches": "P*ceil(M, P)*2*ceil(T, W)",
        "diverged": "P*ceil(M, P)*(ceil(T, W) + 1)",
    }


FOLD_EXECUTED = (
    _MAXIMA,
    Phase("maximum of the row", _fold("compare")),
    _SUMS,
    Phase("sum of the row", _fold("add")),
    _WRITE,
)
"""`block_warp`: three passes without a guard; every lane of a shuffle takes part, useful or not."""


def _merges(times: str, updates: str | None = None) -> dict[str, str]:
    """The operator of (max, sum) pairs, `times` times; `updates` of them find a larger maximum."""
    work = dict.fromkeys(("compare", "sub", "exp", "mul", "add"), times)
    return work if updates is None else work | {"updates": updates}


_BUTTERFLY = {"shuffles": "2*M*lg(W)"}
"""Each of its rounds moves two words."""

MERGE_EXECUTED = (
    Phase("guard", {"branches": "P*ceil(M, P)"}),
    Phase("online pass", LOAD_WARPS | _merges("M*N", "R_T")),
    Phase("merge of the lanes", _merges("M*W*lg(W)", "R_X") | _BUTTERFLY),
    Phase("contract", {"compare": "M*W"}),
    _WRITE,
)
"""`warp_merge`: elements and lanes meet by the same operator; R_X of the lanes' merges find the
larger maximum in their partner (`online.merge_rises`)."""

MERGE_TEXTBOOK = (
    ONLINE_TEXTBOOK[0],
    Phase("merge of the lanes", _merges("M*(W - 1)") | _BUTTERFLY),
    WRITE_TEXTBOOK,
)
"""The useful work: a step that multiplies only where the maximum rises, and W - 1 merges."""

(_, _ONLINE, *_) = WARP_EXECUTED["branch"]

BLOCK_ONLINE_EXECUTED = (
    _GUARD,
    _ONLINE,
    Phase("merge of the threads", _merges("M*(T - 1)", "R_Y") | _PAIRS),
    Phase("contract", {"compare": "M*T"}),
    _WRITE,
)
"""`block_online`: the pass of a lane in every thread, then one tree of pairs, in which R_Y merges
find the larger maximum in the second of the two."""

BLOCK_ONLINE_TEXTBOOK = (
    ONLINE_TEXTBOOK[0],
    Phase("merge of the threads", _merges("M*(T - 1)")),
    WRITE_TEXTBOOK,
)
"""The useful work: T - 1 merges, and R is that of one walk over the row."""

# log-softmax: the same, and one logarithm a row instead of an exponential and a division an
# element.

_DIFFERENCES = {"sub": "2*M*N"}
_LOG_THREAD = (
    Phase("logarithm", {"log": "M"}),
    Phase("write", LOAD_ROWS | _DIFFERENCES | STORE_ROWS),
)
_LOG_EXECUTED = (
    Phase("logarithm", {"log": "M*T"}),
    Phase("write", LOAD_WARPS | _DIFFERENCES | STORE_WARPS),
)
_LOG_TEXTBOOK = (
    Phase("logarithm", {"log": "M"}),
    Phase("write", _DIFFERENCES | {"load_bytes": "E*M*N", "store_bytes": "E*M*N"}),
)

LOG_THREAD_EXECUTED = (*ONLINE_EXECUTED["branch"][:-1], *_LOG_THREAD)
LOG_THREAD_TEXTBOOK = (*ONLINE_TEXTBOOK[:-1], *_LOG_TEXTBOOK)
LOG_WARP_EXECUTED = (*WARP_EXECUTED["branch"][:-1], *_LOG_EXECUTED)
LOG_WARP_TEXTBOOK = (*WARP_TEXTBOOK[:-1], *_LOG_TEXTBOOK)
LOG_BLOCK_EXECUTED = (*BLOCK_ONLINE_EXECUTED[:-1], *_LOG_EXECUTED)
LOG_BLOCK_TEXTBOOK = (*BLOCK_ONLINE_TEXTBOOK[:-1], *_LOG_TEXTBOOK)
"""Every thread of a row takes the logarithm of its sum, where one of them would do."""

FOUR_ROWS_EXECUTED = (MERGE_EXECUTED[0], *WARP_EXECUTED["branch"][1:])
"""`warp` with several rows to a block: the guard of `warp_merge`, the rest as it was."""

FORMS = {
    "tree": (TREE_EXECUTED, THREE_PASSES_TEXTBOOK),
    "fold": (FOLD_EXECUTED, THREE_PASSES_TEXTBOOK),
    "merge": (MERGE_EXECUTED, MERGE_TEXTBOOK),
    "online": (BLOCK_ONLINE_EXECUTED, BLOCK_ONLINE_TEXTBOOK),
    "four rows": (FOUR_ROWS_EXECUTED, WARP_TEXTBOOK),
    "log, thread": (LOG_THREAD_EXECUTED, LOG_THREAD_TEXTBOOK),
    "log, warp": (LOG_WARP_EXECUTED, LOG_WARP_TEXTBOOK),
    "log, block": (LOG_BLOCK_EXECUTED, LOG_BLOCK_TEXTBOOK),
}
"""The two closed forms, as executed and as in the textbook, of each way to share a row."""
