"""Predict, then look: a page asks first, and shows what was derived, counted and measured only
beside the reader's own prediction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from softmax_lab import prose
from softmax_lab.alive import View
from softmax_lab.clock import CLOSE
from softmax_lab.counts import Counts
from softmax_lab.ledger import Ledger
from softmax_lab.prose import Sentence, Several, Table, html, names, together
from softmax_lab.records import Measured
from softmax_lab.runs import provenance, shape
from softmax_lab.runs import share_of_copy as of_copy
from softmax_lab.units import MISSING
from softmax_lab.units import number as written

LEVELS = ("derived", "counted", "measured")
SAME = 0.03
"""Two times that differ by no more than this share are called equal: the spread of a good run."""


@dataclass(frozen=True)
class Question:
    """What is asked (marked words, see `prose`), and what is known: a value for some of LEVELS.

    `options` are (label, reply) pairs of a choice, `right` the place of the true one, None where
    nobody knows yet. Without options the answer is a number in `unit`.
    """

    ask: str
    values: Mapping[str, float | None] = field(default_factory=dict)
    unit: str = ""
    options: tuple[tuple[str, str], ...] = ()
    right: int | None = None

    def __post_init__(self):
        if unknown := set(self.values) - set(LEVELS):
            raise ValueError(f"levels are {', '.join(LEVELS)}, got {', '.join(sorted(unknown))}")
        if not self.options and not self.values:
            raise ValueError(f"nothing answers {self.ask!r}: give values")
        if self.right is not None and not 0 <= self.right < len(self.options):
            raise ValueError(f"there are {len(self.options)} options, got number {self.right}")

    @property
    def truth(self) -> float | None:
        """What a prediction is held against: the value nearest to the hardware."""
        return next(
            (v for level in reversed(LEVELS) if (v := self.values.get(level)) is not None), None
        )


def number(ask: str, values: Mapping[str, float | None], unit: str = "") -> Question:
    """A question whose answer is a number [`unit`], with its values by level.

    Raises ValueError for a value below zero or without an end: no page takes one for a prediction.
    """
    if wrong := [v for v in values.values() if v is not None and not 0 <= v < math.inf]:
        raise ValueError(f"values are finite and 0 or more, got {wrong[0]:g}: {ask}")
    return Question(ask, dict(values), unit)


def choice(
    ask: str,
    options: Mapping[Any, str],
    values: Mapping[str, float | None] | None = None,
    *,
    right: int | None = None,
    unit: str = "",
) -> Question:
    """A question with options, each with the reply it gets: `{label: reply}`.

    With `values` the labels are numbers, and the one that equals the truth is right; ValueError
    where none does, so that a stale answer never reaches a page. Else `right` is its place.
    """
    labels = tuple((_labelled(label, unit), reply) for label, reply in options.items())
    asked = Question(ask, values or {}, unit, labels, right)
    if values is None or asked.truth is None:
        return asked
    places = [k for k, label in enumerate(options) if label == asked.truth]
    if not places:
        raise ValueError(f"no option of {list(options)} is the answer, {asked.truth:g}: {ask}")
    return Question(ask, asked.values, unit, labels, places[0])


def _labelled(label: Any, unit: str) -> str:
    """An option with its unit; of one thing there is one sector and not one sectors."""
    one = label == 1 and unit.isalpha() and len(unit) > len("ns")
    return f"{label} {unit.removesuffix('s') if one else unit}".strip()


def of(book: Ledger, count: str, per: str | None = None) -> dict[str, float | None]:
    """A count of a ledger by level, or one for each of another (`per`), where it is known."""

    def each(counts: Counts | None) -> float | None:
        over, under = (getattr(counts, name, None) if name else 1 for name in (count, per))
        return over / under if over is not None and under else None

    held = (book.executed, book.counted, book.measured and book.measured.counts)
    return {level: each(counts) for level, counts in zip(LEVELS, held, strict=True)}


def share_of_copy(run: Measured | None) -> dict[str, float | None]:
    """The rate of a run over the copy kernel's [%], as measured."""
    share = of_copy(run)
    return {"measured": None if share is None else 100 * share}


def gain(before: Measured | None, after: Measured | None) -> dict[str, float | None]:
    """How many times as fast `after` is as `before`, as measured."""
    known = before is not None and after is not None and before.seconds and after.seconds
    return {"measured": before.seconds / after.seconds if known else None}


