"""What all pictures share: palette, unique ids, inline SVG that is legible in light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from itertools import count

from softmax_lab.registry import KERNELS

WIDTH = 720  # user units of every chart and frame: one width, so text has one size

# Okabe-Ito. The page may set --lab-<name>; without a style sheet the fallback holds.
PALETTE = {
    "black": "#000000",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "green": "#009E73",
    "yellow": "#F0E442",
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "purple": "#CC79A7",
}
LEVELS = {"L1": "sky", "L2": "orange", "DRAM": "vermillion"}
_CYCLE = ("purple", "yellow", "blue", "green", "black")  # the colours that no level has

LINE = "var(--lab-line, #8888)"
SURFACE = "var(--lab-surface, #8881)"

DENSE = "lab-frame lab-dense"
"""The kind of a frame whose words would meet if a phone enlarged them: it scrolls there instead."""

_serial = count(1)


@dataclass(frozen=True)
class Svg:
    """One drawing, shown in JupyterLab and in the book; `alt` says in words what it shows."""

    markup: str
    alt: str
    note: str = ""  # a visible sentence (HTML) under the drawing
    kind: str = "lab-figure"  # "lab-frame" for the frames of a stepper, DENSE for crowded ones

    def _repr_html_(self) -> str:
        note = f'<p class="lab-note">{self.note}</p>' if self.note else ""
        return f'<div class="{self.kind}">{self.markup}{note}</div>'

    def __str__(self) -> str:
        return self.alt

    __repr__ = __str__


def colour(name: str) -> str:
    """A palette colour as CSS, for shapes; text is always `currentColor`."""
    return f"var(--lab-{name}, {PALETTE[name]})"


def tint(name: str) -> str:
    """A faint ground of a palette colour on which text stays legible."""
    return f"var(--lab-{name}-tint, {PALETTE[name]}40)"


def level_colour(level: str) -> str:
    """The colour that `level` (L1, L2 or DRAM) keeps in every picture."""
    return f"var(--lab-{level.lower()}, {PALETTE[LEVELS[level]]})"


def kernel_colour(name: str) -> str:
    """The colour that a kernel keeps in every picture, by its place in the list of kernels."""
    fallback = PALETTE[_CYCLE[list(KERNELS).index(name) % len(_CYCLE)]]
    return f"var(--lab-kernel-{name.rpartition('/')[2]}, {fallback})"


def unique() -> str:
    """A prefix for ids that no other drawing of this process has."""
    return f"lab{next(_serial)}"


def drawing(
    height: float,
    title: str,
    alt: str,
    body: Iterable[str],
    *,
    note: str = "",
    kind: str = "lab-frame",
) -> Svg:
    """An `Svg` of WIDTH × `height` user units from its elements, which may use `HATCH`."""
    uid = unique()
    inner = "".join(body).replace(HATCH, f"url(#{uid}-hatch)")
    pattern = hatch(f"{uid}-hatch") if f"#{uid}-hatch" in inner else ""
    return Svg(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img" '
        f'aria-labelledby="{uid}-title {uid}-desc" style="width:100%;max-width:{WIDTH}px" '
        f'font-family="sans-serif" font-size="16" fill="currentColor">'
        f'<title id="{uid}-title">{escape(title)}</title><desc id="{uid}-desc">{escape(alt)}</desc>'
        f"{pattern}{inner}</svg>",
        alt,
        note,
        kind,
    )


HATCH = "url(#hatch)"


def hatch(identifier: str) -> str:
    """The pattern that means "moved in vain", as `<defs>` with that id."""
    return (
        f'<defs><pattern id="{identifier}" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><path d="M0 0V6" stroke="currentColor" stroke-width="1.5" '
        'opacity=".55"/></pattern></defs>'
    )


def rect(
    x: float, y: float, width: float, height: float, fill: str, stroke: str = "none", **more: str
) -> str:
    """A rectangle."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
        f'fill="{fill}" stroke="{stroke}"{_attributes(more)}/>'
    )


def boxes(
    corners: Iterable[tuple[float, float]],
    width: float,
    height: float,
    fill: str,
    stroke: str,
    **more: str,
) -> str:
    """Equal rectangles with these upper left `corners`, as one path: a page holds thousands."""
    data = "".join(f"M{x:g} {y:g}h{width:g}v{height:g}h-{width:g}z" for x, y in corners)
    return f'<path d="{data}" fill="{fill}" stroke="{stroke}"{_attributes(more)}/>'


def _attributes(more: dict[str, str]) -> str:
    return "".join(f' {key.replace("_", "-")}="{value}"' for key, value in more.items())


def text(
    x: float,
    y: float,
    content: str,
    *,
    anchor: str = "start",
    size: float = 16,
    muted: bool = False,
    spare: bool = False,
) -> str:
    """A line of text in the colour of the page's text; a phone has no room for a `spare` one."""
    shades = [name for name, on in (("lab-muted", muted), ("lab-spare", spare)) if on]
    shade = f' class="{" ".join(shades)}"' if shades else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" text-anchor="{anchor}" '
        f'fill="currentColor"{shade}>{escape(content)}</text>'
    )


def ids(markup: str) -> list[str]:
    """All ids that `markup` defines, in order."""
    return re.findall(r'\bid="([^"]+)"', markup)
