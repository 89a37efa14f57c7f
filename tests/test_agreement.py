"""Now against the record, on a made-up GPU: as fast as before, slower in part, or another one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_gpu import CALL, pretend

from softmax_lab import agreement, bench, launches, ledger, records
from softmax_lab.__main__ import main
from softmax_lab.agreement import Disagreement, Pair, Spread
from softmax_lab.launches import COPY, EMPTY, Plan

SHAPE = (64, 256)
PLANS = (
    *(Plan(EMPTY, each, clock) for clock in ("call", "wait") for each in (launches.SMALL,)),
    *(Plan(COPY, SHAPE, clock) for clock in ("call", "wait")),
    Plan(COPY, SHAPE, "graph", pairs=2, launches=8),
)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A made-up GPU whose times of today are recorded; chapters measure now."""
    monkeypatch.setattr(agreement, "SHORT", 0.0)  # its launches take less than any GPU's
    monkeypatch.setenv("SOFTMAX_LAB_DATA", str(tmp_path / "mine"))
    monkeypatch.setattr(records, "__file__", str(tmp_path / "package" / "records.py"))
    monkeypatch.setattr(launches, "run", lambda run=launches.run: run(plans=PLANS))
    device = pretend(monkeypatch)
    bench.run(["naive", "online"], [SHAPE]).save()
    launches.run().save()
    monkeypatch.setenv("SOFTMAX_LAB_LIVE", "1")
    return device


# ------------------------------------------------------------------------------ arithmetic


def spread(median, by=0.0):
    return Spread(median - by, median, median + by)


def test_the_sides_that_face_each_other_and_the_machines_are_allowed():
    assert Pair("s", spread(106, 1), spread(100)).ok
    assert not Pair("s", spread(106), spread(100)).ok
    assert not Pair("s", spread(94), spread(100)).ok
    assert Pair("s", spread(94), spread(100, 1)).ok
    away = Pair("s", Spread(106, 106, 120), Spread(80, 100, 100))  # it spreads the other way
    assert not away.ok and away.tolerance == pytest.approx(5)


def test_room_for_another_host_is_not_the_same_on_both_sides():
    room = {"above": 10, "below": 5}
    verdicts = [Pair("s", spread(now), spread(10), **room).ok for now in (4, 5, 20, 21)]
    assert verdicts == [False, True, True, False]


def test_a_ratio_spreads_as_far_as_both_allow():
    assert Spread(8, 10, 12).over(Spread(4, 5, 6)) == Spread(8 / 6, 2, 3)


# ------------------------------------------------------------------------------ kernels


def test_as_fast_as_recorded_is_fine(toy):
    now = ledger.measure("naive", *SHAPE)
    found = agreement.timed(now)
    assert found.ok and len(found.pairs) == 2
    assert found.pairs[0].off == pytest.approx(0, abs=1e-6)
    assert "agrees with the record of 2026-12-01 10:00 UTC" in str(found)


@pytest.mark.parametrize(("factor", "word"), [(1.2, "% more, "), (0.8, "% less, ")])
def test_another_time_ends_the_cell_with_both_numbers(toy, factor, word):
    then = records.lookup("naive", *SHAPE)
    toy.slower["naive"] = factor
    with pytest.raises(Disagreement) as wrong:
        ledger.ledger("naive", *SHAPE, counted=False)
    said = str(wrong.value)
    assert "naive at 64 × 256 (float32) on toy-gpu disagrees with the record of 2026" in said
    assert f"{1e6 * then.seconds:.3g}" in said.replace("\u202f", " ")
    assert word in said.replace("\u202f", "")
    assert "the copy's time now" in said
    assert "SOFTMAX_LAB_AGREE=0" in said
    ledger.measure("online", *SHAPE)  # the others are judged by themselves


def test_a_short_launch_may_settle_at_another_time(toy, monkeypatch):
    toy.slower["naive"] = 1.18
    with pytest.raises(Disagreement):
        ledger.measure("naive", *SHAPE)
    monkeypatch.setattr(agreement, "SHORT", 1.0)
    assert agreement.timed(ledger.measure("naive", *SHAPE)).ok
    toy.slower["naive"] = 1.4
    with pytest.raises(Disagreement):
        ledger.measure("naive", *SHAPE)


def test_a_machine_that_is_slower_throughout_keeps_the_ratio(toy):
    toy.slower |= {"naive": 1.2, "roof/copy": 1.2}
    found = agreement.timed(ledger.measure("naive", *SHAPE))
    assert [pair.ok for pair in found.pairs] == [False, True]


