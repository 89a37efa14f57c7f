"""What a run reports: sites, and faults in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

SITE = np.dtype(
    [(name, "<u8") for name in "site space write size requests lanes sectors".split()]
    + [(name, "<u8") for name in "useful_bytes wavefronts taken".split()]
)
FAULT = np.dtype(
    [(name, "<u8") for name in "kind site count size write buffer other".split()]
    + [("offset", "<i8"), ("block", "<u8", 3), ("thread", "<u8", 3)]
)
"""Records as the headers lay them out (state.h: SiteTotals, FaultRecord)."""

GLOBAL, SHARED = 1, 2
NO_BUFFER = 2**32 - 1
VARIABLES = 2**30  # a buffer from here on is a variable of the file (sanitizer.h)
ANOTHER_BLOCK = 2**32 - 2

KINDS = (
    "",
    "out of bounds",
    "misaligned",
    "shared out of bounds",
    "shared race",
    "global race",
    "shared uninitialised",
    "global uninitialised",
    "different barriers",
    "barrier after exit",
    "deadlock",
    "mask names an absent lane",
    "shuffle from an inactive lane",
    "write to constant",
    "caller not in mask",
    "null pointer",
    "double arithmetic by a literal",
    "shuffle width is no power of two up to 32",
)
"""Kinds of fault, in the order of `FaultKind` in sanitizer.h."""

Place = tuple[str, int]
Locate = Callable[[int], Place]


@dataclass(frozen=True)
class Site:
    """One kind of access on one line of the source, or its branch, and what it did.

    `op` is load, store or branch; `space` global, shared or ""; `size` is a lane's bytes.
    For a branch `lanes` met it and `taken` of them went in; `diverged` counts the warps that split.
    Requests, sectors, useful bytes [B], wavefronts are 0 unless the run was in lockstep.
    """

    op: str
    file: str
    line: int
    space: str
    size: int
    requests: int
    lanes: int
    sectors: int
    useful_bytes: int
    wavefronts: int
    taken: int
    diverged: int


@dataclass(frozen=True)
class Fault:
    """A defect: its kind, the first place it happened, and how often; `str()` is a sentence."""

    kind: str
    file: str
    line: int
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    write: bool
    size: int
    count: int
    detail: str

    def __str__(self) -> str:
        access = f" ({'write' if self.write else 'read'} of {self.size} bytes)" if self.size else ""
        times = f", {self.count} times" if self.count > 1 else ""
        detail = f"; {self.detail}" if self.detail else ""
        block, thread = (str(triple).replace(" ", "") for triple in (self.block, self.thread))
        where = f"{self.file}:{self.line}, block {block}, thread {thread}"
        return f"{self.kind}{access} at {where}{detail}{times}"


_SUMS = "requests lanes sectors useful_bytes wavefronts taken diverged".split()


def sites(
    instructions: np.ndarray, branches: np.ndarray, locate: Locate, files: tuple[str, ...]
) -> tuple[Site, ...]:
    """Both tables of a run as Sites in the order of the source.

    Instructions alike on one line are one Site, because a compiler may make two of one.
    """
    out = []
    for row in instructions:
        file, line = locate(int(row["site"]))
        op = "store" if row["write"] else "load"
        space = "shared" if row["space"] == SHARED else "global"
        numbers = [
            int(row[n])
            for n in ("size", "requests", "lanes", "sectors", "useful_bytes", "wavefronts")
        ]
        out.append(Site(op, file, line, space, *numbers, 0, 0))
    for row in branches:
        file, line = files[int(row["site"]) >> 20], int(row["site"]) & 0xFFFFF
        met, lanes, taken, split = (
            int(row[n]) for n in ("requests", "lanes", "taken", "wavefronts")
        )
        out.append(Site("branch", file, line, "", 0, met, lanes, 0, 0, 0, taken, split))
    merged: dict[tuple, Site] = {}
    for site in out:
        key = (
            files.index(site.file) if site.file in files else -1,
            site.line,
            site.op,
            site.space,
            site.size,
        )
        if key in merged:
            sums = {name: getattr(merged[key], name) + getattr(site, name) for name in _SUMS}
            site = replace(site, **sums)
        merged[key] = site
    return tuple(merged[key] for key in sorted(merged))


def faults(rows: np.ndarray, locate: Locate, name: Callable[[int], str]) -> tuple[Fault, ...]:
    """The faults of a run in the order in which they first happened; `name` names a buffer."""
    out = []
    for row in rows:
        kind = KINDS[int(row["kind"])]
        file, line = locate(int(row["site"]))
        out.append(
            Fault(
                kind,
                file,
                line,
                tuple(map(int, row["block"])),
                tuple(map(int, row["thread"])),
                bool(row["write"]),
                int(row["size"]),
                int(row["count"]),
                _detail(kind, row, name),
            )
        )
    return tuple(out)


def _detail(kind: str, row, name: Callable[[int], str]) -> str:
    offset, other, buffer = int(row["offset"]), int(row["other"]), int(row["buffer"])
    where = name(buffer) if buffer != NO_BUFFER else ""
    if kind == "out of bounds" and buffer == NO_BUFFER:
        return "there is no buffer"
    if kind in ("out of bounds", "shared out of bounds"):
        if offset < 0 and kind == "out of bounds":
            return f"{-offset} bytes before the start of {where}"
        return f"{max(offset, 0)} bytes after the end of {where}"
    if kind == "misaligned":
        return f"byte {offset} of {where} is not a multiple of {int(row['size'])}"
    if kind in ("shared race", "global race"):
        against = "another block" if other == ANOTHER_BLOCK else f"thread {other} of the block"
        return f"byte {offset} of {where}, against {against}, with no barrier between"
    if kind in ("shared uninitialised", "global uninitialised"):
        return f"byte {offset} of {where}"
    if kind == "barrier after exit":
        return f"{other} threads had returned"
    if kind == "deadlock":
        return f"it waits for the lanes of mask {other:#010x}, which cannot all come"
    if kind in ("mask names an absent lane", "shuffle from an inactive lane"):
        return f"lane {other}"
    return ""
