"""Frames of a warp reduction: who reads whom, what each lane then holds, whose value matters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from softmax_lab import lane_art as art
from softmax_lab import shuffle
from softmax_lab.facts import WARP
from softmax_lab.frames import lane_list
from softmax_lab.prose import html, plain
from softmax_lab.shuffle import Round
from softmax_lab.svg import DENSE, Svg, drawing, text

HEIGHT = 324
"""One height for every frame, of 4 lanes and of 32, so that a page does not jump."""

NOUN = {"max": "maximum", "sum": "sum"}
_PLURAL = {"max": "maxima", "sum": "sums"}
_SIDE, _LEFT, _STEP = 64, 8, 104  # the few big squares: four fit on a phone without scrolling


def reduction(
    values: Sequence[float], operator: str, *, how: str = "down", mask: int | None = None
) -> tuple[Svg, ...]:
    """The start and each round of `shuffle.reduce` over 2 or 4 lanes (big squares) or a warp of 32.

    A lane that `mask` leaves out is dashed; who reads it gets an undefined value, drawn as "?".
    """
    lanes = len(values)
    if any(math.isnan(value) for value in values):
        raise ValueError("a reduction of numbers is drawn, for NaN would look undefined")
    if lanes not in (2, 4, WARP):
        raise ValueError(f"a reduction of 2, 4 or {WARP} lanes is drawn, got {lanes}")
    rounds = shuffle.reduce(values, operator, how=how, mask=mask)
    named = rounds[0].shuffle.mask
    present = {lane for lane in range(lanes) if named >> lane & 1}
    start = _start(rounds[0], operator, how, present)
    frames = [start]
    before = _live(present, rounds[0].shuffle.before)
    for each in rounds:
        frames.append(_round(each, how, present, before))
        before = _live(present & set(each.meaningful), each.values)
    return tuple(frames)


def labels(frames: Sequence[Svg]) -> list[str]:
    """What a slider over `reduction` calls its positions."""
    return ["start", *(f"round {k}" for k in range(1, len(frames)))]


def call(each: Round) -> str:
    """The shuffle as CUDA spells it."""
    moved = each.shuffle
    name = {"down": "__shfl_down_sync", "xor": "__shfl_xor_sync", "idx": "__shfl_sync"}[moved.kind]
    return f"{name}({moved.mask:#x}, value, {moved.argument})"


def _start(first: Round, operator: str, how: str, present: set[int]) -> Svg:
    held = first.shuffle.before
    lanes = len(held)
    ends = "and a broadcast" if how == "down" else "of a butterfly"
    words = (
        f"{lanes} lanes hold a value each{_few(held)}. Their {NOUN[operator]} takes "
        f"{lanes.bit_length() - 1} rounds {ends}."
    )
    if len(present) < lanes:
        missing = lane_list(set(range(lanes)) - present)
        words += f" The mask leaves out {missing}."
    kinds = _kinds(held, present, present)
    head = f"{NOUN[operator]} of {lanes} lanes"
    return _draw(head, words, held, held, kinds, None, None, held, kinds)


def _round(each: Round, how: str, present: set[int], before: set[int]) -> Svg:
    moved, lanes = each.shuffle, len(each.values)
    live = _live(present & set(each.meaningful), each.values)
    lost = {lane for lane in range(lanes) if moved.undefined[lane]}
    words = f"{_who(each, lanes)}"
    if each.operator:
        done, noun = each.useful == 1 and how == "down" and not lost, _PLURAL[each.operator]
        if how == "down":
            needed = f"{each.useful} {'is' if each.useful == 1 else 'are'} needed"
            use = f"Of {each.executed} {noun} {needed}"
        else:
            use = f"{each.executed} {noun}, where a tree takes {each.useful}"
        words += f". {use}"
        if live:
            kept = "the result is in" if done else "what counts is in"
            values = _few([each.values[lane] for lane in sorted(live)])
            words += f": {kept} {lane_list(live)}{values}"
        words += "."
    elif math.isnan(each.values[0]):
        words += ", and it is undefined."
    else:
        words += f": {art.fixed(each.values[0])}."
    if lost:
        read = "reads" if len(lost) == 1 else "read"
        words += f" {_upper(lane_list(lost))} {read} an absent lane: undefined."
    received = _kinds(moved.after, present, live, lost)
    after = _kinds(each.values, present, live)
    held = _kinds(moved.before, present, before)
    return _draw(
        call(each),
        words,
        moved.before,
        moved.after,
        held,
        each,
        (received, live, lost),
        each.values,
        after,
    )


def _who(each: Round, lanes: int) -> str:
    moved = each.shuffle
    if moved.kind == "idx":
        who = "Every lane that the mask names" if None in moved.source else "Every lane"
        return f"{who} receives the value of lane {moved.argument}, a broadcast"
    if moved.kind == "xor":
        return f"Lane l reads lane l xor {moved.argument}"
    own = [lane for lane in range(lanes) if moved.source[lane] == lane]
    keep = "keeps its" if len(own) == 1 else "keep their"
    return f"Lane l reads lane l + {moved.argument}" + (
        f", {lane_list(own)} {keep} own" if own else ""
    )


def _live(meaningful: set[int], values: Sequence[float]) -> set[int]:
    return {lane for lane in meaningful if not math.isnan(values[lane])}


def _kinds(
    values: Sequence[float], present: set[int], live: set[int], lost: set[int] = frozenset()
) -> list[str]:
    def kind(lane: int) -> str:
        if lane not in present:
            return "absent"
        if lane in lost or math.isnan(values[lane]):
            return "lost"
        return "live" if lane in live else "idle"

    return [kind(lane) for lane in range(len(values))]


def _few(values: Sequence[float]) -> str:
    if len(values) > 4:
        return ""
    written = [("?" if math.isnan(v) else art.fixed(v)) for v in values]
    return f" ({', '.join(written)})"


def _upper(words: str) -> str:
    return words[0].upper() + words[1:]


def _draw(head, words, held, received, held_kinds, each, wiring, values, kinds) -> Svg:
    small = len(held) == WARP
    body = (_warp if small else _big)(head, held, received, held_kinds, each, wiring, values, kinds)
    spoken = ", ".join(
        f"lane {lane} {'undefined' if math.isnan(v) else art.fixed(v)}"
        for lane, v in enumerate(values)
    )
    said = f"{plain(words)} After it: {spoken}."
    kind = DENSE if small else "lab-frame"
    return drawing(HEIGHT, plain(head), said, body, note=html(words), kind=kind)


def _big(head, held, received, held_kinds, each, wiring, values, kinds) -> list[str]:
    lanes = len(held)

    def left(lane: int) -> float:
        return _LEFT + _STEP * lane

    def row(y: float, label: str, shown: Sequence[float], looks: Sequence[str]) -> list[str]:
        out = [text(left(lanes) + 8, y + 38, label)]
        for lane, (value, kind) in enumerate(zip(shown, looks, strict=True)):
            out.append(art.register(left(lane), y, _SIDE, _SIDE, kind))
            word = "?" if kind == "lost" else art.fixed(value)
            out.append(
                text(left(lane) + _SIDE / 2, y + 38, word, anchor="middle", muted=kind == "idle")
            )
        return out

    body = [text(8, 22, head)]
    body += [
        text(left(lane) + _SIDE / 2, 46, f"lane {lane}", anchor="middle", size=15, muted=True)
        for lane in range(lanes)
    ]
    body += row(54, "held", held, held_kinds)
    if each is None:
        return body + [
            art.register(left(lane), y, _SIDE, _SIDE, "absent")
            for y in (160, 248)
            for lane in range(lanes)
        ]
    got_kinds, live, lost = wiring
    body += art.wires(
        each.shuffle.source, lambda lane: left(lane) + _SIDE / 2, 120, 158, live, lost
    )
    body += row(160, "received", received, got_kinds)
    if each.operator:
        body += row(248, f"{NOUN[each.operator]} of both", values, kinds)
    return body


def _warp(head, held, received, held_kinds, each, wiring, values, kinds) -> list[str]:
    body = [text(8, 22, head), text(8, 48, "lane 0", size=15, muted=True)]
    body.append(text(710, 48, f"lane {WARP - 1}", anchor="end", size=15, muted=True))
    body += art.squares(56, held_kinds)
    if each is not None:
        _, live, lost = wiring
        body += art.wires(each.shuffle.source, art.square_centre, 78, 156, live, lost)
        body += art.squares(158, kinds)
    else:
        body += art.squares(158, ["absent"] * WARP)
    label = "after the round" if each is not None else "at the start"
    body.append(text(8, 204, f"{label}, lane by lane", size=15, muted=True))
    shown = [
        ("?" if kind == "lost" else art.brief(v),) for v, kind in zip(values, kinds, strict=True)
    ]
    return body + art.registers(214, shown, kinds)
