"""The built pages in a browser: quiet, offline, for keys, mouse and touch, legible.

A page is opened once, then resized and re-themed in place. Waits are for elements, not for a time.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import little_book
import pytest
from sphinx_external_toc.parsing import parse_toc_yaml

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = [f"{chapter}.html" for chapter in parse_toc_yaml(ROOT / "_toc.yml")]
PAGES = [*CHAPTERS, "search.html?q=softmax", "genindex.html", "index.html"]
PHONES = (390, 360)  # CSS pixels
MIN_TRACK = 100  # CSS pixels: a slider one can aim at with a thumb
MIN_CONTRAST = 4.5  # WCAG 2.2, 1.4.3
VIEW = 'script[type="application/vnd.jupyter.widget-view+json"]'
LOADED = """() => {
  const views = document.querySelectorAll('VIEW');
  const drawn = document.querySelectorAll(".widget-subarea > *").length;
  const maths = [...document.querySelectorAll(".math")];
  return document.readyState === "complete" && drawn >= views.length
    && maths.every((element) => element.querySelector("mjx-container"))
    && (!location.search.includes("q=") || document.querySelector("#search-results li"));
}""".replace("VIEW", VIEW)


@dataclass
class Visit:
    """A loaded page and what it did on the way."""

    page: object
    origin: str
    requests: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def theme(self, name: str) -> None:
        self.page.evaluate(
            "name => Object.assign(document.documentElement.dataset, {theme: name, mode: name})",
            name,
        )


def follow(page, address: str) -> Visit:
    """Open `address`, note requests and faults, wait until widgets and formulas are drawn."""
    visit = Visit(page, address)
    page.on("request", lambda request: visit.requests.append(request.url))
    page.on("console", lambda line: line.type == "error" and visit.faults.append(line.text))
    page.on("pageerror", lambda error: visit.faults.append(str(error)))
    page.on(
        "response",
        lambda reply: reply.status >= 400 and visit.faults.append(f"{reply.status} {reply.url}"),
    )
    page.on("requestfailed", lambda request: visit.faults.append(f"failed: {request.url}"))
    page.goto(address)
    page.wait_for_function(LOADED)
    return visit


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Address of the pages of `folder` on this machine."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def site(book_html) -> Iterator[str]:
    with served(book_html) as address:
        yield address


SAMPLE = (
    """
from softmax_lab import widgets
say = lambda *words: f'<div class="lab-frame"><p class="lab-note">frame {words}</p></div>'
widgets.stepper([say(k) for k in range(5)], list("abcde"), description="Lane")
""",
    """
widgets.grid([1, 2, 4], [8, 16], say, row="Rows", col="Columns")
""",
    """
widgets.predict("Which?", ["less", "more"], [say("less"), say("more")], say("the answer"))
""",
    """
