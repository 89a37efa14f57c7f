"""What the caches kept and what they passed on, as hardware counted it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from softmax_lab.counters import BETWEEN_HALVES, COUNTED, wavefronts_of_a_request
from softmax_lab.facts import BANKS, ITEMSIZE, SECTOR, WARP
from softmax_lab.ledger import Ledger
from softmax_lab.prose import Sentence, Table, names, say
from softmax_lab.records import Measured
from softmax_lab.runs import provenance, shape
from softmax_lab.units import MISSING, number, percent, times

HIT_RATE = "l1tex__t_sector_hit_rate.pct"
FOR_L1 = {
    "read": "lts__t_sectors_srcunit_tex_op_read.sum",
    "write": "lts__t_sectors_srcunit_tex_op_write.sum",
}
AT_L2 = {"read": "lts__t_sectors_op_read.sum", "write": "lts__t_sectors_op_write.sum"}
FROM_DRAM = "dram__bytes_read.sum"


def hits(book: Ledger) -> Sentence:
    """What of the bytes at L1 came from L2, and what of them went on to it."""
    seen = book.measured.counters if book.measured else {}
    needed = (*COUNTED["load_sectors"], *COUNTED["store_sectors"], *FOR_L1.values(), HIT_RATE)
    if not all(name in seen for name in needed):
        return say(f"What L1 kept: {MISSING}.")
    loads, stores, came, sent = (SECTOR * seen[name] for name in needed[:4])
    return say(
        "Of the {loads:B} that loads move at L1, {came:B} came from L2, {times:×} the matrix; "
        "for the other {kept:%} L1 had the sector already. Of the {stores:B} that stores move, "
        "{sent:B} went on to L2. The profiler's hit rate of L1, {rate:%}, is of loads and stores "
        "together.",
        loads=loads,
        came=came,
        times=came / _matrix(book.measured),
        kept=1 - came / loads,
        stores=stores,
        sent=sent,
        rate=seen[HIT_RATE] / 100,
    )


def fetched(run: Measured | None) -> dict[str, float | None]:
    """How many times over L1 had the matrix from L2 (see `predictions`), as measured."""
    seen = run.counters.get(FOR_L1["read"]) if run is not None else None
    return {"measured": seen and SECTOR * seen / _matrix(run)}


def _matrix(run: Measured) -> int:
    """Bytes of a run's matrix [B]."""
    return ITEMSIZE[run.dtype] * run.rows * run.cols


def joined(books: Sequence[Ledger]) -> Sentence:
    """Store sectors that kernels count at L1, and the share of them that L1 sent on to L2."""
    said = []
    for book in books:
        seen = book.measured.counters if book.measured else {}
        here = [seen.get(name) for name in (*COUNTED["store_sectors"], FOR_L1["write"])]
        if None not in here:
            words = "{sent} of {stored} of `{kernel}`"
            values = {"stored": here[0], "sent": here[1], "kernel": book.kernel.symbol}
            said.append(say(words, **values).words)
    if not said:
        return say(f"What L1 sends on of stored sectors: {MISSING}.")
    return say(
        "On {shape}, of the sectors that stores move at L1 it sends on to L2 {said}.",
        shape=shape(books[0].rows, books[0].cols),
        said=names(said),
    )


def reread(runs: Sequence[Measured | None]) -> Table | Sentence:
    """How many times over the matrix was read from L2 and from DRAM, a run a row: once is the
    least, each walk once is the most where sectors are used whole."""
    rows, shown = [], []
    for run in filter(None, runs):
        seen = run.counters
        if FOR_L1["read"] in seen and FROM_DRAM in seen:
            shown.append(run)
            cells = (fetched(run)["measured"], seen[FROM_DRAM] / _matrix(run))
            rows.append((f"`{run.kernel}`, {shape(run.rows, run.cols)}", *map(times, cells)))
    if not rows:
        return say(f"How often the matrix was read: {MISSING}.")
    heads = ("kernel", "read from L2 [matrices]", "read from DRAM [matrices]")
    note = f"Bytes over those of the matrix. {provenance(*shown, of=('counters',))}"
    return Table(heads, tuple(rows), frozenset((1, 2)), note=note)


def banks(runs: Sequence[Measured | None]) -> Table | Sentence:
    """Lanes that want the fullest bank of L1 where each lane walks a row of its own, if floats lie
    in its banks in turn, beside the wavefronts that a request took; a run a row."""
    rows, shown = [], []
    for run in filter(None, runs):
        if (counted := wavefronts_of_a_request(run.counters)) is None:
            continue
        shown.append(run)
        meet = Counter(lane * run.cols % BANKS for lane in range(WARP))
        name = f"`{run.kernel}`, {shape(run.rows, run.cols)}"
        rows.append((name, number(len(meet)), number(max(meet.values())), number(counted)))
    if not rows:
        return say(f"What L1 needs for a request: {MISSING}.")
    heads = ("kernel", "banks in use", "lanes in the fullest", "wavefronts of a request")
    note = f"Banks: derived. Wavefronts: {provenance(*shown, of=('counters',))}"
    return Table(heads, tuple(rows), frozenset((1, 2, 3)), note=note)


def beyond_l1(runs: Sequence[Measured | None]) -> Table | Sentence:
    """What L2 counts beyond the traffic for L1: of writes as a share of what L1 sent, of reads as a
    share of what DRAM gave; and beside it what L2's halves asked of each other, where that was
    counted."""
    found = [(run, parts) for run in filter(None, runs) if (parts := _beyond(run.counters))]
    if not found:
        return say(f"What L2 moves beyond the traffic for L1: {MISSING}.")
    counted = any(BETWEEN_HALVES in run.counters for run, _ in found)
    rows = []
    for run, (*moved, writes, reads) in found:
        if counted:
            moved += [moved[0] - moved[1], run.counters.get(BETWEEN_HALVES)]
        megabytes = (number(each and SECTOR * each / 1e6) for each in moved)
        name = f"`{run.kernel}`, {shape(run.rows, run.cols)}"
        rows.append((name, *megabytes, percent(writes), percent(reads)))
    halves = ("beyond [MB]", "between L2's halves [MB]") if counted else ()
    heads = ("kernel", "L2 [MB]", "for L1 [MB]", *halves, "writes beyond", "reads beyond")
    note = (
        "Beyond: sectors that L2 counts and L1 did not ask for or send. Writes as a share of what "
        f"L1 sent, reads as a share of what DRAM gave. {provenance(*runs, of=('counters',))}"
    )
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))), note=note)


def _beyond(seen: Mapping[str, float]) -> tuple[float, float, float, float] | None:
    """Sectors at L2, those of them for L1, and the shares of writes and of reads beyond."""
    if not all(name in seen for name in (*FOR_L1.values(), *AT_L2.values(), FROM_DRAM)):
        return None
    extra = {way: seen[AT_L2[way]] - seen[FOR_L1[way]] for way in AT_L2}
    return (
        sum(seen[name] for name in AT_L2.values()),
        sum(seen[name] for name in FOR_L1.values()),
        extra["write"] / seen[FOR_L1["write"]],
        extra["read"] * SECTOR / seen[FROM_DRAM],
    )
