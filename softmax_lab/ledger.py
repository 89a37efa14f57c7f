"""The three verbs — derive, count, measure — over one list of kernels, and the ledger that
subtracts them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache

import numpy as np

from softmax_lab import agreement, cost, emulator, gpu, online, records, registry, series
from softmax_lab.arguments import told
from softmax_lab.contract import stated_for_kernels
from softmax_lab.counts import FIELDS, ZERO, Counts
from softmax_lab.facts import GPUS, ITEMSIZE, WARP
from softmax_lab.fingerprint import fingerprint
from softmax_lab.nvrtc import Compiled, ToolkitError, arch_for
from softmax_lab.registry import Kernel

FORMS = ("executed", "textbook")


def derive(name: str, *shape_or_arrays, form: str = "executed", dtype="float32") -> Counts:
    """`Counts` in closed form, for sizes (rows, cols) or for the kernel's input arrays.

    `executed` is what the kernel does and equals `count` to the unit; `textbook` is the useful
    work, and leaves requests, sectors and branches unknown. Raises ValueError for an unknown
    kernel, form or `dtype` and for a size that it does not take, and TypeError for what is neither
    integers nor an array it takes.
    """
    kernel = registry.get(name)
    if not isinstance(form, str) or form not in FORMS:
        raise ValueError(f"form is one of {', '.join(FORMS)}, got {told(form)}")
    sizes, dtype = _sizes(kernel, shape_or_arrays), kernel.dtype(dtype)
    if not getattr(kernel, form):
        raise ValueError(f"{kernel.name} has no closed form as {form}: count it")
    x = None
    if not _scalars(shape_or_arrays):
        x = shape_or_arrays[0]
        x = x if isinstance(x, np.ndarray) else x.get()  # CuPy's, copied to the host
        dtype = str(x.dtype)
    if not all(sizes.values()):
        counts = ZERO  # nothing is launched for an empty matrix
    else:
        counts = cost.evaluate(getattr(kernel, form), symbols(kernel, sizes, dtype, x))
    return _textbook_only(counts) if form == "textbook" else counts


def symbols(
    kernel: Kernel, sizes: dict[str, int], dtype: str = "float32", x: np.ndarray | None = None
) -> Callable[[str], float]:
    """What the symbols of a kernel's formulas stand for (see `cost`), as a function of the symbol.

    R, R_T, R_X, R_Y and D are data: exact for x, for sizes alone their expected values on
    independent continuous data.
    """
    rows, cols, threads = sizes["rows"], sizes["cols"], kernel.threads_per_row
    plain = {"M": rows, "N": cols, "W": WARP, "E": ITEMSIZE[dtype]}
    plain |= {"B": kernel.block, "P": kernel.rows_per_block, "T": threads}

    @cache  # R and D walk over the whole matrix, and several formulas hold them
    def lookup(symbol: str) -> float:
        match symbol:
            case "R" | "R_T":
                walkers = 1 if symbol == "R" else threads
                return (
                    online.expected_updates(rows, cols, walkers)
                    if x is None
                    else online.updates(x, walkers)
                )
            case "D":
                return (
                    online.expected_diverged(rows, cols, threads)
                    if x is None
                    else online.diverged(x, threads)
                )
            case "R_X" | "R_Y":
                how = threads, symbol == "R_X"
                return (
                    online.expected_merge_rises(rows, cols, *how)
                    if x is None
                    else online.merge_rises(x, *how)
                )
        return plain[symbol]

    return lookup


def count(name: str, *arrays) -> Counts:
    """`Counts` of the kernel's own source, executed on the CPU emulator on arrays (rows, cols) of a
    type it takes (slow: keep to a few million elements).

    Raises ValueError or TypeError for arrays the kernel does not take, CompilerMissing without a
    C++ compiler, and RuntimeError when the emulator reports a fault or an output element is never
    stored.
    """
    run = emulator.run(registry.get(name), *arrays)
    if run.faults:
        raise RuntimeError(f"{name}: " + "; ".join(map(str, run.faults)))
    if run.unwritten:
        raise RuntimeError(
            f"{name}: {run.unwritten} of {run.y.size} output elements were never stored"
        )
    return run.counts


def measure(name: str, *shape: int, dtype="float32") -> records.Measured:
    """Time of one launch [s] and hardware counters at a shape (rows, cols): measured now on a GPU
    if asked for, else the recorded run.

    Set SOFTMAX_LAB_LIVE=1 to measure now. Raises LookupError for a shape that nobody recorded,
    naming the nearest; ValueError for an unknown kernel or `dtype` and for a size that it does not
    take, TypeError for sizes that are not integers; RuntimeError where it is to measure and there
    is no GPU, and its kind Disagreement where this kind of GPU is recorded with another time.
    """
    kernel = registry.get(name)
    sizes = kernel.sizes(shape)
    if records.live():
        from softmax_lab import (
            bench,
        )  # only here: importing it for a recorded number would be waste

        run = bench.measure(kernel, sizes["rows"], sizes["cols"], dtype=dtype)
        agreement.demand([agreement.timed(run)])
        return run
    return records.lookup(kernel, sizes["rows"], sizes["cols"], dtype=dtype)


def readings() -> series.Readings | None:
    """Series of clock readings around launches: taken now on a GPU if asked for, else recorded.

    Set SOFTMAX_LAB_LIVE=1 to take them now. None where nobody has recorded any. Raises RuntimeError
    as `measure` does.
    """
    if records.live():
        from softmax_lab import launches  # only here, as in `measure`

        taken = launches.run()
        found = series.gathered(taken.gpu, taken.rows, taken.provenance)
        agreement.demand(agreement.read(found))
        return found
    return series.recorded()


@stated_for_kernels
def launch(name: str, *arrays, device: str = "auto"):
    """Run one kernel on arrays (rows, cols) and return its output, of their shape and type, on the
    GPU or on the CPU emulator's plain build.

    `auto` takes the GPU where there is one. Raises ValueError for another device, ValueError or
    TypeError for arrays the kernel does not take, RuntimeError (in plain words) when the GPU was
    asked for and there is none.
    """
    kernel = registry.get(name)
    if not isinstance(device, str) or device not in ("auto", "gpu", "cpu"):
        raise ValueError(f"device is auto, gpu or cpu, got {told(device)}")
    if device == "gpu" or (device == "auto" and gpu.status().available):
        return gpu.launch(kernel, *arrays)
    return emulator.plain(kernel, *arrays)


@dataclass(frozen=True)
class Ledger:
    """One kernel at one shape, in columns that subtract. `measured` is None where nothing is
    recorded, `compiled` where there is no compiler; the reason is in `not_…`.

    `matrix` is the data that were counted: R and D in the derived columns are theirs, or expected
    values where nothing was counted. `compiled` is for the architecture of the GPU that measured.
    """

    kernel: Kernel
    rows: int
    cols: int
    phases: tuple[tuple[str, Counts], ...]
    textbook: Counts
    executed: Counts
    counted: Counts | None
    measured: records.Measured | None
    not_measured: str = ""
    compiled: Compiled | None = None
    not_compiled: str = ""
    matrix: np.ndarray | None = field(default=None, repr=False, compare=False)

    @cached_property
    def symbol(self) -> Callable[[str], float]:
        """What a symbol of the kernel's formulas stands for here, as a function of the symbol."""
        return symbols(self.kernel, {"rows": self.rows, "cols": self.cols}, x=self.matrix)

    @property
    def surplus(self) -> Counts:
        """Executed beyond the useful work."""
        return self.executed - self.textbook

    def disagreements(self) -> dict[str, tuple[float, float, float | None]]:
        """Fields where executed, counted and hardware differ: name → (executed, counted,
        measured)."""
        out = {}
        for name in FIELDS:
            derived, counted = (
                getattr(self.executed, name),
                getattr(self.counted or Counts(), name),
            )
            hardware = getattr(self.measured.counts, name) if self.measured else None
            values = {value for value in (derived, counted, hardware) if value is not None}
            if len(values) > 1:
                out[name] = (derived, counted, hardware)
        return out


