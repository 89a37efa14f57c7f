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
from dataclasses import asdict
from pathlib import Path

from softmax_lab import cost, lane_art, planted, probe, reference, registry, svg, trace_frames
from softmax_lab.counts import FIELDS
from softmax_lab.cuts import Line, cuts
from softmax_lab.emulator import Source, page, process, report, trace
from softmax_lab.findings import WORDS
from softmax_lab.frames import CELL
from softmax_lab.svg import WIDTH

FOLDER = Path(__file__).resolve().parent.parent
FILE = FOLDER / "book" / "_static" / "kernels.wasm.js"
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
    """Every source in the file by its namespace: kernels, each before its likes with a line gone,
    which gzip then finds near; defects."""
    found = {}
    for kernel in shown():
        found[f"kernel_{_word(kernel.name)}"] = Source.read(kernel.path)
        found |= {f"cut_{_word(c.name)}": c.source for c in cuts() if c.kernel is kernel}
    found["defects"] = Source(planted.text(), planted.FILE.name, planted.FILE.parent)
    return found | {f"cut_{_word(_name(each))}": planted.cut(each)[2] for each in planted.LINES}


def shown() -> list[registry.Kernel]:
    """The kernels that a page runs: registered ones, and exhibits."""
    return [k for k in (*registry.KERNELS.values(), *registry.EXHIBITS.values()) if not why_not(k)]


def absent() -> list[dict]:
    """What the book runs and a page does not: name and why."""
    known = (*registry.KERNELS.values(), *registry.EXHIBITS.values())
    out = [{"name": k.name, "why": why_not(k)} for k in known if why_not(k)]
    why = "it takes a stride and an offset, where a bench gives rows; see the chapter on coalescing"
    return [*out, {"name": f"probe/{probe.path().stem}", "why": why}]


ANSWERED = ("softmax", "log_softmax", "gemv")
"""Families whose inputs and exact answer the page's scripts have (live_core.js, live_inputs.js)."""
FOILS = {"foil": registry.SOFTMAX}
"""Exhibits that a page judges by what they fail at, instead of what they compute."""


def judged(kernel: registry.Kernel) -> registry.Family:
    """The family whose answer a page expects of the kernel."""
    return FOILS.get(kernel.family.name, kernel.family)


def why_not(kernel: registry.Kernel) -> str:
    """Why a page does not run this kernel, or "" if it does."""
    if kernel.family.name == registry.COPY.family.name:
        return "it is there to be timed beside the others, and has no answer to be right or wrong"
    if judged(kernel).name not in ANSWERED:
        return f"the page has no exact answer for the family {kernel.family.name}"
    if "float32" not in kernel.dtypes:
        return f"a bench has float32 only; it takes {' or '.join(kernel.dtypes)}"
    if '"../hopper.cuh"' in kernel.path.read_text(encoding="utf-8"):
        return "it uses instructions that only the GPU has"
    return ""


def blocks(kernel: registry.Kernel) -> list[int]:
    """Threads of a block that a reader may choose: any number of rows where the kernel asks how
    many there are, else its own."""
    if kernel.rows_per_block == 1 or kernel.rows_along_y:
        return [kernel.block]
    return [size for size in BLOCKS if size % kernel.threads_per_row == 0]


BLOCKS = (32, 64, 128, 256, 512, 1024)


def family(of: registry.Family) -> dict:
    """What a kernel of the family is handed, and the shape of each array in names of sizes."""
    return {
        "arguments": of.arguments,
        "inputs": of.inputs_named,
        "extents": of.extents("rows", "cols"),
    }


def describe() -> dict:
    """What a page must know beside the WebAssembly, except what only its compilation tells."""
    unit = page.together(sources())
    number = {name: k for k, name in enumerate(unit.kernels)}
    kernels = [
        {
            "name": k.name,
            "title": k.title,
            "family": judged(k).name,
            "index": number[f"kernel_{_word(k.name)}::{k.symbol}"],
            "file": k.path.name,
            "block": k.block,
            "threads": k.threads_per_row,
            "launch": {"threads": k.geometry(1)[1], "shared": k.shared_bytes},
            "blocks": blocks(k),
            "phases": phases(k.executed),
            "data": cost.data(k.executed),
        }
        for k in shown()
    ]
    gone = [
        {
            "name": cut.name,
            "kernel": cut.kernel.name,
            "title": cut.line.title,
            "index": number[f"cut_{_word(cut.name)}::{cut.kernel.symbol}"],
            "file": cut.file,
            "line": cut.number,
            "instead": cut.instead,
            "outcome": cut.line.outcome,
            "shape": cut.line.shape,
            "row": " ".join(f"{value:g}" for value in cut.line.row),
        }
        for cut in cuts()
    ]
    for line in planted.LINES:
        at, instead, _ = planted.cut(line)
        gone.append(
            {
                "name": _name(line),
                "kernel": line.kernel,
                "title": line.title,
                "index": number[f"cut_{_word(_name(line))}::{line.kernel}"],
                "file": planted.FILE.name,
                "line": at,
                "instead": instead,
                "outcome": line.outcome,
            }
        )
    files = {path.name: path for k in shown() for path in _read_by(k.path)}
    texts = {name: path.read_text(encoding="utf-8") for name, path in sorted(files.items())}
    return {
        "counters": process.COUNTERS,
        "kinds": report.KINDS,
        "ops": trace.OPS,
        "words": {field: WORDS[field] for field in FIELDS if field in process.COUNTERS},
        "families": {judged(k).name: family(judged(k)) for k in shown()},
        "kernels": kernels,
        "absent": absent(),
        "cuts": gone,
        "planted": [
            asdict(each) | {"title": each.title, "index": number[f"defects::{each.name}"]}
            for each in planted.planted()
        ],
        "plantedFile": planted.FILE.name,
        "texts": texts | {planted.FILE.name: planted.shown()},
        "files": unit.files,
        "parameters": unit.parameters,
        "look": look(),
        "roundings": {
            "unit": reference.UNIT["float32"],
            "operation": reference.OPERATION_ERROR,
            "sum": reference.SUM_ERROR,
            "least": reference.DENORMAL_ERROR,
        },
    }


def look() -> dict:
    """The visual language of the pictures, so that a page draws lanes and sectors as we do."""
    return {
        "width": WIDTH,
        "cell": CELL,
        "pitch": lane_art.PITCH,
        "perRow": lane_art.PER_ROW,
        "box": trace_frames.BOX_PITCH,
        "row": trace_frames.ROW_PITCH,
        "line": svg.LINE,
        "surface": svg.SURFACE,
        "live": svg.colour(lane_art.LIVE),
        "liveTint": svg.tint(lane_art.LIVE),
        "lost": svg.colour(lane_art.LOST),
        "lostTint": svg.tint(lane_art.LOST),
        "score": svg.colour("sky"),
    }


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


def _word(name: str) -> str:
    """A name as C++ can spell it."""
    return re.sub(r"\W", "_", name)


def _name(line: Line) -> str:
    return f"{line.kernel}-{line.name}"


def _read_by(path: Path) -> list[Path]:
    """A kernel file and the files of ours that it includes."""
    text = path.read_text(encoding="utf-8")
    includes = re.findall(r'^\s*#\s*include\s*"([^"]+)"', text, re.M)
    return [path, *(path.parent / name for name in includes)]


if __name__ == "__main__":
    main()
