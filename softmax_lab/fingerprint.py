"""A kernel's fingerprint: a hash of what decides its machine code, ties records to source."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from softmax_lab import registry
from softmax_lab.registry import Kernel

FLAGS = ("--std=c++17",)
"""Compiler options that every kernel is built with."""


def fingerprint(kernel: str | Kernel, dtype: str = "float32") -> str:
    """16 hex digits of a kernel's code, our headers in it, its block, `dtype` and the flags.

    Comments and white space do not enter; system headers enter by name. Raises ValueError for an
    unknown kernel.
    """
    kernel = registry.get(kernel)
    launch = f"{kernel.rows_per_block}x{kernel.threads_per_row}"
    launch += " along y" * kernel.rows_along_y
    launch += f", {kernel.shared_bytes} bytes shared" if kernel.shared_bytes else ""
    constants = (launch, dtype, *FLAGS)
    text = "\0".join((*constants, *_with_headers(kernel.path, set())))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def tokens(source: str) -> list[str]:
    """The tokens of C++ text; a directive is one token. Comments and white space are gone.

    >>> tokens('a  /* b */ += "x // y";')
    ['a', '+=', '"x // y"', ';']
    """
    out = []
    for match in _TOKEN.finditer(source.replace("\\\r\n", "").replace("\\\n", "")):
        kind, text = match.lastgroup, match.group()
        if kind == "directive":
            out.append(_one_line(text))
        elif kind != "skip":
            out.append(text)
    return out


_STRING = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
_COMMENT = r"//[^\n]*|/\*.*?\*/"
_TOKEN = re.compile(
    rf"""
    (?P<directive> ^[ \t]*\#(?:{_COMMENT}|{_STRING}|[^\n])* )
  | (?P<skip> \n | [^\S\n]+ | {_COMMENT} )
  | (?P<raw> (?:u8|[uUL])?R"(?P<delimiter>[^\s()\\]{{0,16}})\(.*?\)(?P=delimiter)" )
  | (?P<string> (?:u8|[uUL])?(?:{_STRING}) )
  | (?P<number> \.?\d(?:[eEpP][+-]|'?\w|\.)* )
  | (?P<word> \w+ )
  | (?P<operator> <<=|>>=|<=>|->\*|\.\.\.|::|\+\+|--|->|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|. )
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)


_GAP = re.compile(rf"({_STRING})|(?:{_COMMENT}|\s)+", re.DOTALL)


def _one_line(directive: str) -> str:
    """A preprocessor line: no comments, a blank for each gap, strings as they are."""
    text = _GAP.sub(lambda match: match[1] or " ", directive).strip()
    return "#" + text.removeprefix("#").lstrip()


_PROJECT_INCLUDE = re.compile(r'#include ?"([^"]+)"')


def _with_headers(path: Path, seen: set[Path]) -> list[str]:
    """Tokens of a file, each `#include "…"` of ours replaced once by that file's tokens."""
    path = path.resolve()
    if path in seen:
        return []
    seen.add(path)
    out = []
    for token in tokens(path.read_text(encoding="utf-8")):
        include = _PROJECT_INCLUDE.fullmatch(token)
        out += _with_headers(path.parent / include[1], seen) if include else [token]
    return out
