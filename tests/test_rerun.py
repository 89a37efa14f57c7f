"""A published table and its repetition: the data, the command on a made-up device, the views."""

from __future__ import annotations

from dataclasses import replace

import fake_gpu
import numpy as np
import pytest
from fake_gpu import CALL, GRAPH, IDLE, RATE, RECORD

from softmax_lab import gpu, ledger, published, records, rerun, theirs, wide
from softmax_lab.__main__ import main
from softmax_lab.facts import GPUS
from softmax_lab.records import Measured
from softmax_lab.units import MISSING

SHAPES = [(64, 256), (8, 2048)]


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTMAX_LAB_DATA", str(tmp_path / "mine"))
    monkeypatch.setattr(records, "__file__", str(tmp_path / "package" / "records.py"))


# ---- The published table ----


def test_the_published_rates_follow_from_the_times():
    lines = published.SOURCE.read_text("utf-8").splitlines()
    stated = [float(line.split(",")[3]) for line in lines if line[0].isdigit()]
    for each, said in zip(published.table(), stated, strict=True):
        useful = published.USEFUL * each.rows * each.cols / each.seconds / 1e9
        assert useful == pytest.approx(said, rel=1e-4)  # times have five digits at most


def test_the_published_table_names_its_source():
    known = published.about()
    assert {"source", "GPU", "protocol"} <= set(known)
    assert published.gpu().multiprocessors == 46
    assert "published" not in records.gpus() and published.gpu().slug not in records.gpus()


def test_the_shapes_of_the_test_hold_one_thing_fixed():
    assert len({rows * cols for rows, cols in published.SAME_SIZE}) == 1
    assert len({cols for _, cols in published.SAME_ROW}) == 1
    widest = min(published.shapes())
    assert widest == published.SAME_SIZE[0] == published.SAME_ROW[0]
    places = 8 * GPUS["nvidia-h200"].multiprocessors  # blocks of 256 threads, 64 warps each
    assert {132, places} <= {rows for rows, _ in published.SAME_ROW}


# ---- The command ----


def test_each_clock_reads_what_it_says(folders, monkeypatch):
    fake_gpu.pretend(monkeypatch)
    session = rerun.run(SHAPES, data=["normal"])
    for row, (rows, cols) in zip(session.rows, SHAPES, strict=True):
        launch = IDLE + 2 * 8 * rows * cols / RATE
        assert (row.rows, row.cols, row.launches, row.warm_ups) == (rows, cols, 20, 3)
        behind = max(CALL, launch)  # who is slower, the host or the device
        assert row.calls_s == pytest.approx(behind, abs=(CALL + launch) / 20 + RECORD)
        assert row.graph_s == pytest.approx(launch + GRAPH / 20, rel=1e-6)
        assert row.cold_p20_s <= row.cold_s <= row.cold_p80_s
        assert row.max_error < 1e-7  # the device's answer is the oracle's, rounded


def test_the_error_is_the_largest_of_the_whole_matrix(folders, monkeypatch):
    device = fake_gpu.pretend(monkeypatch)
    run = device.run

    def a_little_off(kernel, arguments):
        run(kernel, arguments)
        if kernel == published.KERNEL:
            arguments[1].values[5, 7] += np.float32(1e-3)

    monkeypatch.setattr(device, "run", a_little_off)
    monkeypatch.setattr(rerun.stopwatch, "compare", lambda *each, **how: None)
    (row,) = rerun.run(SHAPES[:1], data=["normal"]).rows
    assert row.max_error == pytest.approx(1e-3, rel=1e-4)


def test_the_command_records_and_replaces(folders, monkeypatch, capsys):
    fake_gpu.pretend(monkeypatch)
    assert published.recorded() is None
    assert main(["rerun", "--shapes", "64x256"]) == 0
    assert "64x256 normal: " in capsys.readouterr().out
    again = published.recorded()
    assert again.gpu == "toy-gpu" and again.at(64, 256) and not again.at(1, 1)
    assert "between two events" in again.provenance["protocol"]
    assert main(["rerun", "--shapes", "64x256,8x2048"]) == 0
    assert len(published.recorded().rows) == 2 * len(published.DATA)
    assert published.recorded().at(64, 256, "rising") and not published.recorded().at(8, 8)
    monkeypatch.setattr(records, "fingerprint", lambda *each: "changed since")
    assert published.recorded() is None


def test_it_takes_the_published_shapes_and_every_kind_of_scores(folders, monkeypatch):
    fake_gpu.pretend(monkeypatch)
    seen = []
    monkeypatch.setattr(rerun.bench, "at_shape", lambda k, *where, data: [(*where[:2], data)])
    monkeypatch.setattr(rerun, "_at_shape", lambda *each: seen.append(each[4]))
    monkeypatch.setattr(rerun, "line", str)
    rerun.run()
    assert seen == [(*shape, kind) for shape in published.shapes() for kind in published.DATA]


