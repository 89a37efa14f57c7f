"""Numbers for instructions: each call of a watched function gets one, and a source line.

Return addresses would also name instructions, but they cost an address table a run and do not exist
in WebAssembly.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

Place = tuple[int, int]
"""(index of the source file, line); (-1, 0) is unknown."""
UNKNOWN: Place = (-1, 0)

SPACES = {"global": 1, "shared": 2, "constant": 3}
"""The same numbers as `Space` in state.h."""

_CALL = {
    "x86_64": re.compile(r"\s+(?:callq?|jmpq?)\s+emu_watched_\w+"),
    "aarch64": re.compile(r"\s+(?:bl|b)\s+emu_watched_\w+"),
    "wasm32": re.compile(r"\s+(?:return_)?call\s+emu_watched_\w+"),
}
_ASSIGN = {
    "x86_64": "\tmovl\t${k}, emu_site(%rip)",
    "aarch64": "\tadrp\tx16, emu_site\n\tmov\tw17, #{k}\n\tstr\tw17, [x16, :lo12:emu_site]",
    "wasm32": "\ti32.const\t0\n\ti32.const\t{k}\n\ti32.store\temu_site",
}
MOST_SITES = 65535
"""One aarch64 `mov` holds 16 bits; a kernel file has some dozens of watched instructions."""


@dataclass(frozen=True)
class Numbered:
    """Assembly text with numbered sites; `places[k]` is what `.loc` lines say of site k, from 1.

    `variables` are the source names in the table of the file's variables.
    """

    text: str
    places: tuple[Place, ...]
    variables: tuple[str, ...]


def processor(machine: str) -> str:
    """Our name for what `platform.machine()` says. Raises ValueError for one we cannot run on."""
    name = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine.lower(), machine.lower())
    if name not in _CALL:
        raise ValueError(f"the emulator runs on {', '.join(_CALL)}, not on {machine!r}")
    return name


def number(assembly: str, files: tuple[str, ...], cpu: str) -> Numbered:
    """Numbers the calls of emu_watched_* functions and appends a table of the file's variables."""
    call, assign = _CALL[cpu], _ASSIGN[cpu]
    numbers: dict[str, int] = {}
    places: list[Place] = [UNKNOWN]
    place = UNKNOWN
    out = []
    for line in assembly.split("\n"):
        if line.startswith("\t.loc\t"):
            _, _, rest = line.partition(".loc\t")
            file, at = rest.split()[:2]
            if at != "0" and file in numbers:
                place = (numbers[file], int(at))
        elif line.startswith("\t.file\t"):
            named = re.match(
                r'\t\.file\t(\d+)\s+(?:"((?:[^"\\]|\\.)*)"\s+)?"((?:[^"\\]|\\.)*)"', line
            )
            index = _index(_unescape(named[3]), files) if named else -1
            if index >= 0:
                numbers[named[1]] = index
        elif call.match(line):
            k = len(places)
            out.append(assign.format(k=k))
            if cpu != "wasm32":
                out.append(f"emu_at_{k}:")
            places.append(place)
        out.append(line)
    if len(places) > MOST_SITES:
        raise ValueError(f"{len(places)} watched instructions in one file, at most {MOST_SITES}")
    objects = list(_objects(assembly))
    out = _apart(out, {symbol for symbol, _, space in objects if space == SPACES["shared"]})
    out += _tables(objects, len(places), cpu)
    return Numbered(
        "\n".join(out), tuple(places), tuple(_source_name(symbol) for symbol, _, _ in objects)
    )


