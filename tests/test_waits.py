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


# ------------------------------------------------------------------------------ what warps wait for

SEEN = {
    "sm__warps_active.avg.pct_of_peak_sustained_active": 50,  # 32 warps of 64
    "sm__cycles_active.avg": 1000,
    INSTRUCTIONS: 132 * 1600,  # 32 000 clocks of warps: 20 from one instruction to the next
    **dict.fromkeys(counters.WAITING.values(), 0.4),
    counters.WAITING["long_scoreboard"]: 13,
    counters.ISSUING: 40,
    counters.L1_BUSY: 60,
    counters.L2_BUSY: 7,
    counters.WAVEFRONTS: 132 * 750,
}


def test_what_a_warp_waits_for_by_hand(warp):
    run = replace(warp.measured, counters=SEEN)
    table = waits.waiting([None, run, replace(run, gpu="some-gpu"), replace(run, rows=1)])
    assert len(table.heads) == 3 and table.heads[1].startswith("`warp`, ")
    cells = dict(row[:2] for row in table.rows)
    assert list(cells.values()) == [
        "20",
        *("**65%**", *5 * ["2%"]),  # 13 and 0.4 clocks of 20
        *("20%", "5%"),  # the rest, and one clock
        *("40%", "60%", "0.75", "7%"),
    ]
    assert cells["an answer of L1, L2 or DRAM"] == "**65%**"
    assert [words for _, words in table.groups] == [
        "of that time it waits for",
        "and meanwhile these are busy",
    ]
    starts = [table.rows[at][0] for at, _ in table.groups]
    assert starts == ["an answer of L1, L2 or DRAM", "schedulers, issuing"]
    assert "counters of" not in table.note and "Nov" not in table.note


def test_what_it_waits_for_longest_stands_out(warp):
    run = replace(warp.measured, counters=SEEN)
    other = replace(run, counters=SEEN | {counters.WAITING["lg_throttle"]: 14})
    marked = [
        [row[0] for row in waits.waiting([run, other]).rows if row[column].startswith("**")]
        for column in (1, 2)
    ]
    assert marked == [["an answer of L1, L2 or DRAM"], ["room in the queue of loads and stores"]]


@pytest.mark.parametrize("name", [*counters.WAITING.values(), INSTRUCTIONS])
def test_records_without_the_counters_say_so(warp, name):
    less = replace(warp.measured, counters={k: v for k, v in SEEN.items() if k != name})
    assert str(waits.waiting([less, None])) == f"What the warps waited for: {MISSING}."


@pytest.mark.parametrize(
    "name", [counters.ISSUING, counters.L1_BUSY, counters.L2_BUSY, counters.WAVEFRONTS]
)
def test_a_part_whose_counter_is_missing_is_a_gap(warp, name):
    less = replace(warp.measured, counters={k: v for k, v in SEEN.items() if k != name})
    assert [row[1] for row in waits.waiting([less]).rows].count(MISSING) == 1
