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
from reading import NEEDS_SCRIPT, TEX
from sphinx_external_toc.parsing import parse_toc_yaml

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = [f"{chapter}.html" for chapter in parse_toc_yaml(ROOT / "_toc.yml")]
PAGES = [*CHAPTERS, "search.html?q=softmax", "genindex.html", "index.html"]
PHONES = (390, 360)  # CSS pixels
MIN_TRACK = 100  # CSS pixels: a slider one can aim at with a thumb
MIN_CONTRAST = 4.5  # WCAG 2.2, 1.4.3
MIN_WORDS = 9  # px: letters of a figure on a phone
VIEW = 'script[type="application/vnd.jupyter.widget-view+json"]'
LOADED = """() => {
  const views = document.querySelectorAll('VIEW');
  const drawn = document.querySelectorAll(".widget-subarea > *").length;
  return document.readyState === "complete" && drawn >= views.length
    && document.fonts.status === "loaded"
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
    """Open `address`, note requests and faults, wait until widgets and fonts are there."""
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
from softmax_lab import steppers
from softmax_lab.svg import Svg
drawn = lambda name: [Svg("<svg/>", "", f"{name} {k}") for k in range(2)]
steppers.choose({"sum": drawn("sum"), "max": drawn("max")}, ["start", "end"], description="Show")
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


@pytest.fixture(scope="module", params=["sample", *PAGES])
def visit(request, browser, site) -> Iterator[Visit]:
    """A page, opened for all tests of it: pytest runs them one after another."""
    if request.param == "sample":
        yield from opened(browser, request.getfixturevalue("sample"))
    else:
        yield from opened(browser, f"{site}/{request.param}")


# The first of the fixture's own, since pytest tells them by their place in the list.
of_chapters = pytest.mark.parametrize("visit", ["sample", *CHAPTERS], indirect=True, scope="module")


@pytest.fixture(scope="module", params=CHAPTERS)
def phone(request, browser, book_html) -> Iterator[Visit]:
    """A chapter opened from a file, where one touches."""
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    yield follow(context.new_page(), (book_html / request.param).as_uri())
    context.close()


# ---- Quiet, offline, of one width ----


def test_page_is_quiet_and_offline(visit):
    for theme in ("dark", "light"):
        visit.theme(theme)
    visit.page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    assert visit.faults == []
    hosts = {
        urlsplit(url).hostname for url in visit.requests if not url.startswith(("data:", "blob:"))
    }
    assert hosts == {"127.0.0.1"}


# Boxes get their place among what the keyboard reaches once the page hears of its new width.
UNREACHED = """async () => {
  for (let tries = 0; ; tries++) {
    const hidden = [...document.querySelectorAll("article :is([class^=lab-], .lab-code pre)")]
      .filter((box) => getComputedStyle(box).overflowX === "auto")
      .filter((box) => box.scrollWidth > box.clientWidth + 1 && box.tabIndex < 0);
    if (!hidden.length || tries === 50) return hidden.map((box) => box.className);
    await new Promise((again) => setTimeout(again, 100));
  }
}"""


def test_page_fits_a_phone(visit):
    for width in PHONES:
        visit.page.set_viewport_size({"width": width, "height": 800})
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width, (
            f"at {width} px"
        )
        for track in visit.page.locator(".widget-slider .noUi-target").all():
            assert track.bounding_box()["width"] >= MIN_TRACK, f"slider track at {width} px"
    hidden = visit.page.evaluate(UNREACHED)
    visit.page.set_viewport_size({"width": 1280, "height": 900})
    assert hidden == [], "a box that scrolls sideways cannot be reached from the keyboard"


CUT_OFF = """() => [...document.querySelectorAll(
    "article :is(.lab-code, .cell_input, .cell_output .stream) pre")]
  .filter((box) => box.scrollWidth > box.clientWidth + 1)
  .map((box) => box.textContent)"""


def test_on_a_wide_screen_no_line_of_code_is_cut_off(visit):
    visit.page.set_viewport_size({"width": 1280, "height": 900})
    unfold = "open => document.querySelectorAll('details.hide').forEach(e => e.open = open)"
    visit.page.evaluate(unfold, True)
    cut_off = visit.page.evaluate(CUT_OFF)
    visit.page.evaluate(unfold, False)
    assert cut_off == []


SCROLLED = """() => [...document.querySelectorAll("article .lab-scroll")]
  .filter((box) => box.checkVisibility() && box.scrollWidth > box.clientWidth + 1)
  .map((box) => [...box.querySelectorAll("thead th")].map((head) => head.textContent).join(", "))"""


def test_on_a_wide_screen_no_table_scrolls_sideways(visit):
    visit.page.set_viewport_size({"width": 1280, "height": 900})
    assert visit.page.evaluate(SCROLLED) == []


SMALL_WORDS = """least => [...document.querySelectorAll(
    "article :is(.lab-figure, .lab-frame):not(.lab-wide) > svg")]
  .filter((svg) => svg.checkVisibility()).flatMap((svg) => {
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    return [...svg.querySelectorAll("text")]
      .filter((word) => scale * parseFloat(getComputedStyle(word).fontSize) < least)
      .map((word) => word.textContent);
  })"""
SIDEWAYS = """() => [...document.querySelectorAll("article :is(.lab-figure, .lab-frame)")]
  .filter((box) => box.checkVisibility() && box.scrollWidth > box.clientWidth + 1)
  .filter((box) => !box.closest(".lab-bench") && !getComputedStyle(box, "::before").content
    .includes("sideways"))
  .map((box) => box.querySelector("title")?.textContent ?? box.className)"""


def test_a_phone_shows_figures_whole_or_says_that_they_scroll(visit):
    visit.page.set_viewport_size({"width": 390, "height": 844})
    small, unsaid = (
        visit.page.evaluate(SMALL_WORDS, MIN_WORDS),
        visit.page.evaluate(SIDEWAYS),
    )
    visit.page.set_viewport_size({"width": 1280, "height": 900})
    assert (small, unsaid) == ([], [])


STRUCK = (Path(__file__).parent / "struck.js").read_text("utf-8")


def test_no_word_of_a_roofline_stands_on_a_roof_a_point_or_another(visit):
    found = set()
    for width in (1280, 390):
        visit.page.set_viewport_size({"width": width, "height": 900})
        found |= {f"{width} px: {words}" for words in visit.page.evaluate(STRUCK)}
    visit.page.set_viewport_size({"width": 1280, "height": 900})
    assert found == set()


def test_page_works_from_a_file(phone):
    assert phone.faults == []
    assert {urlsplit(url).scheme for url in phone.requests} <= {"file", "data", "blob"}


# ---- Legible ----

CONTRAST = (Path(__file__).parent / "contrast.js").read_text("utf-8")


@pytest.mark.parametrize("theme", ["light", "dark"])
@of_chapters
def test_figures_tables_and_widgets_are_legible(visit, theme):
    visit.theme(theme)
    for key in ("Home", "End"):  # the first and the last frame of each stepper
        for handle in visit.page.locator(".widget-slider .noUi-handle").all():
            handle.press(key)
        assert visit.page.evaluate(CONTRAST, MIN_CONTRAST)["poor"] == []


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


@pytest.mark.parametrize("visit", ["sample"], indirect=True, scope="module")
def test_the_sample_has_every_control(visit):
    kinds = (".widget-play", ".widget-slider", ".widget-toggle-buttons")
    assert [visit.page.locator(kind).count() for kind in kinds] == [2, 4, 1]


@of_chapters
def test_every_control_has_a_name(visit):
    assert visit.page.evaluate(NAMELESS) == []


@of_chapters
def test_sliders_work_from_the_keyboard_and_speak_their_label(visit):
    page = visit.page
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


# How far [px] the keyboard's help stands below the lower edge of the handle and of the value.
HELP = """handle => {
  const slider = handle.closest(".widget-slider"), help = getComputedStyle(slider, "::after");
  const words = document.createRange();
  words.selectNodeContents(slider.querySelector(".widget-readout"));
  const lowest = Math.max(...[handle, words].map((part) => part.getBoundingClientRect().bottom));
  return slider.getBoundingClientRect().top + parseFloat(help.top) - lowest;
}"""


@pytest.mark.parametrize("visit", ["sample"], indirect=True, scope="module")
def test_the_help_for_the_keyboard_stands_below_the_slider(visit):
    for width in (1280, 390):
        visit.page.set_viewport_size({"width": width, "height": 900})
        for handle in visit.page.locator(".widget-slider .noUi-handle").all():
            handle.press("Home")
            assert handle.evaluate(HELP) >= 0, f"{width} px"
    visit.page.set_viewport_size({"width": 1280, "height": 900})


@of_chapters
def test_sliders_answer_a_click_on_their_track(visit):
    for slider in visit.page.locator(".widget-slider").all():
        handle, track = slider.locator(".noUi-handle"), slider.locator(".noUi-target")
        handle.press("Home")
        before = shown(handle)
        box = track.bounding_box()
        track.click(position={"x": box["width"] - 3, "y": box["height"] / 2}, force=True)
        wait_for_change(visit.page, handle, before)
        handle.press("Home")


@of_chapters
def test_play_steps_and_pauses(visit):
    page = visit.page
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
    assert visit.faults == []


@of_chapters
def test_choices_show_something_new(visit):
    page = visit.page
    for group in page.locator(".widget-toggle-buttons").all():
        for option in group.locator("input, button").all()[1:]:
            before = shown(option)
            option.click()
            wait_for_change(page, option, before)
    assert visit.faults == []


def test_sliders_answer_a_tap_on_a_phone(phone):
    for slider in phone.page.locator(".widget-slider").all():
        handle, track = slider.locator(".noUi-handle"), slider.locator(".noUi-target")
        track.scroll_into_view_if_needed()
        before = shown(handle)
        box = track.bounding_box()
        track.tap(position={"x": box["width"] - 3, "y": box["height"] / 2}, force=True)
        wait_for_change(phone.page, handle, before)
    assert phone.faults == []


# ---- Formulas ----

BRACES = r"""
$$
f = \begin{cases} a & \text{if } b, \\ c & \text{otherwise,} \end{cases} \qquad
\underbrace{a + b + c + d}_{\text{all}} + a + b + c + d + e + f + g + h + i + j + k + l + m + n
$$ (eq-long)