def fastest(runs: Sequence[Measured | None]) -> int | None:
    """The place of the run that took least; the place after the last where it beats no other by
    more than SAME; None where one is not measured."""
    seconds = [run.seconds if run is not None else None for run in runs]
    if not all(seconds):
        return None
    first, second, *_ = sorted(seconds)
    return seconds.index(first) if second / first - 1 > SAME else len(seconds)


def against_promise(before: Measured | None, after: Measured | None, promised: float) -> int | None:
    """What became of a promised gain: 0 slower, 1 as fast, 2 gains less, 3 as promised, 4 more.

    None where one of the two is not measured.
    """
    ratio = gain(before, after)["measured"]
    if ratio is None:
        return None
    if abs(ratio - 1) <= SAME:
        return 1
    if ratio < 1:
        return 0
    off = (ratio - 1) / (promised - 1) - 1
    return 3 if abs(off) <= CLOSE else 2 if off < 0 else 4


def predict(
    *questions: Question,
    runs: Sequence[Measured | None] = (),
    counters: Sequence[Measured | None] = (),
    then: Sequence[Any] = (),
) -> View:
    """Ask all `questions`; when each has a prediction, show what came out, `then` (displays) and
    where it was measured: `runs` whose times answer, and those whose hardware `counters` do.

    Raises ValueError without a question.
    """
    if not questions:
        raise ValueError("predict asks at least one question")
    levels = [level for level in LEVELS if any(level in q.values for q in questions)]
    after = sourced(*then, runs=runs, counters=counters)._repr_html_()
    data = {
        "levels": levels,
        "questions": [
            {
                "ask": html(q.ask),
                "unit": q.unit,
                "values": q.values,
                "measurable": "measured" in q.values,
                "options": [(label, html(reply)) for label, reply in q.options] or None,
                "right": q.right,
            }
            for q in questions
        ],
        "then": after,
    }
    answers = _answers(questions, levels)
    asks = "".join(f"<li>{html(q.ask)}{_offered(q)}</li>" for q in questions)
    still = (
        f'<p class="lab-note"><b>Predict first</b>, then open the answers.</p><ul>{asks}</ul>'
        f"<details><summary>Answers</summary>{answers._repr_html_()}{_replies(questions)}{after}"
        "</details>"
    )
    words = " ".join(prose.plain(q.ask) for q in questions)
    return View("predict", data, still, f"Predict first: {words}\n{answers}")


def sourced(
    *said: Any, runs: Sequence[Measured | None] = (), counters: Sequence[Measured | None] = ()
) -> Several:
    """Displays, with a line on the `runs` whose times they speak of and one on those whose hardware
    `counters` they do: shapes, machine, date, software."""
    return together(*said, *_where(runs), *_where(counters, "counters"))


def _answers(questions: Sequence[Question], levels: Sequence[str]) -> Table:
    def told(q: Question, level: str) -> str:
        value = q.values.get(level)
        if value is None:
            return MISSING if level == "measured" and level in q.values else "–"
        return written(value)

    rows = []
    for q in questions:
        unit = f" [{q.unit}]" if q.unit else ""
        right = [] if not q.options else [MISSING if q.right is None else q.options[q.right][0]]
        values = [told(q, level) for level in levels]
        rows.append((q.ask + unit, *values, *(right or ["–"])))
    return Table(("question", *levels, "answer"), tuple(rows), frozenset(range(1, len(levels) + 1)))


def _offered(question: Question) -> str:
    if not question.options:
        return f" [{escape(question.unit)}]" if question.unit else ""
    return f" ({'; '.join(escape(label) for label, _ in question.options)})"


def _replies(questions: Sequence[Question]) -> str:
    return "".join(
        f'<p class="lab-note"><b>{escape(label)}.</b> {html(reply)}</p>'
        for q in questions
        for label, reply in q.options
        if reply
    )


def _where(runs: Sequence[Measured | None], of: str = "times") -> list[Sentence]:
    """Shapes, machine, date, software of what runs gave, and of times where their data were; like
    ones together."""
    timed = of == "times"
    said: dict[tuple, list[str]] = {}
    for run in filter(None, runs):
        level = f" Each timed launch found its data in {run.level}." if timed and run.level else ""
        said.setdefault((run.dtype, f"{provenance(run, of=(of,))}{level}"), []).append(
            shape(run.rows, run.cols)
        )
    how = "Measured" if timed else "Hardware counters read"
    return [
        Sentence(f"{how} on {names(list(dict.fromkeys(shapes)))} {dtype}: {words}", source=True)
        for (dtype, words), shapes in said.items()
    ]
