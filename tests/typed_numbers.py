"""Finds numbers that were typed where a reader reads prose, and should have been computed.

`in_markdown`, `in_code` and `in_page` give each such number as it stands there: one with a unit, %,
× or decimal point, or of four digits or more. Years, dates, citations and names of versions are
exempt, and so are code and maths, unless what follows them is a unit.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import yaml
from markdown_it.renderer import RendererHTML
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser

from softmax_lab import facts

ROOT = Path(__file__).resolve().parent.parent
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))

# ---- In plain text ----

ELSEWHERE = "\ufffc"  # code, maths, a role or a computed value
# A number that is set as maths or as code, in digits of its own: it counts only before a unit.
SET = {ord(str(digit)): chr(0xE000 + digit) for digit in range(10)}
PLAIN = {ord(there): chr(here) for here, there in SET.items()}
DIGIT = "[\ue000-\ue009]"

WORD = (
    r"(?:kilo|mega|giga|tera|peta|kibi|mebi|gibi|tebi|milli|micro|nano|pico)?-?"
    r"(?:bytes?|bits?|seconds?|secs?|watts?|hertz|joules?|volts?|amperes?|met(?:re|er)s?|flops?)"
    r"|min(?:ute)?s?(?!\()|hours?|days?|weeks?|months?|cycles?|ticks?|pixels?|degrees?|dollars?"
    r"|euros?|percent(?:age points)?|per cent|fold|times(?= (?:as|the|more|less|faster|\w+er)\b)"
)
SYMBOL = (
    r"[kKMGTPE]?i?B(?:/s|ps)?|[kKMGT]?i?b(?:it)?(?:s?/s|ps)|[kMGT]bit|[kKMGTPE]?(?:FLOP|OP|op)[sS]?"
    r"(?:/[sBW])?|[kMG]T/s|[npµμm]?s|us|h|[kMGT]?Hz|[mkM]?Wh?|[mkM]?J|[mk]?V|[nµμmck]m|px|dB|ppm"
    r"|°C|[A-Za-z]+/(?:s|B|W)"
)
UNIT = rf"(?:%|‰|€|×|x(?![\w(\[])|°(?!C)|(?i:{WORD})(?!\w)|(?:{SYMBOL})(?!\w))"
AFTER = rf"(?:\s{{0,2}}|-|\s?\[){UNIT}"
WHOLE = r"(?:\d{1,3}(?:[,'\u2019 \u00a0\u2009\u202f]\d{3})+(?!\d)|\d+(?:_\d+)*)"
POWER = r"(?:[eE][+-]?\d+|\^\{?[-−]?\d+\}?|[⁻⁰¹²³⁴-⁹]+)"
NUMBER = re.compile(
    rf"(?:(?<![\w#])(?<![^\W\d]-)|(?<=\dx)(?<!\b0x))[-−]?"
    rf"(?P<number>(?P<whole>{WHOLE})(?P<part>(?:[.,/]\d+)+|\s?[¼-¾⅐-⅞])?|(?P<less>\.\d+|[¼-¾⅐-⅞]))"
    rf"(?P<power>{POWER})?(?P<unit>{AFTER}|x(?=\d)|[kKMGT](?!\w))?"
    rf"|(?P<set>{DIGIT}(?:[^\s\w{ELSEWHERE}]|{DIGIT})*){AFTER}"
)
NAME = re.compile(
    r"(?:(CUDA|Python|NumPy|CuPy|NVRTC|Jupyter Book|Ubuntu|Debian|CC BY|Apache|version|capability)"
    r"|RTX|GTX)\s$"
)
VERSION = re.compile(r"\d{1,3}(?:\.\d+)*")
YEAR = re.compile(r"19\d\d|20[0-3]\d")
BEFORE_YEAR = re.compile(
    r"(?:\b(?i:in|since|of|from|by|until|before|after|and|to|year)\s|[©(,–]\s?"
    r"|(?:\b[A-Z][\w\u2019-]*|\bal\.)\s)$"
)
COUNTED = re.compile(
    r"\s(?:rows|columns|threads|lanes|elements|floats|blocks|sectors|warps|requests|launches)\b"
)
# What the architecture is named by: true of every GPU the book runs on, and constants of `facts`.
ARCHITECTURE = {f"{size}-byte" for size in (facts.SECTOR, facts.LINE, *facts.ITEMSIZE.values())}
ARCHITECTURE |= {f"{8 * size}-bit{s}" for size in (1, 2, 4, 8) for s in ("", "s")}


def in_text(text: str) -> list[str]:
    """Typed numbers of plain text, in which code and maths are ELSEWHERE or in SET digits."""
    text = re.sub(r"(?:https?://|arXiv:|doi:)\S+", ELSEWHERE, text)
    text = re.sub(r"\b\d{4}-\d\d-\d\d\b|\bthe (?:19|20)\d0s\b", ELSEWHERE, text)  # dates
    found = []
    for match in NUMBER.finditer(text):
        whole = match[0].translate(PLAIN).strip()
        if match["set"] is None and not _counts(match, text[: match.start()], text[match.end() :]):
            continue
        if re.sub(r"\s", "-", whole) not in ARCHITECTURE:
            found.append(whole)
    return found


def _counts(match: re.Match, before: str, after: str) -> bool:
    if match["unit"] or match["less"] or match["power"]:
        return True
    number = match["number"]
    if (name := NAME.search(before)) and (VERSION.fullmatch(number) or not name[1]):
        return False
    if YEAR.fullmatch(number) and BEFORE_YEAR.search(before):
        return bool(COUNTED.match(after))
    return bool(match["part"]) or len(re.sub(r"\D", "", number)) >= 4


def _opaque(text: str, maths: bool) -> str:
    """Code or maths within a line: a bare number keeps its place, for a unit may follow."""
    bare = re.sub(r"\\[A-Za-z]+|\\[,;:! ]|[{}~\s]", "", text) if maths else text.strip()
    if maths and (unit := re.fullmatch(rf"(?:\\(?:mathrm|text)\{{)?({UNIT})\}}?", text.strip())):
        return f" {unit[1]}"
    if re.fullmatch(r"[-−+≈~<>=()]*\d[\d.,/^+*=()≈−-]*", bare):
        return bare.translate(SET)
    return ELSEWHERE


# ---- In HTML ----


class _Shown(HTMLParser):
    """The text that HTML shows, its labels and titles included; code is ELSEWHERE."""

    HIDDEN = ("code", "pre", "script", "style", "kbd", "samp", "math")
    INLINE = tuple("a abbr b bdi cite del em font i ins mark q s small span strong sub u".split())
    SHOWN = ("alt", "title", "aria-label", "placeholder", "label", "summary")

    def __init__(self):
        super().__init__()
        self.text, self.hidden = "", 0

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.text += "".join(f"\n\n{values[k]}\n\n" for k in self.SHOWN if values.get(k))
        if tag in self.HIDDEN:
            self.hidden += 1
            self.text += ELSEWHERE
        elif tag == "sup":
            self.text += "^"
        elif tag not in self.INLINE:
            self.text += "\n\n"

    def handle_endtag(self, tag):
        if tag in self.HIDDEN:
            self.hidden = max(0, self.hidden - 1)
        elif tag not in self.INLINE and tag != "sup":
            self.text += "\n\n"

    def handle_data(self, data):
        if not self.hidden:
            self.text += data


def _shown(html: str) -> str:
    parser = _Shown()
    parser.feed(html)
    parser.close()
    return parser.text


# ---- In Markdown ----

PARSER = create_md_parser(
    MdParserConfig(enable_extensions=set(CONFIG["parse"]["myst_enable_extensions"])), RendererHTML
)
# Directives of which a reader sees no argument; of the second kind no text of a body either.
PATHS = {"figure", "image", "include", "literalinclude", "toctree", "raw", "code-cell"}
NOT_PROSE = {
    "code",
    "code-block",
    "sourcecode",
    "literalinclude",
    "math",
    "bibliography",
    "toctree",
}
# Roles whose text is a name to look up, not words to read.
LOOKED_UP = re.compile(r"eq|math|code|(?:num)?ref|doc|download|file|cite\b.*|.*:.*")
SHOWN_OPTIONS = {"alt", "caption", "title", "header", "code_prompt_show", "code_prompt_hide"}


def in_markdown(markdown: str) -> list[str]:
    """Typed numbers of a page or a cell in MyST Markdown."""
    return [number for text in _sentences(markdown) for number in _numbers(text)]


def _numbers(text: str | list[str]) -> list[str]:
    return text if isinstance(text, list) else in_text(text)


def _sentences(markdown: str) -> Iterator[str | list[str]]:
    """What a reader reads as text, a piece a paragraph or cell; of code cells the numbers found."""
    units: dict[int, str] = {}  # of a table's columns, from the brackets in their heads
    column, head = 0, False
    for token in PARSER.parse(markdown):
        match token.type:
            case "table_open" | "table_close":
                units = {}
            case "tr_open":
                column = -1
            case "th_open" | "td_open":
                column, head = column + 1, token.type == "th_open"
            case "th_close":
                head = False
            case "inline":
                text = _line(token.children)
                if head and (unit := re.search(rf"[\[(]({UNIT})[\])]", text)):
                    units[column] = unit[1]
                yield text if head else f"{text} {units.get(column, '')}"
            case "html_block":
                yield _shown(token.content)
            case "front_matter":
                yield from _values(yaml.safe_load(token.content) or {}, {"substitutions"})
            case "substitution_block":
                yield token.content
            case "fence" | "colon_fence":
                yield from _directive(token.info.strip(), token.content)


def _line(tokens) -> str:
    shown = _Shown()
    for token in tokens:
        match token.type:
            case "text":
                shown.handle_data(token.content)
            case "softbreak" | "hardbreak":
                shown.handle_data("\n")
            case "html_inline":
                shown.feed(token.content)
            case "code_inline":
                shown.handle_data(_opaque(token.content, maths=False))
            case "math_inline" | "math_inline_double":
                shown.handle_data(_opaque(token.content, maths=True))
            case "myst_role":
                shown.handle_data(_role(token.meta["name"], token.content))
            case "substitution_inline":
                shown.handle_data(f" {token.content} ")
            case "image":
                shown.text += f"\n\n{_line(token.children)}\n\n{token.attrs.get('title', '')}\n\n"
            case "link_open":
                shown.text += f"\n\n{token.attrs['title']}\n\n" if "title" in token.attrs else ""
            case kind if not kind.endswith(("_open", "_close")):
                shown.handle_data(ELSEWHERE)
    return shown.text


def _role(name: str, content: str) -> str:
    if name in ("sub", "sup"):
        return ("^" if name == "sup" else "") + content
    if name == "math":
        return _opaque(content, maths=True)
    if titled := re.fullmatch(r"(.+?)\s*<[^<>]*>", content, re.DOTALL):
        return titled[1]
    return ELSEWHERE if LOOKED_UP.fullmatch(name) else content


def _directive(info: str, content: str) -> Iterator[str | list[str]]:
    head = re.match(r"\{([\w:.-]+)\}\s*(.*)", info)
    if not head:
        return  # a block of code
    name, argument = head.groups()
    options, body = _options(content)
    for text in _values(options, SHOWN_OPTIONS):
        yield from _sentences(text)
    if name not in PATHS | NOT_PROSE:
        yield from _sentences(argument)
    if name == "code-cell":
        yield in_code(body)
    elif name == "raw":
        yield _shown(body)
    elif name not in NOT_PROSE:
        yield from _sentences(body)


def _options(content: str) -> tuple[dict[str, Any], str]:
    """Options of a directive, in either of their two forms, and its body."""
    if block := re.match(r"\s*---\n(.*?)\n---\n?", content, re.DOTALL):
        return yaml.safe_load(block[1]) or {}, content[block.end() :]
    options = {}
    while line := re.match(r"\s*:([\w-]+):[ \t]*(.*)\n?", content):
        text = line[2]
        options[line[1]] = yaml.safe_load(text) if text[:1] in ("{", "[", '"', "'") else text
        content = content[line.end() :]
    return options, content


def _values(tree: Any, keys: set[str], taken: bool = False) -> Iterator[str]:
    """The texts below any of `keys` in nested dictionaries."""
    match tree:
        case Mapping():
            for key, value in tree.items():
                yield from _values(value, keys, taken or key in keys)
        case list():
            for value in tree:
                yield from _values(value, keys, taken)
        case str() if taken:
            yield tree


# ---- In Python ----


def in_code(source: str, *, callers: set[str] | None = None) -> list[str]:
    """Typed numbers in the texts of Python code, and those handed to a text; `callers` restricts it
    to what functions of these names are given."""
    lines = [line for line in source.splitlines() if not line.lstrip().startswith(("%", "!"))]
    tree, speech = ast.parse("\n".join(lines)), _Speech()
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    heard = [tree] if callers is None else [node for node in calls if _name(node.func) in callers]
    for node in heard:
        speech.visit(node)
    found = [number for text in speech.texts for number in in_markdown(_markdown(text))]
    return list(dict.fromkeys(found))


def _markdown(text: str) -> str:
    r"""A text of Python's as Markdown: fields are computed, \(…\) is maths, no line is indented."""
    text = re.sub(r"\\\((.+?)\\\)", r"$\1$", text)
    text = re.sub(r"(?<!\{)\{[^{}`]*\}(?!`)", ELSEWHERE, text)
    return "\n".join(line.strip() for line in text.splitlines())


