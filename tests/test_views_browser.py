"""Explorer, recorded shapes and predictions in a browser: by keys and touch, under a strict policy,
on a phone, without scripts, and as JupyterLab gets them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from test_browser import CONTRAST, MIN_CONTRAST, STRUCK, served

from softmax_lab import alive, cost, explorers, ledger, live, merging_frames, registry, runs, units
from softmax_lab.predictions import choice, number, predict
from softmax_lab.prose import Sentence

pytestmark = pytest.mark.browser

POLICY = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'"
ICON = '<link rel="icon" href="data:,">'
HEAD = (
    '<!DOCTYPE html><html lang="en" data-theme="light"><meta charset="utf-8"><title>Views</title>'
    '<meta name="viewport" content="width=device-width, initial-scale=1">{policy}'
    f'{ICON}<link rel="stylesheet" href="book.css">'
    "<style>body {{ background: var(--pst-color-background); }}</style>"
    f'<link rel="stylesheet" href="{alive.STYLE}">'
    + "".join(f'<script defer src="{name}"></script>' for name in alive.SCRIPTS)
    + '<main class="bd-content"><article class="bd-article">'
)
STRICT = HEAD.format(
    policy=f'<meta http-equiv="Content-Security-Policy" content="{POLICY}; img-src data:">'
)


def guesses() -> alive.View:
    replies = {4: "Side by side?", 32: "One for each <lane>."}
    sectors = choice("How many sectors?", replies, {"derived": 32, "counted": 32})
    share = number("What `share`?", {"measured": 6.5}, "%")
    return predict(sectors, share, then=[Sentence("So **it** is.")])


VIEWS = {
    "costs": lambda: explorers.costs("warp", 256, 1024),
    "shapes": lambda: explorers.shapes("naive", 256, 1024),
    "merging": lambda: merging_frames.stepper("butterfly", 12),
    "predict": guesses,
}


TITLES = {
    "costs": "Cost explorer",
    "shapes": "Recorded shapes",
    "merging": "Stepper of the merge",
    "predict": "Predict, then look",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A page for each view, as the book embeds it and as JupyterLab gets it."""
    made = tmp_path_factory.mktemp("views")
    for name in ("book.css", alive.STYLE, *alive.SCRIPTS):
        shutil.copy(alive.STATIC / name, made)
    for name, view in VIEWS.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(live.IN_THE_BOOK, "1")
            html = view()._repr_html_()
        (made / f"{name}.html").write_text(STRICT + html, "utf-8")
        (made / f"{name}-file.html").write_text(HEAD.format(policy="") + html, "utf-8")
        (made / f"{name}-lab.html").write_text(ICON + view()._repr_html_(), "utf-8")
    broken = html.replace('"questions":[', '"questions":[null,')
    (made / "broken.html").write_text(STRICT + broken, "utf-8")
    return made


@pytest.fixture(scope="module")
def address(folder) -> Iterator[str]:
    with served(folder) as found:
        yield found


@pytest.fixture
def visit(browser, address) -> Iterator:
    """Opens a page of the folder; at the end nothing may have gone wrong or gone elsewhere."""
    pages = []

    def opened(name: str, **how):
        context = browser.new_context(**{"viewport": {"width": 1000, "height": 900}} | how)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.faults, page.asked = [], []
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.on("console", lambda line: line.type == "error" and page.faults.append(line.text))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(f"{address}/{name}.html" if "://" not in name else name)
        if how.get("java_script_enabled", True):
            page.locator(".lab-view[data-state=ready], .lab-view[data-state=failed]").wait_for()
        pages.append((page, context))
        return page

    yield opened
    for page, context in pages:
        assert page.faults == []
        assert all(url.startswith((address, "file:", "data:")) for url in page.asked)
        context.close()


def tables(page) -> list[list[list[str]]]:
    """Cells of the tables that are shown."""
    return page.evaluate(
        """() => [...document.querySelectorAll(".lab-view table")]
          .filter((t) => t.checkVisibility())
          .map((t) => [...t.rows].map((row) => [...row.cells].map((cell) => cell.textContent)))"""
    )


def settle(page, words: str) -> None:
    """Wait until the view says `words`."""
    page.locator(".lab-view", has_text=words).wait_for()


# ---- All views ----


