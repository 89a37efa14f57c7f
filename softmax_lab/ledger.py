"""The three verbs — derive, count, measure — over one list of kernels, and the ledger that
subtracts them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from softmax_lab import cost, emulator, gpu, records, reference, registry
from softmax_lab.counts import FIELDS, ZERO, Counts
from softmax_lab.facts import ITEMSIZE, WARP
from softmax_lab.registry import Kernel

FORMS = ("executed", "textbook")


def derive(name: str, *shape_or_arrays, form: str = "executed", dtype: str = "float32") -> Counts:
    """`Counts` in closed form, for sizes (rows, cols) or for one matrix (rows, cols).

    `executed` is what the kernel does and equals `count` to the unit; `textbook` is the useful
    work, and leaves requests, sectors and branches unknown. Raises ValueError for an unknown
    kernel, form or size.
    """
    kernel = registry.get(name)
    if form not in FORMS:
        raise ValueError(f"form is one of {', '.join(FORMS)}, got {form!r}")
    sizes = _sizes(kernel, shape_or_arrays)
    if len(shape_or_arrays) == 1:
        dtype = str(getattr(shape_or_arrays[0], "dtype", dtype))
    if not all(sizes.values()):
        counts = ZERO  # nothing is launched for an empty matrix
    else:
        counts = cost.evaluate(getattr(kernel, form), symbols(kernel, sizes, dtype).__getitem__)
    return _textbook_only(counts) if form == "textbook" else counts


def symbols(kernel: Kernel, sizes: dict[str, int], dtype: str = "float32") -> dict[str, int]:
    """The values of the symbols that a kernel's formulas use (M, N, B, W, E)."""
    return {
        "M": sizes["rows"],
        "N": sizes["cols"],
        "B": kernel.block,
        "W": WARP,
        "E": ITEMSIZE[dtype],
    }


def count(name: str, *arrays) -> Counts:
    """`Counts` of the kernel's own source, executed on the CPU emulator (slow: keep to a few
    million elements).

    Raises ValueError for arrays the kernel does not take, CompilerMissing without a C++ compiler,
    and RuntimeError when the emulator reports a fault or an output element is never stored.
    """
    run = emulator.run(registry.get(name), *arrays)
    if run.faults:
        raise RuntimeError(f"{name}: " + "; ".join(map(str, run.faults)))
    if run.unwritten:
        raise RuntimeError(
            f"{name}: {run.unwritten} of {run.y.size} output elements were never stored"
        )
    return run.counts


def measure(name: str, *shape: int, dtype: str = "float32") -> records.Measured:
    """Time and hardware counters at a shape: measured now on a GPU if asked for, else the recorded
    run.

    Set SOFTMAX_LAB_LIVE=1 to measure now. A shape that nobody recorded is a LookupError that names
    the nearest.
    """
    kernel = registry.get(name)
    sizes = registry.checked_sizes(shape)
    if records.live():
        from softmax_lab import (
            bench,
        )  # only here: importing it for a recorded number would be waste

        return bench.measure(kernel, sizes["rows"], sizes["cols"], dtype=dtype)
    return records.lookup(kernel, sizes["rows"], sizes["cols"], dtype=dtype)


def launch(name: str, *arrays, device: str = "auto"):
    """Run one kernel and return its output, on the GPU or on the CPU emulator's plain build.

    `auto` takes the GPU where there is one. Raises ValueError for another device or for arrays the
    kernel does not take, RuntimeError (in plain words) when the GPU was asked for and there is
    none.
    """
    kernel = registry.get(name)
    if device not in ("auto", "gpu", "cpu"):
        raise ValueError(f"device is auto, gpu or cpu, got {device!r}")
    if device == "gpu" or (device == "auto" and gpu.status().available):
        return gpu.launch(kernel, *arrays)
    return emulator.plain(kernel, *arrays)


@dataclass(frozen=True)
class Ledger:
    """One kernel at one shape, in columns that subtract. `measured` is None where nothing is
    recorded."""

    kernel: Kernel
    rows: int
    cols: int
    phases: tuple[tuple[str, Counts], ...]
    textbook: Counts
    executed: Counts
    counted: Counts | None
    measured: records.Measured | None
    not_measured: str = ""

    @property
    def surplus(self) -> Counts:
        """Executed beyond the useful work."""
        return self.executed - self.textbook

    def disagreements(self) -> dict[str, tuple[float, float, float | None]]:
        """Fields where executed, counted and hardware differ: name → (executed, counted,
        measured)."""
        out = {}
        for field in FIELDS:
            derived, counted = (
                getattr(self.executed, field),
                getattr(self.counted or Counts(), field),
            )
            hardware = getattr(self.measured.counts, field) if self.measured else None
            values = {value for value in (derived, counted, hardware) if value is not None}
            if len(values) > 1:
                out[field] = (derived, counted, hardware)
        return out


def ledger(name: str, rows: int, cols: int, *, counted: bool = True, seed: int = 0) -> Ledger:
    """Derive, count and measure one kernel at (rows, cols), on standard normal data for the
    count."""
    kernel = registry.get(name)
    sizes = registry.checked_sizes((rows, cols))
    values = symbols(kernel, sizes)
    phases = tuple(
        (phase.name, cost.evaluate((phase,), values.__getitem__)) for phase in kernel.executed
    )
    try:
        measured, why = measure(name, rows, cols), ""
    except LookupError as missing:
        measured, why = None, str(missing)
    return Ledger(
        kernel=kernel,
        rows=rows,
        cols=cols,
        phases=phases,
        textbook=derive(name, rows, cols, form="textbook"),
        executed=derive(name, rows, cols),
        counted=_counted(name, rows, cols, seed) if counted else None,
        measured=measured,
        not_measured=why,
    )


@lru_cache(maxsize=64)
def _counted(name: str, rows: int, cols: int, seed: int) -> Counts:
    return count(name, reference.inputs("normal", rows, cols, seed))


def _sizes(kernel: Kernel, shape_or_arrays) -> dict[str, int]:
    if all(isinstance(each, (int, np.integer)) for each in shape_or_arrays) and shape_or_arrays:
        return registry.checked_sizes(shape_or_arrays)
    return kernel.family.shape(*shape_or_arrays)


def _textbook_only(counts: Counts) -> Counts:
    return Counts(**{field: getattr(counts, field) for field in cost.TEXTBOOK_FIELDS})
