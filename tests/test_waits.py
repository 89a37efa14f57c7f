"""What was at work: shares and times that follow from the counters, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from softmax_lab import counters, facts, ledger, waits
from softmax_lab.machine import INSTRUCTIONS
from softmax_lab.units import MISSING, SPACE, percent

H200 = facts.GPUS["nvidia-h200"]


@pytest.fixture
def warp() -> ledger.Ledger:
    made = ledger.ledger("warp", 65536, 1024, counted=False)
    if made.measured is None:
        pytest.skip(made.not_measured)
    return made


def test_shares_are_those_of_the_counters(warp):
    run = warp.measured
    table = waits.at_work([None, run])
    ((name, *cells),) = table.rows
    assert name.startswith("`warp`")
    busy = counters.busy(run.counters, H200)
    assert cells == [*map(percent, busy.values()), percent(run.copy_seconds / run.seconds)]
    assert table.heads[1:-1] == tuple(waits.PARTS[part] for part in counters.BUSY)
    assert "times of" in table.note and "counters of" in table.note
    untimed = waits.at_work([replace(run, seconds=None)])
    assert untimed.rows[0][-1] == MISSING and "05:38" not in untimed.note
    assert MISSING in str(waits.at_work([replace(run, counters={})]))
    assert MISSING in str(waits.at_work([replace(run, gpu="some-gpu")]))


def test_issuing_takes_a_clock_an_instruction(warp):
    clock = 2e9
    run = replace(
        warp.measured,
        counters={INSTRUCTIONS: 132 * 4 * clock * 1e-3},
        provenance={"clocks seen": "SM 2000 MHz, memory 1 MHz"},
    )
    assert f"that would take 1{SPACE}ms" in str(waits.issuing(run))
    assert MISSING in str(waits.issuing(None))
    assert MISSING in str(waits.issuing(replace(run, counters={})))


def test_bytes_on_their_way_by_hand(warp):
    seen = {"sm__warps_active.avg.pct_of_peak_sustained_active": 50}
    copied = 8 * 65536 * 1024 / 4e12  # the copy at 4 TB/s
    run = replace(warp.measured, counters=seen, copy_seconds=copied)
    table = waits.in_flight(replace(warp, measured=run), (1, 4))
    # 32 warps of 132 multiprocessors with 128 bytes each: 0.541 MB, for 135 ns at 4 TB/s
    assert table.rows == (("1", "0.541", "135"), ("4", "2.16", "541"))
    assert "32 warps on each of 132" in table.note
    assert MISSING in str(waits.in_flight(replace(warp, measured=None), (1,)))


def test_the_chapters_words_on_what_was_at_work_hold(warp):
    """One thread a row keeps nothing busy; one warp a row everything more, and nothing full."""
    rows = {}
    for name in ("naive", "online"):
        for shape in ((256, 1024), (65536, 1024)):
            run = ledger.ledger(name, *shape, counted=False).measured
            rows[name, shape] = counters.busy(run.counters, H200)
    assert all(share < 0.25 for busy in rows.values() for share in busy.values())
    busy = counters.busy(warp.measured.counters, H200)
    before = rows["online", (65536, 1024)]
    assert all(busy[p] > 1.9 * before[p] for p in ("warps", "issue", "special", "DRAM"))
    assert all(share < 0.65 for share in busy.values())
    assert 0.4 < busy["warps"] < 0.5
