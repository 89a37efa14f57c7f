"""From a .cu file to one C++ translation unit: few text changes, every line keeps its number."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

STAND_INS = {
    "cooperative_groups.h": "emu/groups.h",
    "cooperative_groups/reduce.h": "emu/groups.h",
    "cooperative_groups/memcpy_async.h": "emu/groups.h",
    "cuda_fp16.h": "emu/half.h",
    "cuda_bf16.h": "emu/half.h",
    "math_constants.h": "emu/math_constants.h",
    "cuda_runtime.h": None,
    "device_launch_parameters.h": None,
    "math.h": None,
    "cmath": None,
    "float.h": None,
    "cfloat": None,
    "stdint.h": None,
    "cstdint": None,
    "stdio.h": None,
    "cstdio": None,
}
"""Headers a kernel may include, with the emulator's in their place; None: already there."""


class SourceError(ValueError):
    """The file cannot be read as a kernel file; the message has the file and the line."""


@dataclass(frozen=True)
class Source:
    """Text of a kernel file: `name` is for messages, quoted includes are sought in `folder`.

    `instead` gives other texts for included files, by name: for a file that is changed in one copy.
    """

    text: str
    name: str = "kernel.cu"
    folder: Path | None = None
    instead: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def read(path: str | Path) -> Source:
        """The file at `path`."""
        path = Path(path)
        return Source(path.read_text(encoding="utf-8"), path.name, path.parent)


@dataclass(frozen=True)
class Unit:
    """A translation unit: its C++ text, source files, kernels and their parameters' names."""

    text: str
    files: tuple[str, ...]
    kernels: tuple[str, ...]
    parameters: tuple[tuple[str, ...], ...]
    granule: int


def translate(source: Source, instance: str | None = None) -> Unit:
    """The C++ unit of a kernel file; `instance` adds a template instance such as `"softmax<128>"`.

    Raises SourceError for an include that is not there and for a launch (`<<<`) inside the file.
    """
    files: list[str] = []
    headers: list[str] = []
    body = _expand(source, files, headers, set())
    bare = _without_comments(body)
    kernels = list(_kernels(bare))
    if instance is not None and _squeeze(instance) not in map(_squeeze, kernels):
        if "<" not in instance:
            raise SourceError(
                f"{source.name} has no kernel {instance!r}; it has {', '.join(kernels) or 'none'}"
            )
        kernels.append(instance)
    if not kernels:
        raise SourceError(
            f"{source.name} has no kernel: a function declared __global__ void, not a template"
        )
    parameters = tuple(_parameters(kernel, bare) for kernel in kernels)
    return _unit(body, headers, files, kernels, parameters)


def together(sources: Mapping[str, Source]) -> Unit:
    """One unit of many kernel files, each in the namespace that it is given here, so that files may
    use the same names; a kernel is then called `namespace::kernel`.

    Raises SourceError as `translate` does.
    """
    files, headers, bodies, kernels, parameters = [], [], [], [], []
    for space, source in sources.items():
        body = _expand(source, files, headers, set())
        bare = _without_comments(body)
        mine = list(_kernels(bare))
        if not mine:
            raise SourceError(f"{source.name} has no kernel: a function declared __global__ void")
        # A name of C is one and the same in all namespaces.
        body = re.sub(r'extern\s+"C"\s+(?=__global__)', "", body)
        bodies.append(f"namespace {space} {{\n{body}\n}}")
        kernels += [f"{space}::{kernel}" for kernel in mine]
        parameters += [_parameters(kernel, bare) for kernel in mine]
    return _unit("\n".join(bodies), headers, files, kernels, parameters)


def _unit(body, headers, files, kernels, parameters) -> Unit:
    lines = [f'#include "{header}"' for header in dict.fromkeys(headers)]
    entries = ", ".join(f"emu::kernel_of(&{kernel})" for kernel in kernels)
    text = "\n".join(
        [
            *lines,
            '#include "emu/keywords.h"',
            body,
            '#line 1 "emulator"',
            '#include "emu/epilogue.h"',
            f"const emu::Kernel emu_kernels[] = {{{entries}}};",
            f"const uint64_t emu_kernel_count = {len(kernels)};",
            "",
        ]
    )
    granule = 2 if "emu/half.h" in headers else 4
    return Unit(text, tuple(files), tuple(kernels), tuple(parameters), granule)


