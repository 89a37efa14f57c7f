"""Recorded hardware counters against the emulator: what the addresses decide must be equal."""

from dataclasses import replace

import pytest

from softmax_lab import KERNELS, findings, ledger, records, registry
from softmax_lab.facts import WARP
from softmax_lab.unrolling import FLOATS, added, added_gemv

SMALL = 32 * 65536
"""Elements, and threads of all rows, that the emulator runs in a moment; more take minutes."""

DATA = ((256, 1024), (250, 1001), (32, 65536))
"""Shapes on which R is known, for the data are ours: all operations are explained as well."""

DECIDED_BY_ADDRESSES = ("load_requests", "load_sectors", "store_requests", "store_sectors")
DECIDED_BY_THE_SOURCE = ("shuffles", "barriers", "shared_requests", "shared_wavefronts")
RECORDED = [
    (name, slug, shape)
    for name in KERNELS
    for slug in records.gpus()
    for shape in sorted(
        {
            (row.rows, row.cols)
            for row in records.table("profile", slug).rows
            if row.kernel == name
            and row.rows * max(row.cols, KERNELS[name].threads_per_row) <= SMALL
        }
    )
]


def test_something_is_recorded():
    assert {shape for _, _, shape in RECORDED} > set(DATA)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "slug", "shape"), RECORDED, ids=lambda value: str(value).replace(", ", "x")
)
def test_hardware_counts_what_the_emulator_counts(name, slug, shape):
    made = replace(ledger.ledger(name, *shape), measured=records.lookup(name, *shape, gpu=slug))
    measured, counted, kernel = made.measured.counts, made.counted, made.kernel
    if shape in DATA:
        assert str(findings.hardware_flops(made)).endswith(", to the unit.")
    if kernel.threads_per_row == WARP:
        # The compiler unrolls the first loop, and lanes that have a trip less than others then
        # leave it early: the one difference there is, and it is known to the unit.
        if kernel.family is registry.GEMV:
            requests, sectors = added_gemv(*shape, vectors=name.endswith("vec4"))
        else:
            requests, sectors = added(*shape, FLOATS)
        counted = replace(
            counted,
            load_requests=counted.load_requests + requests,
            load_sectors=counted.load_sectors + sectors,
        )
    # The compiler moves the loads of a row's maximum and sum, two at most, behind the test for a
    # column to write: warps without one do not load them.
    blocks, _ = kernel.geometry(shape[0])
    busy = shape[0] * min(-(-shape[1] // WARP), -(-kernel.threads_per_row // WARP))
    idle = max(0, blocks * -(-kernel.block // WARP) - busy)  # 0 where a warp has many rows
    for field in DECIDED_BY_ADDRESSES:
        assert getattr(measured, field) == getattr(counted, field), field
    for field in DECIDED_BY_THE_SOURCE:
        hardware, ours = getattr(measured, field), getattr(counted, field)
        if hardware is None:
            continue
        if field == "shared_requests":
            # By opcode: an instruction whose predicate is false in all lanes is executed, too.
            assert hardware >= ours - 2 * idle, field
        elif field == "shared_wavefronts":
            # What L1 had to try again is in it: up to a percent, and not the same each time.
            assert ours - 2 * idle <= hardware <= 1.01 * ours, field
        else:
            assert hardware == ours, field
