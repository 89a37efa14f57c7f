"""How long a column takes: every cell is a record's, and what the chapters say of them holds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from softmax_lab import KERNELS, bench, counters, ledger, pace
from softmax_lab.counters import OPCODES, waited_for_memory
from softmax_lab.facts import GPUS
from softmax_lab.records import Measured
from softmax_lab.units import MISSING, number

ABOUT = {"GPU": "NVIDIA H200", "date": "2026-11-30 10:00 UTC", "clocks seen": "SM 1755–1980 MHz, x"}


def run(rows, cols, seconds, copy=1e-6, kernel="naive", **more) -> Measured:
    base = {"gpu": "nvidia-h200", "p20": seconds, "p80": seconds, "copy_seconds": copy}
    base |= {"provenance": ABOUT, "counters_provenance": ABOUT | {"date": "2026-11-30 11:00 UTC"}}
    return Measured(kernel, "float32", rows, cols, seconds=seconds, **(base | more))


def recorded(name, *shape) -> Measured:
    made = ledger.ledger(name, *shape, counted=False)
    if made.measured is None or not made.measured.seconds:
        pytest.skip(made.not_measured)
    return made.measured


def test_room_is_not_use():
    made = ledger.ledger("naive", 256, 1024, counted=False)
    if made.compiled is None:
        assert made.not_compiled in str(pace.room(made))
        pytest.skip(made.not_compiled)
    said = str(pace.room(made))
    assert "room for 64 warps of this kernel, in 16 blocks" in said
    assert "256 rows are 2 blocks of 128 threads" in said
    assert "2 of them get a block, 130 get none" in said
    tight = replace(made, compiled=replace(made.compiled, registers=64))
    assert "room for 32 warps of this kernel, in 8 blocks" in str(pace.room(tight))
    assert "no NVRTC" in str(pace.room(replace(made, compiled=None, not_compiled="no NVRTC")))


def test_columns_by_hand():
    table = pace.columns([None, run(1000, 10, 2e-6), run(128, 4, 1e-6, copy=None)])
    assert [row[1:] for row in table.rows] == [
        ("1", "1", "250", MISSING),
        ("8", "8", "200", "50%"),
    ]
    crowded = pace.columns([run(65536, 1024, 2e-3)])
    assert crowded.rows[0][1:3] == ("512", "132")
    assert pace.columns([run(128, 4, 1e-6, gpu="some-gpu")]).rows[0][1:3] == ("1", "–")
    assert MISSING in str(pace.columns([None]))


def test_what_l1_needs_for_a_column_by_hand():
    loads, stores = counters.COUNTED["load_requests"], counters.COUNTED["store_requests"]
    seen = {pace.WAVEFRONTS: 2 * 4 * 10 * 60, "sm__cycles_active.avg": 2 * 10 * 400 / 132}
    seen |= {loads[0]: 8 * 10 * 3, stores[0]: 8 * 10}
    ((name, *cells),) = pace.served([None, run(256, 10, 1e-6, counters=seen)]).rows
    assert name.startswith("`naive`, 256")  # two blocks of four warps
    assert cells == ["4", "4", "15", "240", "400", "60%"]
    less = run(256, 10, 1e-6, counters={k: v for k, v in seen.items() if k != pace.WAVEFRONTS})
    assert MISSING in str(pace.served([None, less, run(256, 10, 1e-6, gpu="some-gpu")]))


def test_the_chapters_words_on_wavefronts_for_a_column_hold():
    shapes = ((32, 65536), (256, 1024), (65536, 1024))
    rows = [row[4:] for row in pace.served([recorded("naive", *s) for s in shapes]).rows]
    (one, alone, _), (four, block, busy), (many, crowd, less) = (
        (float(a.replace("\u202f", "")), float(b.replace("\u202f", "")), float(c[:-1]))
        for a, b, c in rows
    )
    assert one < 0.4 * alone < alone < four < block < 1.3 * four  # four warps, over one
    assert many / four > 0.6 * crowd / block and less < busy


def test_one_warp_alone_by_hand():
    alone = run(32, 1000, 1e-3, counters={pace.INSTRUCTIONS: 40_000})
    said = str(pace.alone(alone)).replace("\u202f", " ")
    assert "1 µs for a column, 1 980 clocks, and executes 40 instructions in them." in said
    assert str(pace.alone(run(32, 1000, 1e-3))).endswith("clocks.")
    with pytest.raises(ValueError, match="got 33 rows"):
        pace.alone(run(33, 10, 1e-6))
    assert MISSING in str(pace.alone(None))
    assert MISSING in str(pace.alone(run(32, 10, 1e-6, provenance={})))


def test_further_columns_are_differences():
    runs = [run(64, 8, 5e-6, copy=2e-6), run(64, 4, 1e-6, copy=1e-6), None]
    table = pace.further_columns(runs)
    assert table.rows == (("4 → 8", "32", number(1000), number(250), "25%"),)
    assert MISSING in str(pace.further_columns(runs[:1]))


def test_a_start_is_what_bytes_do_not_explain():
    small, large = run(1000, 1, 3e-6, copy=2e-6), run(1000, 1000, 1e-3, copy=1e-4)
    said = str(pace.start(small, large)).replace("\u202f", " ")
    assert "the kernel takes 3 µs and the copy 2 µs" in said
    assert "the 8 kB would take 100 ns" in said
    assert MISSING in str(pace.start(small, None))


def test_blocks_that_share_a_multiprocessor():
    said = str(pace.slower_together(run(128, 10, 1e-6), run(33792, 10, 4e-6)))
    assert "there are 2 blocks for each multiprocessor" in said and "takes 4× as long" in said
    assert MISSING in str(pace.slower_together(None, None))


def test_alignment_sets_runs_side_by_side():
    seen = {pace.INSTRUCTIONS: 80 * 7, "l1tex__t_sector_hit_rate.pct": 90}
    table = pace.alignment([run(64, 7, 7e-6, counters=seen), run(64, 8, 8e-6)])
    ((name, executed, hit, wavefronts, l1, missing, waited, column),) = table.rows
    assert name.startswith("`naive`, 64")
    assert (executed, hit, column) == ("40", "90%", number(1000))
    assert (wavefronts, l1, waited) == (MISSING, MISSING, MISSING)
    assert missing == number((1 + 2 + 7) / 7)  # of 16 + 4 + 1 loads at once: a turn, two, and each
    assert "times of 2026-11-30 10:00 UTC, counters of 2026-11-30 11:00 UTC" in table.note
    assert MISSING in str(pace.alignment([None]))


def test_the_chapters_words_on_columns_hold():
    """Up to a block a multiprocessor a column takes about as long on all shapes of four warps."""
    shapes = [shape for shape in bench.SHAPES if 128 <= shape[0] <= 132 * 128]
    columns = [s / shape[1] for shape in shapes if (s := recorded("naive", *shape).seconds)]
    assert len(columns) > 5 and max(columns) / min(columns) < 1.12
    alone = recorded("naive", 32, 65536)
    assert alone.seconds / alone.cols < min(columns)


def test_the_chapters_words_on_short_rows_hold():
    """Each further column costs more until a row fills a sector, and then about the same."""
    short = [recorded("naive", *shape) for shape in bench.SHAPES if shape[1] <= 16]
    table = pace.further_columns([*short, recorded("naive", 65536, 1024)])
    costs = {row[0]: float(row[2].replace("\u202f", "")) for row in table.rows}
    assert costs["1 → 2"] < costs["2 → 4"] < costs["4 → 7"] < costs["7 → 8"]
    assert costs["8 → 16"] == pytest.approx(costs["7 → 8"], rel=0.15)
    assert costs["16 → 1\u202f024"] > 1.5 * costs["8 → 16"]


def test_the_chapters_words_on_odd_rows_hold():
    """Both kernels lose a third at odd length beside aligned rows, and naive as much beside rows a
    power of two apart, on as many instructions and hits; for the one reason warps wait while L1 is
    idle, for the other it is busy."""
    shapes = [(256, 1024), (250, 1000), (250, 1004), (250, 1001)]
    runs = {name: [recorded(name, *shape) for shape in shapes] for name in ("naive", "online")}
    column = {name: [run.seconds / run.cols for run in of] for name, of in runs.items()}
    assert all(of[3] / of[1] > 1.32 for of in column.values())
    assert (
        column["naive"][0] / column["naive"][1] > 1.32 > column["online"][0] / column["online"][1]
    )
    assert column["naive"][0] > 1.1 * column["online"][0]
    assert all(column["naive"][k] < 1.02 * column["online"][k] for k in (1, 2, 3))
    for name, of in runs.items():
        table = pace.alignment(of)
        by = dict(zip(table.heads, zip(*table.rows, strict=True), strict=True))
        executed = [float(cell) for cell in by["instructions for a column"]]
        assert max(executed) == pytest.approx(min(executed), rel=0.01)
        hits = [float(cell.removesuffix("%")) for cell in by["L1 hit rate"]]
        assert max(hits) == pytest.approx(min(hits), abs=0.3)
        wavefronts = [float(cell) for cell in by["wavefronts of a request"]]
        assert 31 < wavefronts[0] < 33 and wavefronts[1] < wavefronts[0] / 2
        assert wavefronts[3] < 0.6 * wavefronts[1]
        busy = [float(cell.removesuffix("%")) for cell in by["L1, its busiest part"]]
        assert busy[0] > (78 if name == "naive" else 65) and busy[3] < 50
        missing = [float(cell) for cell in by["turns that miss, for a column"]]
        assert missing[3] - missing[1] == pytest.approx(1, abs=0.02)
    waited = {name: [_waited(run) for run in of] for name, of in runs.items()}
    for k in (2, 3):  # what stays open: online's waits grow by more
        more = {name: of[k] - of[1] for name, of in waited.items()}
        assert more["online"] > 1.25 * more["naive"]


def _waited(run):
    return waited_for_memory(run.counters, GPUS[run.gpu]) / (8 * run.cols)


def test_the_form_without_a_branch_loses_as_much():
    for cols in (1001, 1004, 1023, 1025):
        branch, free = (recorded(name, 250, cols) for name in ("online", "online_branchfree"))
        assert free.seconds == pytest.approx(branch.seconds, rel=0.04)


@pytest.mark.parametrize(("name", "others"), [("naive", 1), ("online", 0.5)])
def test_the_loads_ahead_are_those_of_the_branches_that_ran(name, others):
    """A turn of each walk branches back once; beside that there is a branch for each division, and
    half a branch a step for the one branch of four steps that was left and its side."""
    run = recorded(name, 250, 1000)
    back = (
        sum(1 / turn for turn in KERNELS[name].ahead[:-1]) + 1 / 4
    )  # the last walk has turns of four
    if name == "online":
        others += 1
    taken = run.counters[f"{OPCODES}.BRA"] / (8 * run.cols)
    assert taken == pytest.approx(back + others, rel=0.02)
