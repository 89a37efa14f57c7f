"""What was at work: shares and times that follow from the counters, and what is said of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from softmax_lab import counters, facts, ledger, waits
from softmax_lab.caches import FROM_DRAM
from softmax_lab.machine import INSTRUCTIONS
from softmax_lab.units import MISSING, SPACE, number, percent

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
    busiest = cells.pop(table.heads.index(waits.L1_BUSIEST) - 1)
    assert busiest == percent(run.counters[counters.L1_BUSY] / 100)
    assert cells == [*map(percent, busy.values()), percent(run.copy_seconds / run.seconds)]
    heads = [head for head in table.heads[1:-1] if head != waits.L1_BUSIEST]
    assert heads == [waits.PARTS[part] for part in counters.BUSY]
    older = replace(run, counters={k: v for k, v in run.counters.items() if k != counters.L1_BUSY})
    assert waits.at_work([run, older]).rows[1].count(MISSING) == 1
    assert waits.L1_BUSIEST not in waits.at_work([older]).heads  # nobody has it: no column
    assert "times of" in table.note and "counters of" in table.note
    untimed = waits.at_work([replace(run, seconds=None)])
    assert untimed.heads[-1] != "share of copy" and "05:38" not in untimed.note
    assert MISSING in str(waits.at_work([replace(run, counters={})]))
    assert MISSING in str(waits.at_work([replace(run, gpu="some-gpu")]))


def test_a_share_of_the_copy_is_one_of_rates():
    run = measured("gemv/row_per_warp_vec4", 65536, 1024)  # moves half of what a copy does
    share = float(waits.at_work([run]).rows[0][-1].rstrip("%"))
    assert share == pytest.approx(50 * run.copy_seconds / run.seconds, rel=0.01)


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
    before, after = (measured(n, 65536, 1024).counters for n in ("online", "warp"))
    assert after[counters.L1_BUSY] < before[counters.L1_BUSY] / 2
    wavefronts, sectors = counters.WAVEFRONTS, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
    assert after[wavefronts] < before[wavefronts] / 4 and after[sectors] < before[sectors] / 7


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
    assert starts == ["an answer of L1, L2 or DRAM", "issue of instructions, by its own counter"]
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


# ------------------------------------------------------------------------ how long an answer takes


def test_how_long_an_answer_takes_by_hand(warp):
    about = {"clocks seen": "SM 2000 MHz, memory 1 MHz"}
    run = replace(warp.measured, counters=SEEN, rows=264, cols=1000, provenance=about)
    table = waits.answers(
        [None, run, replace(run, gpu="some-gpu"), replace(run, kernel="block_tree")]
    )
    ((name, *cells),) = table.rows
    assert name.startswith("`warp`, ")
    # 13 clocks an instruction, 800 instructions a row: 32 steps go by fours and by ones
    assert cells == ["32", "64", "40", number(13 * 800 / 40), number(13 * 800 / 40 / 2)]
    assert MISSING in str(waits.answers([None, replace(run, counters={})]))


def measured(name, *shape):
    run = ledger.ledger(name, *shape, counted=False).measured
    if run is None or not run.counters or not run.seconds:
        pytest.skip("not measured")
    return run


def each_answer(name, *shape):
    """How long [ns] a warp waits for one answer, as the table has it."""
    ((*_, ns),) = waits.answers([measured(name, *shape)]).rows
    return float(ns)


def test_the_chapters_words_on_what_holds_the_warp_back_hold(warp):
    """A read takes longer than one load a lane allows and less than four; alone and among thirty
    it takes about as long; schedulers are idle two clocks of five; half of the places are empty."""
    ones, fours = (float(row[2]) for row in waits.in_flight(warp, (1, 4)).rows)
    alone, among = each_answer("warp", 32, 65536), each_answer("warp", 65536, 1024)
    assert ones < alone < among < 1.2 * alone and among < fours
    seen = warp.measured.counters
    assert 55 < seen[counters.ISSUING] < 65
    shares = counters.waited(seen, H200)
    assert shares["long_scoreboard"] > 0.5
    filled = measured("warp_merge", 65536, 1024)
    places = [counters.busy(c, H200)["warps"] for c in (seen, filled.counters)]
    assert places[0] < 0.5 and places[1] > 0.85
    assert 0.9 < filled.counters[INSTRUCTIONS] / seen[INSTRUCTIONS] < 1
    assert 1 < warp.measured.seconds / filled.seconds < 1.7
    assert each_answer("warp_merge", 65536, 1024) > 1.4 * among


def test_the_chapters_words_on_merge_block_and_hint_hold():
    """Four rows to a block gain most on many rows and short ones, nothing or less on few; one
    operator a little on long rows, and costs a quarter on short ones; the hint gains on two shapes
    only, by what DRAM need not hand out again."""
    names = ("warp", "apart/warp_four_rows", "apart/warp_merge_unhinted", "warp_merge")

    def gains(*shape):
        return [a / b for a, b in pairwise(measured_time(name, *shape) for name in names)]

    few, hinted = [(256, 1024), (512, 2048), (32, 65536)], [(65536, 1024), (128, 8192)]
    for shape in few:
        block, operator, hint = gains(*shape)
        assert 0.98 < block < 1.03 and 1.01 < operator < 1.08 and 0.98 < hint < 1.02
    block, operator, hint = gains(65536, 16)
    assert block > 3 and operator < 0.82 and 0.98 < hint < 1.02
    assert gains(128, 8192)[0] < 0.95 and gains(65536, 1024)[0] > 1.08
    for shape in hinted:
        assert gains(*shape)[2] > max(1.05, gains(*shape)[1])
    warp, four, plain, merge = (measured(name, 65536, 1024).counters for name in names)
    assert 1.04 < four[INSTRUCTIONS] / plain[INSTRUCTIONS] < 1.1
    assert plain[INSTRUCTIONS] == merge[INSTRUCTIONS]
    assert merge[FROM_DRAM] < 0.95 * plain[FROM_DRAM]
    assert counters.busy(warp, H200)["warps"] < 0.5 < 0.85 < counters.busy(four, H200)["warps"]
    times = {name: measured_time(name, 65536, 16) for name in names}
    assert min(times, key=times.get) == "apart/warp_four_rows"


def test_equal_blocks_leave_nothing_to_kept_exponentials():
    for shape in ((256, 1024), (250, 1001), (32, 65536), (65536, 1024), (4096, 65536)):
        kept, wide, same = (
            measured_time(name, *shape) for name in ("naive_store", "naive", "apart/naive_32")
        )
        assert kept > 1.25 * same
        assert (kept < wide) == (shape in ((256, 1024), (250, 1001)))


def test_the_walk_for_the_shift_costs_its_share_of_the_instructions():
    for shape in ((256, 1024), (65536, 1024)):
        shifted, plain = (measured(name, *shape) for name in ("naive", "foil/unshifted"))
        more = shifted.counters[INSTRUCTIONS] / plain.counters[INSTRUCTIONS]
        assert 1.12 < more < 1.25
        assert abs(shifted.seconds / plain.seconds - more) < 0.05


def test_the_vector_kernel_lacks_warps_where_rows_forbid_vectors():
    four, plain = (measured(f"gemv/row_per_warp{x}", 65536, 1025) for x in ("_vec4", ""))
    places = [counters.busy(run.counters, H200)["warps"] for run in (four, plain)]
    assert four.seconds > plain.seconds and places[0] < 0.7 and places[1] > 0.85
    assert four.counters[INSTRUCTIONS] < plain.counters[INSTRUCTIONS]
    assert four.counts.load_sectors < plain.counts.load_sectors


def test_the_chapters_words_on_log_softmax_hold():
    """Half the special-function instructions and three quarters of all, at most; gains on few long
    rows, none on short ones."""
    names = ("warp", "log_softmax/online_warp")
    soft, log = (measured(name, 256, 1024).counters for name in names)
    special = f"{counters.OPCODES}.MUFU"
    assert 0.48 < log[special] / soft[special] < 0.52
    assert log[INSTRUCTIONS] / soft[INSTRUCTIONS] < 0.75
    gains = {}
    for shape in ((128, 8192), (65536, 1024), (8192, 128)):
        times = [measured_time(name, *shape) for name in names]
        gains[shape] = times[0] / times[1]
    assert gains[128, 8192] > gains[65536, 1024] > gains[8192, 128] > 1
    assert gains[8192, 128] < 1.1


def measured_time(name, *shape):
    run = ledger.ledger(name, *shape, counted=False).measured
    if run is None or not run.seconds:
        pytest.skip("not measured")
    return run.seconds


def test_the_first_kernel_waits_for_answers_and_keeps_l1_at_work():
    for shape in ((256, 1024), (65536, 1024)):
        seen = measured("naive", *shape).counters
        shares = counters.waited(seen, H200)
        assert shares["long_scoreboard"] > 0.75 and shares["lg_throttle"] < 0.05
        assert seen[counters.L1_BUSY] > 50


def test_most_of_a_short_row_is_the_start_of_its_block():
    """A quarter of the blocks makes it a third of the time; half the steps save far less."""
    names = ("warp", "apart/warp_four_rows", "gemv/row_per_warp")
    for cols in (1, 16):
        one, four, product = (measured_time(name, 65536, cols) for name in names)
        assert 0.28 < four / one < 0.34 and 0 < four - product < (one - four) / 10


def test_the_chapters_words_on_warp_and_block_hold():
    def gain(*shape):
        return measured_time("warp_merge", *shape) / measured_time("block_online", *shape)

    assert max(gain(8192, 128), gain(2048, 512), gain(65536, 1024)) < 0.9
    assert min(gain(256, 1024), gain(128, 8192), gain(32, 65536), gain(4096, 65536)) > 1.2
