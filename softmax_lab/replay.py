"""A real warp beside the models: each traced step, and what `shuffle` or `coalescing` say of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softmax_lab import coalescing, shuffle

OPERATORS = ("max", "sum")
"""Reductions of a softmax kernel in the order in which a warp meets them."""


@dataclass(frozen=True)
class Replayed:
    """One step of a traced warp and the model's answer to it: a `Request` for a load or a store, a
    reduction's `Round` for a shuffle.

    `step` is an emulator's `Step`; `operator` names the reduction, `place` counts its rounds from
    1, of `places`. `differing` are the lanes whose value or partner is not the model's, compared
    bit for bit.
    """

    step: Any
    request: coalescing.Request | None = None
    round: shuffle.Round | None = None
    operator: str = ""
    place: int = 0
    places: int = 0
    differing: tuple[int, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether model and run say the same: sectors of an access, all lanes of a shuffle."""
        if self.request is not None:
            return len(self.request.sectors) == self.step.sectors
        return not self.differing


def replay(steps: Iterable[Any], operators: Sequence[str] = OPERATORS) -> tuple[Replayed, ...]:
    """Every step of a warp's trace (`emulator.run(…, trace=…).trace`) beside its model.

    A down-shuffle reduction is simulated from the registers that its first shuffle finds: what is
    compared is the order of additions, not the exponentials before them. Raises ValueError for a
    trace whose shuffles are not `operators` in turn, each ending in a broadcast.
    """
    steps = tuple(steps)
    rounds = iter(_rounds([step for step in steps if step.op == "shuffle"], operators))
    out = []
    for step in steps:
        if step.op == "shuffle":
            out.append(_beside(step, *next(rounds)))
        elif step.op in ("load", "store"):
            addresses = [address for address in step.address if address is not None]
            out.append(Replayed(step, coalescing.request(addresses, step.size)))
        else:
            out.append(Replayed(step))
    return tuple(out)


Place = tuple[shuffle.Round, str, int, int]


def _rounds(moves: list[Any], operators: Sequence[str]) -> list[Place]:
    out: list[Place] = []
    for operator in operators:
        if len(out) == len(moves):
            break  # a warp that left early
        rounds = shuffle.reduce(moves[len(out)].before, operator)
        out += [(each, operator, k, len(rounds)) for k, each in enumerate(rounds, start=1)]
    if len(out) != len(moves):
        raise ValueError(
            f"a trace of {', '.join(operators)} has {len(out)} shuffles, got {len(moves)}"
        )
    return out


def _beside(step: Any, each: shuffle.Round, operator: str, place: int, places: int) -> Replayed:
    model = each.shuffle
    wrong = _bits(step.before) != _bits(model.before)
    wrong |= _bits(step.after) != _bits(model.after)
    wrong |= np.array([a != b for a, b in zip(step.address, model.source, strict=True)])
    differing = tuple(int(lane) for lane in np.flatnonzero(wrong))
    return Replayed(step, None, each, operator, place, places, differing)


def _bits(values: Sequence[float]) -> np.ndarray:
    """float32 values as the integers they are made of: 0 differs from -0, and a NaN equals
    itself."""
    return np.array(values, dtype=np.float32).view(np.uint32)
