"""What holds for the frames of every stepper, as one assertion."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from softmax_lab import svg

SVG = "{http://www.w3.org/2000/svg}"


def check(frames: Sequence[svg.Svg]) -> None:
    """One view box, ids of their own, a name, words to be seen and heard, colours of the theme."""
    assert frames
    ids = [name for frame in frames for name in svg.ids(frame.markup)]
    assert len(set(ids)) == len(ids)
    assert len({re.search(r'viewBox="[^"]+"', frame.markup)[0] for frame in frames}) == 1
    for frame in frames:
        root = ET.fromstring(frame.markup)
        assert root.get("role") == "img"
        assert set(root.get("aria-labelledby").split()) <= set(svg.ids(frame.markup))
        assert root.find(f"{SVG}title").text
        assert root.find(f"{SVG}desc").text == frame.alt
        assert len(frame.note) > 20 and frame.kind in ("lab-frame", svg.DENSE)
        for text in root.iter(f"{SVG}text"):
            assert text.get("fill") == "currentColor"
            assert float(text.get("font-size")) >= 13
        assert not re.findall(r'(?:fill|stroke)="(#[^"]*)"', frame.markup)


def words(frame: svg.Svg) -> list[str]:
    """The texts that are drawn, in order."""
    return [text.text or "" for text in ET.fromstring(frame.markup).iter(f"{SVG}text")]
