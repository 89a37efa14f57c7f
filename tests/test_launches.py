"""What launches cost: on a made-up device each clock reads what it must, and nothing is dropped."""

from __future__ import annotations

import math

import pytest
from fake_gpu import CALL, COMPILE, GRAPH, IDLE, RATE, pretend

from softmax_lab import gpu, launches, ledger, records, series, stopwatch
from softmax_lab.__main__ import main
from softmax_lab.launches import COPY, EMPTY, Plan

SHAPE = (64, 256)
COPYING = IDLE + 8 * 64 * 256 / RATE
PLANS = (
    Plan(COPY, SHAPE, "wait", repeats=5),
    *(
        Plan(each, SHAPE, clock, repeats=4)
        for each in (EMPTY, COPY)
        for clock in ("call", "events")
    ),
    Plan(EMPTY, SHAPE, "graph", launches=8, repeats=4),
    Plan(COPY, (32, 128), "graph", pairs=3, launches=8, repeats=4),
)


@pytest.fixture
def taken(monkeypatch) -> series.Readings:
    pretend(monkeypatch)
    session = launches.run(plans=PLANS)
    return series.gathered(session.gpu, session.rows, session.provenance)


def test_each_clock_reads_what_it_says(taken):
    call, events = (taken.one(EMPTY, clock).median for clock in ("call", "events"))
    assert call == pytest.approx(CALL)  # the host does not wait for the GPU
    assert events == pytest.approx(CALL + IDLE)  # they stand around the host's call as well
    assert taken.one(COPY, "call").median == pytest.approx(CALL)
    assert taken.one(COPY, "wait").median == pytest.approx(CALL + COPYING)


def test_a_graph_shares_its_own_cost_among_its_launches(taken):
    one = taken.one(EMPTY, "graph", launches=8)
    assert one.each == pytest.approx(one.median / 8)
    assert one.each == pytest.approx(IDLE + GRAPH / 8)


def test_the_first_reading_compiles_and_no_reading_is_dropped(taken):
    first = taken.one(COPY, "wait")
    assert len(first.seconds) == 5
    assert first.seconds[0] > COMPILE
    assert max(first.seconds[1:]) < 1e-3
    assert first.median == pytest.approx(CALL + COPYING)  # the warm-up is in no median


def test_a_kernel_that_is_loaded_already_is_forgotten_first(monkeypatch):
    pretend(monkeypatch).loaded.add(COPY)
    session = launches.run(plans=PLANS[:1])
    assert session.rows[0].seconds > COMPILE


def test_forgetting_a_kernel_leaves_the_others(monkeypatch):
    loaded = {(name, "float32", device): None for name in (COPY, EMPTY) for device in (0, 1)}
    monkeypatch.setattr(gpu, "_FUNCTIONS", loaded)
    gpu.forget(COPY)
    assert {key[0] for key in loaded} == {EMPTY}


def test_pairs_rotate_and_every_copy_is_checked(monkeypatch):
    device = pretend(monkeypatch)
    seen = []
    run = device.run
    device.run = lambda kernel, arguments: (seen.append(arguments[1]), run(kernel, arguments))[1]
    launches.run(plans=[Plan(COPY, (32, 128), "graph", pairs=3, launches=8, repeats=1)])
    assert len({id(y) for y in seen}) == 3
    pretend(monkeypatch, broken=True)
    with pytest.raises(RuntimeError, match="the copy kernel is wrong on a 32x128 matrix"):
        launches.run(plans=[Plan(COPY, (32, 128), "graph", pairs=3, launches=8, repeats=1)])


def test_the_plan_holds_what_the_chapter_asks_for():
    first = launches.PLANS[0]
    assert (first.kernel, first.clock) == (COPY, "wait")  # or its compilation were in no series
    keys = [(p.kernel, p.shape, p.clock, p.pairs, p.launches, p.vectors) for p in launches.PLANS]
    assert len(set(keys)) == len(keys)  # a second series of that key would replace the first
    assert {plan.clock for plan in launches.PLANS} == set(series.CLOCKS)
    rotated = [8 * math.prod(launches.MIDDLE) * pairs for pairs in launches.PAIRS]
    assert min(rotated) < 50 << 20 < 200 << 20 < max(rotated)  # from within L2 to far beyond
    for shape in series.SIZES:
        for vectors in series.VECTORS:
            pairs = [
                plan.pairs
                for plan in launches.PLANS
                if (plan.shape, plan.vectors, plan.launches >= plan.pairs, plan.clock)
                == (shape, vectors, True, "graph")
            ]
            assert min(pairs) == 1 and 8 * math.prod(shape) * max(pairs) == max(rotated)


