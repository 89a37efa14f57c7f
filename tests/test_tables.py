"""Tables and sentences say what the data say, and "not measured yet" where there are none."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from softmax_lab import (
    cost,
    counters,
    findings,
    ledger,
    records,
    reference,
    registry,
    runs,
    tables,
)
from softmax_lab.counts import Counts
from softmax_lab.nvrtc import Compiled
from softmax_lab.records import Measured
from softmax_lab.units import MISSING, number
from softmax_lab.unrolling import Loop

SHAPES = [(256, 1024), (37, 100), (1, 1), (33, 7)]
ABOUT = {"GPU": "NVIDIA H200", "date": "2026-11-30 10:00 UTC", "driver": "580.1", "CUDA": "12.9"}
FLOP = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"


def book(rows=256, cols=1024, **more) -> ledger.Ledger:
    kernel = registry.get("naive")
    executed = ledger.derive("naive", rows, cols)
    made = ledger.Ledger(
        kernel=kernel,
        rows=rows,
        cols=cols,
        phases=(),
        textbook=ledger.derive("naive", rows, cols, form="textbook"),
        executed=executed,
        counted=executed,
        measured=None,
        not_measured="nothing is recorded",
    )
    return replace(made, **more)


def run(rows=256, cols=1024, **more) -> Measured:
    done = ledger.derive("naive", rows, cols)
    seen = Counts(
        load_requests=done.load_requests,
        load_sectors=done.load_sectors,
        store_requests=done.store_requests,
        store_sectors=done.store_sectors,
        l2_sectors=150_000,
        dram_bytes=1_100_000,
    )
    base = {"kernel": "naive", "dtype": "float32", "rows": rows, "cols": cols, "gpu": "nvidia-h200"}
    base |= {"counts": seen, "seconds": 4e-5, "p20": 3.9e-5, "p80": 4.2e-5, "copy_seconds": 2e-6}
    base |= {
        "counters": {FLOP.format("fadd"): 10, FLOP.format("fmul"): 20, FLOP.format("ffma"): 9e6}
    }
    base |= {"provenance": ABOUT, "counters_provenance": ABOUT}
    return Measured(**(base | more))


def column(table, head) -> dict[str, str]:
    at = table.heads.index(head)
    return {row[0]: row[at] for row in table.rows}


@pytest.mark.parametrize("shape", SHAPES)
def test_ledger_shows_the_data_of_each_column(shape):
    here = book(*shape, measured=run(*shape))
    table = tables.ledger(here)
    for head, counts in (
        ("textbook", here.textbook),
        ("executed", here.executed),
        ("counted", here.counted),
    ):
        cells = column(table, head)
        for field in ("flops", "exp", "compare", "load_bytes", "store_bytes", "load_sectors"):
            value = getattr(counts, field)
            if findings.WORDS[field] in cells:
                assert cells[findings.WORDS[field]] == ("–" if value is None else number(value))
            else:
                assert not value
    seen = column(table, "measured")
    assert seen["load sectors"] == number(here.measured.counts.load_sectors)
    assert seen["FLOPs"] == number(30 + 2 * 9e6)
    assert seen["exponentials"] == "–"
    assert seen["L2 sectors"] == number(150_000)
    assert "NVIDIA H200" in table.note
    assert "2026-11-30" in table.note


PROFILED = {
    "launch__registers_per_thread": 31,
    "launch__shared_mem_per_block": 1024 + 256,
    **dict.fromkeys(counters.LOCAL_SECTORS, 6),
}
MADE = Compiled("naive", "sm_90", b"", 30, 128, 0, 0, "", "NVRTC 12.9")


def compiled_part(table) -> dict[str, tuple[str, ...]]:
    ((first, heading),) = table.groups
    assert heading.startswith("as compiled for")
    return {row[0]: row[1:] for row in table.rows[first:]}


def test_registers_shared_memory_and_spills_stand_in_the_ledger():
    seen = run(counters=PROFILED, counters_provenance=ABOUT | {"NVRTC": "13.0"})
    table = tables.ledger(book(measured=seen, compiled=MADE))
    assert compiled_part(table) == {
        "registers of a thread": ("–", "–", "30", "31"),
        "shared memory of a block [B]": ("–", "–", "128", "256"),
        "spills of a thread [B]": ("–", "–", "0", "–"),
        "sectors of spilled values": ("–", "–", "–", "12"),
    }
    assert "what NVRTC 12.9 made for sm_90 when this page was built" in table.note
    assert "the launch that was profiled, made by NVRTC 13.0" in table.note
    assert f"without the {number(1024)} B of shared memory" in table.note


def test_what_was_not_compiled_or_not_profiled_is_not_made_up():
    table = tables.ledger(book(not_compiled="no compiler here"))
    part = compiled_part(table)
    assert part["registers of a thread"] == ("–", "–", "–", MISSING)
    assert part["spills of a thread [B]"] == ("–", "–", "–", "–")
    assert "As compiled: no compiler here." in table.note
    timed = run(counters={}, counters_provenance={})
    table = tables.ledger(book(measured=timed, compiled=MADE))
    assert compiled_part(table)["registers of a thread"] == ("–", "–", "30", MISSING)
    assert f"Measured: hardware counters {MISSING}." in table.note
    assert "profiled" not in table.note


def test_ledger_without_a_record_says_so_in_every_line_hardware_could_fill():
    table = tables.ledger(book())
    seen = column(table, "measured")
    waiting = {name for name, cell in seen.items() if cell == MISSING}
    assert {"FLOPs", "load requests", "load sectors", "L2 sectors", "DRAM bytes [B]"} <= waiting
    assert seen["exponentials"] == "–"
    assert "nothing is recorded" in table.note


def test_a_record_of_times_alone_still_waits_for_its_counters():
    table = tables.ledger(book(measured=run(counts=Counts(), counters={})))
    assert column(table, "measured")["L2 sectors"] == MISSING


@pytest.mark.parametrize("shape", SHAPES)
def test_phases_typeset_the_formula_that_is_evaluated(shape):
    here = book(*shape)
    fields = ["add", "sub", "div", "exp", "compare"]
    table = tables.phases(here, fields)
    for phase in here.kernel.executed:
        cells = [row for row in table.rows if row[0] == phase.name]
        if not cells:
            assert not set(fields) & set(phase.formulas)
            continue
        for field, cell in zip(fields, cells[0][1:], strict=True):
            formula = phase.formulas.get(field)
            assert cell == (rf"\({cost.latex(formula)}\)" if formula else "–")
    assert table.rows[-1][1:] == tuple(number(getattr(here.executed, field)) for field in fields)
    with pytest.raises(ValueError, match="flops"):
        tables.phases(here, ["flops"])


@pytest.mark.parametrize("shape", SHAPES)
def test_differences_add_up_to_executed_minus_textbook(shape):
    here = book(*shape)
    table = tables.textbook_differences(here)
    words = {value: key for key, value in findings.WORDS.items()}
    found: dict[str, float] = {}
    for row in table.rows:
        gap = float(re.sub(r"[^\d−+.]", "", row[4]).replace("−", "-"))
        found[words[row[1]]] = found.get(words[row[1]], 0) + gap
    gaps = {field: gap for field, gap in here.surplus.known().items() if gap}
    assert found == gaps
    assert set(found) == {"add", "compare"}
    assert set(found.values()) == {shape[0]}


def test_a_kernel_that_does_the_textbooks_work_has_no_differences():
    kernel = replace(registry.get("naive"), executed=registry.get("naive").textbook)
    table = tables.textbook_differences(book(kernel=kernel))
    assert not table.rows
    assert "exactly" in table.note


def test_agreement_is_read_off_the_data():
    said = str(findings.agreement(book(measured=run())))
    assert "Derived and counted are equal in all" in said
    assert "GPU's own counters are equal in all 4 counts" in said
    counted = replace(book().executed, load_sectors=5)
    said = str(findings.agreement(book(counted=counted)))
    assert f"they differ in load sectors ({number(786432)} against 5)" in said
    assert MISSING in said
    seen = replace(run().counts, store_sectors=7)
    said = str(findings.agreement(book(measured=run(counts=seen))))
    assert f"they differ in store sectors ({number(262144)} against 7)" in said


def test_hardware_flops_are_those_of_the_counters():
    said = str(findings.hardware_flops(book(measured=run())))
    assert number(18_000_030) in said
    assert f"{number(18_000_030 / 1_048_576)}×" in said
    assert MISSING in str(findings.hardware_flops(book()))
    assert MISSING in str(
        findings.hardware_flops(book(measured=run(counters={FLOP.format("fadd"): 1})))
    )


def test_sectors_per_request_in_all_columns():
    said = str(findings.sectors_per_request(book(measured=run())))
    assert said.count(": 32.") == 3
    assert "12.5%" in said
    assert f"GPU: {MISSING}" in str(findings.sectors_per_request(book()))


@pytest.mark.parametrize(
    ("dram", "words"),
    [(1_000_000, "still in L2"), (2_200_000, "catch the waste"), (4_000_000, "pays for the rest")],
)
def test_levels_are_judged_by_the_numbers(dram, words):
    seen = replace(run().counts, dram_bytes=dram)
    assert words in str(findings.levels(book(measured=run(counts=seen))))
    assert MISSING in str(findings.levels(book()))


def test_a_seam_now_and_then_is_no_waste_to_catch():
    def said(load_sectors):
        seen = replace(run().counts, dram_bytes=2_200_000)
        made = book(measured=run(counts=seen))
        near = replace(made.executed, load_sectors=load_sectors, store_sectors=0)
        return str(findings.levels(replace(made, executed=near)))

    asked = book().executed.bytes / 32
    assert "Nothing is wasted" in said(asked)
    assert "Hardly anything is wasted" in said(1.01 * asked)
    assert "catch the waste" in said(1.25 * asked)


def test_row_lengths_set_the_model_beside_the_count():
    table = tables.row_lengths((1, 7, 1024), lambda n: ledger.derive("naive", 32, n))
    assert [row[1] for row in table.rows] == ["4", "28", "32"]
    assert [row[2] for row in table.rows] == ["4", "28", "32"]
    assert [row[3] for row in table.rows] == ["100%", "14.3%", "12.5%"]
    wrong = tables.row_lengths((8,), lambda n: Counts(load_sectors=6, load_requests=2))
    assert wrong.rows[0][1:3] == ("32", "3")  # a count is shown as it is, not as it should be


def test_shift_shows_what_goes_wrong_without_it():
    rows = {"one": [89.0, 0.0], "sum": [85.0] * 1024, "none": [-104.0, -105.0]}
    table = tables.shift(rows, reference.unshifted, reference.softmax)
    without, shifted = column(table, "without the shift"), column(table, "with the shift")
    assert without == {"one": "NaN, 0", "sum": "0, 0, 0, …", "none": "NaN, NaN"}
    assert "NaN" not in "".join(shifted.values())


def test_headline_and_opening_come_from_registry_and_file():
    kernel = registry.get("naive")
    said = str(tables.headline("naive"))
    assert f"{kernel.rows_per_block} rows per block, 1 thread per row" in said
    assert "compute capability 7.5" in said
    table = tables.opening("naive")
    assert [row[0] for row in table.rows] == ["Idea", "Launch", "Traffic", "Source"]
    for row in table.rows:
        assert f"// {row[0]}: {row[1]}" in kernel.path.read_text()


@pytest.mark.parametrize("name", ["roof/copy", "roof/empty"])
def test_a_roof_deals_no_rows_and_says_so(name):
    said = str(tables.headline(name))
    assert "no block and no thread has a row of its own" in said
    assert f"{registry.get(name).block} threads in a block" in said
    assert "per block" not in said


def test_times_beside_the_copy_kernels():
    table = runs.times([None, run(seconds=None), run()])
    ((shape, median, spread, rate, share),) = table.rows
    assert shape.replace("\u00a0", " ") == f"256 × {number(1024)}"
    assert (median, spread, share) == ("40", "39 – 42", "5%")
    assert rate == number(8 * 256 * 1024 / 4e-5 / 1e9)
    assert "NVIDIA H200, 2026-11-30" in table.note
    assert MISSING in str(runs.times([None]))
    narrow = runs.times([run(seconds=0.0153685942, p20=0.0153670666, p80=0.015368852)])
    assert narrow.rows[0][1:3] == ("15\u202f369", "15\u202f367 – 15\u202f369")


@pytest.mark.slow
def test_no_recorded_spread_is_hidden():
    def value(text: str) -> float:
        return float(text.replace("\u202f", ""))

    table = records.table("bench", "nvidia-h200")
    timed = [row for row in table.rows if row.method == "graph"]
    known = [ledger.measure(row.kernel, row.rows, row.cols) for row in timed]
    for run_, (_, median, spread, *_) in zip(known, runs.times(known).rows, strict=True):
        low, high = map(value, spread.split(" – "))
        assert low <= value(median) <= high
        assert high - low == pytest.approx(1e6 * (run_.p80 - run_.p20), rel=1), spread
        assert (low == high) == (run_.p20 == run_.p80), spread


def test_against_copy_and_provenance():
    said = str(runs.against_copy(run()))
    assert "5% of the copy's rate" in said
    assert "20× slower" in said
    assert MISSING in str(runs.against_copy(None))
    assert MISSING in str(runs.against_copy(run(copy_seconds=None)))
    assert str(runs.provenance(run())) == (
        "NVIDIA H200, 2026-11-30 10:00 UTC, driver 580.1, CUDA 12.9."
    )
    assert MISSING in str(runs.provenance(None))


def test_tables_and_figures_name_every_run_that_they_show():
    later = ABOUT | {"date": "2026-12-01 10:00 UTC"}
    both = run(counters_provenance=later)
    assert runs.origin([both], ["times"], brief=True) == "NVIDIA H200, 2026-11-30 10:00 UTC"
    assert runs.origin([both], ["counters"], brief=True) == "NVIDIA H200, 2026-12-01 10:00 UTC"
    assert runs.origin([both], ["times", "counters"]) == (
        "NVIDIA H200, times of 2026-11-30 10:00 UTC, counters of 2026-12-01 10:00 UTC, "
        "driver 580.1, CUDA 12.9"
    )
    assert runs.origin([run(), run()], ["times", "counters"], brief=True) == (
        "NVIDIA H200, 2026-11-30 10:00 UTC"
    )
    other = run(provenance={"GPU": "Tesla T4", "date": "2026-12-02 10:00 UTC"})
    assert runs.origin([run(), None, other], ["times"], brief=True) == (
        "NVIDIA H200, times of 2026-11-30 10:00 UTC; Tesla T4, times of 2026-12-02 10:00 UTC"
    )
    assert runs.origin([run(seconds=None, counters_provenance={})], ["times", "counters"]) == ""
    table = runs.times([run(), run(provenance=later)])
    assert "2026-11-30" in table.note and "2026-12-01" in table.note


def test_the_clock_of_a_run_is_the_highest_seen():
    seen = {"clocks seen": "SM 1755–1980 MHz, memory 3201 MHz"}
    assert runs.sm_clock(run(provenance=seen)) == 1980e6
    assert runs.sm_clock(run(provenance={"clocks seen": "SM 1980 MHz, memory 3201 MHz"})) == 1980e6
    assert runs.sm_clock(run(provenance={"clocks seen": "unknown"})) is None


def test_accuracy_takes_what_is_allowed_apart():
    x = reference.inputs("normal", 4, 64)
    y = reference.softmax(x).astype("f4")
    verdict = reference.compare(y, x)
    said = str(findings.accuracy(y, x))
    assert f"differs by {number(verdict.worst * verdict.allowed)} of its value" in said
    depth = x[verdict.row].max() - x[verdict.row, verdict.col]
    assert f"8 for the operations outside the sum, {number(float(depth))} since" in said
    assert "and 32 for a sum of 64 terms" in said
    assert f"only {number(100 * verdict.worst)}% of what is allowed" in said
    assert "times the error allowed" in str(findings.accuracy(y * 1.1, x))


def test_resources_are_what_the_compiler_reports():
    def compiled(kernel, arch):
        assert kernel is registry.get("naive")
        made = {"registers": int(arch[3:]), "shared_bytes": 0, "spill_bytes": 8}
        return SimpleNamespace(**made, compiler="NVRTC 1.2")

    table = runs.resources("naive", compiled, ("sm_75", "sm_90"))
    assert table.rows == (
        ("sm_75", "75", "64", "0", "8", "24 of 32", "registers"),
        ("sm_90", "90", "32", "0", "8", "20 of 64", "registers"),
    )
    assert table.note.startswith("Compiled by NVRTC 1.2 when this page was built.")

    def broken(kernel, arch):
        raise RuntimeError("no NVRTC here")

    assert "no NVRTC here" in str(runs.resources("naive", broken, ("sm_90",)))


def test_instructions_are_counted_in_what_the_compiler_wrote():
    text = "\n".join(["  shfl.sync.bfly.b32 %r1, %r2;", "@%p1 shfl.sync.bfly.b32 %r3, %r4;"])
    text += "\n\tst.global.cs.f32 [%rd1], %f1;\n// st.global.f32 in a comment"

    def compiled(kernel):
        assert kernel is registry.get("naive")
        return SimpleNamespace(ptx=text, compiler="NVRTC 1.2", arch="sm_90")

    said = str(runs.instructions("naive", compiled, ("shfl", "st.global")))
    assert "naive for sm_90 holds shfl.sync.bfly.b32 2 times and st.global.cs.f32 1 time" in said
    assert "nothing that begins with ex2" in str(runs.instructions("naive", compiled, ("ex2",)))

    def broken(kernel):
        raise RuntimeError("no NVRTC here")

    assert "no NVRTC here" in str(runs.instructions("naive", broken, ("shfl",)))


def test_every_count_has_a_name_for_readers():
    assert set(findings.WORDS) == {*Counts.__dataclass_fields__, "flops"}
    assert len(set(findings.WORDS.values())) == len(findings.WORDS)


def test_shift_takes_arrays():
    table = tables.shift({"a": np.zeros(2)}, reference.unshifted, reference.softmax)
    assert table.rows[0][1] == "0, 0"


def test_what_an_unrolled_loop_adds_is_said_to_the_unit():
    even, odd = (
        ledger.ledger("warp", *shape, counted=False) for shape in ((256, 1024), (250, 1001))
    )
    for book in (even, odd):
        if book.measured is None:
            pytest.skip("not measured yet")
    assert "0 load requests and 0 sectors more" in str(findings.unrolled(even))
    assert "750 load requests and 657 sectors more" in str(findings.unrolled(odd))
    assert str(findings.unrolled(odd)).endswith("the difference, to the unit.")
    assert str(findings.unrolled(odd, Loop((2, 1)))).endswith("not the difference.")


def test_a_record_without_counters_says_nothing_of_unrolling():
    timed = Measured("warp", "float32", 250, 1001, "nvidia-h200", seconds=1e-5)
    bare = replace(ledger.ledger("warp", 250, 1001, counted=False), measured=timed)
    assert MISSING in str(findings.unrolled(bare))
    assert "difference" not in str(findings.unrolled(bare))
