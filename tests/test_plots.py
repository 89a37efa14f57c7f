"""Charts: nothing breaks or vanishes unsaid (public case R05), and all is legible everywhere."""

from __future__ import annotations

import math
import re
import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from types import SimpleNamespace

import pytest
from matplotlib.figure import Figure

from softmax_lab import ledger, plots, registry, roofline, svg
from softmax_lab.canvas import INK, inline
from softmax_lab.counts import Counts
from softmax_lab.plots import Roof, Traffic
from softmax_lab.records import Measured
from softmax_lab.roofline import Point
from softmax_lab.units import GB, SPACE, scaled

SHEET = Roof("DRAM, data sheet", 4.8e12, "data sheet")
COPIED = Roof("copy kernel, measured", 4.0e12, "same run", measured=True)
SVG = "{http://www.w3.org/2000/svg}"


def chart(points, roofs=(SHEET, COPIED), peak=67e12):
    return plots.roofline(points, roofs, peak, "data sheet", where="NVIDIA H200, 2026-11-30")


def texts(drawing) -> list[str]:
    root = ET.fromstring(drawing.markup)
    return ["".join(each.itertext()).strip() for each in root.iter(f"{SVG}text")]


def ticks(drawing) -> list[float]:
    found = [text.replace(SPACE, "") for text in texts(drawing)]
    return [float(text) for text in found if re.fullmatch(r"[\d.]+", text)]


def book(measured=None, rows=256, cols=1024) -> ledger.Ledger:
    return ledger.Ledger(
        kernel=registry.get("naive"),
        rows=rows,
        cols=cols,
        phases=(),
        textbook=ledger.derive("naive", rows, cols, form="textbook"),
        executed=ledger.derive("naive", rows, cols),
        counted=None,
        measured=measured,
        not_measured="" if measured else "naive is not measured yet",
    )


def run(**more) -> Measured:
    about = {"GPU": "NVIDIA H200", "date": "2026-11-30 10:00 UTC"}
    base = {"kernel": "naive", "dtype": "float32", "rows": 256, "cols": 1024, "gpu": "nvidia-h200"}
    return Measured(**base, provenance=about, **more)


def test_points_that_a_log_chart_cannot_show_are_named():
    bad = [
        Point("a", "L1", 0.0, 5e9),
        Point("b", "L1", math.inf, 5e12),
        Point("c", "L2", math.nan, 1.0),
        Point("d", "L2", 2.0, 0.0),
    ]
    far = Point("e", "DRAM", 1e6, 1e12)
    with pytest.warns(UserWarning, match=r"a at L1 \(intensity 0\).*b at L1.*c at L2.*d at L2"):
        drawing = chart([*bad, far])
    for name in "abcd":
        assert f"{name} at L" in drawing.note
        assert f"{name} at L" in drawing.alt
    assert "e at DRAM" in drawing.alt
    assert "nan" not in drawing.markup.split("<defs>")[1].replace("intensity nan", "")
    assert max(ticks(drawing)) >= 1e6  # a point beyond the usual range widens it


@pytest.mark.parametrize(
    "points", [[], [Point("k", "L1", 0.03, 1e11)], [Point("k", "L1", 1e-4, 1e6)]]
)
def test_both_parts_of_the_roof_are_in_view(points):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawing = chart(points)
    corner = roofline.ridge(67e12, 4.0e12)
    seen = ticks(drawing)
    assert min(seen) < corner < max(seen)
    assert "67 TFLOP/s FP32 peak, data sheet" in drawing.markup.replace(SPACE, " ")


def test_axes_and_roofs_carry_units_and_sources():
    drawing = chart([Point("k", "L1", 0.03, 1e11)])
    words = " | ".join(texts(drawing)).replace(SPACE, " ")
    for part in (
        "[FLOP/B]",
        "[FLOP/s]",
        "4.8 TB/s DRAM, data sheet",
        "4 TB/s copy kernel, measured",
    ):
        assert part in words
    assert "NVIDIA H200, 2026-11-30" in drawing.note
    assert scaled(4.8e12, "B/s") == f"{4.8e12 / GB / 1000:g}{SPACE}TB/s"