def test_a_thread_of_the_copy_moves_as_many_vectors_as_the_row_says(monkeypatch):
    pretend(monkeypatch)
    seen = []
    real = stopwatch.copier
    monkeypatch.setattr(stopwatch, "copier", lambda turns: seen.append(turns) or real(turns))
    plans = [Plan(COPY, (32, 128), "graph", launches=2, vectors=n, repeats=1) for n in (1, 4)]
    session = launches.run(plans=plans)
    assert seen == [1, 4]
    assert [row.vectors for row in session.rows] == [1, 4]
    found = series.gathered("toy", session.rows, {})
    assert found.one(COPY, "graph").vectors == 1  # unless more are asked for
    assert found.one(COPY, "graph", vectors=4).vectors == 4


def test_without_a_gpu_it_says_why(monkeypatch):
    monkeypatch.setattr(gpu, "status", lambda: gpu.Status(False, "no driver here"))
    with pytest.raises(RuntimeError, match="no driver here"):
        launches.run()


# ------------------------------------------------------------------------------ records


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTMAX_LAB_DATA", str(tmp_path / "mine"))
    monkeypatch.setattr(records, "__file__", str(tmp_path / "package" / "records.py"))


def test_nothing_recorded_is_none(folders):
    assert series.recorded() is None
    assert ledger.readings() is None


def test_the_command_records_whole_series_in_order(folders, monkeypatch, capsys):
    pretend(monkeypatch)
    monkeypatch.setattr(launches, "run", lambda say, run=launches.run: run(say, PLANS))
    assert main(["launches"]) == 0
    assert "first 25" in capsys.readouterr().out  # 0.25 s and a little, in microseconds
    found = ledger.readings()
    assert found.gpu == "toy-gpu"
    assert "none left out" in found.provenance["protocol"]
    first = found.one(COPY, "wait")
    assert first.seconds[0] == max(first.seconds)
    assert len(found.find(COPY, "graph", pairs=3)) == 1
    with pytest.raises(ValueError, match="a clock is call, wait, events, graph, got 'sundial'"):
        found.find(COPY, "sundial")
    again = launches.run(lambda line: None)
    again.save()
    table = records.table("clock", "toy-gpu")
    assert {row.run for row in table.rows} == set(again.provenance)  # replaced, series by series


def test_live_readings_are_taken_now(folders, monkeypatch):
    pretend(monkeypatch)
    monkeypatch.setenv("SOFTMAX_LAB_LIVE", "1")
    monkeypatch.setattr(launches, "run", lambda run=launches.run: run(plans=PLANS))
    assert ledger.readings().one(EMPTY, "call").median == pytest.approx(CALL)
    assert not list(records.folder().glob("*/*.csv"))


def test_series_of_other_source_are_not_answered(folders, monkeypatch):
    pretend(monkeypatch)
    launches.run(plans=PLANS).save()
    assert series.recorded() is not None
    monkeypatch.setattr(records, "fingerprint", lambda *each: "changed since")
    assert series.recorded() is None


@pytest.mark.gpu
def test_on_a_gpu_the_clocks_come_in_their_order():
    plans = [Plan(EMPTY, SHAPE, clock) for clock in ("call", "wait")]
    plans.append(Plan(EMPTY, SHAPE, "graph", launches=64))
    taken = launches.run(plans=plans)
    found = series.gathered(taken.gpu, taken.rows, taken.provenance)
    assert found.one(EMPTY, "graph").each < found.one(EMPTY, "call").each * 2
    assert found.one(EMPTY, "call").each < found.one(EMPTY, "wait").each
