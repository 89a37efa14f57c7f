"""The built pages, read as files: complete, offline, light, alive without a kernel, no errors."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import little_book
import nbclient
import nbformat
import pytest
from bs4 import BeautifulSoup, CData, NavigableString, Tag
from reading import NEEDS_SCRIPT, TEX
from sphinx_external_toc.parsing import parse_toc_yaml
from test_architecture import bibliography

from softmax_lab import svg

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = list(parse_toc_yaml(ROOT / "_toc.yml"))
PAGES = [f"{chapter}.html" for chapter in CHAPTERS] + ["index.html", "search.html", "genindex.html"]
MAX_HTML = 3_000_000  # bytes of one page: ready in about a second on a laptop
STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
CONTROLS = re.compile(r"Slider|Play|ToggleButton|Dropdown|Select|Checkbox|Text|Button")

per_page = pytest.mark.parametrize("page", PAGES)
chapter = pytest.mark.parametrize("page", [f"{chapter}.html" for chapter in CHAPTERS])


# A page is megabytes: it is parsed once for all tests, which therefore change nothing in it.
@cache
def parsed(html: str) -> BeautifulSoup:
    return BeautifulSoup(html, "html.parser")


@cache
def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@cache
def ids(path: Path) -> frozenset[str]:
    return frozenset(tag["id"] for tag in soup(path).find_all(id=True))


def scripted(tags: list[Tag]) -> list[Tag]:
    """Those of `tags` that are there where scripts run."""
    return [tag for tag in tags if not tag.find_parent("noscript")]


@cache
def models(path: Path) -> dict[str, dict]:
    """Widget models of a page by id: {"model_name": …, "state": {…}}."""
    found = soup(path).find("script", type=STATE)
    return json.loads(found.string)["state"] if found else {}


@cache
def views(path: Path) -> list[str]:
    return [json.loads(v.string)["model_id"] for v in soup(path).find_all("script", type=VIEW)]


def named(states: dict[str, dict], pattern: str) -> dict[str, dict]:
    """State of the models whose name matches, by id."""
    return {k: m["state"] for k, m in states.items() if re.search(pattern, m["model_name"])}


def target(reference: str) -> str:
    return reference.removeprefix("IPY_MODEL_")


def links(states: dict[str, dict]) -> list[tuple[str, str, str, str]]:
    """(source id, trait, target id, trait) of each link in the browser."""
    ends = [(s["source"], s["target"]) for s in named(states, r"LinkModel$").values()]
    return [(target(a[0]), a[1], target(b[0]), b[1]) for a, b in ends]


# ---- Complete and offline ----


@per_page
def test_page_exists_and_is_light(book_html, page):
    assert 0 < (book_html / page).stat().st_size <= MAX_HTML


def loaded(page: BeautifulSoup) -> list[str]:
    """Addresses that a browser fetches to show the page; links that a reader may follow are not."""
    found = [tag["src"] for tag in page.find_all(src=True)]
    found += [
        part.split()[0] for tag in page.find_all(srcset=True) for part in tag["srcset"].split(",")
    ]
    found += [tag["data"] for tag in page.find_all("object", data=True)]
    found += [tag["href"] for tag in page.find_all(["link", "use", "image"], href=True)]
    found += re.findall(r"url\(['\"]?([^'\")]+)", " ".join(str(s) for s in page.find_all("style")))
    return [address for address in found if not address.startswith(("data:", "#"))]


@per_page
def test_everything_a_page_loads_is_a_local_file(book_html, page):
    path = book_html / page
    for address in loaded(soup(path)):
        parts = urlsplit(address)
        assert not parts.netloc, f"{page} loads {address}"
        assert (path.parent / unquote(parts.path)).resolve().is_file(), f"{page} misses {address}"


def test_every_tag_of_a_source_is_found_on_the_references_page(book_html):
    labels = soup(book_html / "book" / "references.html").select(".citation .label")
    tags = sorted(bibliography(), key=str.lower)
    assert [label.get_text(strip=True) for label in labels] == [f"[{tag}]" for tag in tags]
    assert len(set(tags)) == len(tags)


@per_page
def test_links_within_the_book_lead_somewhere(book_html, page):
    path = book_html / page
    for link in soup(path).find_all("a", href=True):
        parts = urlsplit(link["href"])
        if parts.scheme or parts.netloc or not (parts.path or parts.fragment):
            continue
        there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        assert there.is_file(), f"{page} links to {link['href']}"
        if parts.fragment and there.suffix == ".html":
            assert unquote(parts.fragment) in ids(there), f"{page}: no {link['href']}"


REMOTE = {
    ".css": r"@import[^;]*//|url\(\s*['\"]?(?:https?:)?//",
    ".js": r"(?:fetch|import|importScripts|WebSocket)\(\s*['\"`](?:https?:|wss?:)?//"
    r"|\.(?:src|href)\s*=\s*['\"`](?:https?:)?//",
}


@pytest.mark.parametrize("suffix", REMOTE)
def test_scripts_and_styles_name_no_other_host(book_html, suffix):
    files = list((book_html / "_static").rglob(f"*{suffix}"))
    assert files
    for file in files:
        hit = re.search(REMOTE[suffix], file.read_text(encoding="utf-8"))
        assert not hit, f"{file.relative_to(book_html)}: {hit[0]}"


@per_page
def test_inline_scripts_name_no_other_host(book_html, page):
    for script in soup(book_html / page).find_all("script", src=False):
        if script.get("type") not in (STATE, VIEW):
            assert not re.search(REMOTE[".js"], script.string or "")


# ---- Predict, then look ----

MEASURED = re.compile(r"\bNVIDIA [^,]*, (?:times of |counters of )?\d{4}-\d\d-\d\d")
"""What stands beside every recorded number: its machine and date."""
LOOKED_UP = {"book/contract", "book/tried"}
"""Notebooks of the back matter: tables to look things up in."""
RUNGS = [
    chapter
    for chapter in CHAPTERS
    if (ROOT / f"{chapter}.ipynb").exists() and chapter not in LOOKED_UP
]


@pytest.mark.parametrize("page", RUNGS)
def test_a_prediction_is_asked_for_before_anything_measured_is_shown(book_html, page):
    html = (book_html / f"{page}.html").read_text(encoding="utf-8")
    article = html[html.index("<article") :]
    before, asked, after = article.partition('data-view="predict"')
    assert asked, "the chapter asks for no prediction"
    assert not MEASURED.findall(before)
    assert MEASURED.search(after), "the pattern finds no machine with its date any more"


def asks_for_measured(page: BeautifulSoup) -> bool:
    """Whether a measured number answers one of a page's predictions."""
    views = page.select('[data-view="predict"] script[type="application/json"]')
    asked = [q for view in views for q in json.loads(view.string)["questions"]]
    return any(q["values"].get("measured") is not None for q in asked)


