"""How lanes are drawn: values that fit a square, who reads whom, and all 32 registers at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from softmax_lab.frames import CELL
from softmax_lab.online import LOWEST
from softmax_lab.svg import LINE, WIDTH, boxes, colour, rect, text, tint

LIVE = "blue"
"""Colour of a value that means something."""
LOST = "vermillion"
"""Colour of a value that CUDA leaves undefined."""

PITCH = 22  # of the small squares: a warp's row is as wide as the chart
PER_ROW = 16  # big cells: two rows are a warp
CELL_W = WIDTH / PER_ROW


def fixed(value: float, decimals: int = 4) -> str:
    """A register's value to `decimals` places, whole numbers without; "low" is -FLT_MAX."""
    if value == LOWEST:
        return "low"
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    written = f"{value:.0f}" if value == int(value) else f"{value:.{decimals}f}"
    return (written.lstrip("-") if float(written) == 0 else written).replace("-", "−")


def brief(value: float) -> str:
    """A value in at most five characters, as wide as a cell: two places, none that says nothing,
    fewer where it is large."""
    for decimals in (2, 1, 0):
        short = fixed(value, decimals)
        if len(short) <= 5:
            bare = short.rstrip("0").rstrip(".") if "." in short else short
            return bare if bare != short and _says(bare, value) else short
    digit, power = f"{value:.0e}".split("e")
    return f"{digit}e{int(power)}".replace("-", "−")


def _says(written: str, value: float) -> bool:
    return math.isclose(float(written.replace("−", "-")), value, rel_tol=1e-6)


def arrow(x0: float, y0: float, x1: float, y1: float) -> str:
    """Path data of a line with a head at its end."""
    angle = math.atan2(y1 - y0, x1 - x0)
    tips = [
        (x1 - 8 * math.cos(angle + turn), y1 - 8 * math.sin(angle + turn)) for turn in (0.4, -0.4)
    ]
    head = "M".join(f"{x:.1f} {y:.1f}L{x1:g} {y1:g}" for x, y in tips)
    return f"M{x0:g} {y0:g}L{x1:g} {y1:g}M{head}"


def wires(
    sources: Sequence[int | None],
    centre: Callable[[int], float],
    top: float,
    bottom: float,
    strong: Collection[int],
    lost: Collection[int] = (),
) -> list[str]:
    """Who reads whom: from lane `sources[l]` at `top` to lane l at `bottom`.

    Reads that a `strong` lane makes are drawn bold, those of a `lost` lane broken; a lane that
    reads itself is a dotted line.
    """
    groups: dict[str, list[str]] = {"strong": [], "faint": [], "self": [], "lost": []}
    for lane, source in enumerate(sources):
        if source is None:
            continue
        kind = "lost" if lane in lost else "self" if source == lane else ""
        kind = kind or ("strong" if lane in strong else "faint")
        ends = (centre(source), top, centre(lane), bottom)
        groups[kind].append(
            "M{:g} {:g}L{:g} {:g}".format(*ends) if kind == "self" else arrow(*ends)
        )
    looks = {
        "faint": f'stroke="{LINE}" stroke-width="1.5"',
        "self": f'stroke="{LINE}" stroke-width="1.5" stroke-dasharray="2 4"',
        "strong": f'stroke="{colour(LIVE)}" stroke-width="2"',
        "lost": f'stroke="{colour(LOST)}" stroke-width="2" stroke-dasharray="6 4"',
    }
    return [
        f'<path d="{"".join(groups[kind])}" fill="none" {look}/>'
        for kind, look in looks.items()
        if groups[kind]
    ]


def register(x: float, y: float, width: float, height: float, kind: str) -> str:
    """The box of one lane's register: live, idle (a value nobody needs), lost, or absent."""
    fill, stroke, more = _look(kind)
    return rect(x, y, width, height, fill, stroke, **more)


def _look(kind: str) -> tuple[str, str, dict[str, str]]:
    """Fill, stroke and other attributes of a register's box."""
    match kind:
        case "live":
            return tint(LIVE), colour(LIVE), {"stroke_width": "1.5"}
        case "lost":
            return tint(LOST), colour(LOST), {"stroke_width": "1.5"}
        case "absent":
            return "none", LINE, {"stroke_dasharray": "3 4"}
    return "none", LINE, {}


def squares(y: float, kinds: Sequence[str]) -> list[str]:
    """A warp as a row of small squares, one look a lane."""
    looks = {"live": colour(LIVE), "lost": colour(LOST)}
    return [
        boxes(
            [(8 + PITCH * lane, y) for lane, each in enumerate(kinds) if each == kind],
            CELL,
            CELL,
            looks.get(kind, "none"),
            LINE,
            **({"stroke_dasharray": "3 4"} if kind == "absent" else {}),
        )
        for kind in dict.fromkeys(kinds)
    ]


def square_centre(lane: int) -> float:
    """Where a small square's middle is."""
    return 8 + PITCH * lane + CELL / 2


def registers(y: float, lines: Sequence[Sequence[str]], kinds: Sequence[str]) -> list[str]:
    """All lanes as two rows of sixteen cells: the lane's number, then each of its `lines`."""
    height = 22 + 19 * max(map(len, lines))
    corners = [
        (lane % PER_ROW * CELL_W, y + lane // PER_ROW * (height + 6)) for lane in range(len(lines))
    ]
    out = []
    for kind in dict.fromkeys(kinds):
        fill, stroke, more = _look(kind)
        same = [(x + 1, top) for (x, top), each in zip(corners, kinds, strict=True) if each == kind]
        out.append(boxes(same, CELL_W - 2, height, fill, stroke, **more))
    for lane, ((x, top), words) in enumerate(zip(corners, lines, strict=True)):
        out.append(text(x + CELL_W / 2, top + 14, str(lane), anchor="middle", size=13, muted=True))
        out += [
            text(x + CELL_W / 2, top + 31 + 19 * k, word, anchor="middle", size=13)
            for k, word in enumerate(words)
        ]
    return out
