import pytest

from softmax_lab.counts import FIELDS, HARDWARE_ONLY, ZERO, Counts


def test_unknown_is_none_and_absorbs():
    known, unknown = Counts(add=3, load_bytes=8), Counts(add=4)
    assert (known + unknown).add == 7
    assert (known + unknown).load_bytes is None
    assert (known - unknown).add == -1
    assert (known - unknown).bytes is None


def test_flops_leave_out_exponentials_and_count_fma_twice():
    counts = Counts(add=5, sub=3, mul=5, div=2, exp=100, compare=100, f64=9)
    assert counts.flops == 15


def test_unknown_parts_make_flops_and_bytes_unknown():
    assert Counts(add=1, sub=1, mul=1).flops is None
    assert Counts(load_bytes=4).bytes is None
    assert Counts(load_bytes=4).intensity is None


def test_intensity_of_gemv():
    # R01: y = A x, A 1000 x 500 in fp32 with beta = 0: 2MN FLOPs, MN + M + N elements.
    counts = Counts(add=500_000, sub=0, mul=500_000, div=0, load_bytes=2_002_000, store_bytes=4_000)
    assert counts.flops == 1_000_000
    assert counts.bytes == 2_006_000
    assert counts.intensity == pytest.approx(0.49850, abs=5e-6)


def test_intensity_of_nothing_is_unknown_not_an_exception():
    assert ZERO.flops == 0
    assert ZERO.bytes == 0
    assert ZERO.intensity is None
    assert ZERO.load_efficiency is None


def test_efficiency_is_distinct_bytes_over_sectors():
    assert Counts(load_useful_bytes=128, load_sectors=32).load_efficiency == 1 / 8
    assert Counts(store_useful_bytes=128, store_sectors=4).store_efficiency == 1


def test_zero_knows_all_but_what_caches_decide():
    assert set(ZERO.known()) == set(FIELDS) - set(HARDWARE_ONLY)


def test_counts_subtract_only_counts():
    with pytest.raises(TypeError):
        Counts(add=1) - 1
