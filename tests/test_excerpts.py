"""Excerpts are the file's own lines, under their own numbers."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest

from softmax_lab import registry
from softmax_lab.excerpts import excerpt, shared, source_line

TAG = re.compile(r"// <(/?)([\w-]+)>")


def tags(kernel) -> list[str]:
    return [name for close, name in TAG.findall(kernel.path.read_text()) if not close]


PARTS = [
    (name, tag) for name, kernel in registry.KERNELS.items() for tag in (*tags(kernel), "head")
]


@pytest.mark.parametrize(("name", "tag"), [*PARTS, *((name, None) for name in registry.KERNELS)])
def test_lines_are_those_of_the_file(name, tag):
    file = registry.get(name).path.read_text().splitlines()
    part = excerpt(name, tag)
    assert part.lines
    for number, line in part.lines:
        assert file[number - 1] == line
        assert not TAG.search(line)
    numbers = [number for number, _ in part.lines]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize(("name", "tag"), PARTS)
def test_html_holds_every_line_under_its_number(name, tag):
    part = excerpt(name, tag)
    shown = part._repr_html_()
    lines = re.findall(r'<span class="lab-line" data-line="(\d+)">(.*)</span>\n', shown)
    assert [int(number) for number, _ in lines] == [number for number, _ in part.lines]
    bare = [html.unescape(re.sub(r"<[^>]+>", "", line)) for _, line in lines]
    assert bare == part.code.split("\n")
    assert 'class="c1"' in shown or 'class="k' in shown  # Pygments' own short classes
    assert part.file in shown
    assert part.file in str(part)


def test_the_passes_of_naive():
    assert [tag in tags(registry.get("naive")) for tag in ("row", "max", "sum", "write")] == [
        True
    ] * 4
    assert "fmaxf" in excerpt("naive", "max").code
    assert not excerpt("naive", "max").code.startswith(" ")  # shared indentation is taken off
    assert excerpt("naive", "head").range == "lines 1–4"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("// <a>\nx\n", "open and close"),
        ("// </a>\nx\n// <a>\n", "open and close"),
        ("// <a>\nx\n// </a>\n// <a>\ny\n// </a>\n", "open and close"),
        ("// <a>\n// </a>\n", "no line"),
        ("// <b>\nx\n// </b>\n", "its tags are b, head"),
    ],
)
def test_a_wrong_tag_is_named(tmp_path, monkeypatch, text, complaint):
    folder = tmp_path / "softmax"
    folder.mkdir()
    (folder / "naive.cu").write_text(text)
    monkeypatch.setattr(registry, "kernel_folder", lambda: tmp_path)
    with pytest.raises(ValueError, match=complaint):
        excerpt("naive", "a")


def test_an_unknown_kernel_is_named():
    with pytest.raises(ValueError, match="naive"):
        excerpt("nonesuch")
    assert excerpt(replace(registry.get("naive")), "max").lines  # a Kernel serves as its name


@pytest.mark.parametrize("tag", ["max", "sum", None])
def test_shared_headers_have_excerpts_too(tag):
    file = (registry.kernel_folder() / "common.cuh").read_text().splitlines()
    part = shared(tag)
    assert part.file == "kernels/common.cuh"
    assert all(file[number - 1] == line for number, line in part.lines)
    assert "__shfl_down_sync" in part.code


def test_one_line_of_a_source():
    number = next(n for n, line in excerpt("warp", "pass").lines if "x[i]" in line)
    assert source_line("warp", "warp.cu", number) == "const float v = x[i];"
    number = next(n for n, line in shared("sum").lines if "down" in line)
    assert source_line("warp", "common.cuh", number).startswith("value += __shfl_down_sync")