def unsourced(page: BeautifulSoup) -> bool:
    """Whether a page says what became of a measured prediction without machine and date."""
    (ends,) = (each for each in page("section") if _held(each))
    return asks_for_measured(page) and not MEASURED.search(ends.get_text())


def _held(section: Tag) -> bool:
    head = section.find(["h2", "h3"], recursive=False)
    return bool(head) and "Did the prediction hold?" in head.get_text()


@pytest.mark.parametrize("page", RUNGS)
def test_what_became_of_a_measured_prediction_names_its_machine(book_html, page):
    assert not unsourced(soup(book_html / f"{page}.html"))


def opens(page: str) -> bool:
    """Whether a chapter says how its kernels are launched before it asks for anything."""
    cells = nbformat.read(ROOT / f"{page}.ipynb", as_version=4).cells
    before = [cell.source for cell in cells[:6] if cell.cell_type == "code"]
    ask = next((k for k, text in enumerate(before) if "predict" in text), len(before))
    return any("tables.headline" in text for text in before[:ask])


@pytest.mark.parametrize("page", RUNGS)
def test_a_chapter_opens_with_the_line_of_its_kernel(page):
    assert opens(page)


# ---- Every table has a number, no toggle is empty ----

UNNUMBERED = {
    ".lab-view, .lab-bench": "a view or a bench draws it, of what the reader chose",
    "details.hide": "an exercise shows it to those who have decided",
}
"""Where a table needs no number, and why."""
HEAD_OF_A_FILE = "file"
"""First cell of the table that opens a kernel: it is an excerpt, with file and lines."""


def without_stills(page: BeautifulSoup) -> BeautifulSoup:
    """A page as a browser with scripts has it."""
    page = BeautifulSoup(str(page), "html.parser")
    for still in page.find_all("noscript"):
        still.decompose()
    return page


@cache
def with_scripts(path: Path) -> BeautifulSoup:
    """A built page without its stills, made once."""
    return without_stills(soup(path))


def unnumbered(page: BeautifulSoup) -> list[str]:
    """First lines of the tables that a reader cannot refer to: those that do not stand alone in a
    figure with a number."""
    spared = {id(table) for where in UNNUMBERED for table in page.select(f":is({where}) table")}
    found = []
    for table in page.select("article table"):
        figure, line = table.find_parent("figure"), table.find("tr").get_text(" | ", strip=True)
        alone = figure and figure.select_one(".caption-number") and len(figure("table")) == 1
        if not alone and id(table) not in spared and line.split(" | ")[0] != HEAD_OF_A_FILE:
            found.append(line)
    return found