widgets.guess("How many?", "bytes", say("that many"))
""",
)


@pytest.fixture(scope="module")
def sample(book_html, tmp_path_factory) -> Iterator[str]:
    """A page with one widget of each kind, whatever the chapters use."""
    folder = tmp_path_factory.mktemp("sample")
    done = little_book.build(folder, *SAMPLE)
    assert done.returncode == 0, done.stdout + done.stderr
    with served(folder / "_build" / "html") as address:
        yield f"{address}/book/page.html"


def opened(browser, address: str) -> Iterator[Visit]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(20_000)
    yield follow(page, address)
    page.close()


@pytest.fixture(scope="module", params=PAGES)
def visit(request, browser, site) -> Iterator[Visit]:
    yield from opened(browser, f"{site}/{request.param}")


@pytest.fixture(scope="module", params=["sample", *CHAPTERS])
def chapter(request, browser, site) -> Iterator[Visit]:
    if request.param == "sample":
        yield from opened(browser, request.getfixturevalue("sample"))
    else:
        yield from opened(browser, f"{site}/{request.param}")


# ---- Quiet, offline, of one width ----


def test_page_is_quiet_and_offline(visit):
    for theme in ("dark", "light"):
        visit.theme(theme)
    visit.page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    assert visit.faults == []
    assert visit.page.locator("[data-mjx-error]").all() == [], "a formula MathJax cannot read"
    hosts = {
        urlsplit(url).hostname for url in visit.requests if not url.startswith(("data:", "blob:"))
    }
    assert hosts == {"127.0.0.1"}


def test_page_fits_a_phone(visit):
    for width in PHONES:
        visit.page.set_viewport_size({"width": width, "height": 800})
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width, (
            f"at {width} px"
        )
        for track in visit.page.locator(".widget-slider .noUi-target").all():
            assert track.bounding_box()["width"] >= MIN_TRACK, f"slider track at {width} px"
    hidden = visit.page.evaluate(
        """() => [...document.querySelectorAll("article :is([class^=lab-], .lab-code pre)")]
          .filter((box) => getComputedStyle(box).overflowX === "auto")
          .filter((box) => box.scrollWidth > box.clientWidth + 1 && box.tabIndex < 0)
          .map((box) => box.className)"""
    )
    visit.page.set_viewport_size({"width": 1280, "height": 900})
    assert hidden == [], "a box that scrolls sideways cannot be reached from the keyboard"


@pytest.mark.parametrize("page_name", CHAPTERS)
def test_page_works_from_a_file(browser, book_html, page_name):
    page = browser.new_page()
    try:
        visit = follow(page, (book_html / page_name).as_uri())
        assert visit.faults == []
        assert {urlsplit(url).scheme for url in visit.requests} <= {"file", "data", "blob"}
    finally:
        page.close()


# ---- Legible ----

CONTRAST = (Path(__file__).parent / "contrast.js").read_text("utf-8")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_figures_tables_and_widgets_are_legible(chapter, theme):
    chapter.theme(theme)
    for key in ("Home", "End"):  # the first and the last frame of each stepper
        for handle in chapter.page.locator(".widget-slider .noUi-handle").all():
            handle.press(key)
        assert chapter.page.evaluate(CONTRAST, MIN_CONTRAST)["poor"] == []


def test_contrast_is_measured_where_it_is_poor(browser):
    page = browser.new_page()
    page.set_content(
        """<body style="background:#fff"><article>
        <div class="lab-figure"><svg viewBox="0 0 200 40" width="200">
        <rect width="100" height="40" fill="#0072B2"/><text x="10" y="25" fill="#000">dark</text>
        <text x="110" y="25" fill="#000">fine</text></svg></div>
        <p class="lab-note" style="color:#aaa">faint</p><p class="lab-note">plain</p></article>"""
    )
    result = page.evaluate(CONTRAST, MIN_CONTRAST)
    page.close()
    assert result["seen"] == 4
    assert [line.split('"')[1] for line in result["poor"]] == ["dark", "faint"]


# ---- Controls ----

NAMELESS = """() => [...document.querySelectorAll(
    ".widget-subarea :is(button, input, select, textarea, [role=slider], [role=textbox])")]
  .filter((control) => control.checkVisibility())
  .filter((control) => !(control.getAttribute("aria-label") || control.textContent || control.title
      || [...(control.labels ?? [])].map((label) => label.textContent).join("")).trim())
  .map((control) => control.outerHTML.slice(0, 200))"""
# What the widgets around a control show, read without the control itself.
SHOWN = """handle => {
  const area = handle.closest(".widget-subarea");
  return [...area.querySelectorAll(".widget-html-content")].map((frame) => frame.innerHTML).join();
}"""
CHANGED = f"([handle, before]) => ({SHOWN})(handle) !== before"
SAME = f"([handle, before]) => ({SHOWN})(handle) === before"


def shown(handle) -> str:
    return handle.evaluate(SHOWN)


def wait_for_change(page, handle, before: str) -> None:
    page.wait_for_function(CHANGED, arg=[handle.element_handle(), before])


def test_the_sample_has_every_control(browser, sample):
    for visit in opened(browser, sample):
        kinds = (".widget-play", ".widget-slider", ".widget-radio", ".widget-toggle-buttons")
        assert [visit.page.locator(kind).count() for kind in kinds] == [1, 3, 1, 1]


def test_every_control_has_a_name(chapter):
    assert chapter.page.evaluate(NAMELESS) == []


def test_sliders_work_from_the_keyboard_and_speak_their_label(chapter):
    page = chapter.page
    for slider in page.locator(".widget-slider").all():
        handle, readout = slider.locator(".noUi-handle"), slider.locator(".widget-readout")
        handle.press("Home")
        start = shown(handle)
        handle.press("ArrowRight")
        wait_for_change(page, handle, start)
        second = shown(handle)
        handle.press("End")
        if float(handle.get_attribute("aria-valuemax")) > 1:
            wait_for_change(page, handle, second)
        assert shown(handle) != start
        label = readout.inner_text().strip()
        page.wait_for_function(
            "([handle, label]) => handle.getAttribute('aria-valuetext') === label",
            arg=[handle.element_handle(), label],
        )
        assert handle.get_attribute("aria-label")
        assert page.locator(f"#{handle.get_attribute('aria-describedby')}").inner_text
        handle.press("Home")
        page.wait_for_function(SAME, arg=[handle.element_handle(), start])


def test_sliders_answer_a_click_on_their_track(chapter):
    for slider in chapter.page.locator(".widget-slider").all():
        handle, track = slider.locator(".noUi-handle"), slider.locator(".noUi-target")
        handle.press("Home")
        before = shown(handle)
        box = track.bounding_box()
        track.click(position={"x": box["width"] - 3, "y": box["height"] / 2}, force=True)
        wait_for_change(chapter.page, handle, before)
        handle.press("Home")


def test_play_steps_and_pauses(chapter):
    page = chapter.page
    for play in page.locator(".widget-play").all():
        button = play.locator("button").first
        handle = play.locator("xpath=..").locator(".noUi-handle")
        handle.press("Home")
        before = shown(handle)
        assert button.get_attribute("aria-label").startswith("Play: ")
        button.click()
        wait_for_change(page, handle, before)
        page.wait_for_function(
            "b => b.getAttribute('aria-label').startsWith('Pause: ')", arg=button.element_handle()
        )
        button.click()
        page.wait_for_function(
            "b => b.getAttribute('aria-label').startsWith('Play: ')", arg=button.element_handle()
        )
        handle.press("Home")
    assert chapter.faults == []


def test_choices_show_something_new(chapter):
    page = chapter.page
    for group in page.locator(".widget-radio, .widget-toggle-buttons").all():
        for option in group.locator("input, button").all()[1:]:
            before = shown(option)
            option.click()
            wait_for_change(page, option, before)
    assert chapter.faults == []


@pytest.mark.parametrize("page_name", CHAPTERS)
def test_sliders_answer_a_tap_on_a_phone(browser, site, page_name):
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    try:
        visit = follow(context.new_page(), f"{site}/{page_name}")
        for slider in visit.page.locator(".widget-slider").all():
            handle, track = slider.locator(".noUi-handle"), slider.locator(".noUi-target")
            track.scroll_into_view_if_needed()
            before = shown(handle)
            box = track.bounding_box()
            track.tap(position={"x": box["width"] - 3, "y": box["height"] / 2}, force=True)
            wait_for_change(visit.page, handle, before)
        assert visit.faults == []
    finally:
        context.close()


@pytest.mark.parametrize("page_name", CHAPTERS)
def test_page_can_be_read_without_javascript(browser, site, page_name):
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(f"{site}/{page_name}")
        assert page.locator("article h1").is_visible()
        assert page.locator("article :is(p, dd, table)").first.inner_text().strip()
        for formula in page.locator("article .math").all()[:5]:
            assert formula.inner_text().strip()
        views = page.locator(VIEW).count()
        stills = page.locator(".lab-static")
        assert stills.count() == views
        for still in stills.all():
            assert still.is_visible()
            assert still.bounding_box()["height"] > 40
    finally:
        context.close()
