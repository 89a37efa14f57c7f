import numpy as np
import pytest

from softmax_lab import KERNELS, cost, derive
from softmax_lab.cost import Phase, evaluate, latex, value
from softmax_lab.counts import Counts
from softmax_lab.ledger import symbols


@pytest.mark.parametrize(
    ("formula", "symbols", "number", "typeset"),
    [
        ("3*M*N", {"M": 5, "N": 7}, 105, "3MN"),
        ("M*(N - 1)", {"M": 5, "N": 7}, 30, "M(N - 1)"),
        ("ceil(M, W)*N", {"M": 33, "N": 7, "W": 32}, 14, r"\left\lceil M/W \right\rceil N"),
        ("min(1, M % W)", {"M": 64, "W": 32}, 0, r"\min(1, M \bmod W)"),
        ("S(M, N)", {"M": 32, "N": 8, "E": 4}, 256, "S(M, N)"),
        ("S(M, N)", {"M": 32, "N": 8, "E": 2}, 128, "S(M, N)"),
        ("V(M, N)", {"M": 3, "N": 32, "E": 2}, 6, "V(M, N)"),
    ],
)
def test_one_text_is_evaluated_and_typeset(formula, symbols, number, typeset):
    assert value(formula, symbols.__getitem__) == number
    assert latex(formula) == typeset


@pytest.mark.parametrize("formula", ["M / N", "M ** 2", "open('x')", "M.real", "[1]", "ceil(a=M)"])
def test_formulas_hold_arithmetic_only(formula):
    with pytest.raises(ValueError, match="a formula holds"):
        value(formula, {"M": 1, "N": 1}.__getitem__)


def test_a_phase_states_only_counts_with_a_closed_form():
    with pytest.raises(ValueError, match="dram_bytes"):
        Phase("read", {"dram_bytes": "M"})
    with pytest.raises(ValueError, match="flop"):
        Phase("read", {"flop": "M"})


def test_phases_add_up():
    phases = (Phase("a", {"add": "M"}), Phase("b", {"add": "2*M", "exp": "M"}))
    assert evaluate(phases, {"M": 3}.__getitem__).add == 9
    assert evaluate(phases, {"M": 3}.__getitem__).exp == 3
    assert evaluate(phases, {"M": 3}.__getitem__).dram_bytes is None


def test_three_passes_as_the_textbook_has_it():
    # Worklog: M(4N - 1) FLOPs, 2MN exponentials, M(N - 1) comparisons, 16MN bytes, (4N - 1)/16N
    # FLOP/B.
    for rows, cols in ((256, 1024), (3, 1), (37, 100)):
        book = derive("naive", rows, cols, form="textbook")
        assert book.flops == rows * (4 * cols - 1)
        assert book.exp == 2 * rows * cols
        assert book.compare == rows * (cols - 1)
        assert book.bytes == 16 * rows * cols
        assert book.intensity == pytest.approx((4 * cols - 1) / (16 * cols))
        assert book.load_sectors is None


def test_an_exponential_counted_as_an_operation_changes_the_ratio():
    book = derive("naive", 256, 1024, form="textbook")
    assert (book.flops + book.exp) / book.bytes == pytest.approx(0.375, abs=1e-4)
    assert book.intensity == pytest.approx(0.25, abs=1e-4)


def test_kept_exponentials_cost_bytes():
    # Worklog section 2, [OPS] V1: five sweeps, MN exponentials, 3MN operations of which MN are in
    # double.
    rows, cols = 256, 1024
    did = derive("naive_store", rows, cols)
    assert did.bytes == 20 * rows * cols
    assert (did.exp, did.flops, did.f64) == (rows * cols, 2 * rows * cols, rows * cols)
    assert (did.flops + did.f64) / did.bytes == 0.15
    book = derive("naive_store", rows, cols, form="textbook")
    assert book.flops + book.f64 == 3 * rows * cols - rows