def test_the_scores_are_what_the_row_says(folders, monkeypatch):
    device = fake_gpu.pretend(monkeypatch)
    given, launch = [], device.launch

    def looks(kernel, x, *, out):
        given.append(x.values)
        launch(kernel, x, out=out)

    monkeypatch.setattr(gpu, "launch", looks)
    for kind in ("rising", "constant"):
        (row,) = rerun.run(SHAPES[:1], data=[kind]).rows
        assert row.data == kind and row.max_error < 1e-6
        steps = np.diff(given[-1], axis=1)
        assert (steps >= 0).all() and (steps > 0).any() == (kind == "rising")
    with pytest.raises(ValueError, match="no input 'odd'"):
        rerun.run(SHAPES, data=["odd"])


def test_without_a_gpu_it_says_why(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "status", lambda: gpu.Status(False, "no driver here"))
    assert main(["rerun"]) == 1
    assert "no driver here" in capsys.readouterr().err


# ---- The views ----


def again(graph=5e-6, cold=10e-6, calls=8e-6) -> published.Again:
    rows = [_row(shape, calls, graph, cold) for shape in published.shapes()]
    return published.Again("nvidia-h200", tuple(rows), {"GPU": "NVIDIA H200", "date": "now"})


def _row(shape, calls, graph, cold):
    where = ("r", "block_online", "f", "float32", *shape, "normal", 3, 20)
    return rerun.Rerun(*where, calls, graph, cold, cold, cold, "DRAM", 1e-3 / shape[1])


def test_times_stand_beside_each_other():
    table = theirs.clocks(again())
    assert table.rows[0][1:] == ("58", "8", "5", "10", "2×")
    assert [row[2:] for row in theirs.clocks(None).rows] == [(MISSING,) * 4] * 5
    assert "published" in table.note and "NVIDIA H200" in table.note


def test_rates_are_of_useful_and_of_all_bytes():
    table = theirs.rates(again())
    third = table.rows[2]
    assert third[1:3] == ("319", "107%")
    useful = 8 * 512 * 2048 / 5e-6
    assert third[3] == "1\u202f680"
    assert third[4] == f"{100 * 1.5 * useful / 4.8e12:.1f}%"


def test_more_than_dram_can_deliver_came_from_a_cache():
    said = str(theirs.cached())
    assert "478\u202fGB/s" in said and "448\u202fGB/s" in said
    assert "at least 30.1\u202fGB/s, 6.3%, never reached DRAM" in said  # 478.13 - 448


def test_which_l2_holds_the_matrices():
    said = str(theirs.fits(GPUS["nvidia-h200"]))
    assert "RTX 3070 holds 4.19\u202fMB: not one pair fits" in said
    assert "H200 holds 52.4\u202fMB: all of it stays" in said
    small = replace(GPUS["nvidia-h200"], l2_bytes=10_000_000)
    assert "some of it stays" in str(theirs.fits(small))


def test_how_far_the_protocols_are_apart():
    assert MISSING in str(theirs.warmth(None))
    assert "2× to 2×" in str(theirs.warmth(again())) and "1.6×" in str(theirs.warmth(again()))


def test_sentences_are_of_the_published_shapes_alone():
    known = again()
    more = replace(known, rows=(_row((1056, 65536), 1.0, 1e-6, 1e-5), *known.rows))
    assert more.published == known.published == known.rows
    for say in (theirs.warmth, wide.fall):
        assert str(say(more)) == str(say(known))


def test_errors_times_the_length():
    first, last = theirs.errors(again()).rows[0], theirs.errors(None).rows[-1]
    assert first[2] == "1.87·10⁻⁶" and first[4] == "0.001"
    assert last[3:] == (MISSING, MISSING)


def run(rows, cols, seconds, kernel="block_online", **more) -> Measured:
    return Measured(kernel, "float32", rows, cols, "nvidia-h200", seconds=seconds, **more)


def test_a_fall_is_idle_multiprocessors_times_pace():
    said = str(wide.fall(None))
    assert (
        "falls by 2.72×" in said and "1.44×" in said and "1.89× in the pace of the others" in said
    )
    assert "14 of 46" in said and "up to 6" in said
    slow = again()
    rows = tuple(
        replace(each, cold_s=each.rows * each.cols * (4 if each.rows == 32 else 1) * 1e-12)
        for each in slow.rows
    )
    both = str(wide.fall(replace(slow, rows=rows)))
    # 132 / 32 is more than the whole loss: each of the busy ones is then the faster
    assert "falls by 4×" in both and "4.12×" in both and "0.97× in the pace" in both


def test_a_widest_shape_that_is_fastest_falls_by_nothing():
    fast = again()
    rows = tuple(replace(each, cold_s=1e-9 * each.rows) for each in fast.rows)
    said = str(wide.fall(replace(fast, rows=rows)))
    assert said.endswith("H200, cold: 32\u00a0×\u00a065\u202f536 has the highest rate of all.")


