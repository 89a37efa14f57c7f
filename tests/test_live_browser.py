"""The live bench in browsers: over http and from files, the network refused, by keys and touch."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_browser import served

from softmax_lab import emulator, ledger, live, livefile
from softmax_lab.cuts import cuts

pytestmark = pytest.mark.browser

STATIC = Path(__file__).resolve().parent.parent / "book" / "_static"
FILES = ("book.css", "live.css", "live.js", "kernels.wasm.js")
SETTLED = {"ready", "waiting", "failed", "refused"}
HEAD = (
    '<!DOCTYPE html><html lang="en" data-theme="light"><meta charset="utf-8"><title>Bench</title>'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<link rel="icon" href="data:,"><link rel="stylesheet" href="book.css">'
    '<link rel="stylesheet" href="live.css"><script defer src="live.js"></script>'
    '<main class="bd-content"><article class="bd-article">'
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A page with one bench, as the book embeds it."""
    made = tmp_path_factory.mktemp("bench")
    for name in FILES:
        shutil.copy(STATIC / name, made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(live.IN_THE_BOOK, "1")
        html = live.bench("naive", row=[2, 0, 1, -1], rows=3)._repr_html_()
        cut = live.bench("naive", cut="naive-guard")._repr_html_()
    (made / "lab.html").write_text(live.bench("warp", row=[1, 2, 3])._repr_html_(), "utf-8")
    (made / "page.html").write_text(HEAD + html, "utf-8")
    (made / "cut.html").write_text(HEAD + cut, "utf-8")
    return made


@pytest.fixture(scope="module", params=["http", "file"])
def address(request, folder) -> Iterator[str]:
    if request.param == "file":
        yield folder.as_uri()
    else:
        with served(folder) as found:
            yield found


@pytest.fixture
def page(browser, address) -> Iterator:
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    page.set_default_timeout(20_000)
    page.faults, page.asked = [], []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("console", lambda line: line.type == "error" and page.faults.append(line.text))
    page.on("request", lambda request: page.asked.append(request.url))
    page.goto(f"{address}/page.html")
    settle(page)
    yield page
    assert page.faults == []
    assert all(url.startswith((address, "data:", "blob:")) for url in page.asked)
    page.close()


def settle(page) -> str:
    """The state that the bench comes to rest in."""
    host = page.locator(".lab-bench")
    for _ in range(400):
        if (state := host.get_attribute("data-state")) in SETTLED:
            return state
        page.wait_for_timeout(25)
    raise AssertionError(f"the bench stays {state}")


def counts(page) -> dict[str, int]:
    return page.evaluate("SoftmaxLab.last.counters")


def test_counts_in_the_page_are_the_native_ones(page):
    import numpy as np

    x = np.tile(np.array([2, 0, 1, -1], np.float32), (3, 1))
    known = emulator.run("naive", x).counts.known()
    assert {name: counts(page)[name] for name in known} == known
    assert ledger.derive("naive", x).known() == known
    rows = page.locator("[data-part=counts] tbody tr td:last-child").all_inner_texts()
    assert rows and set(rows) == {"yes"}


def test_it_is_quick(page):
    assert float(page.locator(".lab-bench").get_attribute("data-start")) < 1000  # 0.1 s when idle


def test_a_typed_row_runs_at_once_and_nonsense_is_explained(page):
    page.get_by_label("Row", exact=True).fill("1 2 3 4 5")
    assert settle(page) == "ready"
    assert counts(page)["exp"] == 2 * 3 * 5
    page.get_by_label("Row", exact=True).fill("1 two")
    assert settle(page) == "refused"
    assert "“two” is no number" in page.locator(".lab-said").inner_text()
    page.get_by_label("Row", exact=True).fill("1 inf")
    assert settle(page) == "ready"
    assert "within rounding" in page.locator(".lab-said").inner_text()


@pytest.mark.parametrize("kernel", ["warp", "online"])
def test_another_kernel_and_the_steps_of_its_warp(page, kernel):
    page.get_by_label("Kernel").select_option(kernel)
    page.get_by_label("Scores").select_option("normal")
    page.get_by_label("Columns").fill("40")
    page.get_by_label("Columns").press("Tab")
    settle(page)
    steps = page.evaluate("SoftmaxLab.last.steps")
    page.locator("[data-part=steps] summary").click()
    slider = page.get_by_label("Step", exact=True)
    slider.focus()
    seen = set()
    for step in steps[:20]:
        words = slider.get_attribute("aria-valuetext")
        assert f"{step['file']}:{step['line']}." in words
        hot = page.locator(".lab-source-view .lab-hot")
        assert hot.get_attribute("data-line") == str(step["line"])
        assert page.locator("[data-part=steps] svg").get_attribute("aria-label") in words
        seen.add(words)
        slider.press("ArrowRight")
    assert len(seen) == min(20, len(steps))


def test_a_long_run_goes_to_a_worker_and_too_long_a_one_is_refused(page):
    page.get_by_label("Scores").select_option("normal")
    page.get_by_label("Rows").fill("128")
    page.get_by_label("Columns").fill("1024")
    page.get_by_label("Columns").press("Enter")
    for _ in range(400):
        if settle(page) == "ready" and counts(page)["exp"] == 2 * 128 * 1024:
            break
        page.wait_for_timeout(25)
    assert counts(page)["load_sectors"] == 3 * 128 * 1024
    assert any(url.startswith("blob:") for url in page.asked)
    page.get_by_label("Rows").fill("99999")
    page.get_by_label("Rows").press("Enter")
    assert settle(page) == "refused"
    assert "too many for a page" in page.locator(".lab-said").inner_text()


@pytest.mark.parametrize("cut", cuts(), ids=lambda cut: cut.name)
def test_take_a_line_away_predict_and_see(page, cut):
    page.get_by_label("Kernel").select_option(cut.kernel.name)
    page.get_by_label("Line taken away").select_option(cut.name)
    assert not page.locator(".lab-said").inner_text().strip(), "nothing is given away"
    page.get_by_label(cut.outcome).check()
    page.get_by_role("button", name="Run").click()
    settle(page)
    said = page.locator(".lab-said").inner_text()
    assert f"You said: {cut.outcome}. So it is." in said
    assert f"Line {cut.line} of {cut.file}" in said


def test_a_planted_race_is_named(page):
    page.get_by_label("Kernel").select_option("no_barrier_between_levels")
    page.get_by_label("shared race").check()
    page.get_by_role("button", name="Run").click()
    lines = livefile.DEFECTS.read_text("utf-8").split("\n")
    line = 1 + next(
        i for i, text in enumerate(lines) if "if (t < o) s[t] += s[t + o];  // FAULT" in text
    )
    assert f"shared race (read of 4 bytes) at defects.cu:{line}, block (0,0,0)" in re.sub(
        "write of", "read of", page.locator(".lab-faults").inner_text()
    )


def test_every_control_has_a_name_and_a_size_for_thumbs(page):
    for control in page.locator(".lab-bench :is(select, input, button):visible").all():
        assert control.evaluate("e => e.labels?.[0]?.textContent || e.textContent").strip()
        if control.get_attribute("type") != "radio":
            assert control.bounding_box()["height"] >= 40


@pytest.mark.parametrize("width", [390, 360])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_a_phone(page, width, theme):
    page.set_viewport_size({"width": width, "height": 800})
    page.evaluate("name => document.documentElement.dataset.theme = name", theme)
    page.evaluate("document.querySelectorAll('.lab-part').forEach(part => part.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_works_by_touch(browser, address):
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto(f"{address}/page.html")
    settle(page)
    page.locator("[data-part=steps] summary").tap()
    before = page.get_by_label("Step", exact=True).input_value()
    page.get_by_role("button", name="Next").tap()
    assert page.get_by_label("Step", exact=True).input_value() != before
    context.close()


def test_a_bench_that_starts_without_a_line_waits_for_a_prediction(browser, address):
    page = browser.new_page()
    page.goto(f"{address}/cut.html")
    assert settle(page) == "waiting"
    page.get_by_role("button", name="Run").click()
    assert settle(page) == "ready"
    assert "out of bounds" in page.locator(".lab-faults").inner_text()
    page.close()


def test_without_javascript_a_run_is_shown(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/page.html")
    assert "0.6439" in page.locator(".lab-bench").inner_text()
    assert page.locator(".lab-bench tbody tr").count() > 5
    context.close()


def test_with_its_scripts_inlined_as_in_jupyterlab(browser, address):
    page = browser.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/lab.html")
    assert settle(page) == "ready"
    assert counts(page)["shuffles"] == 12
    assert asked == [f"{address}/lab.html"]
    page.close()


# ---- Firefox, over Marionette: a line of JSON each way ----


@contextmanager
def firefox(folder: Path) -> Iterator:
    """`script(text)` runs in a page of a headless Firefox that reaches no host but this one."""
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if not program:
        pytest.skip("no Firefox found (Debian: apt-get install firefox-esr)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "marionette.port": port,
        "network.proxy.type": 1,
        "network.proxy.http": "127.0.0.1",
        "network.proxy.http_port": 9,
        "network.proxy.ssl": "127.0.0.1",
        "network.proxy.ssl_port": 9,
        "network.proxy.no_proxies_on": "127.0.0.1",
    }
    lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in settings.items()]
    (folder / "user.js").write_text("\n".join(lines), "utf-8")
    options = ["--headless", "--marionette", "--no-remote", "--profile", str(folder)]
    process = subprocess.Popen(
        [program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(300):
            try:
                line = socket.create_connection(("127.0.0.1", port), 60)
                break
            except OSError:
                time.sleep(0.1)
        stream = line.makefile("rwb")

        def receive():
            size = b""
            while not size.endswith(b":"):
                size += stream.read(1)
            return json.loads(stream.read(int(size[:-1])))

        def command(name, **parameters):
            text = json.dumps([0, 1, name, parameters]).encode()
            stream.write(b"%d:%b" % (len(text), text))
            stream.flush()
            _, _, error, answer = receive()
            assert not error, error
            return answer

        receive()
        command("WebDriver:NewSession", capabilities={})
        yield command
        line.close()
    finally:
        process.terminate()
        process.wait(30)


def test_firefox_counts_the_same(address, tmp_path):
    with firefox(tmp_path) as command:

        def script(text):
            return command("WebDriver:ExecuteScript", script=text, args=[])["value"]

        command("WebDriver:Navigate", url=f"{address}/page.html")
        for _ in range(300):
            state = script("return document.querySelector('.lab-bench').dataset.state ?? ''")
            if state in SETTLED:
                break
            time.sleep(0.05)
        assert state == "ready"
        found = script("return SoftmaxLab.last.counters")
        known = ledger.derive("naive", 3, 4).known()
        assert {name: found[name] for name in known} == known
        said = script("return document.querySelector('.lab-said').textContent")
        assert "12 results, each within rounding" in said