def _expand(source: Source, files: list[str], headers: list[str], seen: set[Path]) -> str:
    number = len(files)
    files.append(source.name)
    out = [_marker(number, 1, source.name)]
    for line_number, line in enumerate(_changes(source).split("\n"), 1):
        include = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if re.match(r"\s*#\s*pragma\s+once\b", line):
            line = ""
        elif include and include[2] in STAND_INS:
            headers += [STAND_INS[include[2]]] if STAND_INS[include[2]] else []
            line = ""
        elif include:
            text = _included(source, include, line_number, files, headers, seen)
            line = f"{text}\n{_marker(number, line_number + 1, source.name)}" if text else ""
        out.append(line)
    return "\n".join(out)


def _included(source, include, line_number, files, headers, seen) -> str:
    where = f"{source.name}:{line_number}"
    if include[1] == "<" or source.folder is None:
        raise SourceError(
            f"{where}: the emulator has no {include[2]}; it has {', '.join(STAND_INS)}"
        )
    path = (source.folder / include[2]).resolve()
    if not path.is_file():
        raise SourceError(f"{where}: no file {include[2]} beside {source.name}")
    if path in seen:
        return ""
    seen.add(path)
    found = Source.read(path)
    text = source.instead.get(found.name, found.text)
    return _expand(replace(found, text=text, instead=source.instead), files, headers, seen)


def _marker(number: int, line: int, name: str) -> str:
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'#undef EMU_FILE\n#define EMU_FILE {number}\n#line {line} "{quoted}"'


def _changes(source: Source) -> str:
    """Rewrites dynamic shared arrays; drops #pragma unroll, which wants a bare loop behind it."""
    text = re.sub(r"^[ \t]*#[ \t]*pragma[ \t]+unroll[^\n]*$", "", source.text, flags=re.M)
    launch = re.search(r"<<<", _without_comments(text))
    if launch:
        line = text.count("\n", 0, launch.start()) + 1
        raise SourceError(
            f"{source.name}:{line}: a kernel file holds device code only, the driver launches"
        )
    return re.sub(
        r"extern\s+__shared__\s+((?:__align__\s*\(\s*\d+\s*\)\s*)?)([\w:\s]+?)\s+(\w+)\s*\[\s*\]\s*;",
        lambda m: (
            f"{m[2]}* const {m[3]} = reinterpret_cast<{m[2]}*>(::emu::dynamic_shared());"
            + "\n" * m[0].count("\n")
        ),
        text,
    )


def _without_comments(text: str) -> str:
    """The text with comments blanked, character for character."""
    blank = lambda m: re.sub(r"[^\n]", " ", m[0])  # noqa: E731
    return re.sub(r"//[^\n]*|/\*.*?\*/", blank, text, flags=re.S)


_BOUNDS = r"(?:__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)\s*)?"
_KERNEL = re.compile(
    rf"(template\s*(?P<args><[^;{{}}]*?>)?\s*)?(?:extern\s+\"C\"\s+)?(?:static\s+)?__global__\s+{_BOUNDS}void\s+{_BOUNDS}"
    r"(?P<name>\w+)\s*(?P<instance><[^;{}()]*>)?\s*\("
)


def _kernels(text: str):
    """Names of the kernels that can be launched: plain ones and explicit instances of templates."""
    seen = set()
    for match in _KERNEL.finditer(text):
        name = match["name"] + re.sub(r"\s+", " ", match["instance"] or "")
        a_template = match[1] is not None and match["args"] is not None
        if not a_template and name not in seen:
            seen.add(name)
            yield name


def _parameters(kernel: str, text: str) -> tuple[str, ...]:
    """Names of a kernel's parameters, from its definition."""
    name = kernel.partition("<")[0].strip()
    match = re.search(rf"\b{re.escape(name)}\s*\(([^()]*)\)\s*\{{", text)
    return tuple(re.findall(r"(\w+)\s*(?:,|$)", match[1].strip())) if match else ()


def _squeeze(name: str) -> str:
    return re.sub(r"\s+", "", name)
