"""The coalescing microscope: who reads which byte at one instant, and the sectors that move for
it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from softmax_lab import coalescing
from softmax_lab.counts import Counts
from softmax_lab.facts import SECTOR, WARP
from softmax_lab.frames import CELL, FLOATS, lane_list, lanes_of_sectors, warp_row
from softmax_lab.prose import Sentence, html, plain, say
from softmax_lab.svg import HATCH, LINE, Svg, colour, drawing, rect, text, tint
from softmax_lab.units import fill, number

_BYTE = CELL * FLOATS / SECTOR  # user units: a sector's box is as wide as eight floats everywhere
_PER_ROW, _PITCH, _STEP_Y, _TOP = 4, 178, 44, 98
_SIDE = 46  # of a matrix cell
_COLOURS = ("blue", "green", "purple", "yellow")  # none that a level of the memory has


def look(stride: int, offset: int, size: int, counted: Counts | None = None) -> Svg:
    """The sectors of one load in which lane l reads `size` bytes at element `offset + l · stride`.

    The picture is the model's; `counted` are the counts of a real run, said beside it.
    """
    addresses = [size * (offset + lane * stride) for lane in range(WARP)]
    moved = coalescing.request(addresses, size)
    touched = lanes_of_sectors(addresses, size)
    words = fill(
        "Lane l reads element {where}, {size} bytes each. The lanes ask for {useful} different "
        "bytes; **{sectors} sector{s}** move{v}, {moved} bytes: **{share:%}** is used. Counted by "
        "running it: {counted}.",
        where=_index(stride, offset),
        size=size,
        useful=moved.useful_bytes,
        sectors=len(moved.sectors),
        s="" if len(moved.sectors) == 1 else "s",
        v="s" if len(moved.sectors) == 1 else "",
        moved=moved.moved_bytes,
        share=moved.efficiency,
        counted=number(counted and counted.load_sectors),
    )
    body = [text(8, 22, f"one warp, one load: lane l reads x[{_index(stride, offset)}]")]
    body += warp_row(8, 34, WARP)
    body.append(
        text(
            8,
            90,
            "sectors that move, in memory order: used bytes solid, unused hatched",
            muted=True,
        )
    )
    boxes, used = [], []  # one path for each look keeps the many frames of a page small
    places = [(8 + k % _PER_ROW * _PITCH, _TOP + k // _PER_ROW * _STEP_Y) for k in range(WARP)]
    spare = [_outline(x, y + 18, SECTOR) for x, y in places[len(touched) :]]  # up to the worst
    for (x, y), (sector, users) in zip(places, touched.items(), strict=False):
        boxes.append(_outline(x, y + 18, SECTOR))
        used += [_outline(x + _BYTE * at, y + 18, size) for at in {p * size for _, p in users}]
        body.append(text(x, y + 14, lane_list(lane for lane, _ in users), size=15))
        end = x + FLOATS * CELL
        body.append(
            text(
                end,
                y + 14,
                f"byte {SECTOR * sector}",
                anchor="end",
                size=13,
                muted=True,
                spare=True,
            )
        )
    body += [
        f'<path d="{"".join(spare)}" fill="none" stroke="{LINE}" stroke-dasharray="2 4"/>',
        f'<path d="{"".join(boxes)}" fill="{HATCH}"/>',
        f'<path d="{"".join(used)}" fill="{colour("blue")}" stroke="{LINE}"/>',
        f'<path d="{"".join(boxes)}" fill="none" stroke="currentColor" stroke-width="1.5"/>',
    ]
    height = _TOP + WARP // _PER_ROW * _STEP_Y + 4
    title = f"Sectors of one load: stride {stride}, offset {offset}, {size} bytes an element"
    return drawing(height, title, plain(words), body, note=html(words))


def _index(stride: int, offset: int) -> str:
    walk = {0: "", 1: "l"}.get(stride, f"{stride} · l")
    return " + ".join(part for part in (str(offset) if offset or not walk else "", walk) if part)


def _outline(x: float, y: float, size: int) -> str:
    """Path data of a box of `size` bytes."""
    return f"M{x:g} {y:g}h{_BYTE * size:g}v{CELL}h-{_BYTE * size:g}z"


def walks(lanes: int = 4) -> dict[str, tuple[Svg, ...]]:
    """How `lanes` lanes read a matrix whose rows are one sector long, instant by instant: each in a
    row of its own, or all in one row."""
    if not 1 <= lanes <= len(_COLOURS):
        raise ValueError(f"1 to {len(_COLOURS)} lanes are drawn, got {lanes}")
    apart = [[(lane, step) for lane in range(lanes)] for step in range(FLOATS)]
    beside = [
        [(0, step + lane) for lane in range(min(lanes, FLOATS - step))]
        for step in range(0, FLOATS, lanes)
    ]
    return {
        "one thread per row": tuple(_instant(apart, step, lanes) for step in range(len(apart))),
        "all lanes on one row": tuple(_instant(beside, step, lanes) for step in range(len(beside))),
    }


def _instant(places: Sequence[Sequence[tuple[int, int]]], step: int, rows: int) -> Svg:
    """The matrix at one step; `places[k][l]` is the (row, column) that lane l reads at step k."""
    now = dict(zip(places[step], range(rows), strict=False))
    before = {spot: lane for each in places[:step] for lane, spot in enumerate(each)}
    moved = coalescing.request([4 * (row * FLOATS + col) for row, col in now])
    words = fill(
        "Step {step} of {steps}: {lanes} lanes ask for {asked} bytes, **{sectors} sector{s}** "
        "move{v}, {moved} bytes.",
        step=step + 1,
        steps=len(places),
        lanes=len(now),
        asked=moved.asked_bytes,
        sectors=len(moved.sectors),
        s="" if len(moved.sectors) == 1 else "s",
        v="s" if len(moved.sectors) == 1 else "",
        moved=moved.moved_bytes,
    )
    return drawing(
        46 + rows * (_SIDE + 14),
        f"Step {step + 1}",
        plain(words),
        _matrix(now, before, rows, moved.sectors),
        note=html(words),
    )


def _matrix(
    now: dict[tuple[int, int], int],
    before: dict[tuple[int, int], int],
    rows: int,
    moving: Sequence[int],
) -> list[str]:
    """The cells of the matrix: those read now with their lane's number, those read before pale,
    rows whose sector moves framed."""
    body = [text(8, 22, "a matrix of 8 columns: each row is one sector")]
    left, width = 90, FLOATS * _SIDE
    for row in range(rows):
        y = 38 + row * (_SIDE + 14)
        body.append(text(8, y + 29, f"row {row}", muted=True))
        if row in moving:
            frame = {"stroke_width": "2.5", "stroke_dasharray": "8 4"}
            body.append(
                rect(left - 5, y - 5, width + 10, _SIDE + 10, "none", "currentColor", **frame)
            )
        for col in range(FLOATS):
            spot, x = (row, col), left + col * _SIDE
            if spot in now:
                name = _COLOURS[now[spot]]
                edge = {"stroke_width": "5"}
                body.append(rect(x + 4, y + 4, _SIDE - 8, _SIDE - 8, "none", colour(name), **edge))
                lane = f"l {now[spot]}"
                body.append(text(x + _SIDE / 2, y + 29, lane, anchor="middle", size=15))
            else:
                ground = tint(_COLOURS[before[spot]]) if spot in before else "none"
                body.append(rect(x, y, _SIDE, _SIDE, ground, LINE))
    legend = (
        "dashed frame: this",
        "sector moves",
        "thick: read now,",
        "by lane l",
        "pale: read before",
    )
    body += [
        text(left + width + 18, 58 + 22 * k, line, muted=True) for k, line in enumerate(legend)
    ]
    return body


def agreement(
    strides: Sequence[int],
    offsets: Sequence[int],
    sizes: Sequence[int],
    count: Callable[[int, int, int], Counts],
) -> Sentence:
    """Whether the model and `count(stride, offset, size)` find the same sectors everywhere."""
    apart = [
        f"stride {stride}, offset {offset}, {size} bytes"
        for stride in strides
        for offset in offsets
        for size in sizes
        if count(stride, offset, size).load_sectors
        != len(coalescing.strided(size * stride, base=size * offset, size=size).sectors)
    ]
    if apart:
        return say("Model and count differ at {where}.", where="; ".join(apart))
    return say(
        "In all {n} positions of the sliders model and count find the same number of sectors.",
        n=len(strides) * len(offsets) * len(sizes),
    )