def resolve(executable: Path, count: int, files: tuple[str, ...]) -> tuple[Place, ...]:
    """The place of each site from the debug information: the innermost frame in a source file.

    GCC's `.loc` lines name our headers at an inlined access, so its sites are looked up once here,
    by label.
    """
    symbols = subprocess.run(["nm", executable], capture_output=True, text=True, check=True).stdout
    address = {int(m[2]): m[1] for m in re.finditer(r"^(\w+) \w emu_at_(\d+)$", symbols, re.M)}
    sites = sorted(address)
    answer = subprocess.run(
        ["addr2line", "-a", "-i", "-e", executable],
        input="\n".join(address[k] for k in sites),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    places = [UNKNOWN] * count
    for k, frames in zip(sites, re.split(r"^0x\w+\n", answer, flags=re.M)[1:], strict=True):
        for frame in re.finditer(r"^(.*):(\d+)", frames, re.M):
            index = _index(frame[1], files)
            if index >= 0:
                places[k] = (index, int(frame[2]))
                break
    return tuple(places)


def _index(path: str, files: tuple[str, ...]) -> int:
    """Which source file a path of the debug information is; -1: one of the emulator's headers."""
    for i, name in enumerate(files):
        if path == name or path.endswith("/" + name):
            return i
    return -1


def _unescape(text: str) -> str:
    raw = re.sub(rb"\\(\d{3})", lambda m: bytes([int(m[1], 8)]), text.encode())
    return re.sub(rb"\\(.)", rb"\1", raw).decode(errors="replace")


_OURS = re.compile(
    r"emu_|_ZN?K?3emu|_ZZN?K?3emu|_ZG|_ZT"
    # An optimiser may split a struct: then its parts are called `.0`, `.1` and so on.
    r"|_ZL(?:9threadIdx|8blockIdx|8blockDim|7gridDim|8warpSize)(?:\.\d+)*$"
)


def ours(symbol: str) -> bool:
    """Whether a variable is the emulator's, none of the kernel file."""
    return bool(_OURS.match(symbol))


def _objects(assembly: str) -> Iterator[tuple[str, int, int]]:
    """(symbol, bytes, space) of every variable of the kernel file."""
    section, home, sizes = ".text", {}, {}
    for line in assembly.split("\n"):
        words = re.split(r"[\s,]+", line.strip())
        if words[0] == ".section":
            section = words[1]
        elif words[0] in (".text", ".data", ".bss"):
            section = words[0]
        elif words[0] in (".comm", ".lcomm"):
            sizes[words[1]], home[words[1]] = int(words[2]), ".bss"
        elif words[0] == ".size" and words[2].isdigit():
            sizes[words[1]] = int(words[2])
        elif words[0].endswith(":") and not line[:1].isspace():
            home[words[0][:-1]] = section
    for symbol, size in sizes.items():
        where = home.get(symbol, ".text")
        if ours(symbol) or where.startswith(".text") or not size:
            continue
        if where.startswith(("emu_constant", ".rodata", ".data.rel.ro")):
            yield symbol, size, SPACES["constant"]
        elif symbol.startswith("_ZZ") or re.fullmatch(r"\w+\.\d+", symbol):
            yield symbol, size, SPACES["shared"]
        else:
            yield symbol, size, SPACES["global"]


GAP = 256
"""Free space behind each shared variable [B]: who runs over its end does not meet the next."""


def _apart(lines: list[str], shared: set[str]) -> list[str]:
    out, last = [], ""
    for line in lines:
        common = re.match(r"\t\.(?:l?comm)\t(\S+?),\s*(\d+)(.*)", line)
        zeros = re.match(r"\t\.(zero|skip)\t(\d+)$", line)
        if common and common[1] in shared:
            line = f"{line[: common.start(2)]}{int(common[2]) + GAP}{common[3]}"
        elif zeros and last in shared:
            line = f"\t.{zeros[1]}\t{int(zeros[2]) + GAP}"
        label = re.match(r"(\S+):(?:\s|$)", line)
        last = label[1] if label else ""
        out.append(line)
    return out


def _source_name(symbol: str) -> str:
    """`s` of `_ZZ6kernelE1s`: the last length-prefixed name of a mangled symbol."""
    found = [symbol]
    for match in re.finditer(r"(?<!\d)(\d+)(?=[A-Za-z_])", symbol):
        name = symbol[match.end() : match.end() + int(match[1])]
        if len(name) == int(match[1]):
            found.append(name)
    return found[-1]


def _tables(objects: list[tuple[str, int, int]], sites: int, cpu: str) -> list[str]:
    """Assembly of `emu_objects` and `emu_site_count` (state.h)."""
    word, step = (".int32", 4) if cpu == "wasm32" else (".quad", 8)
    rows = [*objects, ("0", 0, 0)]

    def table(name: str, lines: list[str], size: int) -> list[str]:
        section = (
            f'.section\t.data.{name},"",@' if cpu == "wasm32" else '.section\t.data.rel.ro,"aw"'
        )
        kind = "%object" if cpu == "aarch64" else "@object"
        return [
            f"\t{section}",
            f"\t.globl\t{name}",
            f"\t.type\t{name}, {kind}",
            "\t.p2align\t3",
            f"{name}:",
            *lines,
            f"\t.size\t{name}, {size}",
        ]

    entries = [f"\t{word}\t{value}" for row in rows for value in row]
    count = [f"\t.int32\t{sites}" if cpu == "wasm32" else f"\t.long\t{sites}"]
    return [
        *table("emu_objects", entries, 3 * step * len(rows)),
        *table("emu_site_count", count, 4),
        "",
    ]
