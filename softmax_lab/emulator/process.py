"""Run an executable on arrays: one file in, one file out, with limits on time and memory."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softmax_lab.arguments import without_mask
from softmax_lab.emulator import report, trace
from softmax_lab.emulator.build import HEADERS, Executable

COUNTERS = tuple(
    re.findall(
        r"^COUNTER\((\w+)\)", (HEADERS / "emu" / "counters.def").read_text(encoding="utf-8"), re.M
    )
)
"""Names of the counters in the order in which a run hands them back."""

_INPUT_MAGIC, _OUTPUT_MAGIC = 0x31756D652D787866, 0x316E75722D787866
_MOST_ARGUMENTS = 32
_PAGE = 4096
_EVERYTHING = 2**62
_DONE, _BAD_CONFIGURATION, _ABORTED = range(3)
_OUT_OF_MEMORY, _BAD_INPUT, _CRASHED = 71, 72, 73  # exit statuses (platform.h)
_SHADOW = 16  # address space for a virtual array's bitmaps and race shadow, at most, in its sizes


class EmulatorCrash(RuntimeError):
    """The kernel's process died or ran out of memory; says in which block and thread, if known."""


class EmulatorTimeout(RuntimeError):
    """The kernel ran longer than allowed."""


@dataclass(frozen=True)
class Limits:
    """What one run may use: time [s] and memory [B]."""

    seconds: float = 60
    bytes: int = 2 << 30


@dataclass(frozen=True)
class Out:
    """An output argument: its elements start as NaN and those that are never stored are counted."""

    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=object)) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Virtual(Out):
    """An array of address space only, for launches beyond memory: zeros, and not handed back."""


