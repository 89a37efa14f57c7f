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
        [*command, "-p", "no:cacheprovider", "--continue-on-collection-errors", "."],
        cwd=folder,
        env={**inherited, **without, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
    ).stdout


MARKED = {"gpu": "GPU", "browser": "Browser", "node": "Node.js", "firefox": "Firefox"}
TESTS = "\n".join(f"@pytest.mark.{marker}\ndef test_{marker}(): pass\n" for marker in MARKED)


@pytest.mark.parametrize("required", [("gpu", "node"), ("browser", "firefox")], ids=" ".join)
def test_skip_is_visible_and_can_be_forbidden(tmp_path, required):
    """Each of four is seen to skip where others are required, and to fail where it is."""
    demand = {f"SOFTMAX_LAB_REQUIRE_{marker.upper()}": "1" for marker in required}
    out = run(tmp_path, f"{TESTS}\ndef test_other(): pass", **demand)
    assert "1 passed, 2 skipped, 2 errors" in out
    skipped = [line for line in out.splitlines() if line.startswith("SKIPPED")]
    failed = [line for line in out.splitlines() if line.startswith("ERROR")]
    for marker, name in MARKED.items():
        (said,) = [line for line in (*skipped, *failed) if f"{name}: " in line]
        assert (said in failed) == (marker in required)


def test_a_browser_test_without_its_mark_fails_and_an_unknown_mark_is_an_error(tmp_path):
    (tmp_path / "test_unknown.py").write_text(
        "import pytest\n\n@pytest.mark.gpus\ndef test_it(): pass"
    )
    out = run(tmp_path, "def test_it(browser): pass")
    assert "not marked `browser`" in out
    assert "'gpus' not found in `markers`" in out
