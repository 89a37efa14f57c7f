"""What the GPU executed: predictions from counters, right to the unit where they say so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from softmax_lab import KERNELS, findings, ledger, machine
from softmax_lab.counters import OPCODES
from softmax_lab.units import MISSING, number


def book(name, rows=256, cols=1024, counted=False) -> ledger.Ledger:
    made = ledger.ledger(name, rows, cols, counted=counted)
    if made.measured is None:
        pytest.skip(made.not_measured)
    return made


def altered(made: ledger.Ledger, name: str, value: float) -> ledger.Ledger:
    run = replace(made.measured, counters={**made.measured.counters, name: value})
    return replace(made, measured=run)


def without_record(name) -> ledger.Ledger:
    return replace(ledger.ledger(name, 8, 8, counted=False), measured=None)


def test_branches_are_named_phase_by_phase():
    said = str(machine.branches(book("naive")))
    assert said.startswith("Branches met by warps, 8: 8 in the phase “guard”")
    assert f"executed: {number(12888)}." in said
    said = str(machine.branches(book("online")))
    assert f"{number(8200)}: 8 in the phase “guard”" in said
    assert f"and {number(8192)} in the phase “online pass”" in said
    assert f"executed: {MISSING}." in str(machine.branches(without_record("naive")))


@pytest.mark.parametrize("name", KERNELS)
def test_ten_flops_an_exponential_and_ten_a_division_explain_the_hardware(name):
    """The expansion that the text states is that of the launch, to the unit; `test_hardware.py` has
    the other recorded launches on data of ours."""
    made = book(name, counted=True)
    assert str(findings.hardware_flops(made)).endswith(", to the unit.")


def test_a_logarithm_is_named_where_there_is_one_and_only_there():
    said = str(findings.hardware_flops(book("log_softmax/online_warp", counted=True)))
    assert "10 for an exponential and 24 for a logarithm" in said and "division" not in said
    said = str(findings.hardware_flops(book("naive")))
    assert "10 for an exponential and 10 for a division:" in said and "logarithm" not in said


def test_flops_that_do_not_add_up_are_said_to_be_apart():
    name = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"
    made = book("naive")
    off = altered(made, name, made.measured.counters[name] + 1)
    assert str(findings.hardware_flops(off)).endswith(", which is not the GPU's number.")


def test_a_column_of_a_warp_by_hand():
    made = book("naive", counted=True)
    table = machine.per_column([made, without_record("online")])
    ((name, asked, special, executed, *rest),) = table.rows
    assert (name, asked, special) == ("`naive`", "3", "3")
    seen = made.measured.counters
    assert executed == number(seen[machine.INSTRUCTIONS] / (8 * 1024))
    assert rest == ["0", "0"]
    assert made.measured.counters_provenance["date"] in table.note
    assert made.measured.provenance["date"] not in table.note
    assert MISSING in str(machine.per_column([without_record("naive")]))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        *(("online", shape) for shape in [(256, 1024), (250, 1001), (32, 65536), (65536, 1024)]),
        *(("warp", shape) for shape in [(256, 1024), (32, 65536), (65536, 1024)]),
    ],
)
def test_both_sides_in_three_of_four_steps_explain_the_exponentials(name, shape):
    made = book(name, *shape)
    assert str(machine.both_sides(made)).endswith("the number executed, to the unit.")
    assert str(machine.both_sides(made, unroll=2)).endswith("not the number executed.")


def test_one_exponential_off_is_noticed():
    made = book("online")
    opcode = f"{OPCODES}.MUFU"
    off = altered(made, opcode, made.measured.counters[opcode] + 1)
    assert str(machine.both_sides(off)).endswith("not the number executed.")
    assert MISSING in str(machine.both_sides(without_record("online")))


def test_prices_of_instructions_are_solved_for():
    books = [book("warp", *shape) for shape in [(256, 1024), (65536, 1024), (32, 65536)]]
    said = str(machine.price_of_divergence(books))
    assert (
        "60.25 instructions for a step" in said and "12 for a branch that diverges, all in" in said
    )
    assert "3.82% of all instructions" in said
    made_up = [
        altered(made, machine.INSTRUCTIONS, 3 * made.executed.store_requests + 5.1 * made.rows)
        for made in books
    ]
    said = str(machine.price_of_divergence(made_up))
    assert "3 instructions for a step of the two passes, 5.1 for what a row needs" in said
    assert "and 0 for a branch that diverges. On" in said  # not in whole quarters, and not said so
    with pytest.raises(ValueError, match="three shapes, got 2"):
        machine.price_of_divergence(books[:2])
    assert MISSING in str(machine.price_of_divergence([without_record("warp")] * 3))


def test_the_chapters_words_on_the_branch_hold():
    """Nearly as many exponentials and instructions with the branch as without; a quarter of the
    divergence of the source is left in the machine."""
    branch, free = (book(name, counted=True) for name in ("online", "online_branchfree"))
    seen = [made.measured.counters for made in (branch, free)]
    assert 0.9 < seen[0][f"{OPCODES}.MUFU"] / seen[1][f"{OPCODES}.MUFU"] < 1
    assert 0.97 < seen[0][machine.INSTRUCTIONS] / seen[1][machine.INSTRUCTIONS] < 1
    assert 0.2 < seen[0][machine.DIVERGENT] / branch.counted.diverged < 0.3