@chapter
def test_every_table_has_a_number(book_html, page):
    assert unnumbered(with_scripts(book_html / page)) == []


def empty_toggles(page: BeautifulSoup) -> list[str]:
    """Code of the cells that can be unfolded and show nothing else."""
    found = []
    for cell in page.select("div.cell[class*=tag_hide]"):
        shown = cell.select_one(".cell_output")
        if not shown or not (shown.get_text(strip=True) or shown.find(["svg", "script"])):
            found.append(cell.select_one(".cell_input").get_text())
    return found


@chapter
def test_nothing_is_folded_away_beside_nothing(book_html, page):
    assert empty_toggles(soup(book_html / page)) == []


TABLE = "<table><tr><th>a</th><th>b</th></tr></table>"


@pytest.mark.parametrize(
    ("html", "found"),
    [
        (TABLE, 1),
        (f"<figure><figcaption>Of a</figcaption>{TABLE}</figure>", 1),
        (f"<figure>{TABLE}<span class='caption-number'>Fig. 1</span></figure>", 0),
        (f"<figure>{TABLE}{TABLE}<span class='caption-number'>Fig. 1</span></figure>", 2),
        (f"<div class='lab-view'><div class='lab-still'>{TABLE}</div></div>", 0),
        (f"<details class='hide'>{TABLE}</details>", 0),
        (TABLE.replace(">a<", ">file<"), 0),
        (f"<noscript>{TABLE}</noscript>", 0),
    ],
)
def test_scanner_of_tables(html, found):
    page = BeautifulSoup(f"<article>{html}</article>", "html.parser")
    assert unnumbered(without_stills(page)) == ["a | b"] * found


def test_scanner_of_toggles():
    cell = "<div class='cell tag_hide-input'><div class='cell_input'>x = 1</div>{}</div>"
    output = "<div class='cell_output'>{}</div>"
    for shown in ("", output.format(""), output.format("<p> </p>")):
        assert empty_toggles(BeautifulSoup(cell.format(shown), "html.parser")) == ["x = 1"]
    for shown in ("<p>1</p>", "<script>1</script>", "<svg></svg>"):
        page = BeautifulSoup(cell.format(output.format(shown)), "html.parser")
        assert empty_toggles(page) == []


# ---- Widgets work without a kernel ----


def test_some_page_has_widgets(book_html):
    assert any(views(book_html / f"{chapter}.html") for chapter in CHAPTERS)


@chapter
def test_state_view_and_loader_are_there(book_html, page):
    shown, states = views(book_html / page), models(book_html / page)
    assert set(shown) <= set(states)
    sources = [tag["src"] for tag in soup(book_html / page).find_all("script", src=True)]
    assert any("vendor/html-manager/embed.js" in s for s in sources) == bool(shown)


def content(states: dict[str, dict], model: str) -> str:
    """Everything that a frame can show."""
    state = states[model]["state"]
    children = "".join(content(states, target(c)) for c in state.get("children", []))
    return f"{state.get('value')}{children}"


def dead(states: dict[str, dict]) -> list[str]:
    """What is wrong with the frames and controls of a page that no kernel serves."""
    wrong = []
    linked = {end for source, _, aim, _ in links(states) for end in (source, aim)}
    for model, state in named(states, "StackModel").items():
        frames = [content(states, target(child)) for child in state["children"]]
        if len(set(frames)) != len(frames):
            wrong.append(f"a Stack shows the same frame for two positions: {frames[0][:200]}")
        if model not in linked:
            wrong.append("a Stack is linked to no control")
    for source, trait, aim, aimed in links(states):
        if aimed == "selected_index" and trait == "index":
            options = states[source]["state"]["_options_labels"]
            if len(options) != len(states[aim]["state"]["children"]):
                wrong.append(f"{len(options)} positions {options} do not match the frames")
    for model, state in named(states, CONTROLS.pattern).items():
        if "description" in state and not state.get("disabled") and model not in linked:
            wrong.append(f"the control {state['description']!r} does nothing without a kernel")
    return wrong


@chapter
def test_each_position_of_a_control_shows_its_own_frame(book_html, page):
    assert dead(models(book_html / page)) == []


def within(states: dict[str, dict], model: str) -> list[dict]:
    """State of a widget and of all that it holds."""
    state = states[model]["state"]
    return [state, *(x for c in state.get("children", []) for x in within(states, target(c)))]


