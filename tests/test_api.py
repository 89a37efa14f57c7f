"""The chapter made of docstrings: complete, true to the source, and saying what raises."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from sphinx.errors import ExtensionError

import softmax_lab

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import api_pages  # noqa: E402

CHAPTER = (ROOT / "book" / "api.md").read_text("utf-8")
ASKED = " ".join(re.findall(r"\{api\} (.+)", CHAPTER)).split()
NAMES = api_pages.public(ASKED)


def test_the_public_names_are_all_there():
    assert {f"softmax_lab.{name}" for name in softmax_lab.__all__} <= set(NAMES)
    for name in ("emulator.run", "reference.compare"):
        assert f"softmax_lab.{name}" in NAMES
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_entry_has_the_source_s_signature_and_docstring(name):
    found, module = api_pages.resolve(name)
    text = api_pages.entry(name)
    assert f":module: {module.__name__}" in text
    if inspect.isfunction(found):
        for parameter in inspect.signature(found).parameters:
            assert re.search(rf"\b{parameter}\b", text.splitlines()[0])
        assert inspect.getdoc(found) in text
    elif inspect.isclass(found):
        assert all(f"`{field}`" in text for field in getattr(found, "__dataclass_fields__", ()))
    else:
        assert len(api_pages.docstring(name)) > 20


def silent(function) -> bool:
    """Whether it raises in so many words and its docstring does not say so."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    raises = any(isinstance(node, ast.Raise) and node.exc for node in ast.walk(tree))
    return raises and not re.search("Raises|Error", inspect.getdoc(function) or "")


def functions() -> list:
    found = [api_pages.resolve(name)[0] for name in NAMES]
    methods = [m for owner in found if inspect.isclass(owner) for m in vars(owner).values()]
    return [f for f in (*found, *methods) if inspect.isfunction(f) and f.__name__[0] != "_"]


@pytest.mark.parametrize("function", functions(), ids=lambda f: f.__qualname__)
def test_what_raises_says_so(function):
    assert not silent(function)


def test_a_function_that_keeps_its_errors_to_itself_is_seen():
    def quiet(n):
        """Does something."""
        raise ValueError(n)

    assert silent(quiet)


def test_defaults_keep_their_quotes_and_annotations_have_none():
    def made(name: str = "a", *, of: tuple[int, ...] | None = None) -> list[str]: ...

    text = api_pages.signature(made)
    assert text == "(name: str = 'a', *, of: tuple[int, ...] | None = None) -> list[str]"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("softmax_lab.derived", "there is no softmax_lab.derived"),
        ("softmax_lub.derive", "there is no softmax_lub.derive"),
        ("softmax_lab.findings.NEAR_", "there is no"),
        ("softmax_lab.findings.SECTOR_", "there is no"),
        ("softmax_lab.units.GB", "has no docstring"),
    ],
)
def test_a_name_without_words_stops_the_build(name, message):
    with pytest.raises(ExtensionError, match=message):
        api_pages.entry(name)


def test_the_built_chapter_has_every_name_and_the_index_too(book_html):
    page = BeautifulSoup((book_html / "book" / "api.html").read_text("utf-8"), "html.parser")
    index = (book_html / "genindex.html").read_text("utf-8")
    for name in NAMES:
        assert page.find(id=name), name
        assert f"book/api.html#{name}" in index
    result = page.find(id="softmax_lab.derive").find("a", class_="reference")
    assert result["href"] == "#softmax_lab.Counts"
