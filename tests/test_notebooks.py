"""The book's sources: thin notebooks, no outputs, one list of chapters, no number typed, every
formula one that can be typeset."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
import typed_numbers
from markdown_it.tree import SyntaxTreeNode
from sphinx_external_toc.parsing import parse_toc_yaml
from test_architecture import VIEWS

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


@pytest.mark.parametrize("path", PROSE, ids=name)
def test_no_number_is_typed_in_prose(path):
    """Cure: emit the sentence from a cell; exact formulas, their units included, are maths."""
    assert typed_numbers.in_page(path) == []


@pytest.mark.parametrize("view", sorted(VIEWS))
def test_no_number_is_typed_in_a_sentence_of_the_package(view):
    source = (ROOT / "softmax_lab" / f"{view}.py").read_text(encoding="utf-8")
    assert typed_numbers.in_code(source, callers={"say", "Sentence", "fill"}) == []


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("It moves 96 MB, 12.5 % useful.", ["96 MB", "12.5 %"]),
        ("An 8× gain, or 8x, or 3 ×, 10-fold.", ["8×", "8x", "3 ×", "10-fold"]),
        ("It took 4.8 µs at 4800GB/s; 12\u00a0ns.", ["4.8 µs", "4800GB/s", "12\u00a0ns"]),
        ("In all 24 576 requests, 786,432 sectors, 1024 threads.", ["24 576", "786,432", "1024"]),
        ("From -5 GB to −5 GB, 1-2 kB, 5–10 %.", ["-5 GB", "−5 GB", "2 kB", "10 %"]),
        ("5 gigabytes, 700 watts, 9 bits", ["5 gigabytes", "700 watts", "9 bits"]),
        ("7 hours, 5 percent, 8 times as fast", ["7 hours", "5 percent", "8 times"]),
        ("3/4 of it, 0,5 of it, ½, .5 of it", ["3/4", "0,5", "½", ".5"]),
        ("1e6, 10^6, 10⁶, 10<sup>6</sup>, 10{sup}`6`", ["1e6", "10^6", "10⁶", "10^6", "10^6"]),
        ("64k rows, 16M, 256x1024, the 2048th", ["64k", "16M", "256x", "1024", "2048"]),
        ("CUDA 12 GB, version 4096 GB, in 2048", ["12 GB", "4096 GB", "2048"]),
        ("in 2016 columns, with 1920 pixels, a 40-byte row", ["2016", "1920 pixels", "40-byte"]),
    ],
)
def test_scanner_of_text(text, typed):
    assert typed_numbers.in_markdown(text) == typed


@pytest.mark.parametrize(
    "markdown",
    [
        "<p>It took @</p>",
        "<div><b>It</b> took <i>@</i>\n</div>",
        "It <b title='@'>took</b> long.",
        "<img alt='It took @' src='a.png'>",
        "![It took @](a-1.5.png)",
        "![It took long](a.png '@')",
        "[It](b.html '@') took long.",
        "[It took @]{.wide}",
        "# It took @",
        "| time |\n|--|\n| @ |",
        "Time\n: @",
        "It took long.[^a]\n\n[^a]: @",
        "It took {abbr}`@`.",
        "It took {term}`@ <time>`.",
        "It took {{ '@' }}.",
        "---\nmyst:\n  substitutions:\n    time: @\n---\n\nIt took {{ time }}.",
        "```{figure} a-1.5.png\n:alt: @\n```",
        "```{image} a-1.5.png\n:alt: @\n```",
        "```{figure} a-1.5.png\n---\nname: fig-1.5\n---\nIt took @.\n```",
        "```{figure} a-1.5.png\n---\nalt: @\n---\n```",
        "```{raw} html\n<p>@</p>\n```",
        "```{code-block} cuda\n:caption: It took @\nx = 1.5f;\n```",
        "```{glossary}\ntime\n  It took @.\n```",
        "::::{admonition} It took @\n:class: tip\nLong.\n::::",
        "````{note}\n```{tip}\nIt took @.\n```\n````",
        "```{code-cell} ipython3\nprose.say('It took @')\n```",
        "```{code-cell} ipython3\n:mystnb: {figure: {caption: It took @}}\nx\n```",
    ],
)
def test_scanner_looks_wherever_a_reader_does(markdown):
    assert typed_numbers.in_markdown(markdown.replace("@", "1.95 ms")) == ["1.95 ms"]
    assert typed_numbers.in_markdown(markdown.replace("@", "soon")) == []


@pytest.mark.parametrize(
    "markdown",
    [
        "$7$ GB",
        r"$\approx 7\,$ GB",
        "`7` GB",
        "**7** GB",
        r"7 $\mathrm{GB}$",
        "{math}`7` GB",
        "7&nbsp;GB",
        "7\nGB",
        "*7 GB*",
        "7 <b>GB</b>",
        "| size [GB] |\n|--|\n| 7 |",
    ],
)
def test_no_markup_parts_a_number_from_its_unit(markdown):
    (found,) = typed_numbers.in_markdown(markdown)
    assert found.split() == ["7", "GB"]


@pytest.mark.parametrize(
    "markdown",
    [
        "Three passes, 32 lanes, one warp, 2 reads, lane 31; lanes 1, 2 and 3.",
        "Since 2018 {cite:p}`milakov2018`, arXiv:1805.02867, <https://a.b/1234.5>, in the 1990s.",
        "Milakov & Gimelshein 2018; Dao et al. 2022, © 2026, on 2026-11-30, November 2026.",
        "A 32-byte sector, a 128-byte line, 4-byte floats, 32 bits, a 16-bit float.",
        "CUDA 12.9, RTX 3070, float32, H200, sm_90, fig-1024, compute capability 7.5.",
        "`x[1024]` is $1024 \\cdot 4.5$ and\n\n$$16 \\times 1.5\\,\\mathrm{GB}$$ (eq-a)\n\nso.",
        "$16MN$ bytes, $3MN / 20MN = 3/20$ FLOP/B, about $1/3$ in all.",
        "```cuda\nfloat a = 1.5f; // 1024 bytes\n```\n\n```{math}\n1.5 + 4096\n```",
        "Let [1](https://x.y/9.75) be {numref}`fig-1.5` <b style='width:10.5%'>bold</b>.",
        "<code>4096 GB</code> <!-- 1.95 ms -->\n\n<style>\n.a {width: 10.5%}\n</style>",
        "% 1.95 ms is a comment\n\n(eq-1.5)=\n## Of {eq}`eq-1.5`",
        "| size [GB] | n |\n|--|--|\n| `x` | 7 |\n\nOf 7 rows.",
    ],
)
def test_scanner_passes_over_the_rest(markdown):
    assert typed_numbers.in_markdown(markdown) == []


@pytest.mark.parametrize(
    ("code", "typed"),
    [
        ("prose.say('It took 1.95 ms')", ["1.95 ms"]),
        ("f'{name} took 1.95 ms, {share:.4f} of it'", ["1.95 ms"]),
        ("said = '1.95 ms'\nMarkdown(f'<p>{said} or 7 s</p>')", ["1.95 ms", "7 s"]),
        ("predict(q, ['4 sectors', '4 GB'], {'a': '5 s'})", ["4 GB", "5 s"]),
        ("'7' + ' GB'", ["7 GB"]),
        ("f\"{'7 GB'}\"", ["7 GB"]),
        ("f'{7} GB'", ["7 GB"]),
        ("'{}\u00a0GB'.format(7)", ["7 \u00a0GB"]),
        ("'%d GB' % 7", ["7 GB"]),
        ("prose.say('{size:GB} of {n}', size=7, n=4096)", ["7 GB", "4096"]),
        (r"prose.say('\\(7\\) GB')", ["7 GB"]),
        ('%matplotlib inline\nprint("""\n    7 GB\n    """)', ["7 GB"]),
        ("rows, cols = 256, 1024\nx[:4096] * 1.5", []),
        ("prose.say('{n} rows of {b:B}, {t:ms}', n=7, b=book.bytes, t=t)", []),
        (r"prose.say('`x[4096]` is \\(1.5 x\\), {v:.4f}', v=v)", []),
        ("f'{t:.3f} ms', '{} ms'.format(t), '%.3f ms' % t", []),
    ],
)
def test_scanner_of_code(code, typed):
    assert typed_numbers.in_code(code) == typed


def test_scanner_of_a_notebook(tmp_path):
    shown = {"figure": {"caption": "Of 7 GB"}, "image": {"alt": "6 GB", "width": "100%"}}
    cells = [
        nbformat.v4.new_code_cell("x", metadata={"mystnb": shown}),
        nbformat.v4.new_markdown_cell("5 GB"),
        nbformat.v4.new_raw_cell("4 GB"),
        nbformat.v4.new_code_cell("say('3 GB')"),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "a.ipynb")
    assert typed_numbers.in_page(tmp_path / "a.ipynb") == [f"{n} GB" for n in (7, 6, 5, 4, 3)]


# ---- Formulas ----


def prose(path: Path) -> Iterator[str]:
    """The Markdown texts of a page, the captions of its figures included."""
    if path.suffix == ".md":
        yield path.read_text(encoding="utf-8")
        return
    for cell in cells(path, "markdown"):
        yield cell.source
    for cell in cells(path, "code"):
        yield cell.metadata.get("mystnb", {}).get("figure", {}).get("caption", "")


def formulas(markdown: str) -> Iterator[tuple[str, bool]]:
    """(TeX, whether on a line of its own) of each formula of a text, those in directives too."""
    for node in SyntaxTreeNode(typed_numbers.PARSER.parse(markdown)).walk():
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


# ---- Terms ----

CHAPTERS = [ROOT / f"{page}.ipynb" for page in TOC if (ROOT / f"{page}.ipynb").exists()]
LINK = "\u27e6{}\u27e7"


def terms() -> list[str]:
    """What the glossary explains."""
    inside = (ROOT / "book" / "glossary.md").read_text("utf-8").partition("```{glossary}")[2]
    return [line for line in inside.splitlines() if re.match(r"\w", line)]


def told(source: str) -> str:
    """Running text of a Markdown cell; links to terms are LINKs, other roles, maths, code and
    headings are gone."""
    text = re.sub(r"^(?:#+ |:::|:class|```).*$", "", source, flags=re.MULTILINE)
    text = re.sub(r"\{term\}`(?:[^`<]*<)?([^`>]*)>?`", lambda match: LINK.format(match[1]), text)
    return re.sub(r"(?:\{[\w:-]+\})?`[^`]*`|\$\$.*?\$\$|\$[^$]*\$", "", text, flags=re.DOTALL)


def first_use(term: str, texts: list[str]) -> str | None:
    """The term as it first stands in the texts, with what is around it."""
    word = re.escape(term).replace(r"\-", "[- ]").replace(r"\ ", r"\s")
    plain = rf"(?<![\w\u27e6-]){word}(?:s|es)?(?![\w\u27e7-])"
    one = re.compile(
        f"{re.escape(LINK.format(term))}|{plain}", re.IGNORECASE if term.islower() else 0
    )
    for text in texts:
        if match := one.search(text):
            return match[0] + text[match.end() :][:60]
    return None


def test_every_term_is_a_link_where_a_reader_first_meets_it():
    texts = [told(cell.source) for path in CHAPTERS for cell in cells(path, "markdown")]
    found = {term: first_use(term, texts) for term in terms()}
    assert len(found) > 50
    assert {
        term: use for term, use in found.items() if not (use or "").startswith(LINK.format(term))
    } == {}


@pytest.mark.parametrize(
    ("texts", "use"),
    [
        (["A `warp` and {doc}`warp`", "of {term}`warps <warp>`"], LINK.format("warp")),
        (["Two warps of a {term}`warp`"], "warps of a \u27e6warp\u27e7"),
        (["# Warps\n\nwarped, $warp$"], None),
    ],
)
def test_scanner_of_terms(texts, use):
    assert first_use("warp", [told(text) for text in texts]) == use