@chapter
def test_without_javascript_a_widget_shows_every_frame_under_its_label(book_html, page):
    states = models(book_html / page)
    for view in soup(book_html / page).find_all("script", type=VIEW):
        still = view.find_next_sibling("noscript").get_text()
        parts = within(states, json.loads(view.string)["model_id"])
        values = [part["value"] for part in parts if isinstance(part.get("value"), str)]
        frames = [parsed(value).get_text() for value in values]
        names = [name for part in parts for name in part.get("_options_labels", [])]
        missing = [words for words in (*frames, *names) if words not in still]
        assert missing == (["Type your guess first.", "Hide"] if "Hide" in names else [])


@chapter
def test_ids_without_javascript_are_unique(book_html, page):
    ids = Counter(tag["id"] for tag in soup(book_html / page).select("noscript [id]"))
    assert [name for name, times in ids.items() if times > 1] == []


def labels(states: dict[str, dict]) -> list[str]:
    """Texts that the widget manager shows without typesetting."""
    found = []
    for model in states.values():
        state = model["state"]
        found += [state.get("description"), state.get("tooltip"), state.get("placeholder")]
        found += state.get("_options_labels") or []
        found += [state["value"]] if model["model_name"] == "LabelModel" else []
    return [label for label in found if label]


@chapter
def test_no_raw_maths_in_labels(book_html, page):
    assert [s for s in labels(models(book_html / page)) if "$" in s or "\\(" in s] == []


def hasty(states: dict[str, dict]) -> list[str]:
    """Sliders that serve Python, not the browser, and would call it at every pixel of a drag."""
    linked = {source for source, *_ in links(states)} | {aim for _, _, aim, _ in links(states)}
    return [
        state["description"]
        for model, state in named(states, "Slider").items()
        if model not in linked and state.get("continuous_update")
    ]


@chapter
def test_sliders_that_call_python_wait_for_the_end_of_a_drag(book_html, page):
    assert hasty(models(book_html / page)) == []


# ---- No error swallowed, no picture twice ----


def errors(notebook) -> list[str]:
    """Errors in the outputs of an executed notebook, also those that a widget caught."""
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    held = notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
    outputs += [o for m in held.values() for o in m["state"].get("outputs", [])]
    return [f"{o['ename']}: {o['evalue']}" for o in outputs if o["output_type"] == "error"]


def pictures(outputs: list[dict]) -> list[str]:
    """Images and drawings of a group of outputs; their ids, which always differ, left out."""
    data = [output.get("data", {}) for output in outputs]
    images = [str(d[mime]) for d in data for mime in d if mime.startswith("image/")]
    html = " ".join(str(d.get("text/html")) for d in data)
    drawn = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    return images + [re.sub(r"\blab\d+", "", drawing) for drawing in drawn]


def executed(book_html: Path) -> list[Path]:
    return sorted((book_html.parent / "jupyter_execute").rglob("*.ipynb"))


def test_no_error_hides_in_an_executed_notebook(book_html):
    assert executed(book_html)
    for path in executed(book_html):
        assert errors(nbformat.read(path, as_version=4)) == [], path.name


def test_no_output_shows_a_picture_twice(book_html):
    for path in executed(book_html):
        notebook = nbformat.read(path, as_version=4)
        held = notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
        for cell in notebook.cells:
            shown = pictures(cell.get("outputs", []))
            assert len(set(shown)) == len(shown), f"{path.name}: {cell.source}"
        for output in named(held, "^OutputModel").values():
            assert len(pictures(output["outputs"])) <= 1, path.name


@per_page
def test_no_traceback_is_published(book_html, page):
    assert "Traceback (most recent call last)" not in (book_html / page).read_text("utf-8")
    assert not list(book_html.rglob("*.err.log"))


SWALLOWED = """
import ipywidgets as w
out = w.Output()
with out:
    raise RuntimeError("swallowed")
"""


@pytest.mark.slow
def test_scanner_finds_an_error_that_nbclient_passes():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(SWALLOWED)])
    nbclient.NotebookClient(notebook, timeout=60).execute()
    assert errors(notebook) == ["RuntimeError: swallowed"]


def widget(name: str, **state) -> dict:
    return {"model_name": f"{name}Model", "state": state}


