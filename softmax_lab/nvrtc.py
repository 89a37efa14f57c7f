"""CUDA source to machine code with NVRTC and CUDA's headers: no GPU, no driver."""

from __future__ import annotations

import atexit
import importlib.metadata
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from softmax_lab import registry
from softmax_lab.arguments import told
from softmax_lab.fingerprint import FLAGS
from softmax_lab.registry import Kernel

ARCHS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
"""Architectures that the tests compile every kernel for, from the one it `requires` on."""


class ToolkitError(RuntimeError):
    """NVRTC or CUDA's headers are not there; the message names the command that brings them."""


class CompileError(ValueError):
    """NVRTC refused a source; the message is its log."""


class SpillError(ValueError):
    """A kernel keeps values in local memory for want of registers."""


@dataclass(frozen=True)
class Compiled:
    """Machine code of one kernel for one architecture, and what it takes per thread and per block.

    `shared_bytes` [B a block] is shared memory, a listed kernel's dynamic one included,
    `spill_bytes` [B a thread] stores and loads together, `stack_bytes` [B a thread] the stack frame
    (arrays indexed at run time live there without being spills). `compiler` names what made it,
    such as "NVRTC 12.9".
    """

    name: str
    arch: str
    cubin: bytes
    registers: int
    shared_bytes: int
    spill_bytes: int
    stack_bytes: int
    log: str
    compiler: str
    ptx: str = ""

    def checked(self) -> Compiled:
        """Itself. Raises SpillError when registers were spilled."""
        if self.spill_bytes:
            spilled = f"{self.spill_bytes} bytes a thread"
            raise SpillError(f"{self.name} for {self.arch} spills {spilled}")
        return self


def compile(kernel: str | Kernel, arch: str = "sm_90", dtype="float32") -> Compiled:
    """Compile a kernel of the list for `arch`. Nothing is cached on disk.

    Raises ValueError for an unknown kernel, type or architecture and for one older than the kernel
    `requires`, CompileError with NVRTC's log, ToolkitError with the command that helps.
    """
    kernel = registry.get(kernel)
    kernel.dtype(dtype)
    if capability(arch) < kernel.requires:
        raise ValueError(f"{kernel.name} needs sm_{kernel.requires} or newer, got {arch}")
    source = kernel.path.read_text(encoding="utf-8")
    made = compile_source(source, kernel.symbol, arch, folder=kernel.path.parent)
    return replace(made, shared_bytes=made.shared_bytes + kernel.shared_bytes)


def compile_source(
    source: str, symbol: str, arch: str = "sm_90", folder: Path | None = None
) -> Compiled:
    """Compile CUDA text that defines `extern "C" __global__ void symbol(…)`.

    `folder` is where its own headers are looked for. Raises as `compile` does.
    """
    number, library = capability(arch), _library()
    if number not in library.getSupportedArchs():
        known = ", ".join(f"sm_{each}" for each in library.getSupportedArchs())
        raise ToolkitError(f"NVRTC {version()} does not know {arch}, only {known}")
    options = [f"--gpu-architecture={arch}", "--ptxas-options=-v", *FLAGS]
    if library.getVersion() >= (12, 9):
        options.append("--no-cache")  # else NVRTC 13 answers a repeated compile without a log
    if "#include" in source:
        places = (*include_folders(), *([folder] if folder else []))
        options += [f"-I{_in_utf8(place)}" for place in places]
    program = library.createProgram(source, f"{symbol}.cu", (), ())
    try:
        library.compileProgram(program, options)
        log = library.getProgramLog(program).rstrip("\0\n")
        cubin = library.getCUBIN(program) + b"\0"  # CuPy takes the last byte for a string's end
        ptx = library.getPTX(program).rstrip(b"\0").decode()
    except library.NVRTCError:
        log = library.getProgramLog(program).rstrip("\0\n")
        raise CompileError(f"{symbol} does not compile for {arch}:\n{log}") from None
    finally:
        library.destroyProgram(program)
    compiler = f"NVRTC {version()}"
    return Compiled(symbol, arch, cubin, *resources(log, symbol), log, compiler, ptx)


def _in_utf8(place: Path) -> str:
    """A path as NVRTC reads it, whatever the locale made of its bytes. Raises ToolkitError."""
    try:
        return os.fsencode(place).decode("utf-8")
    except UnicodeDecodeError:
        why = "its name is not UTF-8: rename the folder or move it"
        raise ToolkitError(f"NVRTC cannot be given the folder {str(place)!a}, {why}") from None


def resources(log: str, symbol: str) -> tuple[int, int, int, int]:
    """(registers, shared bytes, spilled bytes, stack bytes) of a kernel from the log of `ptxas -v`.

    Raises ValueError when the log does not speak of that kernel.
    """
    _, found, mine = log.partition(f"Compiling entry function '{symbol}'")
    if not found:
        raise ValueError(f"no kernel {symbol!r} in the compiler's log:\n{log}")
    mine = mine.split("Compiling entry function")[0]

    def total(pattern: str) -> int:
        return sum(int(value) for value in re.findall(pattern, mine))

    return (
        total(r"Used (\d+) registers"),
        total(r"(\d+) bytes smem"),
        total(r"(\d+) bytes spill stores") + total(r"(\d+) bytes spill loads"),
        total(r"(\d+) bytes stack frame"),
    )


