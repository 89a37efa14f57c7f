"""Frames of a real warp's steps, as the emulator executed them, beside what the models say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from softmax_lab import lane_art as art
from softmax_lab.coalescing import Request
from softmax_lab.excerpts import source_line
from softmax_lab.facts import ITEMSIZE, SECTOR, WARP
from softmax_lab.frames import FLOATS, lane_list, lanes_of_sectors, sector_box
from softmax_lab.prose import Sentence, say
from softmax_lab.replay import Replayed
from softmax_lab.shuffle_frames import NOUN
from softmax_lab.svg import DENSE, SURFACE, WIDTH, Svg, drawing, rect, text
from softmax_lab.units import number, percent

HEIGHT = 396
BOX_PITCH, ROW_PITCH = 178, 44
_SECTORS = 8  # two rows of four: a warp's load of neighbours touches five at most
_REGISTERS_Y = 254
_LOOP = re.compile(
    r"^for \([^)]*\) (?=\S)"
)  # a loop's head, where its body stands on the same line


def steps(replayed: Sequence[Replayed], kernel: str) -> tuple[Svg, ...]:
    """Each load, store and shuffle of a warp that ran `kernel`.

    Raises ValueError for an access of more than eight sectors, which the picture has no room for.
    """
    shown = [each for each in replayed if each.step.op in ("load", "store", "shuffle")]
    return tuple(_frame(each, kernel, k, len(shown)) for k, each in enumerate(shown, start=1))


def labels(replayed: Sequence[Replayed]) -> list[str]:
    """What a slider over `steps` calls its positions."""
    shown = [each for each in replayed if each.step.op in ("load", "store", "shuffle")]
    return [f"{k}: {_name(each)}" for k, each in enumerate(shown, start=1)]


def _name(each: Replayed) -> str:
    if each.step.op != "shuffle":
        return f"{each.step.op} {each.step.array}"
    if each.round.operator is None:
        return f"{each.operator}, broadcast"
    return f"{each.operator}, offset {each.step.argument}"


def _frame(each: Replayed, kernel: str, place: int, places: int) -> Svg:
    step = each.step
    code = source_line(kernel, step.file, step.line)
    body = [
        rect(0, 2, WIDTH, 30, SURFACE),
        text(8, 22, f"{step.file}:{step.line}", size=15, muted=True),
        f'<text x="142" y="22" font-size="14" style="font-family:monospace" fill="currentColor">'
        f"{escape(_LOOP.sub('… ', code))}</text>",
        text(8, 56, "lane 0", size=15, muted=True),
        text(710, 56, f"lane {WARP - 1}", anchor="end", size=15, muted=True),
    ]
    if step.op == "shuffle":
        words, rest = _shuffle(each)
    else:
        words, rest = _access(each)
    spoken = f"Step {place} of {places}. {words} Source: {step.file}, line {step.line}: {code}"
    return drawing(
        HEIGHT, f"{_name(each)}, step {place}", spoken, body + rest, note=escape(words), kind=DENSE
    )


def _access(each: Replayed) -> tuple[str, list[str]]:
    step, asked = each.step, each.request
    active = [lane for lane in range(WARP) if step.address[lane] is not None]
    _room(asked)
    kinds = ["live" if lane in active else "absent" for lane in range(WARP)]
    does = "reads" if step.op == "load" else "writes"
    body = art.squares(64, kinds)
    size = ITEMSIZE["float32"]
    touched = lanes_of_sectors([step.address[lane] for lane in active], size)
    body.append(
        text(
            8,
            110,
            f"sectors of {step.array}, at their byte: used floats solid, others hatched",
            size=15,
            muted=True,
        )
    )
    for slot, (sector, users) in enumerate(touched.items()):
        x, y = 8 + slot % 4 * BOX_PITCH, 134 + slot // 4 * ROW_PITCH
        body += sector_box(x, y + 5, {spot for _, spot in users})
        who = lane_list(active[k] for k, _ in users)
        body.append(text(x, y, f"{number(sector * SECTOR)}: {who}", size=15))
    body.append(
        text(
            8,
            _REGISTERS_Y - 10,
            f"what each lane {does}, and at which byte of {step.array}",
            size=15,
            muted=True,
        )
    )
    lines = [
        (art.brief(step.after[lane]), number(step.address[lane])) if lane in active else ("–", "")
        for lane in range(WARP)
    ]
    body += art.registers(_REGISTERS_Y, lines, kinds)
    verb = "read" if step.op == "load" else "write"
    who = f"{len(active)} lanes {verb}" if len(active) > 1 else f"1 lane {verb}s"
    same = "as the model says" if each.agrees else f"the model says {len(asked.sectors)}"
    words = (
        f"{who} {number(asked.useful_bytes)} bytes in {step.sectors} "
        f"sector{'' if step.sectors == 1 else 's'}, {same}: {percent(asked.efficiency)} of what "
        f"moves is used."
    )
    return words, body


def _shuffle(each: Replayed) -> tuple[str, list[str]]:
    step, model = each.step, each.round.shuffle
    live = set(each.round.meaningful)
    useful = ["live" if lane in live else "idle" for lane in range(WARP)]
    readers = {step.address[lane] for lane in live} | (live if each.round.operator else set())
    body = art.squares(64, ["live" if lane in readers else "idle" for lane in range(WARP)])
    body += art.wires(step.address, art.square_centre, 86, 192, live)
    body += art.squares(194, useful)
    body.append(
        text(
            8,
            _REGISTERS_Y - 10,
            "what each lane receives: executed above, simulated below",
            size=15,
            muted=True,
        )
    )
    lines = [
        (art.brief(real), art.brief(said))
        for real, said in zip(step.after, model.after, strict=True)
    ]
    kinds = ["lost" if lane in each.differing else useful[lane] for lane in range(WARP)]
    body += art.registers(_REGISTERS_Y, lines, kinds)
    noun = NOUN[each.operator]
    if each.round.operator is None:
        what = f"{noun[0].upper()}{noun[1:]}, broadcast: every lane reads lane 0."
    else:
        rounds = each.places - 1  # the last shuffle of a reduction is its broadcast
        what = (
            f"{noun[0].upper()}{noun[1:]}, round {each.place} of {rounds}: "
            f"lane l reads lane l + {step.argument}."
        )
    if each.differing:
        return f"{what} {lane_list(each.differing)} differ from the simulated shuffle.", body
    return f"{what} Executed and simulated are equal in all {WARP} lanes, bit for bit.", body


def _room(asked: Request) -> None:
    if len(asked.sectors) > _SECTORS:
        raise ValueError(
            f"an access of up to {_SECTORS} sectors of {FLOATS} floats is drawn, "
            f"got {len(asked.sectors)}"
        )


def agreement(replayed: Sequence[Replayed]) -> Sentence:
    """How much of a real warp's trace the models foretold."""
    accesses = [each for each in replayed if each.request is not None]
    moves = [each for each in replayed if each.round is not None]
    return say(
        "Sectors of {same} of {all} loads and stores are those of the model; {equal} of {moves} "
        "shuffles hand every lane the simulated value, bit for bit.",
        same=sum(each.agrees for each in accesses),
        all=len(accesses),
        equal=sum(each.agrees for each in moves),
        moves=len(moves),
    )