def test_points_are_labelled_directly_with_level_kernel_and_speed():
    drawing = chart(
        roofline.points("three passes", 1e6, {"L1": 32e6, "L2": 5e6, "DRAM": 2e6}, 1e-5)
    )
    words = texts(drawing)
    assert {"L1", "L2", "DRAM"} <= set(words)
    assert f"three passes, 100{SPACE}GFLOP/s" in words
    for level in ("l1", "l2", "dram"):
        assert f"var(--lab-{level}," in drawing.markup
    assert "legend" not in drawing.markup


def test_a_point_without_a_time_says_so():
    drawing = chart(roofline.points("three passes", 1e6, {"L1": 32e6}))
    assert "three passes, not measured yet" in texts(drawing)


def test_a_gpu_without_a_data_sheet_keeps_its_measured_roof():
    drawing = chart([Point("k", "L1", 0.03, 1e11)], roofs=[COPIED], peak=None)
    assert "FP32 peak" not in drawing.markup
    with pytest.raises(ValueError, match="roof"):
        chart([], roofs=[])


def test_ledger_without_a_record_shows_the_derived_level_only():
    drawing = plots.of_ledger(book())
    assert "not measured yet" in drawing.note
    assert "three passes at L1" in drawing.alt
    assert "at DRAM" not in drawing.alt
    bars = plots.traffic_of(book())
    assert "not measured yet" in bars.note
    assert "L1, derived" in bars.alt


def test_ledger_with_a_record_shows_all_levels_machine_date_and_both_roofs():
    counts = Counts(
        load_sectors=786432, store_sectors=262144, l2_sectors=150_000, dram_bytes=1_100_000
    )
    made = run(counts=counts, seconds=4e-5, p20=4e-5, p80=4e-5, copy_seconds=2e-6)
    drawing = plots.of_ledger(book(made))
    for part in ("NVIDIA H200", "2026-11-30", "copy kernel, measured", "at L2", "at DRAM"):
        assert part in drawing.note
    flops = book().executed.flops
    assert f"{scaled(flops / 4e-5, 'FLOP/s')}" in drawing.note
    bars = plots.traffic_of(book(made)).alt
    for part in ("L1, measured: 33.6 MB moved", "L2, measured: 4.8 MB moved, 2.1 MB useful"):
        assert part in bars.replace(SPACE, " ")
    assert "DRAM, measured: 1.1 MB moved, 1.1 MB useful" in bars.replace(SPACE, " ")


COUNTED = Counts(load_sectors=96, store_sectors=32, l2_sectors=64, dram_bytes=1024)


def test_a_figure_names_the_runs_of_the_data_it_shows():
    """The times and the counters are two runs: bars of bytes show the one, the roofline both."""
    later = {"GPU": "NVIDIA H200", "date": "2026-12-01 11:00 UTC"}
    made = book(run(counts=COUNTED, seconds=4e-5, copy_seconds=2e-6, counters_provenance=later))
    bars, chart = plots.traffic_of(made).note, plots.of_ledger(made).note
    assert "2026-12-01 11:00" in bars and "2026-11-30" not in bars
    assert "times of 2026-11-30 10:00 UTC, counters of 2026-12-01 11:00 UTC" in chart
    untimed = book(run(counts=COUNTED, counters_provenance=later))
    assert "2026-11-30" not in plots.of_ledger(untimed).note


def test_l1_has_a_roof_of_its_own_where_the_clock_is_known():
    about = {"GPU": "NVIDIA H200", "date": "2026-11-30 10:00 UTC"}
    made = run(counts=COUNTED, seconds=4e-5, copy_seconds=2e-6)
    made = replace(made, provenance=about | {"clocks seen": "SM 1980 MHz, memory 3201 MHz"})
    drawing = plots.of_ledger(book(made))
    assert f"33.5{SPACE}TB/s L1, most at that clock" in texts(drawing)
    assert f"128 B a clock and multiprocessor, 1{SPACE}980 MHz" in drawing.note
    assert "L1, most" not in plots.of_ledger(book(replace(made, provenance=about))).note
    elsewhere = replace(made, gpu="some-gpu")
    assert "L1, most" not in plots.of_ledger(book(elsewhere)).note


def place(drawing, words: str) -> tuple[float, float]:
    """Where a text of a drawing stands [user units], from the upper left."""
    (text,) = [
        each
        for each in ET.fromstring(drawing.markup).iter(f"{SVG}text")
        if words in "".join(each.itertext())
    ]
    return float(text.get("x")), float(text.get("y"))


