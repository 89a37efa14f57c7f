"""The timing protocol: its arithmetic on made-up samples, and its sanity on a GPU."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from fake_gpu import pretend

from softmax_lab import bench, facts, gpu, profiler, records, reference, stopwatch
from softmax_lab.__main__ import main
from softmax_lab.fingerprint import fingerprint
from softmax_lab.registry import KERNELS

MIB = 1 << 20


# ------------------------------------------------------------------------------ what is taken


def test_threads_that_walk_a_row_are_taken_at_odd_rows_too_and_each_pair_once():
    fitting = gpu.fitting(None, "float32", 90)
    for module in (bench, profiler):
        plan = bench.plan(fitting, module.SHAPES_OF)
        pairs = [(each.name, shape) for who, grid in plan for each in who for shape in grid]
        assert len(set(pairs)) == len(pairs)
        assert {name for name, _ in pairs} == {each.name for each in fitting}
        odd = {name for name, shape in pairs if shape == (250, 1004)}
        assert odd == {
            each.name
            for each in fitting
            if each.family.name == "softmax" and each.threads_per_row == 1
        }
        assert {("naive", shape) for shape in bench.ODD} < set(pairs)
    asked = bench.plan(fitting, bench.SHAPES_OF, [(2, 3)])
    assert [grid for _, grid in asked] == len(gpu.by_family(fitting)) * [[(2, 3)]]


def test_a_run_takes_the_whole_plan(monkeypatch):
    pretend(monkeypatch)
    monkeypatch.setattr(bench, "SHAPES_OF", {"softmax": ((64, 256), (3, 5))})
    monkeypatch.setattr(bench, "ODD", ((64, 256), (2, 7)))
    session = bench.run(["naive", "online", "warp"])
    taken = [(row.kernel, row.rows, row.cols) for row in session.rows]
    both = [(name, *shape) for shape in ((64, 256), (3, 5)) for name in ("naive", "online", "warp")]
    assert taken == [*both, ("naive", 2, 7), ("online", 2, 7)]
    assert {row.run for row in session.rows} == set(session.provenance)


# ------------------------------------------------------------------------------ arithmetic


def test_the_headline_is_the_median_not_the_mean():
    samples = [57.47] + [1.79] * 9 + [2.0] * 9  # one slow first call
    median, p20, p80 = bench.summary(samples)
    assert median == 2.0
    assert (p20, p80) == (1.79, 2.0)
    assert np.mean(samples) > 4.8


@pytest.mark.parametrize("samples", [[3.0], [1.0, 2.0], [5, 4, 3, 2, 1]])
def test_quantiles_enclose_the_median(samples):
    median, p20, p80 = bench.summary(samples)
    assert min(samples) <= p20 <= median <= p80 <= max(samples)


@pytest.mark.parametrize("pair_bytes", [2 * MIB, 2_002_000, 16 * MIB, 512 * 1024])
def test_buffers_exceed_l2_and_no_more_than_that(pair_bytes):
    pairs, level = bench.pairs_for(pair_bytes, 60 * MIB, 100 << 30)
    assert level == "DRAM"
    assert pairs * pair_bytes > 240 * MIB >= (pairs - 1) * pair_bytes


def test_large_matrices_still_share_the_cost_of_a_graph():
    assert bench.pairs_for(2 << 30, 60 * MIB, 100 << 30) == (bench.FEWEST_PAIRS, "DRAM")
    assert bench.pairs_for(2 << 30, 60 * MIB, 5 << 30) == (2, "DRAM")  # no memory for more


def test_what_cannot_leave_l2_is_labelled():
    assert bench.pairs_for(1024, 60 * MIB, 100 << 30) == (bench.MOST_PAIRS, "L2")
    assert bench.pairs_for(64 * MIB, 60 * MIB, 130 * MIB) == (2, "L2")  # too little memory


def test_impossible_sizes_are_refused_in_words():
    with pytest.raises(ValueError, match="take 40 GB, the GPU has 8 GB free"):
        bench.pairs_for(40 * 10**9, 60 * MIB, 8 * 10**9)
    with pytest.raises(ValueError, match="take 12 GB, the GPU has 8 GB free"):
        bench.pairs_for(4 * 10**9, 60 * MIB, 8 * 10**9, held_bytes=12 * 10**9)
    with pytest.raises(ValueError, match="without elements"):
        bench.pairs_for(0, 60 * MIB, 8 * 10**9)


def rows(level="DRAM", seconds=(1.0, 2.0, 3.0, 4.0, 50.0), method="graph"):
    """Rows made as a run makes them, from replays of a graph of two launches."""
    kernel = KERNELS["naive"]
    times = {"naive": list(seconds), "copy 1": [1.0, 1.2, 1.4], "copy 4": [0.8, 1.0, 9.0]}
    return bench._timings(times, [kernel], ("run", "float32", 256, 1024), (method, level, 2))


def test_rows_hold_seconds_of_one_launch_beside_the_fastest_copy():
    (row,) = rows()
    assert (row.kernel, row.rows, row.cols, row.pairs, row.repeats) == ("naive", 256, 1024, 2, 5)
    assert row.median_s == 1.5  # the median replay, 3 s, over the two launches in it
    assert row.copy_median_s == 0.5  # `copy 4`, though its slowest replay is the slowest of all
    assert row.fingerprint == fingerprint("naive")
    assert row.copy == fingerprint("roof/copy")


def test_the_table_shows_ratio_bandwidth_and_label():
    text = bench.table([*rows(), *rows("L2", method="events")])
    head, cold, warm = text.splitlines()
    assert "of copy" in head
    assert "useful [GB/s]" in head
    assert cold.split() == [
        "256x1024",
        "naive",
        "1500000.00",
        "900000.00–6600000.00",
        "0.0",
        "0.333",
    ]
    assert warm.endswith("L2-resident (events)")
    assert bench.table(rows(), head=False).splitlines() == [cold]
    narrow = bench.table(rows(seconds=[8.2154e-5, 8.2156e-5, 8.216e-5]), head=False)
    assert "41.078" in narrow and "41.077–41.079" in narrow  # not "41.08–41.08"


def test_a_run_without_a_gpu_says_why():
    if gpu.status().available:
        pytest.skip("there is a GPU")
    with pytest.raises(RuntimeError, match=gpu.status().reason[:20]):
        bench.run(["naive"])
    with pytest.raises(ValueError, match="repeats"):
        bench.run(["naive"], repeats=0)


@pytest.mark.parametrize("run", [bench.run, profiler.run])
@pytest.mark.parametrize(
    ("kernels", "shape", "dtype", "match"),
    [
        (["nope"], (3, 4), "float32", "no kernel 'nope'; there are naive"),
        ([], (3, 4), "float32", "no kernel was named"),
        (["naive"], (1, 2**24 + 1), "float32", "up to 16777216 columns"),
        (None, (3, 0), "float32", "without elements"),
        (None, (3, 4), "junk", "got 'junk'"),
    ],
)
def test_what_is_wrong_with_any_gpu_is_said_without_one(run, kernels, shape, dtype, match):
    with pytest.raises(ValueError, match=match):
        run(kernels, [(3, 4), shape], dtype)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["bench", "--shapes", "3y4"], 2, "256x1024"),
        (["bench", "--dtype", "float8"], 2, "float32"),
        ([], 2, "command"),
        (["compile", "--archs", "sm_42", "--kernels", "naive"], 1, "sm_120"),
        (["compile", "--kernels", "unheard of"], 1, "naive"),
        (["compile", "--archs", "sm_90,sm_42"], 1, "got 'sm_42'"),
        (["compile", "--archs", ","], 2, "got ','"),
        (["bench", "--kernels", "nope"], 1, "no kernel 'nope'; there are naive"),
        (["profile", "--kernels", "naive,nope"], 1, "no kernel 'nope'; there are naive"),
        (["bench", "--kernels", ","], 2, "got ','"),
        (["profile", "--kernels", ""], 2, "got ''"),
        (["bench", "--kernels", "naive,,warp"], 2, "none left out"),
        (["bench", "--shapes", ","], 2, "256x1024"),
        (["bench", "--shapes", "3x²"], 2, "256x1024"),
    ],
)
def test_the_command_line_explains_what_it_refuses(arguments, status, words, capsys):
    try:
        ended = main(arguments)
    except SystemExit as left:  # argparse leaves so
        ended = left.code
    said = capsys.readouterr()
    assert ended == status
    assert words in said.err
    assert not said.out  # no head of a table that never comes


def test_a_refusal_leaves_the_process_without_a_traceback():
    call = [sys.executable, "-m", "softmax_lab", "bench", "--kernels", "nope"]
    done = subprocess.run(call, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no kernel 'nope'" in done.stderr and "Traceback" not in done.stderr


# ------------------------------------------------------------------------------ on a GPU


@pytest.fixture(scope="module")
def peak():
    """Data-sheet bandwidth of this GPU [B/s]."""
    known = facts.gpu_for(gpu.status().name or "")
    if known is None:
        pytest.skip(f"no data sheet for {gpu.status().name}")
    return known.dram_bytes_per_s


def useful(row, seconds) -> float:
    return 2 * 4 * row.rows * row.cols / seconds


@pytest.mark.gpu
def test_nothing_cold_is_faster_than_memory(peak):
    session = bench.run(["naive"], [(256, 1024), (8192, 128), (16384, 16384)], repeats=5)
    for row in session.rows:
        assert row.level == "DRAM"
        assert row.p20_s <= row.median_s <= row.p80_s
        assert useful(row, row.median_s) <= peak
        assert useful(row, row.copy_median_s) <= peak
    large = session.rows[-1]
    assert useful(large, large.copy_median_s) >= 0.7 * peak  # else it is no roof


@pytest.mark.gpu
def test_a_warm_time_is_labelled():
    session = bench.run(["naive"], [(256, 1024)], repeats=5, warm=True)
    found = {(row.method, row.level, row.pairs) for row in session.rows}
    assert found == {("graph", "DRAM", session.rows[0].pairs), ("events", "L2", 1)}


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(256, 1024), (37, 101), (65536, 1)], ids=str)
def test_a_family_with_other_arguments_is_timed_and_judged(peak, shape):
    names = [name for name in KERNELS if name.startswith("gemv/")]
    session = bench.run(names, [shape], repeats=3, warm=True)
    assert [row.kernel for row in session.rows] == 2 * names
    for row in session.rows:
        if row.level == "DRAM":
            assert KERNELS[row.kernel].family.once(*shape) / row.median_s <= peak


@pytest.mark.gpu
def test_two_runs_agree_though_the_first_had_to_compile():
    gpu._FUNCTIONS.clear()
    first, second = (bench.measure("naive", 2048, 512) for _ in range(2))
    assert first.seconds == pytest.approx(second.seconds, rel=0.2)
    assert first.copy_seconds == pytest.approx(second.copy_seconds, rel=0.2)
    assert first.provenance["protocol"] == bench.PROTOCOL
    assert first.counts.known() == {}


@pytest.mark.gpu
def test_a_run_inside_the_callers_stream_is_no_other_run():
    cupy = pytest.importorskip("cupy")
    outside = bench.measure("naive", 2048, 512)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        inside = bench.measure("naive", 2048, 512)
        assert cupy.cuda.get_current_stream() == stream
    assert 0.5 < inside.seconds / outside.seconds < 2


@pytest.mark.gpu
def test_a_time_waits_for_its_event():
    cupy = pytest.importorskip("cupy")
    x = cupy.asarray(reference.inputs("normal", 8, 1 << 20))
    y = cupy.empty_like(x)
    gpu.launch("naive", x, out=y)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    start = {"long": stopwatch.single(stopwatch.launcher(KERNELS["naive"]), (x, y))}
    (seconds,) = stopwatch.interleaved(stream, start, repeats=1, warm_ups=0)["long"]
    assert seconds > 5e-3


@pytest.mark.gpu
def test_a_wrong_kernel_is_never_timed(monkeypatch):
    def lose_the_tail(kernel, x, *, out):
        if len(x) > 1:
            gpu_launch(kernel, x[:-1], out=out[:-1])
        return out

    gpu_launch = gpu.launch
    monkeypatch.setattr(stopwatch.gpu, "launch", lose_the_tail)
    with pytest.raises(RuntimeError, match="left elements of a 130x64 matrix unwritten"):
        bench.run(["naive"], [(130, 64)])


@pytest.mark.gpu
def test_a_graph_that_cannot_be_captured_leaves_a_working_stream():
    cupy = pytest.importorskip("cupy")

    def broken(x, y):
        if stream.is_capturing():
            raise KeyError("in the middle")

    pair = tuple(cupy.zeros((4, 4), "float32") for _ in "xy")
    stream = cupy.cuda.Stream(non_blocking=True)
    with pytest.raises(KeyError):
        stopwatch.graph(stream, broken, [pair])
    with stream:
        assert not stream.is_capturing()
        y = gpu.launch("naive", pair[0])
        stream.synchronize()
    assert (y.get() == 0.25).all()


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (250, 1001), (4096, 4096)], ids=str)
@pytest.mark.parametrize("turns", bench.COPY_TURNS)
def test_the_roof_copies(shape, turns):
    x, y = stopwatch.buffers(KERNELS["naive"].family, *shape, "float32", 1)[0]
    stopwatch.check_copy(stopwatch.copier(turns), x, y)
    assert np.array_equal(x.get(), y.get())


@pytest.mark.gpu
def test_the_command_records_in_the_readers_folder(tmp_path):
    environment = {**os.environ, "SOFTMAX_LAB_DATA": str(tmp_path)}
    call = [sys.executable, "-m", "softmax_lab", "bench", "--shapes", "256x64", "--repeats", "3"]
    done = subprocess.run(call, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*/bench.csv")
    table = records.read(path)
    assert {row.kernel for row in table.rows} == {
        kernel.name for kernel in gpu.fitting(None, "float32", gpu.status().compute_capability)
    }
    (about,) = table.runs.values()
    assert about["GPU"] == gpu.status().name
    assert str(path) in done.stdout