def test_a_copy_that_is_off_by_itself_leaves_the_time(toy):
    toy.slower["roof/copy"] = 1.2
    found = agreement.timed(ledger.measure("naive", *SHAPE))
    assert [pair.ok for pair in found.pairs] == [True, False]


def test_what_the_record_does_not_hold_is_not_compared(toy, monkeypatch):
    toy.slower["naive"] = 3
    run = ledger.measure("naive", 32, 256)  # a shape that nobody recorded
    assert run.seconds and agreement.timed(run) is None
    off = bench.measure("naive", *SHAPE)
    assert not agreement.timed(off).ok
    assert agreement.timed(replace(off, level="L2")) is None
    assert agreement.timed(replace(off, gpu="some-gpu")) is None
    assert agreement.timed(replace(off, provenance={"protocol": "another"})) is None
    pretend(monkeypatch, name="Another GPU").slower["naive"] = 3
    assert ledger.measure("naive", *SHAPE).gpu == "another-gpu"


def test_other_source_is_not_compared(toy, monkeypatch):
    toy.slower["naive"] = 3
    monkeypatch.setattr(records, "fingerprint", lambda *each: "changed since")
    assert ledger.measure("naive", *SHAPE).seconds


def test_the_switch_measures_without_comparing(toy, monkeypatch):
    toy.slower["naive"] = 3
    monkeypatch.setenv("SOFTMAX_LAB_AGREE", "0")
    assert ledger.measure("naive", *SHAPE).seconds


def test_a_record_is_read_and_not_compared(toy, monkeypatch):
    toy.slower["naive"] = 3
    monkeypatch.setenv("SOFTMAX_LAB_LIVE", "0")
    assert ledger.measure("naive", *SHAPE) == records.lookup("naive", *SHAPE)


# ------------------------------------------------------------------------------ readings


def test_the_same_clocks_agree(toy):
    found = agreement.read(ledger.readings())
    assert len(found) == len(PLANS) and all(each.ok for each in found)


def test_a_host_that_takes_twice_as_long_is_another_host_and_no_more(toy, monkeypatch):
    monkeypatch.setattr("fake_gpu.CALL", 1.9 * CALL)
    ledger.readings()
    monkeypatch.setattr("fake_gpu.CALL", 3 * CALL)
    with pytest.raises(Disagreement, match="clock “call”, on toy-gpu disagrees"):
        ledger.readings()


def test_a_graph_on_a_slower_gpu_is_named_and_the_others_are_not(toy):
    toy.slower[COPY] = 2.5
    with pytest.raises(Disagreement) as wrong:
        ledger.readings()
    named = [line for line in str(wrong.value).splitlines() if "disagrees" in line]
    assert len(named) == 1
    assert named[0].startswith("8 × roof/copy at 64 × 256 over 2 pairs, clock “graph”")


def test_readings_of_another_gpu_or_protocol_are_not_compared(toy, monkeypatch):
    monkeypatch.setattr("fake_gpu.CALL", 9 * CALL)
    monkeypatch.setattr(launches, "PROTOCOL", "another")
    assert agreement.read(ledger.readings()) == ()


# ------------------------------------------------------------------------------ the command


def test_the_command_says_how_far_and_fails_where_it_is_too_far(toy, capsys):
    ask = ["agree", "--kernels", "naive,online", "--shapes", "64x256,32x256"]
    assert main(ask) == 0
    assert "2 of 4 runs have a record" in capsys.readouterr().out
    toy.slower["online"] = 1.5
    assert main(ask) == 1
    first, second, _ = capsys.readouterr().out.splitlines()
    assert first.startswith("OFF  online at 64 × 256")
    assert second.startswith("ok   naive")


# ------------------------------------------------------------------------------ what is published


def test_the_published_record_agrees_with_itself():
    runs = records.timed(["naive", "warp"])
    assert runs
    assert agreement.report(runs)[1]
    off = [replace(run, seconds=1.4 * run.seconds, p20=1.4 * run.p20) for run in runs]
    assert not agreement.report(off)[1]


def test_the_published_record_is_of_todays_protocols():
    """Else nothing that is measured now would be compared with it."""
    for kind, protocol in (("bench", bench.PROTOCOL), ("clock", launches.PROTOCOL)):
        runs = records.table(kind, "nvidia-h200").runs.values()
        assert {run["protocol"] for run in runs} == {protocol}


@pytest.mark.gpu
def test_on_a_gpu_two_runs_agree():
    lines, agreed = agreement.report(
        bench.run(["naive", "warp"], [(256, 1024), (65536, 1024)]).runs()
    )
    assert agreed, lines