def test_a_point_without_a_time_reaches_up_to_the_roof_of_its_level():
    inner = Roof("L1", 400e12, "by hand", level="L1")
    heights = {
        level: place(chart([Point("k", level, 0.1)], roofs=(SHEET, COPIED, inner)), "k, not")[1]
        for level in roofline.LEVELS
    }
    # A drawing counts downwards; L2 has no roof here and takes the lowest.
    assert heights["L1"] < heights["L2"] == heights["DRAM"]


def test_the_name_of_a_roof_keeps_away_from_points():
    def name(*points: Point) -> float:
        return place(chart([*points, Point("out", "L1", 1e-3, 1e8)], roofs=[SHEET]), "DRAM, data")[
            0
        ]

    free = name()
    assert name(Point("k", "DRAM", 1.0, 1e10)) == pytest.approx(free, abs=80)  # far below
    assert name(Point("k", "DRAM", 1.0, 3e12)) < free - 100


def test_the_name_of_a_roof_stays_right_of_the_axis():
    inner = Roof("L1, as much as it can hand over", 40e12, "by hand", level="L1")
    crowd = [Point("k", level, 0.3, 1.3e12) for level in roofline.LEVELS]
    across, _ = place(chart(crowd, roofs=(inner, SHEET, COPIED)), "L1, as much")
    assert 80 + 8 * len("40 TB/s L1, as much as it can hand over") * 0.4 < across < 320


def test_traffic_bars_are_as_long_as_their_bytes():
    drawing = plots.traffic(
        [Traffic("L1", 1e6, 8e6, "counted"), Traffic("DRAM", 2e6, 2e6, "measured")], where="x"
    )
    widths = [
        max(xs) - min(xs)
        for path in re.findall(r'<path d="(M [^"]+z )" clip-path', drawing.markup)
        for xs in [[float(x) for x in re.findall(r"[ML] ([\d.]+)", path)]]
    ]
    useful, wasted, all_useful, nothing = widths
    assert wasted == pytest.approx(7 * useful, rel=1e-3)
    assert all_useful == pytest.approx(2 * useful, rel=1e-3)
    assert nothing == pytest.approx(0, abs=1e-6)
    assert drawing.markup.count("-hatch)") == 2
    assert Traffic("DRAM", 2e6, 1e6, "measured").wasted == 0
    with pytest.raises(ValueError, match="level"):
        plots.traffic([], where="x")


@pytest.mark.parametrize(
    "draw",
    [
        lambda: chart([Point("k", "L1", 0.03, 1e11)]),
        lambda: plots.traffic([Traffic("L2", 1.0, 2.0, "counted")], where="x"),
    ],
)
def test_charts_are_inline_accessible_and_follow_the_theme(draw):
    first, second = draw(), draw()
    assert not set(svg.ids(first.markup)) & set(svg.ids(second.markup))
    for drawing in (first, second):
        root = ET.fromstring(drawing.markup)
        assert root.get("viewBox").startswith(f"0 0 {svg.WIDTH}")
        assert "width" not in root.attrib
        assert root.get("role") == "img"
        names = svg.ids(drawing.markup)
        assert len(names) == len(set(names))
        assert set(root.get("aria-labelledby").split()) <= set(names)
        used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', drawing.markup))
        assert {a or b for a, b in used} <= set(names)
        assert "<style" not in drawing.markup
        assert "<?xml" not in drawing.markup
        fallbacks = re.sub(r"var\(--lab-[\w-]+, #\w+\)", "", drawing.markup)
        assert not re.findall(r"[: \"]#[0-9a-fA-F]{3,8}\b", fallbacks)
        for text in root.iter(f"{SVG}text"):
            assert text.get("fill") == "currentColor"
            size = re.search(r"font-size: ([\d.]+)px", text.get("style", ""))
            assert size is None or float(size[1]) >= 13


def test_a_colour_outside_the_palette_is_refused():
    figure = Figure()
    figure.subplots().plot([0, 1], color="#123456")
    with pytest.raises(ValueError, match="#123456"):
        inline(figure, "t", "a")
    assert INK == "#101010"


def test_an_unlisted_gpu_is_drawn_from_its_record():
    made = SimpleNamespace(**{**vars(run(seconds=1e-5, copy_seconds=1e-6)), "gpu": "some-gpu"})
    drawing = plots.of_ledger(book(made))
    assert "copy kernel, measured" in drawing.note
    assert "data sheet" not in drawing.note
