"""Numbers as a reader sees them: one spelling of digits, prefixes and units everywhere."""

from __future__ import annotations

import math
import string
from typing import Any

GB = 1e9  # bytes
GIB = 2**30  # bytes; never written GB

SPACE = "\u202f"  # narrow and unbreakable: between thousands, and before a unit
MISSING = "not measured yet"

_PREFIXES = {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}
_BASES = ("B/s", "FLOP/s", "B", "FLOP", "s")
_UNITS = {
    prefix + base: (base, size)
    for base in _BASES
    for prefix, size in (_PREFIXES | (_BINARY if base.startswith("B") else {})).items()
}


def number(value: float | None, digits: int = 3) -> str:
    """`value` in prose and tables: whole numbers in full, others to `digits` significant digits."""
    if value is None:
        return MISSING
    value = float(value) if not isinstance(value, int) else value
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "undefined")
    if value == int(value) and abs(value) < 1e15:
        written = f"{int(value):,}"
    else:
        rounded = float(f"{value:.{digits}g}")
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
        if abs(rounded) < 1e-4 or abs(rounded) >= 1e15:
            mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
            return f"{mantissa}·10{_superscript(int(exponent))}".replace("-", "−")
        written = f"{rounded:,.{decimals}f}"
        written = written.rstrip("0").rstrip(".") if "." in written else written
    return written.replace(",", SPACE).replace("-", "−")


def places(low: float, high: float) -> int:
    """Decimals at which a last digit is no coarser than the difference of two values: 0 for units,
    negative for tens and more, and where they are equal."""
    return -math.floor(math.log10(high - low)) if high > low else -99


def apart(*values: float, digits: int = 3) -> tuple[str, ...]:
    """Values as `number` writes them, with as many digits as it takes, at least `digits`, to show
    the smallest and the largest apart: a spread must not read "15 400 – 15 400"."""
    low, high = min(values), max(values)
    if high > 0:
        digits = max(digits, math.floor(math.log10(high)) + 1 + places(low, high))
    return tuple(number(value, digits) for value in values)


def quantity(value: float | None, unit: str, digits: int = 3) -> str:
    """`value`, given in the unprefixed unit (B/s for GB/s), written in exactly `unit`."""
    if unit not in _UNITS:
        raise ValueError(f"unknown unit {unit!r}; bases are {', '.join(_BASES)} with an SI prefix")
    if value is None:
        return MISSING
    return f"{number(value / _UNITS[unit][1], digits)}{SPACE}{unit}"


def scaled(value: float | None, base: str, digits: int = 3) -> str:
    """`value` in the prefix of `base` ("B/s", "FLOP/s", "B", "FLOP" or "s") that fits its size."""
    if base not in _BASES:
        raise ValueError(f"unknown base unit {base!r}; allowed: {', '.join(_BASES)}")
    if value is None:
        return MISSING
    fitting = [p for p, size in _PREFIXES.items() if abs(value) >= size * 0.9995]
    smallest = "n" if base == "s" else ""
    prefix = fitting[-1] if value and fitting else smallest
    if base != "s" and _PREFIXES[prefix] < 1:
        prefix = ""
    if base == "s" and _PREFIXES[prefix] > 1:
        prefix = ""
    return quantity(value, prefix + base, digits)


def percent(value: float | None) -> str:
    """A ratio as a percentage."""
    return MISSING if value is None else f"{number(100 * value)}%"


def times(value: float | None) -> str:
    """A ratio as a multiple."""
    return MISSING if value is None else f"{number(value)}×"


class _Formatter(string.Formatter):
    def format_field(self, value: Any, spec: str) -> str:
        if isinstance(value, str):
            return value
        if spec == "%":
            return percent(value)
        if spec in ("x", "×"):
            return times(value)
        if spec in _BASES:
            return scaled(value, spec)
        if spec in _UNITS:
            return quantity(value, spec)
        if spec and not spec.isdigit():
            raise ValueError(f"unknown format {spec!r}; allowed: digits, %, ×, {', '.join(_UNITS)}")
        return number(value, int(spec or 3))


def fill(template: str, /, **values: Any) -> str:
    """`template` with `{name}`, `{name:%}`, `{name:×}`, `{name:B/s}` or `{name:GB/s}` filled in."""
    return _Formatter().format(template, **values)


def _superscript(value: int) -> str:
    return str(value).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
