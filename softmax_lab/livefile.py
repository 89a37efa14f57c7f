"""The file of kernels that the book's pages run: what is in it, and how it is made (`make live`).

It is a script, not data: from file:// a page may load scripts and nothing else.
"""

from __future__ import annotations

import ast
import base64
import gzip
import json
import re
from collections.abc import Iterable
from pathlib import Path

from softmax_lab import cost, registry
from softmax_lab.counts import FIELDS
from softmax_lab.cuts import cuts
from softmax_lab.emulator import Source, page, process, report, trace
from softmax_lab.findings import WORDS

FOLDER = Path(__file__).resolve().parent.parent
FILE = FOLDER / "book" / "_static" / "kernels.wasm.js"
DEFECTS = FOLDER / "tests" / "emulator" / "defects.cu"
TOOLS = FOLDER / ".venv" / "live"


def tree(formula: str) -> list | str | float:
    """A closed form as plain data, ["*", "M", "N"]: a page evaluates it without `eval`."""
    operators = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Mod: "%"}

    def walk(node: ast.expr):
        match node:
            case ast.Constant(value=number):
                return number
            case ast.Name(id=symbol):
                return symbol
            case ast.BinOp(left=a, op=operator, right=b):
                return [operators[type(operator)], walk(a), walk(b)]
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return [name, *map(walk, arguments)]
        raise ValueError(f"a page cannot evaluate {ast.unparse(node)!r} of {formula!r}")

    return walk(ast.parse(formula, mode="eval").body)


def phases(form: Iterable[cost.Phase]) -> list:
    """A kernel's closed forms as plain data: [[phase, {field: tree}], …]."""
    return [[p.name, {field: tree(text) for field, text in p.formulas.items()}] for p in form]


def sources() -> dict[str, Source]:
    """Every source in the file by its namespace: kernels, kernels with a line gone, defects."""
    found = {f"kernel_{k.symbol}": Source.read(k.path) for k in registry.KERNELS.values()}
    found |= {f"cut_{cut.name.replace('-', '_')}": cut.source for cut in cuts()}
    return found | {"defects": Source.read(DEFECTS)}


def describe() -> dict:
    """What a page must know beside the WebAssembly, except what only its compilation tells."""
    unit = page.together(sources())
    number = {name: k for k, name in enumerate(unit.kernels)}
    kernels = [
        {
            "name": k.name,
            "title": k.title,
            "index": number[f"kernel_{k.symbol}::{k.symbol}"],
            "file": k.path.name,
            "block": k.block,
            "threads": k.threads_per_row,
            "phases": phases(k.executed),
        }
        for k in registry.KERNELS.values()
    ]
    gone = [
        {
            "name": cut.name,
            "kernel": cut.kernel.name,
            "title": cut.title,
            "index": number[f"cut_{cut.name.replace('-', '_')}::{cut.kernel.symbol}"],
            "file": cut.file,
            "line": cut.line,
            "instead": cut.instead,
            "outcome": cut.outcome,
            "shape": cut.shape,
        }
        for cut in cuts()
    ]
    files = {path.name: path for k in registry.KERNELS.values() for path in _read_by(k.path)}
    texts = {name: path.read_text(encoding="utf-8") for name, path in sorted(files.items())}
    return {
        "counters": process.COUNTERS,
        "kinds": report.KINDS,
        "ops": trace.OPS,
        "words": {field: WORDS[field] for field in FIELDS if field in process.COUNTERS},
        "kernels": kernels,
        "cuts": gone,
        "defects": [each | {"index": number[f"defects::{each['name']}"]} for each in defects()],
        "texts": texts | {DEFECTS.name: DEFECTS.read_text(encoding="utf-8")},
        "files": unit.files,
        "parameters": unit.parameters,
    }


def defects() -> list[dict]:
    """The planted defects: how each is launched, where it stands, which fault its line carries."""
    lines = DEFECTS.read_text(encoding="utf-8").split("\n")
    starts = [k for k, line in enumerate(lines) if line.startswith("// grid ")]
    found = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        head = lines[start]
        name = re.search(r"void (\w+)\(", lines[start + 1])[1]
        fault = re.search(r"// FAULT (.+)", "\n".join(lines[start:end]))
        grid, block = (int(re.search(rf"{word} (\d+)", head)[1]) for word in ("grid", "block"))
        shared = re.search(r"shared (\d+)", head)
        found.append(
            {
                "name": name,
                "grid": grid,
                "block": block,
                "shared": int(shared[1]) if shared else 0,
                "group": grid if "cooperative" in head else 1,
                "first": start + 2,
                "last": end,
                "fault": fault[1] if fault else "",
            }
        )
    return found


def fingerprint() -> str:
    """A short number that changes when the file has to be made anew."""
    return page.fingerprint(sources(), json.dumps(describe()))


def embedded(text: str) -> tuple[str, dict, bytes]:
    """(fingerprint, description, WebAssembly) out of the text of such a file."""
    mark, packed = re.search(r'kernels\("(\w+)",\s*"([^"]+)"', text).groups()
    data = gzip.decompress(base64.b64decode(packed))
    size = int.from_bytes(data[:4], "little")
    return mark, json.loads(data[4 : 4 + size]), data[4 + size :]


def packed(about: dict, wasm: bytes) -> str:
    """What `embedded` takes apart: base64 of gzip of a length, the description and the module."""
    text = json.dumps(about, separators=(",", ":")).encode()
    return base64.b64encode(
        gzip.compress(len(text).to_bytes(4, "little") + text + wasm, 9, mtime=0)
    ).decode()


def script(mark: str, words: str) -> str:
    """The text of the file."""
    return (
        "// Made by `make live` from kernels/ and softmax_lab/emulator/headers: do not edit.\n"
        f'SoftmaxLab.kernels("{mark}", "{words}");\n'
    )


def made(tools: page.Tools) -> str:
    """The text of the file, compiled now. The same sources give the same text."""
    module = page.build(sources(), tools)
    about = describe() | {"sites": module.sites, "variables": module.variables}
    return script(fingerprint(), packed(about, module.wasm))


def main() -> None:
    """Makes the file anew if what it is made from has changed."""
    if FILE.is_file() and embedded(FILE.read_text(encoding="utf-8"))[0] == fingerprint():
        print(f"{FILE.relative_to(FOLDER)} is up to date.")
        return
    FILE.write_text(made(page.tools(TOOLS)), encoding="utf-8")
    print(f"{FILE.relative_to(FOLDER)} is made: {FILE.stat().st_size:,} bytes.")


def _read_by(path: Path) -> list[Path]:
    """A kernel file and the files of ours that it includes."""
    text = path.read_text(encoding="utf-8")
    includes = re.findall(r'^\s*#\s*include\s*"([^"]+)"', text, re.M)
    return [path, *(path.parent / name for name in includes)]


if __name__ == "__main__":
    main()
