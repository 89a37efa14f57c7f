"""Warp shuffles on a simulated register file, step by step: who reads whom, and what it is
worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softmax_lab.facts import WARP

KINDS = ("down", "up", "xor", "idx")
OPERATORS: dict[str, Callable] = {"max": np.fmax, "sum": np.add}
"""Reduction operators by name; `max` is fmaxf, which prefers a number to NaN."""


@dataclass(frozen=True)
class Shuffle:
    """One shuffle instruction. Per lane: the lane it reads, its value before and the value it
    receives.

    `source[l]` is None for a lane that the mask leaves out (it does not execute). `undefined[l]`
    marks a lane that read a lane outside the mask: CUDA leaves that value undefined, so it is NaN
    here and never a plausible number.
    """

    kind: str
    argument: int
    mask: int
    source: tuple[int | None, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    undefined: tuple[bool, ...]


def shuffle(
    kind: str, values, argument: int, *, mask: int | None = None, width: int | None = None
) -> Shuffle:
    """`__shfl_<kind>_sync` of one float32 register per lane; values has 1 to 32 lanes, a power of
    two.

    `argument` is the offset of down and up, the lane mask of xor, the lane of idx; `width` cuts the
    warp into segments. A source past the end of its segment leaves a lane its own value. `mask`
    None names every lane. Raises ValueError for another kind, number of lanes, width or mask.
    """
    held = np.asarray(values, dtype=np.float32).ravel()
    lanes = held.size
    width = lanes if width is None else width
    mask = (1 << lanes) - 1 if mask is None else mask
    if kind not in KINDS:
        raise ValueError(f"a shuffle is one of {', '.join(KINDS)}, got {kind!r}")
    for name, size in (("lanes", lanes), ("width", width)):
        if not _power_of_two(size) or size > min(WARP, lanes):
            raise ValueError(
                f"{name} must be a power of two up to {min(WARP, max(lanes, 1))}, got {size}"
            )
    if argument < 0:
        raise ValueError(f"offset, lane mask or lane must be 0 or more, got {argument}")
    if not 0 < mask < 1 << lanes:
        raise ValueError(
            f"the mask must name lanes 0 … {lanes - 1} and at least one, got {mask:#x}"
        )

    source, after, undefined = [], held.copy(), []
    for lane in range(lanes):
        if not mask >> lane & 1:
            source.append(None)
            undefined.append(False)
            continue
        source.append(_source(kind, lane, argument, width))
        undefined.append(not mask >> source[-1] & 1)
        after[lane] = np.nan if undefined[-1] else held[source[-1]]
    return Shuffle(
        kind, argument, mask, tuple(source), _floats(held), _floats(after), tuple(undefined)
    )


def _source(kind: str, lane: int, argument: int, width: int) -> int:
    first = lane - lane % width
    match kind:
        case "down":
            return lane + argument if lane % width + argument < width else lane
        case "up":
            return lane - argument if lane % width >= argument else lane
        case "xor":
            return lane ^ argument if (lane ^ argument) < first + width else lane
    return first + argument % width


@dataclass(frozen=True)
class Round:
    """One round of a reduction: a shuffle, then the operator in every lane that executes.

    `values` are the registers after the round, `meaningful` the lanes whose value is the reduction
    of a group of lanes that will be used; `useful` operations are those a tree needs, `executed`
    those the lanes perform. A broadcast has `operator` None and performs none.
    """

    shuffle: Shuffle
    operator: str | None
    values: tuple[float, ...]
    meaningful: tuple[int, ...]
    useful: int
    executed: int


def reduce(
    values, operator: str, *, how: str = "down", mask: int | None = None
) -> tuple[Round, ...]:
    """The rounds of a warp reduction over 2^k lanes, halving the offset: `down` ends with a
    broadcast from lane 0, `butterfly` (xor) needs none. Raises ValueError for another operator or
    way.

    A lane left out of `mask` keeps its register; who reads it receives an undefined value (NaN,
    flagged).
    """
    if operator not in OPERATORS:
        raise ValueError(f"operator is one of {', '.join(OPERATORS)}, got {operator!r}")
    _check_way(how)
    held = np.array(values, dtype=np.float32).ravel()  # a copy: the registers change
    lanes = held.size
    rounds = []
    unknown = np.zeros(lanes, dtype=bool)  # what is undefined once stays so
    offset = lanes // 2
    while offset:
        moved = shuffle("down" if how == "down" else "xor", held, offset, mask=mask)
        acting = [lane for lane in range(lanes) if moved.source[lane] is not None]
        received = np.asarray(moved.after, dtype=np.float32)
        with np.errstate(invalid="ignore"):
            combined = OPERATORS[operator](held[acting], received[acting])
        # fmax would hide an undefined value behind a number; NaN must survive.
        sources = [moved.source[lane] for lane in acting]
        lost = np.asarray(moved.undefined)[acting] | unknown[acting] | unknown[sources]
        held[acting] = np.where(lost, np.nan, combined)
        unknown[acting] = lost
        meaningful = tuple(range(offset)) if how == "down" else tuple(range(lanes))
        rounds.append(Round(moved, operator, _floats(held), meaningful, offset, len(acting)))
        offset //= 2
    if how == "down":
        moved = shuffle("idx", held, 0, mask=mask)
        rounds.append(Round(moved, None, moved.after, tuple(range(lanes)), 0, 0))
    return tuple(rounds)


def steps_per_row(lanes: int, *, how: str = "down") -> int:
    """Shuffles of a row's two reductions (maximum and sum) over 2^k lanes: 2·log2(lanes), and 2
    broadcasts if down."""
    if not _power_of_two(lanes) or lanes > WARP:
        raise ValueError(f"lanes must be a power of two up to {WARP}, got {lanes}")
    _check_way(how)
    return 2 * (lanes.bit_length() - 1) + (2 if how == "down" else 0)


def _check_way(how: str) -> None:
    if how not in ("down", "butterfly"):
        raise ValueError(f"how is down or butterfly, got {how!r}")


def _power_of_two(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0


def _floats(values: np.ndarray) -> tuple[float, ...]:
    return tuple(float(v) for v in values)