@dataclass(frozen=True)
class Launch:
    """One launch: sizes as CUDA takes them, arguments as arrays, Out, Virtual, int or float."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple
    shared: int = 0
    group: int = 1
    lockstep: bool = True
    sanitize: bool = False
    trace: tuple[int, int] | None = None
    trace_steps: int = 4096
    trace_first: int = 0
    blocks: tuple[int, int] | None = None


@dataclass(frozen=True)
class Results:
    """What came back: counters, elements never stored of each array, tables, arrays."""

    counters: dict[str, int]
    unwritten: tuple[int, ...]
    unwatched: int
    aborted: bool
    sites: np.ndarray
    branches: np.ndarray
    faults: np.ndarray
    steps: np.ndarray
    arrays: tuple[np.ndarray | None, ...]
    printed: str


def execute(program: Executable, kernel: int, launch: Launch, limits: Limits) -> Results:
    """Runs kernel number `kernel`. Raises ValueError, EmulatorCrash, EmulatorTimeout."""
    with tempfile.TemporaryDirectory(prefix="softmax-lab-") as folder:
        given, results = Path(folder) / "launch", Path(folder) / "results"
        places = _write(given, kernel, launch, limits)
        try:
            done = subprocess.run(
                [program.path, given, results],
                capture_output=True,
                timeout=limits.seconds,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            raise EmulatorTimeout(_too_long(program, kernel, limits)) from None
        _check(done, program, kernel, limits)
        status, unwatched, tables = _read(results)
        if status == _BAD_CONFIGURATION:
            raise ValueError(
                f"no such launch: grid {launch.grid}, block {launch.block}, {launch.shared} bytes "
                "of shared memory; a block has 1 to 1024 threads and at most 232448 bytes"
            )
        arrays = tuple(
            None
            if at is None
            else np.fromfile(given, dtype, int(np.prod(shape)), offset=at).reshape(shape)
            for at, shape, dtype in places
        )
    counters, buffers, sites, branches, faults, steps, *_ = tables
    return Results(
        counters=dict(zip(COUNTERS, map(int, counters), strict=True)),
        unwritten=tuple(int(n) for n in buffers[: len(places)]),
        unwatched=unwatched,
        aborted=status == _ABORTED,
        sites=sites,
        branches=branches,
        faults=faults,
        steps=steps,
        arrays=arrays,
        printed=done.stdout.decode(errors="replace"),
    )


def _write(path: Path, kernel: int, launch: Launch, limits: Limits) -> list[tuple]:
    """Writes the launch file (process.h: LaunchRecord); gives each array's offset, shape, dtype."""
    if len(launch.arguments) > _MOST_ARGUMENTS:
        raise ValueError(
            f"a launch has at most {_MOST_ARGUMENTS} arguments, got {len(launch.arguments)}"
        )
    records, contents, places, virtual = [], [], [], 0
    at = _PAGE
    for argument in launch.arguments:
        if isinstance(argument, Virtual):
            virtual += argument.nbytes
            records.append((2, argument.nbytes, 0, np.dtype(argument.dtype).itemsize, 1))
            places.append((None, argument.shape, argument.dtype))
            continue
        if not isinstance(argument, (np.ndarray, Out)):
            records.append((0, 8, _value(argument), 0, 0))
            continue
        out = isinstance(argument, Out)
        array = argument if out else np.ascontiguousarray(without_mask("an argument", argument))
        item = np.dtype(array.dtype).itemsize
        records.append((1, array.nbytes, at, item, int(not out)))
        contents.append((at, array))
        places.append((at, array.shape, np.dtype(array.dtype)))
        at += -(-(array.nbytes + 1) // _PAGE) * _PAGE
    block, warp = launch.trace or (-1, 0)
    first, last = launch.blocks or (0, _EVERYTHING)
    head = [
        _INPUT_MAGIC,
        limits.bytes + virtual * (1 + _SHADOW),
        max(1, int(np.ceil(limits.seconds))),
        kernel,
    ]
    head += [
        *launch.grid,
        *launch.block,
        launch.shared,
        launch.group,
        launch.lockstep,
        launch.sanitize,
    ]
    head += [block, warp, launch.trace_first, launch.trace_steps if launch.trace else 0, 0]
    head += [first, last, len(records)]
    words = [*head, *(word for record in records for word in record)]
    words += [0] * (5 * (_MOST_ARGUMENTS - len(records)))
    with open(path, "wb") as file:
        file.write(np.array([int(word) & (2**64 - 1) for word in words], "<u8").tobytes())
        for offset, array in contents:
            file.seek(offset)
            if isinstance(array, Out):
                file.write(b"\xff" * array.nbytes)
            else:
                file.write(memoryview(array.reshape(-1)).cast("B") if array.size else b"")
        file.truncate(at)
    return places


def _value(argument) -> int:
    """The bits of a scalar argument: an integer's, or a float's as float32."""
    if isinstance(argument, (bool, int, np.integer)):
        return int(argument) & (2**64 - 1)
    if isinstance(argument, (float, np.floating)):
        kind = argument.dtype if isinstance(argument, np.floating) else np.float32
        return int.from_bytes(np.array(argument, kind).tobytes(), "little")
    raise TypeError(
        f"an argument is an array, Out, Virtual, int or float, got {type(argument).__name__}"
    )


def _read(path: Path) -> tuple[int, int, list[np.ndarray]]:
    kinds = ("<u8", "<u8", report.SITE, report.SITE, report.FAULT, trace.STEP, "u1", "<u8")
    data = path.read_bytes()
    head = np.frombuffer(data, "<u8", 3 + 2 * len(kinds))
    if head[0] != _OUTPUT_MAGIC:
        raise EmulatorCrash("the kernel's process left no readable results")
    tables, at = [], head.nbytes
    for kind, count, each in zip(map(np.dtype, kinds), head[3::2], head[4::2], strict=True):
        if each != kind.itemsize:
            raise EmulatorCrash(
                f"a record has {each} bytes where the driver expects {kind.itemsize}"
            )
        tables.append(np.frombuffer(data, kind, int(count), at))
        at += int(count) * kind.itemsize
    return int(head[1]), int(head[2]), tables


def _too_long(program: Executable, kernel: int, limits: Limits) -> str:
    return (
        f"{program.kernels[kernel]} ran longer than {limits.seconds:g} s: a loop that never ends, "
        "or too large a shape for the CPU (Limits(seconds=...) allows more)"
    )


def _check(
    done: subprocess.CompletedProcess, program: Executable, kernel: int, limits: Limits
) -> None:
    if done.returncode == 0:
        return
    name, said = program.kernels[kernel], done.stderr.decode(errors="replace").strip()
    if done.returncode == _BAD_INPUT:
        raise ValueError(f"{name}: {said}")
    if done.returncode == _OUT_OF_MEMORY:
        raise EmulatorCrash(
            f"{name}: {said} into the limit of {limits.bytes:,} bytes "
            "(Limits(bytes=...) allows more)"
        )
    if done.returncode in (-24, -9):  # SIGXCPU, and SIGKILL at the hard limit
        raise EmulatorTimeout(_too_long(program, kernel, limits))
    raise EmulatorCrash(f"{name} crashed: {said or f'status {done.returncode}'}")
