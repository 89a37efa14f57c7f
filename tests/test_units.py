"""Numbers as readers see them: digits, prefixes, and GB never mixed with GiB (public case R02)."""

from __future__ import annotations

import math

import pytest

from softmax_lab import units
from softmax_lab.units import fill, number, percent, quantity, scaled, times

GAP = units.SPACE


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0"),
        (786432, f"786{GAP}432"),
        (4023.7, f"4{GAP}020"),
        (12.5, "12.5"),
        (1 / 24, "0.0417"),
        (0.9999, "1"),
        (-3.0, "−3"),
        (2.5e-7, "2.50·10⁻⁷"),
        (math.inf, "∞"),
        (math.nan, "undefined"),
        (None, "not measured yet"),
    ],
)
def test_numbers(value, written):
    assert number(value) == written


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ((39.0, 40.0, 42.0), ("39", "40", "42")),
        ((15367.0666, 15368.5942, 15368.852), (f"15{GAP}367", f"15{GAP}369", f"15{GAP}369")),
        ((41.0771812, 41.0789521, 41.0834885), ("41.077", "41.079", "41.083")),
        ((99.96, 100.04), ("99.96", "100.04")),
        ((331.049, 331.051), ("331.049", "331.051")),
        ((1.0, 2000.0), ("1", f"2{GAP}000")),
        ((7.12345, 7.12345), ("7.12", "7.12")),
        ((0.0, 0.0), ("0", "0")),
    ],
)
def test_a_spread_is_written_with_the_digits_that_show_it(values, written):
    assert units.apart(*values) == written


def test_bandwidth_of_the_public_case_in_both_units():
    rate = 134_217_728 / 0.05e-3
    assert quantity(rate, "GB/s", digits=6) == f"2{GAP}684.35{GAP}GB/s"
    assert quantity(rate, "GiB/s", digits=6) == f"2{GAP}500{GAP}GiB/s"
    assert quantity(210 / 1e-6, "GFLOP/s") == f"0.21{GAP}GFLOP/s"
    assert quantity(210 / 1e-6, "TFLOP/s") == f"0.00021{GAP}TFLOP/s"
    assert quantity(0, "GB/s") == f"0{GAP}GB/s"


@pytest.mark.parametrize(
    ("value", "base", "written"),
    [
        (4.8e12, "B/s", "4.8 TB/s"),
        (67e12, "FLOP/s", "67 TFLOP/s"),
        (1.3e-4, "s", "130 µs"),
        (3e-10, "s", "0.3 ns"),
        (12.0, "s", "12 s"),
        (5000.0, "s", "5 000 s"),
        (999.9e9, "B/s", "1 TB/s"),
        (0.25, "B", "0.25 B"),
        (0, "B", "0 B"),
        (None, "s", "not measured yet"),
    ],
)
def test_a_prefix_that_fits(value, base, written):
    assert scaled(value, base) == written.replace(" ", GAP) or scaled(value, base) == written


def test_a_template_is_filled_with_units():
    said = fill("{n} of {r:%}, {x:×}, {b:GB/s}, {t:s}", n=24576, r=0.125, x=8.0, b=4e12, t=1e-6)
    assert said.replace(GAP, " ") == "24 576 of 12.5%, 8×, 4 000 GB/s, 1 µs"
    assert fill("{a} {b:%}", a="as it is", b=None) == "as it is not measured yet"


def test_ratios():
    assert (percent(1 / 8), times(1.5)) == ("12.5%", "1.5×")


@pytest.mark.parametrize("call", [lambda: quantity(1, "Gb"), lambda: scaled(1, "GB")])
def test_an_unknown_unit_is_refused(call):
    with pytest.raises(ValueError, match="unit"):
        call()


def test_an_unknown_format_is_refused():
    with pytest.raises(ValueError, match="allowed"):
        fill("{a:furlongs}", a=1)
