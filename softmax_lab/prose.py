"""Sentences and tables that cells compute: HTML, Markdown and plain text of one thing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from softmax_lab.mathml import inline
from softmax_lab.units import MISSING, fill

MANY = 6
"""Columns from which a table is set closer."""

_MARKS = re.compile(r"`(?P<code>[^`]+)`|\*\*(?P<bold>.+?)\*\*|\\\((?P<maths>.+?)\\\)")


@dataclass(frozen=True)
class Sentence:
    """One or more computed sentences; `code`, **bold** and \\(maths\\) are understood."""

    words: str
    source: bool = False  # a line of provenance, set smaller

    def __post_init__(self):
        html(self.words)  # raises for a bad formula; in a display IPython would hide that

    def _repr_html_(self) -> str:
        return f'<p class="lab-note{" lab-source" if self.source else ""}">{html(self.words)}</p>'

    def _repr_markdown_(self) -> str:
        return self.words.replace("\\(", "$").replace("\\)", "$")

    def __str__(self) -> str:
        return plain(self.words)

    __repr__ = __str__


@dataclass(frozen=True)
class Table:
    """A table with units in its heads, numbers to the right; cells know the marks of `Sentence`.

    `numeric` columns are set flush right; `total` sets the last row apart; `note` stands below.
    `groups` are headings inside the table, each with the index of the row below it.
    """

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()
    total: bool = False
    note: str = ""
    groups: tuple[tuple[int, str], ...] = ()

    def __post_init__(self):
        wrong = [row for row in self.rows if len(row) != len(self.heads)]
        if wrong:
            raise ValueError(
                f"every row needs {len(self.heads)} cells, got {len(wrong[0])} in {wrong[0]}"
            )
        self._repr_html_()  # as in a Sentence

    def _repr_html_(self) -> str:
        heads = "".join(
            f'<th scope="col"{self._class(i)}>{_unit(_breakable(head))}</th>'
            for i, head in enumerate(self.heads)
        )
        body = []
        headings = dict(self.groups)
        for k, row in enumerate(self.rows):
            if k in headings:
                head = f'<th scope="rowgroup" colspan="{len(self.heads)}">{html(headings[k])}</th>'
                body.append("</tbody><tbody>" * (k > 0) + f'<tr class="group">{head}</tr>')
            cells = "".join(
                f"<td{self._class(i)}>{html(cell)}</td>" for i, cell in enumerate(row) if i
            )
            last = ' class="total"' if self.total and k == len(self.rows) - 1 else ""
            body.append(
                f'<tr{last}><th scope="row"{self._class(0)}>{_breakable(row[0])}</th>{cells}</tr>'
            )
        inner = f"<thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody>"
        note = Sentence(self.note)._repr_html_() if self.note else ""
        kind = "lab-table lab-many" if len(self.heads) >= MANY else "lab-table"
        return f'<div class="lab-scroll"><table class="{kind}">{inner}</table></div>{note}'

    def _repr_markdown_(self) -> str:
        rule = ["---:" if i in self.numeric else "---" for i in range(len(self.heads))]
        lines = [
            "| " + " | ".join(cells) + " |" for cells in (self.heads, rule, *self._lines("**{}**"))
        ]
        text = "\n".join(lines) + (f"\n\n{self.note}" if self.note else "")
        return text.replace("\\(", "$").replace("\\)", "$")

    def __str__(self) -> str:
        grid = [[plain(cell) for cell in row] for row in (self.heads, *self._lines("{}"))]
        widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
        lines = [
            "  ".join(
                c.rjust(w) if i in self.numeric else c.ljust(w)
                for i, (c, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in grid
        ]
        return "\n".join(line.rstrip() for line in [*lines, plain(self.note)] if line)

    __repr__ = __str__

    def _lines(self, heading: str) -> list[tuple[str, ...]]:
        """Rows and headings in order, a heading as a row with one cell filled."""
        found, empty = list(self.rows), ("",) * (len(self.heads) - 1)
        for at, words in sorted(self.groups, reverse=True):
            found.insert(at, (heading.format(words), *empty))
        return found

    def _class(self, column: int) -> str:
        return ' class="num"' if column in self.numeric else ""


@dataclass(frozen=True)
class Several:
    """Displays one under the other, as one output (a numbered figure holds exactly one)."""

    parts: tuple[Any, ...]

    def _repr_html_(self) -> str:
        return "".join(part._repr_html_() for part in self.parts)

    def __str__(self) -> str:
        return "\n".join(map(str, self.parts))

    __repr__ = __str__


def say(template: str, /, **values: Any) -> Sentence:
    """A `Sentence` with numbers filled in: `{n}`, `{share:%}`, `{ratio:×}`, `{rate:GB/s}`, `{t:s}`.

    A unit without a prefix picks the prefix that fits; a value of None reads "not measured yet".
    """
    return Sentence(fill(template, **values))


def together(*parts: Any) -> Several:
    """One display of several."""
    return Several(parts)


def html(words: str) -> str:
    """Marked words as HTML; everything else is escaped."""

    def mark(match: re.Match) -> str:
        kind = match.lastgroup
        if kind == "maths":
            return inline(match[kind])
        if kind == "code":
            return f"<code>{escape(match[kind], quote=False)}</code>"
        return f"<strong>{html(match[kind])}</strong>"

    out, at = [], 0
    for match in _MARKS.finditer(words):
        out += [escape(words[at : match.start()], quote=False), mark(match)]
        at = match.end()
    return "".join([*out, escape(words[at:], quote=False)])


def plain(words: str) -> str:
    """Marked words without their marks."""
    return _MARKS.sub(lambda match: match[match.lastgroup], words)


def seen_columns(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> tuple[tuple, tuple]:
    """Heads and rows of a table without the columns in which every cell is missing."""
    rows = list(rows)
    kept = [k for k in range(len(heads)) if any(row[k] != MISSING for row in rows)]
    return tuple(heads[k] for k in kept), tuple(tuple(row[k] for k in kept) for row in rows)


def names(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _breakable(words: str) -> str:
    """Marked words as HTML; the names of kernels in them may go on in a new line."""

    def broken(match: re.Match) -> str:
        return f"<code>{re.sub(r'(?<=[/_])(?=.)', '<wbr>', match[1])}</code>"

    return re.sub(r"<code>(.*?)</code>", broken, html(words))


def _unit(head: str) -> str:
    return re.sub(r"(\[[^\]]+\])", r'<span class="unit">\1</span>', head)
