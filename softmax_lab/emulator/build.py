"""Compile a unit to a small executable, once: the cache is keyed by everything that went in."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from softmax_lab.emulator import sites
from softmax_lab.emulator.cache import cache_folder
from softmax_lab.emulator.compilers import Compiler, compiler, linker
from softmax_lab.emulator.translate import Source, Unit, translate

HEADERS = Path(__file__).resolve().parent / "headers"
FLAGS = (
    "-std=c++20 -g1 -w -fno-strict-aliasing -ffp-contract=off -fno-exceptions -fno-rtti "
    "-fno-threadsafe-statics -fno-optimize-sibling-calls -fno-asynchronous-unwind-tables "
    "-fno-stack-protector"
).split()
"""-ffp-contract=off: a multiplication and an addition stay two roundings, as the source says."""
KIND_FLAGS = {
    # Merged calls would share a number; anchors would fix the distance between variables, which
    # sites.py widens.
    "gcc": ["-fno-crossjumping", "-fno-tree-tail-merge", "-fno-section-anchors"],
    "clang": [],  # our functions are `nomerge` there
    "zig": ["-fno-sanitize=all"],
}


class CompileError(ValueError):
    """The kernel does not compile; the message has the reader's lines."""


@dataclass(frozen=True)
class Executable:
    """A compiled kernel file: `sites[k]` is the (index in `files`, line) of instruction k.

    `parameters` are each kernel's argument names, `variables` the file's own variables (shared,
    constant, device).
    """

    path: Path
    files: tuple[str, ...]
    kernels: tuple[str, ...]
    parameters: tuple[tuple[str, ...], ...]
    sites: tuple[sites.Place, ...]
    variables: tuple[str, ...]


def compiled(
    source: Source,
    kernel: str | None = None,
    *,
    count: bool = True,
    optimise: str = "-O1",
    with_compiler: str | None = None,
    defines: tuple[str, ...] = (),
) -> Executable:
    """The executable of a kernel file, from the cache or compiled now (about a second).

    Raises CompilerMissing, SourceError, and CompileError with the plain build's message where that
    fails too.
    """
    unit = translate(source, kernel)
    tool = compiler(with_compiler)
    cpu = sites.processor(platform.machine())
    flags = [
        *FLAGS,
        *KIND_FLAGS[tool.kind],
        optimise,
        f"-DEMU_GRANULE={unit.granule}",
        *(f"-D{d}" for d in defines),
    ]
    key = _key(unit, tool, cpu, flags, count)
    stem = re.sub(r"\W+", "-", Path(source.name).stem, flags=re.A)
    home = cache_folder()
    folder = home / f"{stem}-{key}"
    if not (folder / "sites.json").is_file():
        with tempfile.TemporaryDirectory(dir=home, prefix=".building-") as scratch:
            _compile(unit, tool, cpu, flags, count, Path(scratch))
            try:  # whole or not at all: another process may be building the same
                os.rename(scratch, folder)
                os.mkdir(scratch)  # for the context manager to remove
            except OSError:
                if not (folder / "sites.json").is_file():
                    raise
    about = json.loads((folder / "sites.json").read_text(encoding="utf-8"))
    places, variables = tuple(map(tuple, about["sites"])), tuple(about["variables"])
    return Executable(folder / "run", unit.files, unit.kernels, unit.parameters, places, variables)


@lru_cache(maxsize=1)
def _headers_digest() -> bytes:
    digest = hashlib.sha256()
    for path in sorted([*HEADERS.rglob("*.h"), *HEADERS.rglob("*.def"), Path(sites.__file__)]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.digest()


def _key(unit: Unit, tool: Compiler, cpu: str, flags: list[str], count: bool) -> str:
    parts = [unit.text, *tool.command, tool.version, cpu, *flags, str(count)]
    return hashlib.sha256("\0".join(parts).encode() + _headers_digest()).hexdigest()[:20]


def _compile(
    unit: Unit, tool: Compiler, cpu: str, flags: list[str], count: bool, folder: Path
) -> None:
    # Names are relative to `folder`, so that no odd character of its path meets a tool's own
    # quoting.
    (folder / "unit.cpp").write_text(unit.text, encoding="utf-8")
    shared = [*tool.command, *flags, "-I", str(HEADERS)]

    def call(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [*shared, *arguments], cwd=folder, capture_output=True, text=True, errors="replace"
        )

    done = call(f"-DEMU_COUNT={int(count)}", "-S", "unit.cpp", "-o", "unit.s")
    if done.returncode:
        plain = call("-DEMU_COUNT=0", "-fsyntax-only", "unit.cpp") if count else done
        raise CompileError(_explain(plain, done, unit))
    numbered = sites.number((folder / "unit.s").read_text(encoding="utf-8"), unit.files, cpu)
    (folder / "unit.s").write_text(numbered.text, encoding="utf-8")
    linked = subprocess.run(
        [
            *linker(tool),
            "unit.s",
            "-o",
            "run",
            "-lm",
            "-Wl,--as-needed",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if linked.returncode:
        raise CompileError(f"{unit.files[0]} compiles but does not link:\n{linked.stderr[:2000]}")
    places = numbered.places
    if tool.kind == "gcc":
        places = sites.resolve(folder / "run", len(places), unit.files)
    for name in ("unit.cpp", "unit.s"):
        (folder / name).unlink()
    (folder / "sites.json").write_text(
        json.dumps({"sites": places, "variables": numbered.variables}), encoding="utf-8"
    )


def _explain(
    plain: subprocess.CompletedProcess, counting: subprocess.CompletedProcess, unit: Unit
) -> str:
    if plain.returncode:
        return f"{unit.files[0]} does not compile:\n{_readers_part(plain.stderr)}"
    return (
        f"{unit.files[0]} is valid, but the counting build cannot parse it (CONTRIBUTING.md lists "
        f"what a kernel may use, and what to write instead):\n{_readers_part(counting.stderr)}"
    )


def _readers_part(message: str, most: int = 24) -> str:
    """The compiler's message without frames inside the emulator's headers."""
    lines = [line for line in message.splitlines() if str(HEADERS) not in line]
    return "\n".join(lines[:most]) or message[:2000]
