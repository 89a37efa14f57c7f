"""Where the words of a chart stand: clear of its lines, of its points and of each other.

Everything that takes room is a convex shape: its corners [user units], two of them for a line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from matplotlib.axes import Axes
from matplotlib.textpath import TextPath
from matplotlib.transforms import IdentityTransform

from softmax_lab.canvas import FONT, GROWN, INK

Place = tuple[float, float]
Shape = tuple[Place, ...]

GAP = 4  # user units between words and what stands beside them
_RISE = {"bottom": (-2, 19), "center": (-10, 10), "top": (-19, 1)}  # of grown words, from `at`
_START = {"left": 0.0, "center": -0.5, "right": -1.0}  # of their width
_TIED = {"left": 5, "center": 0, "right": -5}  # user units from `at` to the line


@dataclass(frozen=True)
class Label:
    """Words at a place [user units], turned [degrees] about it; with a thin line up to `above`."""

    words: str
    at: Place
    ha: str = "center"
    va: str = "center"
    turn: float = 0.0
    above: float | None = None

    @property
    def width(self) -> float:
        """Of the words, as large as a phone shows them [user units]."""
        return _width(self.words)

    def shapes(self) -> list[Shape]:
        """The room it takes where it is largest: on a phone, which enlarges words."""
        (x, y), wide = self.at, self.width
        left, (low, high) = _START[self.ha] * wide, _RISE[self.va]
        c, s = math.cos(math.radians(self.turn)), math.sin(math.radians(self.turn))
        start, end = left - GAP, left + wide + GAP
        corners = ((start, low), (end, low), (end, high), (start, high))
        box = tuple((x + c * a - s * b, y + s * a + c * b) for a, b in corners)
        return [box] if self.above is None else [box, self._line]

    @property
    def _line(self) -> Shape:
        x = self.at[0] + _TIED[self.ha]
        return ((x, self.at[1]), (x, self.above))

    def draw(self, axes: Axes) -> None:
        """Writes the words, and the line to their point."""
        as_they_are = {"transform": IdentityTransform()}
        if self.above is not None:
            axes.plot(*zip(*self._line, strict=True), color=INK, lw=0.9, **as_they_are)
        axes.text(
            *self.at,
            self.words,
            rotation=self.turn,
            rotation_mode="anchor",
            ha=self.ha,
            va=self.va,
            fontsize=FONT,
            **as_they_are,
        )


def meet(a: Shape, b: Shape) -> bool:
    """Whether two convex shapes touch: no line stands between them."""
    for shape in (a, b):
        for (x0, y0), (x1, y1) in zip(shape, (*shape[1:], shape[0]), strict=True):
            for across in ((y0 - y1, x1 - x0), (x1 - x0, y1 - y0)):  # the second for two lines
                mine, theirs = _shadow(a, across), _shadow(b, across)
                if mine[1] < theirs[0] or theirs[1] < mine[0]:
                    return False
    return True


def settle(choices: Sequence[Sequence[Label]], taken: Sequence[Shape]) -> list[Label]:
    """One of the `choices` for each label, so that none meets another or what is `taken`: the
    earliest such. Where there is none, one after the other, where each meets the least."""
    if found := next(_settled(choices, list(taken)), None):
        return found
    crowded, room = [], list(taken)
    for each in choices:
        crowded.append(min(each, key=lambda label: len(_met(label, room))))
        room += crowded[-1].shapes()
    return crowded


def _met(label: Label, taken: Sequence[Shape]) -> list[Shape]:
    return [other for other in taken if any(meet(mine, other) for mine in label.shapes())]


def _settled(choices: Sequence[Sequence[Label]], taken: list[Shape]) -> Iterator[list[Label]]:
    if not choices:
        yield []
        return
    for label in choices[0]:
        if not _met(label, taken):
            for rest in _settled(choices[1:], taken + label.shapes()):
                yield [label, *rest]


def square(at: Place, half: float) -> Shape:
    """Around a point."""
    x, y = at
    return ((x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half))


@cache
def _width(words: str) -> float:
    return TextPath((0, 0), words, size=GROWN).get_extents().width


def _shadow(shape: Shape, across: Place) -> tuple[float, float]:
    along = [x * across[0] + y * across[1] for x, y in shape]
    return min(along), max(along)
