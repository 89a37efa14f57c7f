"""Excerpts of the kernels' own files, by tag, with their real line numbers."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CudaLexer

from softmax_lab import registry

_TAG = re.compile(r"\s*// <(?P<close>/?)(?P<name>[\w-]+)>\s*")


@dataclass(frozen=True)
class Excerpt:
    """Lines of one file; `lines` pairs the number of a line in the file with its text."""

    file: str
    lines: tuple[tuple[int, str], ...]

    @property
    def code(self) -> str:
        """The lines alone, without the indentation they share."""
        return textwrap.dedent("\n".join(line for _, line in self.lines))

    def _repr_html_(self) -> str:
        formatter = HtmlFormatter(nowrap=True, classprefix="")
        # The lexer would strip blank lines at either end, and line numbers would slip.
        painted = highlight(self.code, CudaLexer(stripnl=False, ensurenl=True), formatter).split(
            "\n"
        )
        numbered = "\n".join(
            f'<span class="lab-line" data-line="{number}">{line}</span>'
            for (number, _), line in zip(self.lines, painted, strict=False)
        )
        return (
            f'<figure class="lab-code"><figcaption><code>{self.file}</code>, {self.range}'
            "</figcaption>"
            f'<div class="highlight"><pre>{numbered}\n</pre></div></figure>'
        )

    def _repr_markdown_(self) -> str:
        return f"`{self.file}`, {self.range}\n\n```cuda\n{self.code}\n```"

    def __str__(self) -> str:
        return f"{self.file}, {self.range}\n{self.code}"

    __repr__ = __str__

    @property
    def range(self) -> str:
        """`line 3` or `lines 3–7`."""
        first, last = self.lines[0][0], self.lines[-1][0]
        return f"line {first}" if first == last else f"lines {first}–{last}"


def excerpt(name: str, tag: str | None = None) -> Excerpt:
    """The lines of a kernel between `// <tag>` and `// </tag>`, or its whole file, without tags.

    `"head"` is the comment that opens the file. Raises ValueError for a tag that the file does not
    open and close once.
    """
    kernel = registry.get(name)
    return _cut(kernel.path, f"kernels/{kernel.family.name}/{kernel.path.name}", tag)


def shared(tag: str | None = None, header: str = "common.cuh") -> Excerpt:
    """The lines of a header that kernels share, by tag as in `excerpt`."""
    return _cut(registry.kernel_folder() / header, f"kernels/{header}", tag)


def source_line(name: str, file: str, number: int) -> str:
    """One line of kernel `name`'s file, or of a header it includes, without its indentation and
    comment."""
    folder = registry.get(name).path.parent
    path = next(path for path in (folder / file, folder.parent / file) if path.is_file())
    lines = path.read_text(encoding="utf-8").splitlines()
    return lines[number - 1].partition("//")[0].strip()


def _cut(path: Path, file: str, tag: str | None) -> Excerpt:
    lines = list(enumerate(path.read_text(encoding="utf-8").splitlines(), start=1))
    if tag == "head":
        end = next(k for k, (_, line) in enumerate(lines) if not line.startswith("//"))
        return Excerpt(file, tuple(lines[:end]))
    first, last = (0, len(lines)) if tag is None else _bounds(lines, tag, file)
    chosen = [(number, line) for number, line in lines[first:last] if not _TAG.fullmatch(line)]
    if not chosen:
        raise ValueError(f"tag {tag!r} of {file} holds no line")
    return Excerpt(file, tuple(chosen))


def _bounds(lines: list[tuple[int, str]], tag: str, file: str) -> tuple[int, int]:
    found = [(k, match) for k, (_, line) in enumerate(lines) if (match := _TAG.fullmatch(line))]
    mine = [(k, match["close"]) for k, match in found if match["name"] == tag]
    if [close for _, close in mine] != ["", "/"]:
        there = sorted({match["name"] for _, match in found})
        raise ValueError(
            f"{file} must open and close tag {tag!r} once; its tags are {', '.join(there)}, head"
        )
    return mine[0][0] + 1, mine[1][0]
