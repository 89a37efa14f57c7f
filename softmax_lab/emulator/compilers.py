"""Which C++ compiler there is that works, and whether the emulator runs on this machine at all."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from softmax_lab.emulator import sites
from softmax_lab.emulator.cache import cache_folder

BRINGS_ONE = f"{shlex.quote(sys.executable)} -m pip install ziglang"
SECONDS = 600  # for a trial: zig first builds its C library, and a cold disk is slow

_TRIAL = "int main(int arguments, char**) { return arguments == 1 ? 42 : 1; }\n"
_ANSWER = 42


class CompilerMissing(RuntimeError):
    """No C++ compiler of use: what was `found`, and the `fix`, the command that brings one."""

    def __init__(self, found: str, fix: str = BRINGS_ONE):
        super().__init__(f"{found}: {fix}")
        self.found, self.fix = found, fix


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: its command, its kind (gcc, clang or zig) and the version it reports."""

    command: tuple[str, ...]
    kind: str
    version: str


def compiler(command: str | None = None) -> Compiler:
    """The compiler to use: `command`, else $SOFTMAX_LAB_CXX, else the first of g++, clang++, c++
    and pip's zig of which a small program runs here.

    Raises CompilerMissing when there is none, when the one that was named does not work, and where
    the emulator cannot run.
    """
    _supported()
    if command:
        return _tried(_split(command))
    if named := os.environ.get("SOFTMAX_LAB_CXX"):
        try:
            return _tried(_split(named))
        except CompilerMissing as problem:
            raise CompilerMissing(problem.found, "unset SOFTMAX_LAB_CXX") from None
    problems = []
    for each in _there():
        try:
            return _tried(each)
        except CompilerMissing as problem:
            problems.append(problem)
    if problems:
        raise problems[0]
    raise CompilerMissing("counting a kernel needs a C++ compiler and none was found")


def linker(tool: Compiler) -> list[str]:
    """The command that links: zig's `c++` would first spend 80 s on a C++ library nobody uses."""
    return [*tool.command[:-1], "cc"] if tool.kind == "zig" else list(tool.command)


def _supported() -> None:
    if not sys.platform.startswith("linux"):
        raise CompilerMissing(
            f"the emulator needs Linux, this is {sys.platform}",
            "on Windows work in WSL, elsewhere in a Linux container or virtual machine",
        )
    try:
        sites.processor(platform.machine())
    except ValueError as problem:
        raise CompilerMissing(str(problem), "use another machine") from None


def _there() -> Iterator[tuple[str, ...]]:
    yield from ((name,) for name in ("g++", "clang++", "c++") if shutil.which(name))
    if find_spec("ziglang"):
        yield sys.executable, "-m", "ziglang", "c++"


def _split(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError as problem:
        raise CompilerMissing(f"{command!r} is no command ({problem})") from None


@lru_cache(maxsize=16)
def _tried(command: tuple[str, ...]) -> Compiler:
    """The compiler behind a command, once a small program of it has run."""
    what = f"the C++ compiler {shlex.join(command)}"
    about = _call(f"{what} does not run", [*command, "--version"]).stdout
    kind = (
        "zig"
        if "ziglang" in command or Path(command[0]).name == "zig"
        else "clang"
        if "clang" in about
        else "gcc"
    )
    tool = Compiler(command, kind, about.partition("\n")[0])
    with tempfile.TemporaryDirectory(dir=cache_folder(), prefix=".trying-") as scratch:
        source, program = Path(scratch) / "trial.cpp", Path(scratch) / "trial"
        source.write_text(_TRIAL, encoding="utf-8")
        build = [*linker(tool), "-std=c++20", source.name, "-o", program.name]
        _call(f"{what} builds no program", build, scratch)
        if not program.is_file():
            raise CompilerMissing(f"{what} builds no program (it wrote none)")
        _call(f"{what} builds no program that runs here", [str(program)], scratch, _ANSWER)
    return tool


def _call(
    otherwise: str, command: Sequence[str], folder: str | None = None, status: int = 0
) -> subprocess.CompletedProcess:
    """Run a command that ends with `status`, or raise CompilerMissing: `otherwise`, and why."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=SECONDS
        )
    except PermissionError as problem:
        fix = (
            "set SOFTMAX_LAB_CACHE to a folder in which programs may run" if folder else BRINGS_ONE
        )
        raise CompilerMissing(f"{otherwise} ({problem})", fix) from None
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise CompilerMissing(f"{otherwise} ({problem})") from None
    if done.returncode != status:
        said = next(iter(done.stderr.strip().splitlines()), f"exit status {done.returncode}")
        raise CompilerMissing(f"{otherwise} ({said})")
    return done
