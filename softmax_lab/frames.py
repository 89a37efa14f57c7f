"""Small drawings that explain one access or one idea; their numbers come from the models."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from softmax_lab import coalescing, reference
from softmax_lab.facts import ITEMSIZE, SECTOR, WARP
from softmax_lab.svg import HATCH, LINE, Svg, colour, drawing, rect, text
from softmax_lab.units import fill, number

FLOATS = SECTOR // ITEMSIZE["float32"]
"""Floats of a sector: a box of 8."""

CELL = 20
"""Side of a lane's square and of a float in a sector's box [user units]."""

_PER_ROW, _BOX, _STEP_Y = 4, 178, 44
_USEFUL = "blue"


def lanes_of_sectors(addresses: Sequence[int], size: int = 4) -> dict[int, list[tuple[int, int]]]:
    """Who touches what: sector → [(lane, first float in the sector)], by ascending sector."""
    touched: dict[int, list[tuple[int, int]]] = {}
    for lane, address in enumerate(addresses):
        touched.setdefault(address // SECTOR, []).append((lane, address % SECTOR // size))
    return dict(sorted(touched.items()))


def thread_per_row(cols: int, column: int = 0, lanes: int = WARP) -> Svg:
    """Sectors of one warp's load: lane l reads element (l, `column`) of rows of `cols` floats."""
    if not 0 <= column < cols:
        raise ValueError(f"column must be in 0 … {cols - 1}, got {column}")
    size = ITEMSIZE["float32"]
    addresses = [size * (lane * cols + column) for lane in range(lanes)]
    moved = coalescing.request(addresses, size)
    touched = lanes_of_sectors(addresses, size)
    note = fill(
        "Rows of {cols} float{s}: {lanes} lanes use {useful} B and {sectors} sectors move "
        "{moved} B: <b>{share:%}</b> is used.",
        cols=cols,
        s="" if cols == 1 else "s",
        lanes=lanes,
        useful=moved.useful_bytes,
        sectors=len(moved.sectors),
        moved=moved.moved_bytes,
        share=moved.efficiency,
    )
    offset = f" + {column}" if column else ""
    alt = note.replace("<b>", "").replace("</b>", "")
    body = [
        text(8, 22, f"one warp, one load: lane l reads x[l · {number(cols)}{offset}]"),
        *warp_row(8, 34, lanes),
    ]
    body.append(
        text(
            8,
            90,
            "sectors that move, in memory order: used floats solid, unused hatched",
            muted=True,
        )
    )
    for slot in range(WARP):
        x, y = 8 + slot % _PER_ROW * _BOX, 98 + slot // _PER_ROW * _STEP_Y
        if slot < len(touched):
            users = list(touched.values())[slot]
            body += sector_box(x, y + 18, {place for _, place in users})
            body.append(text(x, y + 14, lane_list(lane for lane, _ in users), size=15))
        else:
            body.append(rect(x, y + 18, FLOATS * CELL, CELL, "none", LINE, stroke_dasharray="2 4"))
    height = 98 + WARP // _PER_ROW * _STEP_Y + 4
    return drawing(height, f"Sectors of one load, rows of {cols} floats", alt, body, note=note)


def scores(x: Sequence[float]) -> Svg:
    """Scores beside the probabilities that softmax makes of them."""
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 1 or not 1 <= x.size <= 8 or not np.isfinite(x).all():
        raise ValueError(f"scores draws 1 to 8 finite numbers, got an array of shape {x.shape}")
    y = reference.softmax(x)
    alt = (
        "Scores "
        + ", ".join(map(number, x))
        + " become probabilities "
        + ", ".join(f"{p:.3f}" for p in y)
        + "."
    )
    body = [
        text(180, 24, "scores", anchor="middle"),
        text(540, 24, "probabilities", anchor="middle"),
    ]
    body += _bars(20, 320, x, [number(v) for v in x], "sky") + _bars(
        380, 320, y, [f"{p:.3f}" for p in y], "blue"
    )
    body.append(
        '<path d="M346 130h20m-8 -7l9 7l-9 7" fill="none" stroke="currentColor" stroke-width="2"/>'
    )
    return drawing(248, "Softmax of a few scores", alt, body)


def _bars(x: float, width: float, values: np.ndarray, labels: list[str], name: str) -> list[str]:
    top, bottom = max(values.max(), 0.0), min(values.min(), 0.0)
    scale = 150 / ((top - bottom) or 1)
    zero, pitch = 62 + top * scale, width / len(values)
    out = []
    for i, (value, label) in enumerate(zip(values, labels, strict=True)):
        left, height = x + i * pitch + 0.15 * pitch, abs(value) * scale
        above = value >= 0
        out.append(rect(left, zero - height if above else zero, 0.7 * pitch, height, colour(name)))
        out.append(
            text(
                left + 0.35 * pitch,
                zero - height - 8 if above else zero + height + 18,
                label,
                anchor="middle",
            )
        )
    return [*out, f'<path d="M{x} {zero:g}h{width}" stroke="currentColor"/>']


def warp_row(x: float, y: float, lanes: int) -> list[str]:
    """A warp as a row of 32 squares at (x, y), the first `lanes` of them active."""
    squares = [rect(x + 22 * lane, y, CELL, CELL, colour(_USEFUL)) for lane in range(lanes)]
    idle = [rect(x + 22 * lane, y, CELL, CELL, "none", LINE) for lane in range(lanes, WARP)]
    ends = [text(x, y + 36, "lane 0", size=15)]
    if lanes > 4:
        ends.append(text(x + 22 * lanes - 2, y + 36, f"lane {lanes - 1}", anchor="end", size=15))
    return squares + idle + ends


def sector_box(x: float, y: float, used: set[int]) -> list[str]:
    """A sector as a box of 8 floats at (x, y): `used` places solid, the others hatched."""
    cells = []
    for place in range(FLOATS):
        ground = colour(_USEFUL) if place in used else HATCH
        cells.append(rect(x + CELL * place, y, CELL, CELL, ground, LINE))
    return [*cells, rect(x, y, CELL * FLOATS, CELL, "none", "currentColor", stroke_width="1.5")]


def lane_list(lanes) -> str:
    """`lane 3` or `lanes 8–15`: consecutive numbers are written as ranges."""
    lanes = sorted(lanes)
    runs = []
    for _, run in groupby(enumerate(lanes), lambda pair: pair[1] - pair[0]):
        run = [lane for _, lane in run]
        runs.append(f"{run[0]}" if len(run) == 1 else f"{run[0]}–{run[-1]}")
    return ("lane " if len(lanes) == 1 else "lanes ") + ", ".join(runs)
