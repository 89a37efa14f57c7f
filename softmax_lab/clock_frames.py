"""Four ways to hold a clock to a launch, drawn: what host and GPU do, and which span is read."""

from __future__ import annotations

from softmax_lab.series import CLOCKS
from softmax_lab.svg import LINE, SURFACE, WIDTH, Svg, colour, drawing, rect, text, tint

HEIGHT = 216
_HOST, _GPU, _BOX, _LEFT = 44, 108, 40, 72
NAMES = ("call returns", "GPU is done", "two events", "a graph")
_WORDS = {
    "call": "The call returns as soon as the launch is queued. The GPU has hardly begun, so the "
    "clock has read **the host's work** and nothing of the kernel.",
    "wait": "The host waits until the GPU is done. The kernel is in the reading now, and so are "
    "the **call before it and the way back after it**.",
    "events": "The GPU itself notes the time at two marks in its queue. But it passes the first "
    "mark at once and then **waits for the launch to arrive**: the gap is in the reading.",
    "graph": "The host hands over a whole graph with one call. The gap comes once, the kernels "
    "follow on each other, and **the reading is divided by their number**.",
}


def frames() -> dict[str, Svg]:
    """A drawing for each clock, by a name short enough for a slider; spans are not to scale."""
    return {name: frame(clock) for name, clock in zip(NAMES, CLOCKS, strict=True)}


def frame(clock: str) -> Svg:
    """Host and GPU along a line of time for one clock of `series.CLOCKS`."""
    if clock not in CLOCKS:
        raise ValueError(f"a clock is {', '.join(CLOCKS)}, got {clock!r}")
    marks = clock in ("events", "graph")
    call = 132 if marks else 80  # where the call begins: after the record of the first event
    arrived = call + 130
    kernels = [(arrived + 62 * k, 60) for k in range(6)] if clock == "graph" else [(arrived, 280)]
    done = kernels[-1][0] + kernels[-1][1]
    body = [text(8, _HOST + 26, "host"), text(8, _GPU + 26, "GPU")]
    body += [
        f'<path d="M{_LEFT} {y + _BOX + 4}H{WIDTH - 8}" stroke="{LINE}"/>' for y in (_HOST, _GPU)
    ]
    body += _box(call, _HOST, 96, "launch", tint("green"), colour("green"))
    body.append(
        f'<path d="M{call + 96} {_HOST + _BOX}L{arrived} {_GPU}" stroke="currentColor" '
        'stroke-dasharray="4 3" fill="none"/>'
    )
    for k, (x, width) in enumerate(kernels):
        word = "kernel" if len(kernels) == 1 else str(k + 1)
        body += _box(x, _GPU, width, word, tint("blue"), colour("blue"))
    span = {"call": (call, call + 96), "wait": (call, done + 34)}.get(clock, (84, done))
    if clock == "wait":
        body += _box(call + 98, _HOST, done + 34 - call - 98, "waits", SURFACE, LINE)
    if marks:
        for at in (84, done):
            body.append(
                f'<path d="M{at} {_GPU - 12}v{_BOX + 20}" stroke="{colour("vermillion")}" '
                'stroke-width="4"/>'
            )
        body += _box(76, _HOST, 48, "mark", tint("vermillion"), colour("vermillion"))
        body += _box(call + 104, _HOST, 48, "mark", tint("vermillion"), colour("vermillion"))
    body += _span(*span)
    plain = _WORDS[clock].replace("**", "")
    said = _WORDS[clock].replace("**", "<b>", 1).replace("**", "</b>", 1)
    return drawing(HEIGHT, f"Clock: {CLOCKS[clock]}", f"{CLOCKS[clock]}. {plain}", body, note=said)


def _box(x: float, y: float, width: float, word: str, ground: str, line: str) -> list[str]:
    words = text(x + width / 2, y + 26, word, anchor="middle", size=15)
    return [rect(x, y, width, _BOX, ground, line, stroke_width="2"), words]


def _span(start: float, end: float) -> list[str]:
    y = _GPU + _BOX + 22
    return [
        f'<path d="M{start} {y - 8}v16M{start} {y}H{end}M{end} {y - 8}v16" '
        f'stroke="{colour("orange")}" stroke-width="4" fill="none"/>',
        text((start + end) / 2, y + 28, "what the clock reads", anchor="middle", size=16),
    ]
