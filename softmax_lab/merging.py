"""One operator over (max, sum) pairs, from elements to lanes to a block: who merges whom, and where
NaN is born."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softmax_lab.arguments import without_mask
from softmax_lab.facts import WARP
from softmax_lab.online import LOWEST, merge_all

Pair = tuple[float, float]

TREES = {
    "butterfly": "a warp's butterfly, 16 first",
    "neighbours": "a warp's butterfly, 1 first",
    "fold": "one lane takes all",
    "shared": "a block's tree in shared memory",
    "warps": "a block's warps, then one warp",
}
"""Ways to meet, by name. The last two have the 256 threads of `block_online` and `block_warp`."""

BLOCK = 256
STRIDES = (16, 8, 4, 2, 1)


@dataclass(frozen=True)
class Round:
    """All threads do the same once: merge an element (`enter`), merge with another thread's pair
    (`merge`), or take over another's pair (`move`).

    `source[t]` is the column that enters in thread t, or the thread that t reads; None where t does
    nothing. `pairs` are the threads' pairs after it, `matter` the threads whose pair is read again,
    or is a result. `alike` are threads that merged two maxima of the same infinity, out of which a
    NaN is `born` unless the merge is guarded.
    """

    kind: str
    stride: int
    source: tuple[int | None, ...]
    pairs: tuple[Pair, ...]
    matter: tuple[int, ...]
    alike: tuple[int, ...]
    born: tuple[int, ...]


def threads(tree: str) -> int:
    """Threads that share a row in this tree. Raises ValueError for a tree that is none of TREES."""
    if tree not in TREES:
        raise ValueError(f"a tree is one of {', '.join(TREES)}, got {tree!r}")
    return BLOCK if tree in ("shared", "warps") else WARP


def meet(
    row, tree: str = "butterfly", *, start: float = LOWEST, guarded: bool = False
) -> tuple[Round, ...]:
    """A row (cols,) dealt to threads and put together: thread t merges columns t, t + T, …, as
    pairs (x, 1), into (start, 0), and then the threads meet.

    As published, `start` is -inf and no merge is guarded. Raises ValueError for another tree and
    for a row that holds nothing or NaN.
    """
    count = threads(tree)
    x = np.asarray(without_mask("row", row), dtype=np.float32).ravel()
    if not x.size or np.isnan(x).any():
        raise ValueError(f"a row has one number or more, none of them NaN, got {x.size} numbers")
    empty = np.array([start, 0], dtype=np.float32)
    held = np.tile(empty, (count, 1))  # (threads, 2)
    rounds = []

    def go(kind: str, stride: int, source: Sequence[int | None], other: np.ndarray) -> None:
        nonlocal held
        who = [t for t, s in enumerate(source) if s is not None]
        mine, theirs = held[who], other[[source[t] for t in who]]
        held, alike = held.copy(), []
        if kind == "move":
            held[who] = theirs
        else:
            held[who] = np.transpose(merge_all(mine.T, theirs.T, guarded=guarded))
            known = ~np.isnan(mine[:, 1]) & ~np.isnan(theirs[:, 1])
            same = known & np.isinf(mine[:, 0]) & (mine[:, 0] == theirs[:, 0])
            alike = [t for t, yes in zip(who, same, strict=True) if yes]
        reads = {*who, *(range(stride + 1, count) if tree == "fold" else ())}
        matter = range(count) if kind == "enter" else sorted(reads)
        born = tuple(t for t in alike if np.isnan(held[t, 1]))
        pairs = tuple(map(tuple, held.tolist()))
        rounds.append(Round(kind, stride, tuple(source), pairs, tuple(matter), tuple(alike), born))

    elements = np.stack([x, np.ones_like(x)], axis=1)
    for first in range(0, x.size, count):
        places = range(first, first + count)
        go("enter", first, [i if i < x.size else None for i in places], elements)
    if tree == "warps":
        for stride in STRIDES:
            go("merge", stride, [t ^ stride for t in range(count)], held)
        heads = [t * WARP for t in range(count // WARP)]  # lane 0 of each warp brings its pair
        spare = [count] * (WARP - len(heads))  # the other lanes have nothing to bring
        go("move", WARP, heads + spare + [None] * (count - WARP), np.vstack([held, empty]))
        for stride in STRIDES:
            source = [t ^ stride if t < WARP else None for t in range(count)]
            go("merge", stride, source, held)
    else:
        for stride, source in _meetings(tree, count):
            go("merge", stride, source, held)
    return tuple(rounds)


def _meetings(tree: str, count: int) -> list[tuple[int, list[int | None]]]:
    """(stride, whom each thread reads) of each round."""
    if tree == "fold":
        return [(t, [t, *[None] * (count - 1)]) for t in range(1, count)]
    if tree == "shared":
        halves = [count >> k for k in range(1, count.bit_length())]
        return [(h, [t + h if t < h else None for t in range(count)]) for h in halves]
    strides = STRIDES if tree == "butterfly" else STRIDES[::-1]
    return [(s, [t ^ s for t in range(count)]) for s in strides]


def lost(pair: Pair) -> bool:
    """Whether the sum of a pair is NaN: it is never a number again."""
    return math.isnan(pair[1])


def result(rounds: Sequence[Round]) -> Pair:
    """What thread 0 ends with, which is what the row gets."""
    return rounds[-1].pairs[0]


def birth(rounds: Sequence[Round]) -> int | None:
    """The first round in which a NaN is born that reaches thread 0; None where the row survives."""
    if not lost(result(rounds)):
        return None
    return next(k for k, each in enumerate(rounds) if each.born)


def lost_lengths(tree: str, *, start: float = -math.inf, guarded: bool = False) -> tuple[int, ...]:
    """The lengths N whose rows come out as NaN though no score is masked, of 1 up to the number of
    threads; beyond it no thread is empty."""
    row = np.zeros(threads(tree), dtype=np.float32)
    lengths = range(1, row.size + 1)
    return tuple(
        n for n in lengths if lost(result(meet(row[:n], tree, start=start, guarded=guarded)))
    )


@dataclass(frozen=True)
class Laws:
    """How many of `trials` random pairs or triples obey a law of the operator to the last bit."""

    trials: int
    seed: int
    commute: int
    associate: int
    furthest: float  # between (a b) c and a (b c) [share of the sum]


def laws(trials: int = 2000, seed: int = 0) -> Laws:
    """The merge on random float32 triples: maxima standard normal, sums uniform in 1 … 9."""
    rng = np.random.default_rng(seed)
    maxima = rng.standard_normal((3, trials)).astype(np.float32)
    sums = (1 + 8 * rng.random((3, trials))).astype(np.float32)
    a, b, c = zip(maxima, sums, strict=True)
    ab, ba = merge_all(a, b), merge_all(b, a)
    one, other = merge_all(ab, c), merge_all(a, merge_all(b, c))
    commute = (ab[0] == ba[0]) & (ab[1] == ba[1])
    associate = (one[0] == other[0]) & (one[1] == other[1])
    furthest = float((np.abs(one[1] - other[1]) / one[1]).max())
    return Laws(trials, seed, int(commute.sum()), int(associate.sum()), furthest)