def capability(arch: str) -> int:
    """90 for `sm_90`. Raises ValueError listing ARCHS for anything else than one of them."""
    if not isinstance(arch, str) or arch not in ARCHS:
        raise ValueError(f"architecture is one of {', '.join(ARCHS)}, got {told(arch)}")
    return int(arch.removeprefix("sm_"))


def arch_for(compute_capability: int) -> str:
    """The newest of ARCHS whose code runs on a device: same major version, no newer.

    Raises ValueError where there is none.
    """
    for arch in reversed(ARCHS):
        major, minor = divmod(capability(arch), 10)
        if major == compute_capability // 10 and minor <= compute_capability % 10:
            return arch
    known = f"the kernels are built for {', '.join(ARCHS)}"
    raise ValueError(f"compute capability {compute_capability / 10} is not served: {known}")


def dotted(version: int) -> str:
    """CUDA's way of writing a version as text: 12090 is "12.9"."""
    return f"{version // 1000}.{version % 1000 // 10}"


def version() -> str:
    """NVRTC's version, such as "12.9". Raises ToolkitError."""
    return "{}.{}".format(*_library().getVersion())


@cache
def include_folders() -> tuple[Path, ...]:
    """Folders with CUDA's headers, of NVRTC's major version, and its C++ library.

    Looked for in NVIDIA's wheels, CUDA_PATH, CUDA_HOME, CONDA_PREFIX and /usr/local/cuda; the
    library also in CuPy's own copy. Raises ToolkitError.
    """
    major = _library().getVersion()[0]
    places = list(_places(major))
    toolkit = next((place for place in places if _major(place) == major), None)
    if toolkit is None:
        raise ToolkitError(f"no headers of CUDA {major} found: {_remedy(major, 'runtime', 'cccl')}")
    beside = (toolkit, toolkit / "cccl", *places, *(place / "cccl" for place in places))
    # Cooperative groups need the library itself; a toolkit's wheel may hold its <nv/target> alone.
    library = next((p for p in (*beside, *_of_cupy()) if (p / _LIBRARY).is_file()), None)
    return tuple(dict.fromkeys(place for place in (toolkit, library) if place))


_LIBRARY = Path("cuda", "std", "type_traits")


def _places(major: int) -> Iterable[Path]:
    spec = importlib.util.find_spec("nvidia")
    for root in map(Path, (spec and spec.submodule_search_locations) or ()):
        yield from (root / f"cu{major}" / "include", root / f"cu{major}" / "include" / "cccl")
        yield from (root / "cuda_runtime" / "include", root / "cuda_cccl" / "include")
    roots = [os.environ.get(name) for name in ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX")]
    for root in (Path(root) for root in (*roots, "/usr/local/cuda") if root):
        yield from (root / "include", root / "targets" / "x86_64-linux" / "include")


def _of_cupy() -> Iterable[Path]:
    spec = importlib.util.find_spec("cupy")
    for root in map(Path, (spec and spec.submodule_search_locations) or ()):
        yield root / "_core" / "include" / "cupy" / "_cccl" / "libcudacxx"


def _major(place: Path) -> int | None:
    """CUDA's major version of a folder of headers, None when it is no such folder."""
    try:
        text = (place / "cuda_runtime_api.h").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r"#define\s+CUDART_VERSION\s+(\d+)", text)
    return int(found[1]) // 1000 if found else None


def give_cupy_a_cache() -> None:
    """Point CuPy to a temporary folder where its own cache cannot be: its very import needs one.

    Call it before importing CuPy. An import that has happened already is left alone.
    """
    if "cupy" in sys.modules:
        return
    try:
        folder = Path(os.environ.get("CUPY_CACHE_DIR") or "~/.cupy/kernel_cache").expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        usable = os.access(folder, os.W_OK | os.X_OK)
    except (OSError, RuntimeError):  # no permission, something in the way, no home at all
        usable = False
    if not usable:
        folder = tempfile.mkdtemp(prefix="softmax-lab-cupy-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["CUPY_CACHE_DIR"] = folder


@cache
def _library():
    """CuPy's binding of NVRTC. Raises ToolkitError in plain words."""
    give_cupy_a_cache()
    try:
        from cupy_backends.cuda.libs import nvrtc
    except Exception as error:  # a broken install raises anything, not ImportError alone
        raise ToolkitError(
            f"CuPy, whose binding of NVRTC compiles the kernels, does not import ({error!r}): "
            "pip install cupy-cuda12x (or cupy-cuda13x)"
        ) from error
    try:
        nvrtc.getVersion()
    except Exception as error:
        major = 13 if _installed("cupy-cuda13x") else 12
        remedy = _remedy(major, "nvrtc", "runtime", "cccl")
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        what = "NVRTC, CUDA's compiler library, not found"
        raise ToolkitError(f"{what}: {remedy} ({why})") from error
    return nvrtc


def _remedy(major: int, *parts: str) -> str:
    """What brings parts of CUDA: NVIDIA's small wheels, all of them, or a toolkit."""
    suffix, pin = ("-cu12", "") if major == 12 else ("", f"=={major}.*")
    wheels = " ".join(f"nvidia-cuda-{part}{suffix}{pin}" for part in parts)
    whole = f"cupy-cuda{major}x[ctk]"
    return f"pip install {wheels} (or {whole}), or set CUDA_PATH to a CUDA {major} toolkit"


def _installed(distribution: str) -> bool:
    try:
        return bool(importlib.metadata.version(distribution))
    except importlib.metadata.PackageNotFoundError:
        return False