def test_a_crowd_counts_blocks_and_shares_the_rate():
    table = wide.crowd([None, run(32, 65536, 1e-3), run(132, 65536, 1e-3)], theirs=True)
    assert table.rows[4] == ("32\u00a0×\u00a065\u202f536", "32", "32", "69.6%", "117", "3.67")
    assert table.rows[5][1:4] == ("32", "32", "24.2%") and table.rows[6][1:4] == (
        "132",
        "132",
        "100%",
    )
    names = ["RTX 3070, as published", "H200, cold"]
    assert table.groups == tuple(zip((0, 5), names, strict=True))
    assert MISSING in str(wide.crowd([None]))
    assert MISSING in str(wide.crowd([], theirs=True))
    assert wide.crowd([run(32, 65536, 1e-3)]).groups == ()


def test_a_crowd_stands_in_the_published_order():
    mixed = [run(*shape, 1e-3) for shape in ((132, 65536), *sorted(published.shapes()))]
    shapes = [row[0] for row in wide.crowd(mixed, theirs=True).rows]
    assert shapes[5:10] == shapes[:5] and len(shapes) == 11


def test_clocks_with_work_are_read_from_the_counters():
    seen = {wide.ACTIVE: 24.2, wide.DURATION: 100.0}
    about = {"clocks seen": "SM 1000 MHz, memory 1 MHz"}
    said = str(wide.active(run(32, 65536, 1e-3, counters=seen, provenance=about)))
    assert "32 of 132" in said and said.count("24.2%") == 2
    assert MISSING in str(wide.active(run(32, 65536, 1e-3)))
    assert MISSING in str(wide.active(None))


@pytest.mark.parametrize(
    ("at_132", "at_1056", "verdict"),
    [
        (1.0, 4.0, "one part of the answer"),
        (1.0, 1.0, "are the answer"),
        (2.0, 8.0, "More than idle"),
        (0.5, 0.9, "not the answer"),
    ],
)
def test_the_test_decides(at_132, at_1056, verdict):
    few = run(32, 4096, 1e-3)  # 32 rows in a millisecond: each multiprocessor one row
    first, second = run(132, 4096, 1e-3 / at_132), run(1056, 4096, 8e-3 / at_1056)
    said = str(wide.recovers(few, [first, None, second]))
    assert verdict in said and f"{at_132:g}× the pace at 132 rows" in said
    later = str(wide.recovers(few, [second]))  # nobody measured one block each: no verdict
    assert MISSING in later and "answer" not in later and "1\u202f056 rows" in later
    assert MISSING in str(wide.recovers(few, [None])) and MISSING in str(wide.recovers(None, []))


def test_a_step_out_of_l2_decides_nothing():
    seen = [{wide.FROM_DRAM: each * 65536, wide.L2_HITS: 50.0} for each in (4 * 32, 6 * 132)]
    few, first = (run(n, 65536, 1e-3, counters=c) for n, c in zip((32, 132), seen, strict=True))
    said = str(wide.recovers(few, [first]))
    assert "from 16.8\u202fMB to 69.2\u202fMB, and L2 holds 52.4\u202fMB" in said
    assert "reads 4 and then 6 bytes" in said and "no test" in said and "answer" not in said
    assert "reads" not in str(wide.recovers(few, [replace(first, counters={})]))


def test_the_first_step_is_the_most_rows_with_one_block_each():
    few, most = run(32, 4096, 1e-3), run(128, 1024, 1e-3)
    said = str(wide.recovers(few, [run(64, 2048, 1e-3), most, run(256, 512, 1e-3)]))
    assert "0.25× the pace at 128 rows" in said  # a quarter of the columns


def test_places_count_multiprocessors_and_warps_by_hand():
    books = [
        replace(ledger.ledger(name, 32, 256, counted=False), measured=run(32, 256, 1e-6, name))
        for name in ("block_tree", "block_warp", "block_online")
    ]
    tree, four, online = wide.places(books).rows
    # bytes asked for in a microsecond: 16 or 12 an element, over the warps of all blocks
    assert tree[1:] == ("3", "512", "32", "32", "16", "1", "0.256")
    assert four[1:] == ("3", "256", "8", "8", "32", "1", "0.512")
    assert online[1:] == ("2", "256", "32", "32", "8", "1", "0.384")
    assert MISSING in str(wide.places([replace(books[0], measured=None)]))


def test_errors_are_compared_with_the_published_ones():
    assert MISSING in str(theirs.further(None))
    rows = tuple(
        replace(each, max_error=(2 + i) * said.max_error)
        for i, (each, said) in enumerate(zip(again().rows, published.table(), strict=True))
    )
    assert "2× to 6× the published" in str(theirs.further(replace(again(), rows=rows)))


def test_the_source_is_named():
    assert "FSK" in str(theirs.sources()) and theirs.sources().source


@pytest.mark.gpu
def test_on_a_gpu_a_graph_is_no_slower_than_calls():
    (row,) = rerun.run([(512, 2048)], data=["normal"]).rows
    assert 0 < row.graph_s < 1.1 * row.calls_s
    assert row.graph_s < row.cold_s
    assert row.max_error < 1e-6