def ledger(name: str, rows: int, cols: int, *, counted: bool = True, seed: int = 0) -> Ledger:
    """Derive, count, compile and measure one kernel at (rows, cols), on standard normal data for
    the count.

    What nobody measured is None there. Raises as `derive` and `count` do, and SpillError for a
    kernel that keeps values in local memory for want of registers.
    """
    kernel = registry.get(name)
    sizes = kernel.sizes((rows, cols))
    given = kernel.family.inputs("normal", rows, cols, seed) if counted else (rows, cols)
    x = given[0] if counted else None
    values = symbols(kernel, sizes, x=x)
    phases = tuple((phase.name, cost.evaluate((phase,), values)) for phase in kernel.executed)
    try:
        measured, why = measure(name, rows, cols), ""
    except LookupError as missing:
        measured, why = None, str(missing)
    try:
        compiled, no_compiler = _compiled(kernel.name, _architecture(kernel, measured)), ""
    except ToolkitError as missing:
        compiled, no_compiler = None, str(missing)
    return Ledger(
        kernel=kernel,
        rows=rows,
        cols=cols,
        phases=phases,
        textbook=derive(name, *given, form="textbook"),
        executed=derive(name, *given),
        counted=_counted(name, rows, cols, seed) if counted else None,
        measured=measured,
        not_measured=why,
        compiled=compiled,
        not_compiled=no_compiler,
        matrix=x,
    )


@lru_cache(maxsize=64)
def _counted(name: str, rows: int, cols: int, seed: int) -> Counts:
    return count(name, *registry.get(name).family.inputs("normal", rows, cols, seed))


def _architecture(kernel: Kernel, measured: records.Measured | None) -> str:
    """What to compile for: the GPU that measured where we know it, else that of our records."""
    known = GPUS.get(measured.gpu if measured else "") or GPUS["nvidia-h200"]
    return arch_for(max(known.compute_capability, kernel.requires))


def _compiled(name: str, arch: str) -> Compiled:
    return _compiled_once(name, arch, fingerprint(name))


@lru_cache(maxsize=64)
def _compiled_once(name: str, arch: str, _source: str) -> Compiled:
    """`_source` is the fingerprint: a file that was edited is compiled again."""
    return gpu.compile(name, arch).checked()


def _sizes(kernel: Kernel, given: tuple) -> dict[str, int]:
    """Sizes from (rows, cols), or from arrays that the kernel takes."""
    if any(hasattr(each, "__len__") for each in given):
        return kernel.check(*given)
    return kernel.sizes(given)


def _scalars(given: tuple) -> bool:
    return all(np.ndim(each) == 0 for each in given)


def _textbook_only(counts: Counts) -> Counts:
    return Counts(**{field: getattr(counts, field) for field in cost.TEXTBOOK_FIELDS})