@pytest.mark.parametrize("name", ["costs", "shapes"])
def test_first_paint_is_what_stands_there_without_a_script(visit, name):
    """Two renderers, Python's and the page's, say the same."""
    still = BeautifulSoup(VIEWS[name]().still, "html.parser")
    here = [
        [[cell.get_text() for cell in row.select("th, td")] for row in table.select("tr")]
        for table in still.select("table")
    ]
    assert here and here == tables(visit(name))[: len(here)]


@pytest.mark.parametrize("name", VIEWS)
def test_without_scripts_the_still_is_there(visit, name):
    page = visit(name, java_script_enabled=False)
    still = page.locator(".lab-still")
    assert still.is_visible() and still.bounding_box()["height"] > 60
    if name == "predict":
        assert "6.5" not in page.locator(".lab-still ul").inner_text()
        page.locator("summary").click()
        assert "6.5" in page.locator("details").inner_text()
        assert "32" in page.locator("details").inner_text()


@pytest.mark.parametrize("name", VIEWS)
def test_from_a_file_and_inlined_as_in_jupyterlab(visit, folder, name):
    assert visit((folder / f"{name}-file.html").as_uri()).locator("form").count() == 1
    page = visit(f"{name}-lab")
    assert page.locator(".lab-view[data-state=ready] form").count() == 1
    assert page.asked == [page.url]


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_a_phone_and_is_legible(visit, name, theme):
    page = visit(name, viewport={"width": 390, "height": 844})
    page.evaluate("name => document.documentElement.dataset.theme = name", theme)
    if name == "predict":
        answer(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    found = page.evaluate(CONTRAST, MIN_CONTRAST)
    assert found["seen"] > 5 and found["poor"] == []


@pytest.mark.parametrize("view", VIEWS)
def test_every_control_has_a_name_and_a_size_for_thumbs(visit, view):
    page = visit(view)
    names = page.evaluate(
        """() => [...document.querySelectorAll(".lab-view :is(select, input, button)")]
          .filter((e) => e.checkVisibility())
          .map((e) => [e.getAttribute("aria-label") || e.labels[0]?.textContent
            || (e.matches("button") ? e.textContent : ""),
            (e.type === "radio" ? e.parentElement : e).getBoundingClientRect().height])"""
    )
    assert names
    for name, height in names:
        assert name.strip() and height >= 40, name
    assert page.get_by_role("group", name=TITLES[view]).count() == 1
    drawn = page.locator(".lab-view svg")
    for drawing in drawn.all():
        assert len(drawing.locator("desc").text_content()) > 60


def test_a_view_that_fails_says_so_and_keeps_what_stood_there(visit):
    page = visit("broken")
    assert page.locator(".lab-view").get_attribute("data-state") == "failed"
    assert "cannot be drawn" in page.locator(".lab-view").inner_text()
    assert page.locator(".lab-still").is_visible()


# ---- The cost explorer ----


def bill(page) -> dict[str, str]:
    return {row[0]: row[1] for row in tables(page)[1][1:]}


def expected(kernel: str, rows: int, cols: int, dtype: str = "float32") -> dict[str, str]:
    lookup = ledger.symbols(registry.get(kernel), {"rows": rows, "cols": cols}, dtype)
    did = cost.evaluate(registry.get(kernel).executed, lookup)
    return {"FLOPs": units.number(did.flops), "load sectors": units.number(did.load_sectors)}


def test_exact_sizes_kernels_and_element_sizes(visit):
    page = visit("costs")
    page.get_by_label("Kernel", exact=True).select_option("naive")
    page.get_by_label("Rows, exactly").fill("250")
    page.get_by_label("Columns, exactly").fill("1001")
    settle(page, "naive on 250\u00a0×\u00a01\u202f001 float32")
    assert expected("naive", 250, 1001).items() <= bill(page).items()
    page.get_by_label("2 (float16)").check()
    settle(page, "float16: ")
    assert expected("naive", 250, 1001, "float16").items() <= bill(page).items()
    assert "what its formulas would say" in page.locator(".lab-view").inner_text()


def test_sliders_go_by_octaves_from_the_keyboard(visit):
    page = visit("costs")
    rows, exact = page.get_by_label("Rows, in powers of two"), page.get_by_label("Rows, exactly")
    rows.press("ArrowRight")
    assert exact.input_value() == "512"
    rows.press("Home")
    settle(page, "warp on 1\u00a0×\u00a01\u202f024")
    rows.press("End")
    settle(page, "warp on 1\u202f048\u202f576\u00a0×\u00a01\u202f024")
    assert rows.get_attribute("aria-valuetext") == f"{2**20} rows"
    exact.fill("700")
    assert rows.input_value() == "9"
    assert exact.input_value() == "700"
    assert rows.get_attribute("aria-valuetext") == "700 rows"


@pytest.mark.parametrize("text", ["0", "-4", "1.5", "2097153", ""])
def test_a_size_that_cannot_be_is_explained_and_changes_nothing(visit, text):
    page = visit("costs")
    before = tables(page)
    field = page.get_by_label("Rows, exactly")
    field.fill(text)
    assert field.get_attribute("aria-invalid") == "true"
    assert "whole number from 1 to" in page.locator(".lab-wrong:visible").inner_text()
    field.press("Tab")
    assert field.input_value() == "256"
    assert "256 stands again" in page.locator(".lab-wrong:visible").inner_text()
    assert field.get_attribute("aria-invalid") == "false"
    assert tables(page) == before
    field.fill("512")
    assert page.locator(".lab-wrong:visible").count() == 0


def test_a_drag_draws_at_most_once_a_frame(visit):
    page = visit("costs")
    drawn = page.evaluate(
        """async () => {
          let drawn = 0;
          const view = document.querySelector(".lab-view"), event = new Event("input");
          new MutationObserver(() => drawn++).observe(view, { subtree: true, childList: true });
          const slider = document.querySelector("input[type=range]");
          for (let i = 0; i < 200; i++) (slider.value = i % 20, slider.dispatchEvent(event));
          const frame = () => new Promise(requestAnimationFrame);
          await frame().then(frame);
          return drawn;
        }"""
    )
    assert 1 <= drawn <= 2


@pytest.mark.parametrize("width", [1280, 390])
def test_no_word_of_the_explorer_s_roofline_stands_on_anything(visit, width):
    page = visit("costs", viewport={"width": width, "height": 844})
    kernels = page.get_by_label("Kernel")
    for name in kernels.locator("option").evaluate_all("all => all.map((each) => each.value)"):
        kernels.select_option(name)
        for rows, cols in ((65536, 1024), (65536, 16)):
            page.get_by_label("Rows, exactly").fill(str(rows))
            page.get_by_label("Columns, exactly").fill(str(cols))
            page.wait_for_timeout(60)  # it is drawn in the next frame
            assert page.evaluate(STRUCK) == [], (name, rows, cols)


def test_a_recorded_run_stands_beside_its_floor(visit):
    page = visit("costs")
    run = ledger.measure("warp", 256, 1024)
    words = page.locator(".lab-note").first.inner_text()
    assert f"The recorded run took {units.scaled(run.seconds, 's')}" in words
    assert "starting a launch takes is not counted" in words, "a least time says what it leaves out"
    bound, yardstick = words.split("is faster than")[1].split(";")[:2]
    assert "(data sheet)" in bound and "copy" not in bound
    assert "at the rate of the best copy it would take" in yardstick
    assert run.provenance["date"] in page.locator(".lab-source").last.inner_text()
    page.get_by_label("2 (float16)").check()
    settle(page, "No run is recorded")
    page.get_by_label("4 (float32)").check()
    settle(page, "The recorded run took")
    page.get_by_label("Rows, exactly").fill("255")
    settle(page, "No run is recorded")


def test_the_explorer_works_by_touch(visit):
    page = visit("costs", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    slider = page.get_by_label("Columns, in powers of two")
    box = slider.bounding_box()
    slider.tap(position={"x": box["width"] - 4, "y": box["height"] / 2})
    settle(page, "warp on 256\u00a0×\u00a01\u202f048\u202f576")


# ---- Recorded shapes ----


def test_each_recorded_shape_shows_its_times(visit):
    page = visit("shapes")
    view = VIEWS["shapes"]()
    assert "No GPU is at work here" in page.locator(".lab-view").inner_text()
    slider = page.get_by_label("Recorded shape", exact=True)
    slider.press("Home")
    known = {run["shape"] for run in view.data["runs"] if run["kernel"] == "naive"}
    for k, (rows, cols) in enumerate(view.data["shapes"]):
        run = ledger.measure("naive", rows, cols) if k in known else None
        took = f"took {units.scaled(run.seconds, 's')}" if run else "naive is not measured yet"
        page.locator(f'input[aria-valuetext="{rows} by {cols}"]').wait_for()
        settle(page, took)
        hot = page.locator("tr[aria-current=true]")
        assert hot.count() == bool(run)
        if run:
            assert hot.locator("td").first.inner_text() == runs.timing(run)[0]
        slider.press("ArrowRight")
    page.get_by_label("Kernel", exact=True).select_option("warp")
    settle(page, "warp took")


# ---- Predictions ----


def answer(page, sectors: str = "4", share: str = "13") -> None:
    page.get_by_role("radio", name=sectors, exact=True).check()
    page.get_by_role("textbox").fill(share)
    page.get_by_role("button", name="Look").click()


def test_nothing_is_shown_before_each_question_has_a_prediction(visit):
    page = visit("predict")
    look = page.get_by_role("button", name="Look")
    assert tables(page) == []
    look.click(force=True)
    assert tables(page) == []
    assert "2 predictions are missing" in page.locator(".lab-view").inner_text()
    page.get_by_role("textbox").fill("lots")
    assert "A number is needed" in page.locator(".lab-view").inner_text()
    page.get_by_role("radio", name="4", exact=True).check()
    look.click(force=True)
    assert tables(page) == []
    answer(page)
    assert tables(page)


@pytest.mark.parametrize(
    ("typed", "message"),
    [("−5", "below zero"), ("1e400", "beyond any number"), ("-1e400", "below zero")],
)
def test_an_answer_that_cannot_be_is_not_held_against_anything(visit, typed, message):
    page = visit("predict")
    page.get_by_role("radio", name="4", exact=True).check()
    page.get_by_role("textbox").fill(typed)
    page.get_by_role("button", name="Look").click(force=True)
    assert tables(page) == []
    assert message in page.locator(".lab-wrong").inner_text()
    assert page.get_by_role("textbox").get_attribute("aria-invalid") == "true"
    answer(page, share="0")
    assert tables(page)


def test_the_reader_s_answer_stands_beside_the_others(visit):
    page = visit("predict")
    answer(page)
    (table,) = tables(page)
    assert table == [
        ["question", "you", "derived", "counted", "measured", "yours against it"],
        ["How many sectors?", "4", "32", "32", "–", "it is: 32"],
        ["What share? [%]", "13", "–", "–", "6.5", "2× too high"],
    ]
    words = page.locator(".lab-view").inner_text()
    assert "You said: 4. Side by side?" in words and "So it is." in words
    page.get_by_role("button", name="Predict again").click()
    assert tables(page) == []
    answer(page, "32", "6,5 %")
    assert [row[-1] for row in tables(page)[0][1:]] == ["right", "exactly"]
    assert "One for each <lane>." in page.locator(".lab-view").inner_text()


def test_a_prediction_by_keyboard_alone(visit):
    page = visit("predict")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.type("7")
    page.keyboard.press("Enter")
    assert [row[1] for row in tables(page)[0][1:]] == ["32", "7"]
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "What came out"


def test_a_reload_forgets(visit):
    page = visit("predict")
    answer(page)
    page.reload()
    page.locator(".lab-view[data-state=ready]").wait_for()
    assert tables(page) == []
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0


def test_texts_cannot_break_out_of_the_data():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(live.IN_THE_BOOK, "1")
        html = predict(number("</script><b>?", {"derived": 1}, "</script>"))._repr_html_()
    assert html.count("</script>") == 1
    assert "<b>?" not in html


# ---- The stepper of the merge ----


def told(page) -> str:
    return page.locator(".lab-view .lab-step-note").inner_text()


def test_the_reader_finds_where_nan_is_born_by_keys_alone(visit):
    page = visit("merging")
    assert "NaN is born in lanes 12–15, 28–31" in told(page)
    assert "exp(−∞ − (−∞))" in told(page)
    step = page.get_by_label("Step", exact=True)
    step.focus()
    page.keyboard.press("Home")
    assert "starts from the empty pair (−∞, 0)" in told(page)
    page.keyboard.press("ArrowRight")
    assert "Columns 0–11 enter" in told(page) and step.get_attribute("aria-valuetext") == "1 of 6"
    page.get_by_role("button", name="Next").focus()
    for _ in range(9):
        page.keyboard.press("Enter")
    assert "The row is lost." in told(page)
    page.get_by_role("button", name="Where NaN is born").press("Enter")
    assert "Step 2 of 6" in told(page)
    page.get_by_label("Columns, exactly").fill("16")
    settle(page, "the row survives")
    assert page.get_by_role("button", name="Where NaN").get_attribute("aria-disabled") == "true"
    page.get_by_label("−∞ at columns").fill("3")
    settle(page, "born in step 1 of 6, in lane 3")
    page.get_by_label("Empty pair").select_option("finite")
    settle(page, "the row survives")
    page.get_by_label("Empty pair").select_option("published")
    page.get_by_label("Merge", exact=True).select_option("yes")
    settle(page, "the row survives")
    page.get_by_label("Tree").select_option("warps")
    page.get_by_label("Merge", exact=True).select_option("no")
    settle(page, "born in step 1 of 12, in thread 3")
    page.get_by_label("−∞ at columns").fill("0-15")
    settle(page, "masked whole: NaN, as the contract wants")


def test_a_column_that_is_none_is_refused_and_the_row_kept(visit):
    page = visit("merging")
    field = page.get_by_label("−∞ at columns")
    field.fill("300")
    assert field.get_attribute("aria-invalid") == "true"
    settle(page, "Columns from 0 to 255 are needed")
    assert "NaN is born in lanes 12–15" in told(page)
    field.fill("0")
    settle(page, "born in step 1 of 6, in lane 0")
    assert page.locator(".lab-wrong:visible").count() == 0


def test_what_is_not_taken_is_said(visit):
    page = visit("merging")
    page.get_by_label("−∞ at columns").fill("3, 99")
    settle(page, "Column 99 is not in this row of 12 and masks nothing.")
    page.get_by_label("−∞ at columns").fill("3, 12-14")
    settle(page, "Columns 12–14 are not in this row of 12 and mask nothing.")
    field = page.get_by_label("Columns, exactly")
    for refused in ("0", "1000"):
        field.fill("20")
        settle(page, "born in step 1")
        assert page.locator(".lab-wrong:visible").count() == 0
        field.fill(refused)
        field.press("Tab")
        assert field.input_value() == "20"
        settle(page, f"{refused} is no whole number from 1 to 256: 20 stands again.")


@pytest.mark.parametrize("scripts", [True, False])
def test_a_phone_scrolls_the_merge_and_its_cells_words_stay_in_them(visit, scripts):
    page = visit("merging", viewport={"width": 390, "height": 844}, java_script_enabled=scripts)
    box = page.locator(".lab-view .lab-dense")
    assert box.evaluate("each => each.scrollWidth > each.clientWidth")
    hint = box.evaluate("each => getComputedStyle(each, '::before').content")
    assert "move it sideways" in hint
    cell = page.locator(".lab-view .lab-dense svg").bounding_box()["width"] / 16
    words = box.locator("svg text").filter(has_text=re.compile(r"^[−\d.]+$")).all()
    assert len(words) > 32
    assert max(each.bounding_box()["width"] for each in words) < 0.95 * cell  # and apart


def test_a_tap_on_a_lane_masks_its_column_and_takes_it_back(visit):
    page = visit("merging", viewport={"width": 390, "height": 844}, has_touch=True)
    page.get_by_label("Empty pair").select_option("finite")
    settle(page, "the row survives")
    figure = page.locator(".lab-view .lab-figure svg")
    unit = figure.bounding_box()["width"] / 720

    def tap(x, y):
        figure.tap(position={"x": x * unit, "y": y * unit})

    tap(5 * 45 + 20, 186 + 30)
    assert page.get_by_label("−∞ at columns").input_value() == "5"
    tap(2 * 45 + 20, 186 + 30)
    assert page.get_by_label("−∞ at columns").input_value() == "2, 5"
    tap(5 * 45 + 20, 186 + 66 + 30)  # lane 21 has no column
    tap(5 * 45 + 20, 186 + 30)
    assert page.get_by_label("−∞ at columns").input_value() == "2"