def test_textbook_of_gemv():
    # R01: y = A x, A 1000 x 500: 2MN FLOPs, each element once, 0.49850 FLOP/B.
    book = derive("gemv/row_per_thread", 1000, 500, form="textbook")
    assert (book.flops, book.bytes) == (1_000_000, 2_006_000)
    assert book.intensity == pytest.approx(0.49850, abs=5e-6)


def test_one_sector_a_lane_four_a_warp_sixteen_for_512_bytes():
    # Worklog section 4, for A alone: 32 sectors a request, then 4, then 16 for 512 bytes.
    found = {}
    for name in ("row_per_thread", "row_per_warp", "row_per_warp_vec4"):
        did, x = derive(f"gemv/{name}", 256, 1024), "A"
        (phase,) = (p for p in KERNELS[f"gemv/{name}"].executed if p.name == x)
        A = evaluate((phase,), symbols(KERNELS[f"gemv/{name}"], {"rows": 256, "cols": 1024}))
        found[name] = (A.load_sectors / A.load_requests, A.load_efficiency)
        assert did.load_bytes == 2 * 4 * 256 * 1024
    assert list(found.values()) == [(32, 1 / 8), (4, 1), (16, 1)]
    # The whole kernel, x included: 33MN bytes at L1 against 8MN.
    apart, beside = (derive(f"gemv/{n}", 256, 1024).load_sectors for n in list(found)[:2])
    assert apart / beside == 33 / 8


def test_naive_on_the_h200_prototype_shape():
    # Nsight Compute on an H200, 256 x 1024: 24 576 load requests, 786 432 load sectors, 262 144
    # store sectors.
    did = derive("naive", 256, 1024)
    assert (did.load_requests, did.load_sectors) == (24_576, 786_432)
    assert (did.store_requests, did.store_sectors) == (8_192, 262_144)
    assert did.load_efficiency == 1 / 8


def test_starting_from_nothing_costs_one_step_a_row():
    surplus = derive("naive", 256, 1024) - derive("naive", 256, 1024, form="textbook")
    assert (surplus.add, surplus.compare, surplus.flops, surplus.bytes) == (256, 256, 256, 0)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_empty_matrices_cost_nothing(shape):
    # N10: counters of an empty matrix are 0, not an exception.
    for form in ("executed", "textbook"):
        counts = derive("naive", *shape, form=form)
        assert counts.flops == counts.bytes == counts.exp == counts.compare == 0


def test_derive_refuses_nonsense():
    with pytest.raises(ValueError, match="no kernel 'nave'; there are naive"):
        derive("nave", 4, 4)
    with pytest.raises(ValueError, match="form is one of"):
        derive("naive", 4, 4, form="book")
    with pytest.raises(ValueError, match="rows must be in"):
        derive("naive", -1, 4)
    with pytest.raises(ValueError, match="cols must be in"):
        derive("naive", 1, 2**31)
    with pytest.raises(ValueError, match="rows, cols"):
        derive("naive", 4)
    with pytest.raises(TypeError, match=r"cols must be an integer, got 4\.5"):
        derive("naive", 4, 4.5)
    with pytest.raises(TypeError, match="x must be float32, got float64"):
        derive("naive", np.zeros((2, 2)))
    with pytest.raises(ValueError, match="naive takes float32, got float16"):
        derive("naive", 4, 4, dtype="float16")
    for bad, got in (
        ([[1.0, 2.0]], "list"),
        ([[1.0], []], "list"),
        ((2, 2), "tuple"),
        ("4", "str"),
    ):
        with pytest.raises(TypeError, match=f"array, got {got}"):
            derive("naive", bad)


def test_no_unit_is_lost_on_huge_shapes():
    assert derive("naive", 2**20, 2**20).load_bytes == 3 * 4 * 2**40
    assert isinstance(derive("naive", 2**20, 2**20), Counts)


def test_every_formula_uses_known_symbols():
    for kernel in KERNELS.values():
        values = symbols(kernel, {"rows": 3, "cols": 5})
        for phase in (*kernel.executed, *kernel.textbook):
            for formula in phase.formulas.values():
                assert cost.value(formula, values) >= 0
