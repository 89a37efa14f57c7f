"""The book's sources: thin notebooks, no outputs, one list of chapters, no number typed, every
formula one that can be typeset."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from markdown_it.renderer import RendererHTML
from markdown_it.tree import SyntaxTreeNode
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser
from sphinx_external_toc.parsing import parse_toc_yaml

from softmax_lab import facts
from softmax_lab.mathml import mathml

ROOT = Path(__file__).resolve().parent.parent
TOC = parse_toc_yaml(ROOT / "_toc.yml")
NOTEBOOKS = sorted((ROOT / "book").rglob("*.ipynb"))
PROSE = [*NOTEBOOKS, *sorted((ROOT / "book").rglob("*.md"))]
MAX_LINES = 12  # of a code cell: what is longer belongs in the package
FORBIDDEN = ("import cupy", "from cupy", "import matplotlib", "from matplotlib", "__global__")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def cells(path: Path, kind: str) -> list:
    notebook = nbformat.read(path, as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == kind]


def test_toc_and_folder_name_the_same_chapters():
    listed = set(TOC)
    there = {name(path.with_suffix("")) for path in PROSE}
    assert NOTEBOOKS
    assert listed == there


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name)
def test_notebook_is_committed_clean(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert "widgets" not in notebook.metadata
    for cell in cells(path, "code"):
        assert not cell.outputs, f"outputs are committed:\n{cell.source}"
        assert cell.execution_count is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name)
def test_cells_are_thin(path):
    for cell in cells(path, "code"):
        assert len(cell.source.splitlines()) <= MAX_LINES, cell.source
        for word in FORBIDDEN:
            assert word not in cell.source, f"{word!r} in a cell:\n{cell.source}"


# ---- Numbers in prose ----

SPACE = r"[ \u00a0\u202f]"
EXEMPT_NAMES = rf"(?:CUDA|Python|NumPy|CuPy|NVRTC|Jupyter Book|RTX|GTX|CC BY|Apache|version){SPACE}"
UNIT = (
    r"(?:[kKMGTP]?i?B(?:/s)?|bytes?|bits?/s|[KMGT]?FLOPs?(?:/[Bs])?|[GT]FLOPS|op/B|[nµμm]?s|us"
    r"|seconds?|minutes?|hours?|[kMG]?Hz|W|cycles?|percent|fold)(?!\w)"
)
NUMBER = re.compile(
    rf"(?<![\w.,/#-])(?P<number>\d(?:[\d,]|{SPACE}(?=\d))*(?:\.\d+)?)(?:e[+-]?\d+)?"
    rf"(?P<unit>(?:{SPACE}|-)?(?:%|×|x(?!\w)|{UNIT}))?(?!\w)"
)
# What the architecture is named by: true of every GPU the book runs on, and constants of `facts`.
ARCHITECTURE = {f"{size}-byte" for size in (facts.SECTOR, facts.LINE, *facts.ITEMSIZE.values())}
NOT_PROSE = {"code", "code-block", "code-cell", "math", "bibliography", "image", "literalinclude"}
PARSER = create_md_parser(
    MdParserConfig(enable_extensions={"amsmath", "colon_fence", "deflist", "dollarmath"}),
    RendererHTML,
)


def sentences(markdown: str) -> Iterator[str]:
    """What a reader reads as text in `markdown`: no code, maths, roles, addresses or options."""
    for token in PARSER.parse(markdown):
        if token.type == "inline":
            read = {"text": None, "softbreak": "\n", "hardbreak": "\n"}
            yield "".join(read.get(child.type, " ") or child.content for child in token.children)
            continue
        directive = re.match(r"\{([\w:-]+)\}(.*)", token.info.strip())
        if directive and directive[1] not in NOT_PROSE:
            yield directive[2]
            yield from sentences(re.sub(r"\A(\s*:[\w-]+:.*\n)+", "", token.content))


def typed_numbers(markdown: str) -> list[str]:
    """Numbers of `markdown` to compute instead: with a unit, %, × or point, or of ≥ 4 digits."""
    text = "\n\n".join(sentences(markdown))
    text = re.sub(r"(?:https?://|arXiv:|doi:)\S+", " ", text)
    text = re.sub(rf"{EXEMPT_NAMES}\d[\d.]*", " ", text)
    found = []
    for match in NUMBER.finditer(text):
        whole, number, unit = match[0].strip(), match["number"], match["unit"]
        year = re.fullmatch(r"(19|20)\d\d", number) and not unit
        if year or re.sub(SPACE, "-", whole) in ARCHITECTURE:
            continue
        if unit or "." in number or len(re.sub(r"\D", "", number)) >= 4:
            found.append(whole)
    return found


def prose(path: Path) -> Iterator[str]:
    """The Markdown texts of a page, the captions of its figures included."""
    if path.suffix == ".md":
        yield path.read_text(encoding="utf-8")
        return
    for cell in cells(path, "markdown"):
        yield cell.source
    for cell in cells(path, "code"):
        yield cell.metadata.get("mystnb", {}).get("figure", {}).get("caption", "")


@pytest.mark.parametrize("path", PROSE, ids=name)
def test_no_number_is_typed_in_prose(path):
    """Cure: emit the sentence from a cell; exact formulas belong in maths."""
    assert [number for text in prose(path) for number in typed_numbers(text)] == []


@pytest.mark.parametrize(
    ("markdown", "typed"),
    [
        ("It moves 96 MB, 12.5 % useful.", ["96 MB", "12.5 %"]),
        ("An 8× gain, or 8x, or 3 ×.", ["8×", "8x", "3 ×"]),
        ("It took 4.8 µs at 4800GB/s; 12\u00a0ns.", ["4.8 µs", "4800GB/s", "12\u00a0ns"]),
        ("In all 24 576 requests, 786,432 sectors, 1024 threads.", ["24 576", "786,432", "1024"]),
        ("## Why 0.25 FLOP/B\n\n| a |\n|--|\n| 1.5 |", ["0.25 FLOP/B", "1.5"]),
        ("```{note} About 7.5 s\n:class: tip\nIt is 9 bytes.\n```", ["7.5 s", "9 bytes"]),
        (":::{tip}\nA 40-byte row.\n:::", ["40-byte"]),
        ("Three passes, 32 lanes, one warp, 2 reads, lane 31.", []),
        ("Since 2018 {cite:p}`milakov2018`, arXiv:1805.02867, <https://a.b/1234.5>.", []),
        (
            "A 32-byte sector, a 128-byte line, 4-byte floats; CUDA 12.9, RTX 3070, float32, H200.",
            [],
        ),
        (
            "`x[1024]` is $1024 \\cdot 4.5$ and\n\n$$16 \\times 1.5\\,\\mathrm{GB}$$ (eq-a)\n\nso.",
            [],
        ),
        ("```cuda\nfloat a = 1.5f; // 1024 bytes\n```\n\n```{math}\n1.5 + 4096\n```", []),
        ("Let [1](https://x.y/9.75) be {numref}`fig-1.5` <b style='width:10.5%'>bold</b>.", []),
    ],
)
def test_scanner_of_prose(markdown, typed):
    assert typed_numbers(markdown) == typed


# ---- Formulas ----


def formulas(markdown: str) -> Iterator[tuple[str, bool]]:
    """(TeX, whether on a line of its own) of each formula of a text, those in directives too."""
    for node in SyntaxTreeNode(PARSER.parse(markdown)).walk():
        if node.type in ("math_inline", "math_block", "math_block_label", "amsmath"):
            yield node.content, node.type != "math_inline"
        elif node.type in ("fence", "colon_fence") and node.info.startswith("{"):
            yield from formulas(node.content)


def unreadable(markdown: str) -> list[str]:
    """Formulas of `markdown` that cannot be typeset."""
    wrong = []
    for tex, display in formulas(markdown):
        try:
            mathml(tex, display=display)
        except ValueError as error:
            wrong.append(str(error))
    return wrong


@pytest.mark.parametrize("path", PROSE, ids=name)
def test_every_formula_can_be_typeset(path):
    assert [fault for text in prose(path) for fault in unreadable(text)] == []


def test_scanner_of_formulas():
    text = "$a$ and\n\n$$b$$ (eq-b)\n\n:::{note}\nSay $c$.\n:::\n\n```{tip}\n$$\n\\foo\n$$\n```\n\n"
    text += "`$no$`\n\n```python\n$no$\n```\n\nword\n: means $d$\n"
    found = [(tex.strip(), display) for tex, display in formulas(text)]
    assert found == [("a", False), ("b", True), ("c", False), (r"\foo", True), ("d", False)]
    assert [r"\foo" in fault for fault in unreadable(text)] == [True]
    assert sum(len(list(formulas(text))) for path in PROSE for text in prose(path)) > 100