def test_scanners_of_widgets_find_dead_and_hasty_controls():
    states = {
        "a": widget("HTML", value="same"),
        "b": widget("HTML", value="same"),
        "stack": widget("Stack", children=["IPY_MODEL_a", "IPY_MODEL_b"], selected_index=0),
        "slider": widget("SelectionSlider", description="n", _options_labels=["1", "2", "3"]),
        "loose": widget("IntSlider", description="$m$", continuous_update=True),
        "link": widget(
            "Link",
            source=["IPY_MODEL_slider", "index"],
            target=["IPY_MODEL_stack", "selected_index"],
        ),
    }
    assert [complaint.split(":")[0] for complaint in dead(states)] == [
        "a Stack shows the same frame for two positions",
        "3 positions ['1', '2', '3'] do not match the frames",
        "the control '$m$' does nothing without a kernel",
    ]
    assert hasty(states) == ["$m$"]
    assert "$m$" in labels(states)


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), little_book.STRICT], ids=["plain", "strict"])
@pytest.mark.parametrize(
    ("cell", "message"),
    [("1 / 0", "ZeroDivisionError"), ("import time; time.sleep(9)", "timed out")],
    ids=["error", "time"],
)
def test_a_failing_notebook_fails_the_build(book_html, tmp_path, options, cell, message):
    done = little_book.build(tmp_path, cell, options=options, timeout=3)
    assert done.returncode != 0
    assert message in done.stdout + done.stderr


# ---- Formulas ----


def read(tag: Tag) -> Iterator[str]:
    """The texts of a page that are no code."""
    for child in tag.children:
        if isinstance(child, Tag):
            if child.name not in ("script", "style", "code", "pre"):
                yield from read(child)
        elif type(child) in (NavigableString, CData):
            yield child


def left_as_tex(page: BeautifulSoup) -> list[str]:
    """Marks of TeX in what a reader reads, and formulas that hold no MathML."""
    found = [str(e) for e in page.select(".math") if not (e.math and e.math.get_text(strip=True))]
    found += map(str, page.find_all("merror"))
    return found + TEX.findall("".join(read(page)))


@per_page
def test_no_formula_is_left_as_tex(book_html, page):
    assert left_as_tex(soup(book_html / page)) == []
    for state in models(book_html / page).values():
        frame = str(state["state"].get("value", ""))
        assert left_as_tex(parsed(frame)) == []


def test_tex_and_instructions_are_seen():
    page = r"<p>\(x\) <code>$y$</code> costs $1 \frac12 <span class='math'>z</span></p>"
    found = left_as_tex(BeautifulSoup(page, "html.parser"))
    assert found == ['<span class="math">z</span>', r"\(", r"\)", "$", r"\frac"]
    assert NEEDS_SCRIPT.findall("The fifth row. Move the slider.") == ["Move the slider"]


@chapter
def test_labelled_equations_have_their_number(book_html, page):
    for equation in soup(book_html / page).select("div.math[id]"):
        assert re.fullmatch(r"\(\d+\.\d+\)", equation.select_one(".eqno").find(string=True))
        assert equation.find("math")["display"] == "block"


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), little_book.STRICT], ids=["plain", "strict"])
def test_a_bad_formula_fails_the_build(book_html, tmp_path, options):
    done = little_book.build(tmp_path, words="So\n\n$$\n\\foo + 1\n$$", options=options)
    assert done.returncode != 0
    said = " ".join((done.stdout + done.stderr).split())
    assert re.search(r"page\.ipynb, line \d+: the formula .*foo \+ 1.* cannot be typeset", said)


# ---- Figures ----


@chapter
def test_drawings_have_names_and_ids_are_unique(book_html, page):
    article = soup(book_html / page).article
    times = Counter(tag["id"] for tag in scripted(article.find_all(id=True)))
    assert [name for name, there in times.items() if there > 1] == []
    for drawing in scripted(article.select(".lab-figure svg, .lab-frame svg")):
        by = drawing.get("aria-labelledby", "").split()
        assert drawing.get("aria-label") or (by and set(by) <= set(times))
    for image in scripted(article.find_all("img")):
        assert image.get("alt"), image
    for figure in scripted(article.select("figure[id]")):
        assert figure.select_one(".caption-number"), f"figure {figure['id']} has no number"


def test_style_sheet_and_drawings_share_one_palette():
    sheet = (ROOT / "book" / "_static" / "book.css").read_text("utf-8")
    root = sheet[: sheet.index('html[data-theme="dark"]')]
    defined = dict(re.findall(r"--lab-([\w-]+):\s*([^;]+);", root))
    assert {k: defined[k].upper() for k in svg.PALETTE} == {
        k: v.upper() for k, v in svg.PALETTE.items()
    }
    for level, colour in svg.LEVELS.items():
        assert defined[level.lower()] == f"var(--lab-{colour})"
