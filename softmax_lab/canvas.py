"""From a matplotlib figure to inline SVG in the page's own colours and fonts."""

from __future__ import annotations

import io
import re
from html import escape

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from softmax_lab.svg import LEVELS, PALETTE, WIDTH, Svg, hatch, level_colour, unique

INK, GRID, WASTE = "#101010", "#888888", "#707070"
"""Stand-ins: charts are drawn in them, `inline` puts text colour, line colour and hatch in."""

LEVEL_INK = {level: PALETTE[name].lower() for level, name in LEVELS.items()}
"""What L1, L2 and DRAM are drawn in; `inline` makes it the page's variable."""

FONT = 16  # user units; a phone shows a chart at half size, with its words a fifth larger
GROWN = 1.2 * FONT  # user units: as large as a phone shows them
ROOM = 14  # user units between the numbers of an axis and its name: those words grow into it

_CSS = {INK: "currentColor", GRID: "var(--lab-line, #8888)"}
_CSS |= {ink: level_colour(level) for level, ink in LEVEL_INK.items()}


def canvas(height: float, left: float = 80) -> tuple[Figure, Axes]:
    """An empty chart of WIDTH × `height` user units, its axes in the text colour."""
    with matplotlib.rc_context({"font.size": FONT}):
        figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72)
        axes = figure.subplots()
    figure.subplots_adjust(
        left=left / WIDTH, right=1 - 16 / WIDTH, bottom=56 / height, top=1 - 10 / height
    )
    axes.spines[["top", "right"]].set_visible(False)
    for item in (*axes.spines.values(), axes.xaxis.label, axes.yaxis.label):
        item.set_color(INK)
    axes.tick_params(colors=INK)
    axes.yaxis.labelpad = ROOM
    axes.set_axisbelow(True)
    return figure, axes


def inline(figure: Figure, title: str, alt: str, note: str = "") -> Svg:
    """A matplotlib figure as an `Svg`: its own ids, the page's colours and fonts, no fixed size.

    Raises ValueError for a colour that is neither a stand-in of this module nor a level's colour.
    """
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "softmax-lab"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    whole = buffer.getvalue()
    view = re.search(r'viewBox="([^"]+)"', whole)[1]
    body = whole[whole.index(">", whole.index("<svg")) + 1 : whole.rindex("</svg>")]
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<style.*?</style>", "", body, flags=re.S)
    uid = unique()
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', body))
    body = re.sub(r' id="([^"]+)"', lambda m: f' id="{uid}-{m[1]}"' if m[1] in used else "", body)
    body = re.sub(r'(href="#|url\(#)', rf"\g<1>{uid}-", body)
    body = body.replace(f"fill: {WASTE}", f"fill: url(#{uid}-hatch)").replace("#000000", INK)
    unknown = set(re.findall(r"#[0-9a-f]{6}\b", body)) - set(_CSS)
    if unknown:
        raise ValueError(
            f"a chart uses only the palette of svg.py, got {', '.join(sorted(unknown))}"
        )
    body = re.sub(r"#[0-9a-f]{6}\b", lambda m: _CSS[m[0]], body)
    body = re.sub(r" ?font-family: [^;\"]+;?", "", body).replace("xlink:href", "href")
    body = (
        re.sub(r"[ \n]+", " ", body)
        .replace("> <", "><")
        .replace("<text ", '<text fill="currentColor" ')
    )
    return Svg(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view}" role="img" '
        f'aria-labelledby="{uid}-title {uid}-desc" style="width:100%;max-width:{WIDTH}px" '
        'font-family="sans-serif" stroke-linejoin="round">'
        f'<title id="{uid}-title">{escape(title)}</title>'
        f'<desc id="{uid}-desc">{escape(alt)}</desc>{hatch(f"{uid}-hatch")}{body}</svg>',
        alt,
        note,
    )