class _Speech(ast.NodeVisitor):
    """The texts of code: pieces that are added in one, typed numbers where they are filled in."""

    def __init__(self):
        self.texts: list[str] = []

    def visit_Constant(self, node):
        if isinstance(node.value, str):
            self.texts.append(node.value)

    def visit_JoinedStr(self, node):
        self.texts.append(_text(node))
        for part in node.values:  # but not what they are formatted by
            if isinstance(part, ast.FormattedValue):
                self.visit(part.value)

    def visit_BinOp(self, node):
        if (text := _text(node)) is None:
            self.generic_visit(node)
        else:
            self.texts.append(text)

    def visit_Call(self, node):
        if (text := _filled(node)) is not None:
            self.texts.append(text)
        self.generic_visit(node)


def _filled(call: ast.Call) -> str | None:
    """`say("{t:ms}", t=7)` and `"{} ms".format(7)` as "7 ms"; None without numbers to fill in."""
    template, *given = call.args or [None]
    if isinstance(call.func, ast.Attribute) and call.func.attr == "format":
        template, given = call.func.value, call.args
    values = {str(place): _number(each) for place, each in enumerate(given)}
    values |= {each.arg: _number(each.value) for each in call.keywords}
    if not any(values.values()) or (text := _text(template)) is None:
        return None
    places = iter(map(str, range(len(given))))

    def fill(field: re.Match) -> str:
        value = values.get(field[1] or next(places, ""))
        return f"{value} {field[2] or ''}" if value else ELSEWHERE

    return re.sub(r"\{(\w*)(?::([^{}]*))?\}", fill, text)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _number(node: ast.expr) -> str | None:
    """A number's text, if it is one that was typed."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    value = node.value if isinstance(node, ast.Constant) else None
    return str(value) if type(value) in (int, float) else None


def _text(node: ast.expr | None) -> str | None:
    """The text that an expression of literals makes, values that are computed ELSEWHERE."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.FormattedValue(value=value):
            return _number(value) or ELSEWHERE
        case ast.JoinedStr(values=parts):
            return "".join(map(_text, parts))
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            a, b = _text(left), _text(right)
            return None if a is None and b is None else (a or ELSEWHERE) + (b or ELSEWHERE)
        case ast.BinOp(op=ast.Mod(), left=left, right=right) if text := _text(left):
            given = iter(right.elts if isinstance(right, ast.Tuple) else [right])
            typed = (_number(each) or ELSEWHERE for each in given)
            return re.sub(r"%[-+# 0-9.]*[a-zA-Z]", lambda _: next(typed, ELSEWHERE), text)
    return None


# ---- In a page ----


def in_page(path: Path) -> list[str]:
    """Typed numbers of a page: its Markdown, and its cells with their captions."""
    if path.suffix == ".md":
        return in_markdown(path.read_text(encoding="utf-8"))
    notebook = nbformat.read(path, as_version=4)
    found = [n for text in _values(notebook.metadata, {"substitutions"}) for n in in_markdown(text)]
    for cell in notebook.cells:
        for text in _values(cell.metadata, SHOWN_OPTIONS):
            found += in_markdown(text)
        found += in_code(cell.source) if cell.cell_type == "code" else in_markdown(cell.source)
    return found
