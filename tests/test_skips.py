"""A test that cannot run here says why, and fails where it must run: `conftest.py`, tried out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.slow  # each starts pytest anew


def run(folder: Path, text: str, **environment: str) -> str:
    """Output of pytest over a test file and our conftest, on a machine that has none of it all."""
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (folder / "test_it.py").write_text(f"import pytest\n\n{text}\n")
    gone = str(folder / "gone")
    without = {"CUDA_VISIBLE_DEVICES": "", "SOFTMAX_LAB_BROWSER": gone, "PATH": gone}
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("SOFTMAX_LAB_REQUIRE")}
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", "."]
    return subprocess.run(
        [*command, "-p", "no:cacheprovider", "test_it.py"],
        cwd=folder,
        env={**inherited, **without, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
    ).stdout


@pytest.mark.parametrize(
    ("marker", "name"),
    [("gpu", "GPU"), ("browser", "Browser"), ("node", "Node.js"), ("firefox", "Firefox")],
)
def test_skip_is_visible_and_can_be_forbidden(tmp_path, marker, name):
    text = f"@pytest.mark.{marker}\ndef test_it(): pass\n\ndef test_other(): pass"
    out = run(tmp_path, text)
    assert "1 passed, 1 skipped" in out
    (reason,) = [line for line in out.splitlines() if line.startswith("SKIPPED")]
    assert f"{name}: " in reason
    out = run(tmp_path, text, **{f"SOFTMAX_LAB_REQUIRE_{marker.upper()}": "1"})
    assert "1 passed, 1 error" in out
    assert f"{name}: " in out


def test_a_browser_test_without_its_mark_fails(tmp_path):
    assert "not marked `browser`" in run(tmp_path, "def test_it(browser): pass")


def test_an_unknown_mark_is_an_error(tmp_path):
    assert "'gpus' not found in `markers`" in run(
        tmp_path, "@pytest.mark.gpus\ndef test_it(): pass"
    )
