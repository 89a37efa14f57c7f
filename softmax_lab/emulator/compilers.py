"""Which C++ compiler there is."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

BRINGS_ONE = "pip install ziglang   (or: sudo apt install g++)"


class CompilerMissing(RuntimeError):
    """No C++ compiler was found; the message names a command that brings one."""


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: its command, its kind (gcc, clang or zig) and the version it reports."""

    command: tuple[str, ...]
    kind: str
    version: str


def compiler(command: str | None = None) -> Compiler:
    """The compiler to use: `command`, else $SOFTMAX_LAB_CXX, g++, clang++, c++ or pip's zig.

    Raises CompilerMissing when there is none, or when the one that was named does not run.
    """
    named = command or os.environ.get("SOFTMAX_LAB_CXX")
    if named:
        return _asked(tuple(shlex.split(named)))
    for name in ("g++", "clang++", "c++"):
        if shutil.which(name):
            return _asked((name,))
    if find_spec("ziglang"):
        return _asked((sys.executable, "-m", "ziglang", "c++"))
    raise CompilerMissing(
        f"counting a kernel needs a C++ compiler and none was found: {BRINGS_ONE}"
    )


@lru_cache(maxsize=16)
def _asked(command: tuple[str, ...]) -> Compiler:
    try:
        answer = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=120
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise CompilerMissing(
            f"the C++ compiler {shlex.join(command)} does not run: {failure}; {BRINGS_ONE}"
        ) from None
    if answer.returncode:
        raise CompilerMissing(
            f"the C++ compiler {shlex.join(command)} does not run: "
            f"{answer.stderr.strip()}; {BRINGS_ONE}"
        )
    text = answer.stdout
    kind = (
        "zig"
        if "ziglang" in command or Path(command[0]).name == "zig"
        else "clang"
        if "clang" in text
        else "gcc"
    )
    return Compiler(command, kind, text.partition("\n")[0])
