"""What L1 kept and L2 counted: every number is a counter's, and the chapters' words hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from softmax_lab import caches, ledger, registry
from softmax_lab.counters import BETWEEN_HALVES
from softmax_lab.facts import ITEMSIZE, SECTOR, WARP
from softmax_lab.units import MISSING, SPACE, number, percent

SHAPES = [(256, 1024), (65536, 1024), (32, 65536), (250, 1001)]


def book(name="naive", rows=256, cols=1024) -> ledger.Ledger:
    made = ledger.ledger(name, rows, cols, counted=False)
    if made.measured is None:
        pytest.skip(made.not_measured)
    return made


def altered(made: ledger.Ledger, **counters: float) -> ledger.Ledger:
    names = {key.replace("__dot__", "."): value for key, value in counters.items()}
    run = replace(made.measured, counters={**made.measured.counters, **names})
    return replace(made, measured=run)


def test_hits_are_read_off_the_counters():
    made = book()
    seen = made.measured.counters
    said = str(caches.hits(made)).replace(SPACE, " ")
    assert "25.2 MB that loads move" in said and "3.15 MB came from L2, 3× the matrix" in said
    assert "87.5% L1 had" in said and "8.39 MB went on to L2" in said
    assert percent(seen[caches.HIT_RATE] / 100) in said
    fewer = altered(made, lts__t_sectors_srcunit_tex_op_read__dot__sum=393_216)
    assert "12.6 MB came from L2, 12× the matrix; for the other 50%" in str(
        caches.hits(fewer)
    ).replace(SPACE, " ")


def test_sectors_that_l1_joins_are_missing_at_l2():
    warp, tree = book("warp", 250, 1001), book("block_tree", 250, 1001)
    stored = number(tree.measured.counts.store_sectors)
    few = altered(tree, lts__t_sectors_srcunit_tex_op_write__dot__sum=9)
    said = str(caches.joined([warp, few]))
    assert f"{stored} of {stored} of warp and 9 of {stored} of block_tree" in said
    assert MISSING in str(caches.joined([replace(warp, measured=None)]))


def test_what_is_not_recorded_is_said_to_be_missing():
    made = book()
    assert MISSING in str(caches.hits(replace(made, measured=None)))
    assert MISSING in str(caches.beyond_l1([None, replace(made.measured, counters={})]))


def test_rereading_is_counted_in_matrices():
    made = book()
    sectors = 2 * ITEMSIZE["float32"] * 256 * 1024 // SECTOR
    run = altered(
        made,
        lts__t_sectors_srcunit_tex_op_read__dot__sum=sectors,
        dram__bytes_read__dot__sum=1.5 * 4 * 256 * 1024,
    ).measured
    table = caches.reread([None, run, replace(run, counters={})])
    assert [row[1:] for row in table.rows] == [("2×", "1.5×")]
    assert MISSING in str(caches.reread([None]))


def test_traffic_beyond_l1_is_a_difference():
    made = book()
    seen = made.measured.counters
    table = caches.beyond_l1([None, made.measured])
    ((name, moved, mine, beyond, halves, writes, reads),) = table.rows
    assert name.startswith("`naive`")
    reading, writing = (seen[caches.AT_L2[way]] for way in ("read", "write"))
    of_l1 = {way: seen[caches.FOR_L1[way]] for way in ("read", "write")}
    assert moved == number(32 * (reading + writing) / 1e6)
    assert mine == number(32 * sum(of_l1.values()) / 1e6)
    assert beyond == number(32 * (reading + writing - sum(of_l1.values())) / 1e6)
    assert halves == number(32 * seen[BETWEEN_HALVES] / 1e6)
    assert writes == percent((writing - of_l1["write"]) / of_l1["write"])
    assert reads == percent(32 * (reading - of_l1["read"]) / seen[caches.FROM_DRAM])
    assert made.measured.counters_provenance["date"] in table.note


def test_without_that_counter_the_halves_stand_nowhere():
    made = book()
    (whole,) = caches.beyond_l1([made.measured]).rows
    counters = {k: v for k, v in made.measured.counters.items() if k != BETWEEN_HALVES}
    older = replace(made.measured, counters=counters)
    table = caches.beyond_l1([older])
    assert "between L2's halves [MB]" not in table.heads
    assert table.rows == ((*whole[:3], *whole[5:]),)
    assert [row[4] for row in caches.beyond_l1([older, made.measured]).rows] == [MISSING, whole[4]]


# naive_store writes y twice and GEMV hardly writes: the chapters say nothing of the kind of them.
TOLD = [kernel.name for kernel in registry.LADDER if kernel.name != "naive_store"]


@pytest.mark.parametrize("name", TOLD)
@pytest.mark.parametrize("shape", SHAPES, ids="{0[0]}x{0[1]}".format)
def test_the_chapters_words_hold_on_every_record(name, shape):
    """Stores go through L1, and L2 counts about half of its traffic twice. A sector that two warps
    of a row write in halves may leave L1 as one, never as less."""
    try:
        run = ledger.measure(name, *shape)
    except LookupError as missing:
        pytest.skip(str(missing))
    seen = run.counters
    stored, asked = seen[caches.FOR_L1["write"]], run.counts.store_sectors
    if registry.get(name).threads_per_row > WARP and shape[1] % 8:
        # Warps of one block share a sector where their parts of a row meet; L1 joins some of these.
        assert shape[0] * shape[1] / 8 < stored < asked
    else:
        assert stored == asked
    *_, writes, reads = caches._beyond(seen)
    assert 0.49 < writes < 0.56
    assert 0.40 < reads < 0.65


@pytest.mark.parametrize("name", ["naive", "online", "warp"])
@pytest.mark.parametrize("shape", [(256, 1024), (65536, 1024)], ids="{0[0]}x{0[1]}".format)
def test_what_lies_beyond_is_what_the_halves_ask_of_each_other(name, shape):
    """Within a tenth, say the chapters."""
    seen = book(name, *shape).measured.counters
    beyond = sum(seen[caches.AT_L2[way]] - seen[caches.FOR_L1[way]] for way in caches.AT_L2)
    assert seen[caches.BETWEEN_HALVES] == pytest.approx(beyond, rel=0.1)


def test_a_walk_of_one_thread_a_row_fetches_each_sector_once():
    """The words on L1 in the chapter on three passes: once a walk on the small matrix."""
    for name, walks in (("naive", 3), ("online", 2)):
        made = book(name)
        assert caches.fetched(made.measured) == {"measured": walks}
    unread = replace(made.measured, counters={})
    assert caches.fetched(unread) == caches.fetched(None) == {"measured": None}


@pytest.mark.parametrize(
    ("shape", "banks", "lanes"),
    [((256, 1024), "1", "32"), ((250, 1001), "32", "1"), ((65536, 8), "4", "8")],
)
def test_lanes_meet_in_banks_as_their_rows_lie(shape, banks, lanes):
    run = book("naive", *shape).measured
    ((_, *derived, counted),) = caches.banks([None, run, replace(run, counters={})]).rows
    assert derived == [banks, lanes]
    if shape[1] & (shape[1] - 1) == 0:  # rows a power of two apart: the banks are all there is
        assert float(counted) == pytest.approx(float(lanes), rel=0.03)
    assert MISSING in str(caches.banks([None]))