A line that is long enough to be broken somewhere, ending in $x > m$, and again in $x > m$, and in
$x > m$.
"""


@pytest.fixture(scope="module")
def formula_page(book_html, browser, tmp_path_factory) -> Iterator:
    folder = tmp_path_factory.mktemp("formulas")
    done = little_book.build(folder, words=BRACES)
    assert done.returncode == 0, done.stdout + done.stderr
    with served(folder / "_build" / "html") as address:
        for visit in opened(browser, f"{address}/book/page.html"):
            yield visit.page


def test_braces_grow_with_what_they_hold(formula_page):
    """They do in a font with a MATH table, which the page brings."""
    assert formula_page.evaluate("document.fonts.check('1em \"Lab Math\"')")
    sizes = (
        """(name) => [...document.querySelectorAll(name)].map((e) => e.getBoundingClientRect())"""
    )
    brace, table = formula_page.evaluate(sizes, "mo:has(+ mtable), mtable")
    assert brace["height"] > 0.8 * table["height"] > 2 * 16
    letters, under = formula_page.evaluate(sizes, "munder[accentunder] > *")
    assert under["width"] >= letters["width"]  # else Chromium paints a part of it


def test_a_wide_formula_scrolls_in_its_own_box(formula_page):
    box = formula_page.locator(".lab-formula")
    for width in PHONES:
        formula_page.set_viewport_size({"width": width, "height": 800})
        assert formula_page.evaluate("document.documentElement.scrollWidth") <= width
        assert box.evaluate("e => e.scrollWidth > e.clientWidth")
        left = box.locator("mi").first.bounding_box()["x"] - box.bounding_box()["x"]
        assert left >= 0, "the start of a formula is out of reach"
        assert box.get_attribute("tabindex") == "0"
        assert formula_page.locator(".eqno").bounding_box()["x"] < width
    formula_page.set_viewport_size({"width": 1280, "height": 900})


def test_no_line_breaks_between_a_formula_and_its_comma(formula_page):
    """Each formula and the sign behind it are in one line, at every width of the window."""
    apart = """() => [...document.querySelectorAll("p span.math")].map((formula) => {
      const range = document.createRange();
      const last = document.createTreeWalker(formula.closest("p"), NodeFilter.SHOW_TEXT);
      last.currentNode = formula.querySelector("math").lastElementChild.lastChild;
      range.setStart(last.nextNode(), 0);
      range.setEnd(last.currentNode, 1);
      return range.getBoundingClientRect().top > formula.getBoundingClientRect().bottom;
    })"""
    for width in range(360, 700, 4):
        formula_page.set_viewport_size({"width": width, "height": 800})
        assert formula_page.evaluate(apart) == [False] * 4
    formula_page.set_viewport_size({"width": 1280, "height": 900})


# ---- Without JavaScript ----

UNSEEN = """() =>
  [...document.querySelectorAll("article :is(math, figure, .lab-static, .lab-frame)")]
  .filter((element) => element.checkVisibility())
  .filter((element) => !element.getBoundingClientRect().width
    || !element.getBoundingClientRect().height)
  .map((element) => element.outerHTML.slice(0, 200))"""
READ = """() => {
  const page = (document.querySelector("main") ?? document.body).cloneNode(true);
  for (const code of page.querySelectorAll("pre, code, script, style")) code.remove();
  return page.textContent;
}"""


@pytest.fixture(scope="module", params=["sample", *PAGES])
def still(request, browser, site) -> Iterator:
    """A page in a browser that runs no script."""
    address = f"{site}/{request.param}"
    if request.param == "sample":
        address = request.getfixturevalue("sample")
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto(address)
    if request.param == "index.html":  # which leads on to the landing page
        page.wait_for_url(f"{site}/{CHAPTERS[0]}")
    yield page
    context.close()


def test_page_can_be_read_without_javascript(still):
    words = still.evaluate(READ)
    assert len(words.split()) > 10
    assert TEX.findall(words) == []
    assert NEEDS_SCRIPT.findall(words) == []
    assert still.evaluate(UNSEEN) == []
    assert still.evaluate("document.documentElement.scrollWidth") <= 390
    colour = still.evaluate(
        "getComputedStyle(document.documentElement).getPropertyValue('--pst-color-info')"
    )
    assert colour.strip(), "the theme has no colours"


def test_each_figure_shows_something_without_javascript(still):
    for figure in still.locator("article figure:not(.lab-code)").all():
        shown = figure.locator("svg, table, img, .lab-note").locator("visible=true")
        assert shown.count()
        assert figure.bounding_box()["height"] > 60
    assert still.locator(".lab-static").count() == still.locator(VIEW).count()


# Choices that show nothing once they are open, and summaries that cannot be seen then.
HOLLOW = """() => {
  const choices = [...document.querySelectorAll(".lab-static details")]
    .filter((each) => each.closest(".lab-static").checkVisibility());
  for (const each of choices) each.open = true;
  return choices.filter((each) => {
    const inside = each.querySelector(":scope > :not(summary)");
    return !each.querySelector(":scope > summary").checkVisibility()
      || !inside.checkVisibility() || inside.getBoundingClientRect().height <= 10;
  }).map((each) => each.textContent.slice(0, 200));
}"""
# Strips whose frames do not lie side by side or cannot be scrolled to.
STUCK = """() => [...document.querySelectorAll(".lab-strip")]
  .filter((strip) => strip.checkVisibility() && strip.children.length > 1)
  .filter((strip) => {
    const [first, second] = [...strip.children].map((frame) => frame.getBoundingClientRect());
    return first.y !== second.y || first.x >= second.x
      || strip.scrollWidth <= strip.clientWidth || strip.tabIndex !== 0;
  })
  .map((strip) => strip.textContent.slice(0, 200))"""


def test_choices_open_without_javascript(still):
    unfolded = still.locator(".lab-static :is(details, .lab-strip)").count()
    assert unfolded >= still.locator(VIEW).count()
    for widget in still.query_selector_all(
        ".lab-static"
    ):  # one of each by its key, the rest at once
        for choice in widget.query_selector_all("details:not([open])"):
            if (summary := choice.query_selector(":scope > summary")).is_visible():
                summary.press("Enter")
                assert choice.get_attribute("open") is not None
                break
    assert still.evaluate(HOLLOW) == []
    assert still.evaluate(STUCK) == []


POLICY = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; font-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; worker-src blob:; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'"
)


@pytest.mark.parametrize("widgets", [True, False], ids=["as the README says", "without eval"])
def test_a_strict_policy_takes_the_widgets_at_most_and_not_their_frames(browser, sample, widgets):
    page = browser.new_page()
    policy = POLICY + " 'unsafe-eval'" * widgets

    def strict(route) -> None:
        reply = route.fetch()
        headers = reply.headers | {"content-security-policy": policy}
        route.fulfill(response=reply, headers=headers)

    page.route("**/page.html", strict)
    page.goto(sample)
    views, frames = page.locator(VIEW), page.locator("div.lab-static")
    shown = page.locator(".widget-subarea > *") if widgets else frames
    shown.nth(len(SAMPLE) - 1).wait_for(timeout=20_000 if widgets else 7_000)  # not by the clock
    assert views.count() == len(SAMPLE)
    assert frames.count() == (0 if widgets else len(SAMPLE))
    if not widgets:
        assert all(f"frame ({k},)" in frames.first.inner_text() for k in range(5))
        assert page.locator(".widget-subarea > *").count() == 0
    page.close()
