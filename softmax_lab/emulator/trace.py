"""The trace of one warp: what it did, instruction by instruction, with every lane's values.

`STEP` is the one format of it, for the driver and for a page: little-endian records of 1320 bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softmax_lab.emulator.report import GLOBAL, SHARED, Locate

STEP = np.dtype(
    [
        (name, "<u4")
        for name in "op space type size mask site buffer sectors wavefronts argument".split()
    ]
    + [("address", "<i8", 32), ("before", "u1", (32, 16)), ("after", "u1", (32, 16))]
)
"""A step as the headers lay it out (state.h: Step): up to 16 bytes a lane before and after."""
OPS = ("", "load", "store", "atomic", "shuffle", "warp barrier", "vote", "barrier")
"""Kinds of step, in the order of `StepOp` in trace.h."""
VALUES = ("<u4", "<f2", "bfloat16", "<f4", "<f8", "<i4")
"""How a step's values are read, in the order of `Type` in state.h."""


@dataclass(frozen=True)
class Step:
    """One instruction of the traced warp; tuples have 32 lanes, None for one that took no part.

    `array` names the argument or the shared variable that memory belongs to; `address` is the byte
    within it, or the lane a shuffle reads from. `before` and `after` hold each lane's value: of
    memory for a load or a store, of the register for a shuffle; a vector is a tuple. `asdict()` of
    it is plain JSON.
    """

    op: str
    file: str
    line: int
    mask: int
    space: str
    array: str
    size: int
    address: tuple[int | None, ...]
    sectors: int
    wavefronts: int
    argument: int
    before: tuple
    after: tuple


def steps(rows: np.ndarray, locate: Locate, name: Callable[[int], str]) -> tuple[Step, ...]:
    """The trace of a run."""
    return tuple(_step(row, locate, name) for row in rows)


def _step(row, locate: Locate, name: Callable[[int], str]) -> Step:
    op, size, mask = OPS[int(row["op"])], int(row["size"]), int(row["mask"])
    file, line = locate(int(row["site"]))
    active = [bool(mask >> lane & 1) for lane in range(32)]
    moves = op not in ("barrier", "warp barrier")
    kind = VALUES[int(row["type"])]

    def values(field: str) -> tuple:
        if not moves:
            return (None,) * 32
        return tuple(
            _value(row[field][lane], kind, size) if active[lane] else None for lane in range(32)
        )

    return Step(
        op=op,
        file=file,
        line=line,
        mask=mask,
        space={GLOBAL: "global", SHARED: "shared"}.get(int(row["space"]), ""),
        array=name(int(row["buffer"])) if op in ("load", "store", "atomic") else "",
        size=size,
        address=tuple(int(row["address"][k]) if active[k] and moves else None for k in range(32)),
        sectors=int(row["sectors"]),
        wavefronts=int(row["wavefronts"]),
        argument=int(row["argument"]),
        before=values("before"),
        after=values("after"),
    )


def _value(raw: np.ndarray, kind: str, size: int):
    data = raw[: min(size, 16)].tobytes()
    if kind == "bfloat16":
        found = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    else:
        item = np.dtype(kind).itemsize
        found = np.frombuffer(data, kind if len(data) % item == 0 else "u1")
    return found[0].item() if len(found) == 1 else tuple(found.tolist())
