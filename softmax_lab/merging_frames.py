"""The stepper of the merge: pick a tree, insert -inf, and see where NaN is born.

`merging.js` computes and draws the same in the page; a test holds the two together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from softmax_lab import lane_art as art
from softmax_lab import livefile, merging, reference
from softmax_lab.alive import View
from softmax_lab.facts import WARP
from softmax_lab.frames import CELL, lane_list
from softmax_lab.merging import BLOCK, LOWEST, TREES, Round, lost
from softmax_lab.prose import Sentence, Table, html, plain
from softmax_lab.svg import DENSE, drawing, text

MOST = BLOCK
"""Columns of a row that the stepper takes: one for each thread of its largest tree."""

STARTS = {"published": -math.inf, "finite": LOWEST}
"""What an empty pair has for its maximum."""

_BLOCK_TOP, _ROW = 24, 26


def stepper(
    tree: str = "butterfly",
    cols: int = 12,
    *,
    start: str = "published",
    guarded: bool = False,
    masked: Sequence[int] = (),
) -> View:
    """The stepper, as it starts: a row of `cols` columns, those in `masked` set to -inf.

    `start` is a name of STARTS. Raises ValueError for another tree or start, and for columns that
    are not 1 to MOST.
    """
    if start not in STARTS:
        raise ValueError(f"start is one of {', '.join(STARTS)}, got {start!r}")
    if not 1 <= cols <= MOST or not all(0 <= column < cols for column in masked):
        raise ValueError(f"1 to {MOST} columns, and masked ones among them; got {cols}, {masked}")
    scores = reference.inputs("normal", 1, MOST)[0].round(1)
    row = scores[:cols].copy()
    row[list(masked)] = -np.inf
    rounds = merging.meet(row, tree, start=STARTS[start], guarded=guarded)
    born = merging.birth(rounds)
    at = len(rounds) if born is None else born + 1
    data = {
        "look": livefile.look(),
        "scores": [round(float(v), 1) for v in scores],
        "trees": TREES,
        "most": MOST,
        "start": {
            "tree": tree,
            "cols": cols,
            "start": start,
            "guarded": guarded,
            "masked": list(masked),
            "at": at,
        },
    }
    shown = picture(rounds, at, tree, STARTS[start])
    said = verdict(rounds, tree)
    still = (
        Sentence(f"{TREES[tree]}, {cols} columns: {said} Here is step {at} of {len(rounds)}; with "
                 "JavaScript you step through all of them.")._repr_html_()
        + shown._repr_html_()
    )  # fmt: skip
    return View("merging", data, still, f"A stepper of the merge. {plain(said)} {shown.alt}")


def lengths() -> Table:
    """Which unmasked rows come out as NaN, for each tree and each kind of empty pair."""
    ways = ((-math.inf, False), (-math.inf, True), (LOWEST, False))
    body = []
    for tree in TREES:
        found = [merging.lost_lengths(tree, start=m, guarded=guarded) for m, guarded in ways]
        body.append((TREES[tree], str(merging.threads(tree)), *map(_ranges, found)))
    heads = ("tree", "threads", "(−∞, 0)", "(−∞, 0), guarded", "(−FLT_MAX, 0)")
    note = "Lengths N of unmasked rows that come out as NaN, up to one column a thread."
    return Table(heads, tuple(body), frozenset({1}), note=note)


def _ranges(lengths: Sequence[int]) -> str:
    return lane_list(lengths).partition(" ")[2].replace("–", " to ") if lengths else "none"


def picture(rounds: Sequence[Round], at: int, tree: str, start: float):
    """What threads hold after step `at` (0: before the first), and in a warp who reads whom."""
    head = f"The merge, step {at} of {len(rounds)}"
    note = words(rounds, at, tree, start)
    height, body = _body(rounds, at, start)
    alt = f"{plain(note)} {_spoken(rounds, at, start)}"
    return drawing(height, head, alt, body, note=html(note), kind=DENSE)


def _held(rounds: Sequence[Round], at: int, start: float, count: int):
    return rounds[at - 1].pairs if at else ((start, 0.0),) * count


def _kinds(rounds: Sequence[Round], at: int, start: float) -> list[str]:
    """Looks of all threads after step `at`: empty ones are drawn as absent."""
    count = len(rounds[0].source)
    matter = set(rounds[at - 1].matter if at else range(count))

    def kind(t: int, pair: tuple[float, float]) -> str:
        if t not in matter:
            return "idle"
        return "lost" if lost(pair) else "absent" if pair[0] <= LOWEST else "live"

    return [kind(t, pair) for t, pair in enumerate(_held(rounds, at, start, count))]


def _body(rounds: Sequence[Round], at: int, start: float) -> tuple[int, list[str]]:
    kinds, count = _kinds(rounds, at, start), len(rounds[0].source)
    each = rounds[at - 1] if at else None
    pairs = _held(rounds, at, start, count)[:WARP]
    lines = [(art.brief(m), art.brief(d)) for m, d in pairs]
    out = [_label(8, 16, "lane 0"), _label(710, 16, f"lane {WARP - 1}", "end")]
    born = each.born if each else ()
    low = "; low is −FLT_MAX" if start == LOWEST else ""
    if count > WARP:
        out.append(_label(360, 16, f"{count // WARP} warps, warp 0 on top", "middle"))
        for warp in range(count // WARP):
            y = _BLOCK_TOP + _ROW * warp
            own = kinds[warp * WARP : (warp + 1) * WARP]
            here = [t % WARP for t in born if t // WARP == warp]
            out += [*art.squares(y, own), _marks(y, own, here)]
        y = _BLOCK_TOP + _ROW * (count // WARP) + 20
        out.append(_label(8, y, f"warp 0: m and L of each lane{low}"))
        return y + 140, out + art.registers(y + 8, lines, kinds[:WARP])
    before = _kinds(rounds, at - 1, start) if at else kinds
    out += [*art.squares(24, before), _marks(24, before, ())]
    if each:
        source = _wiring(each)
        strong = {
            t for t, s in enumerate(source) if s is not None and kinds[t] in ("live", "absent")
        }
        lost_now = {t for t, s in enumerate(source) if s is not None and kinds[t] == "lost"}
        out += art.wires(source, art.square_centre, 46, 132, strong, lost_now)
    out += [*art.squares(134, kinds), _marks(134, kinds, born)]
    out.append(_label(8, 178, f"m and L of each lane{low}"))
    return 318, out + art.registers(186, lines, kinds)


def _wiring(each: Round) -> list[int | None]:
    """Lanes that are read: an element enters in its own lane."""
    if each.kind == "enter":
        return [None if s is None else t for t, s in enumerate(each.source)]
    return list(each.source)


def _marks(y: float, kinds: Sequence[str], born: Sequence[int]) -> str:
    """A cross on each lost square, and a frame around those in which NaN was born."""
    crosses = "".join(
        f"M{8 + art.PITCH * t + 4} {y + 4}l12 12m0 -12l-12 12"
        for t, kind in enumerate(kinds)
        if kind == "lost"
    )
    frames = "".join(f"M{8 + art.PITCH * t} {y}h{CELL}v{CELL}h-{CELL}z" for t in born)
    return "".join(
        f'<path d="{data}" fill="none" stroke="currentColor" stroke-width="{width}"/>'
        for data, width in ((crosses, 2), (frames, 4))
        if data
    )


def _label(x: float, y: float, words: str, anchor: str = "start") -> str:
    return text(x, y, words, anchor=anchor, size=15, muted=True)


def _spoken(rounds: Sequence[Round], at: int, start: float) -> str:
    count = len(rounds[0].source)
    pairs = _held(rounds, at, start, count)[:WARP]
    return (
        ", ".join(f"lane {t}: {_number(m)} and {art.fixed(d)}" for t, (m, d) in enumerate(pairs))
        + "."
    )


def verdict(rounds: Sequence[Round], tree: str) -> str:
    """What becomes of the row, in a sentence (marked words)."""
    m, d = merging.result(rounds)
    born = merging.birth(rounds)
    where = ""
    if born is not None:
        who = _named(rounds[born].born, tree)
        where = f"born in step {born + 1} of {len(rounds)}, in {who}"
    if m <= LOWEST:
        why = (
            f"{where} already" if where else f"from {_pair(m, d)}: each result is {_quotient(m, d)}"
        )
        return f"**the row is masked whole: NaN, as the contract wants**, {why}."
    if where:
        return f"**the row is lost**: NaN is {where}."
    return f"**the row survives**, with {_pair(m, d)}."


def _pair(m: float, d: float) -> str:
    return f"m = {_number(m)} and L = {art.fixed(d)}"


def _quotient(m: float, d: float) -> str:
    """A result of a row that is masked whole, as it is computed."""
    if m == LOWEST:
        return f"exp(−∞ + FLT_MAX) / {art.fixed(d)}, which is 0 / 0"
    return f"exp(−∞ − (−∞)) / {art.fixed(d)}"


def words(rounds: Sequence[Round], at: int, tree: str, start: float) -> str:
    """Step `at` in words (marked words): who merges whom, and what comes of it."""
    empty = f"({_number(start)}, 0)"
    if not at:
        return f"Every {_noun(tree)} starts from the empty pair {empty}."
    each = rounds[at - 1]
    said = _does(rounds, at, tree, empty)
    for infinity in (-math.inf, math.inf):
        same = [t for t in each.alike if each.pairs[t][0] == infinity]
        if not same:
            continue
        sign = art.fixed(infinity)
        behind = f"({sign})" if infinity < 0 else sign
        if each.born:
            said += (
                f" **NaN is born in {_named(same, tree)}**: both maxima are {sign}, the factor is "
                f"exp({sign} − {behind}), and {sign} − {behind} is NaN."
            )
        else:
            said += f" In {_named(same, tree)} both maxima are {sign}: the guarded factor is 1."
    gone = [t for t in each.matter if lost(each.pairs[t])]
    if gone and len(gone) > len(each.born):
        all_of = len(gone) == len(each.matter)
        who = f"all of {_named(gone, tree)}" if all_of and len(gone) > 1 else _named(gone, tree)
        said += f" NaN stays and spreads: it is in {who} now."
    if at == len(rounds):
        m, d = each.pairs[0]
        if m <= LOWEST:
            said += " The row is masked whole, and NaN is what it has to give."
        else:
            said += " The row is lost." if lost((m, d)) else f" The row has {_pair(m, d)}."
    return said


def _does(rounds: Sequence[Round], at: int, tree: str, empty: str) -> str:
    each, s = rounds[at - 1], rounds[at - 1].stride
    number = sum(r.kind == "merge" for r in rounds[:at])
    if each.kind == "enter":
        who = [t for t, column in enumerate(each.source) if column is not None]
        idle = [t for t, column in enumerate(each.source) if column is None]
        columns = lane_list([c for c in each.source if c is not None]).replace("lane", "column")
        enters = "enters as a pair" if len(who) == 1 else "enter as pairs"
        said = f"{columns.capitalize()} {enters} (x, 1), in {_named(who, tree)}."
        rest = "has" if len(idle) == 1 else "have"
        return said + (f" {_named(idle, tree).capitalize()} {rest} none." if idle else "")
    if each.kind == "move":
        heads = [t for t, source in enumerate(each.source) if source is not None and source < BLOCK]
        return (
            f"Through shared memory {lane_list(heads)} of warp 0 take over a pair of each warp; "
            f"its {lane_list(range(len(heads), WARP))} hold {empty} again."
        )
    if tree == "fold":
        return f"Round {number}: lane 0 merges with lane {s}."
    if tree == "shared":
        who = (
            "thread 0 merges with thread 1"
            if s == 1
            else f"threads t = 0–{s - 1} merge with thread t + {s} each"
        )
        return f"Round {number}: {who}."
    where = (
        "" if tree != "warps" else " in warp 0" if each.source[WARP] is None else " in each warp"
    )
    return f"Round {number}{where}: lane l merges with lane l xor {s}."


def _named(who: Sequence[int], tree: str) -> str:
    """`lanes 15, 31`, or threads where there are more than a warp's."""
    return lane_list(who).replace("lane", _noun(tree))


def _noun(tree: str) -> str:
    return "lane" if merging.threads(tree) == WARP else "thread"


def _number(m: float) -> str:
    return "−FLT_MAX" if m == LOWEST else art.fixed(m)
