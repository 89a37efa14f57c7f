"""The ledger as tables: closed forms by phase, what differs from the textbook, and what agrees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from softmax_lab import coalescing, cost, registry
from softmax_lab.counters import COUNTED, LOCAL_SECTORS
from softmax_lab.counts import FIELDS, HARDWARE_ONLY, Counts
from softmax_lab.excerpts import excerpt
from softmax_lab.facts import GPUS, ITEMSIZE, MULTIPROCESSORS
from softmax_lab.findings import WORDS, measured
from softmax_lab.ledger import Ledger
from softmax_lab.prose import Sentence, Table, names, say
from softmax_lab.runs import origin, shape
from softmax_lab.units import MISSING, number, percent

_ELSEWHERE = ("add", "sub", "mul", "div", "load_useful_bytes", "store_useful_bytes")
_LEDGER = ("flops", *(field for field in FIELDS if field not in _ELSEWHERE))
_HARDWARE = frozenset({*COUNTED, "flops", "shuffles", "shared_requests", "barriers"})


def headline(name: str) -> Sentence:
    """What one block of a kernel does, in one sentence."""
    kernel = registry.get(name)
    rows, threads = kernel.rows_per_block, kernel.threads_per_row
    dealt = "{rows} row{s} per block, {threads} thread{t} per row, {block} threads in a block"
    if kernel.family.name == registry.COPY.family.name:
        dealt = "{block} threads in a block; no block and no thread has a row of its own"
    return say(
        f"`{{symbol}}` ({{title}}): {dealt}; {{dtypes}}; "
        "compute capability {major}.{minor} or newer.",
        symbol=kernel.symbol,
        title=kernel.title,
        rows=rows,
        s="" if rows == 1 else "s",
        threads=threads,
        t="" if threads == 1 else "s",
        block=kernel.block,
        dtypes=names(kernel.dtypes),
        major=kernel.requires // 10,
        minor=kernel.requires % 10,
    )


def opening(name: str) -> Table:
    """The four lines that open a kernel's file: idea, launch, traffic, source."""
    head = excerpt(name, "head")
    rows = tuple(tuple(line.removeprefix("// ").split(": ", 1)) for _, line in head.lines)
    return Table(("file", f"`{head.file}`, {head.range}"), rows)


def phases(book: Ledger, fields: Sequence[str]) -> Table:
    """The closed form of `fields`, phase by phase, and their sum at the ledger's shape."""
    _known_fields(fields)
    shown = [
        phase for phase in book.kernel.executed if any(field in phase.formulas for field in fields)
    ]
    rows = [(phase.name, *(_formula(phase, field) for field in fields)) for phase in shown]
    totals = tuple(number(getattr(book.executed, field)) for field in fields)
    heads = ("phase", *(WORDS[field] for field in fields))
    note = f"Totals at {shape(book.rows, book.cols)}."
    numeric = frozenset(range(1, len(heads)))
    return Table(heads, (*rows, ("total", *totals)), numeric, total=True, note=note)


def textbook_differences(book: Ledger) -> Table:
    """Phase by phase, the counts for which the kernel does not do what the textbook says."""
    useful = {phase.name: phase for phase in book.kernel.textbook}
    values = book.symbol
    rows = []
    for phase in book.kernel.executed:
        for field in cost.TEXTBOOK_FIELDS:
            done = phase.formulas.get(field, "0")
            said = useful[phase.name].formulas.get(field, "0") if phase.name in useful else "0"
            gap = cost.value(done, values) - cost.value(said, values)
            if gap:
                cells = (_maths(said), _maths(done), _signed(gap))
                rows.append((phase.name, WORDS[field], *cells))
    heads = (
        "phase",
        "count",
        "textbook",
        "executed",
        f"difference, {shape(book.rows, book.cols)}",
    )
    note = "" if rows else "The kernel does exactly the useful work, no more."
    return Table(heads, tuple(rows), frozenset({2, 3, 4}), note=note)


def ledger(book: Ledger) -> Table:
    """Textbook, executed, counted, measured: a count a row, rows of zeros left out; below, what the
    compiler made of the kernel."""
    rows = []
    for field in _LEDGER:
        said, done, counted = (
            _get(each, field) for each in (book.textbook, book.executed, book.counted)
        )
        seen = measured(book.measured, field)
        if not any((said, done, counted, seen)) and field not in HARDWARE_ONLY:
            continue
        waiting = book.measured is None or (seen is None and field in HARDWARE_ONLY)
        hardware = MISSING if waiting and field in _HARDWARE else _cell(seen)
        rows.append((WORDS[field], _cell(said), _cell(done), _cell(counted), hardware))
    heads = (
        shape(book.rows, book.cols),
        "textbook",
        "executed",
        "counted",
        "measured",
    )
    compiled = (len(rows), f"as compiled for {book.compiled.arch if book.compiled else 'a GPU'}")
    rows += [(name, "–", "–", *cells) for name, *cells in _compiled(book)]
    return Table(heads, tuple(rows), frozenset({1, 2, 3, 4}), note=_where(book), groups=(compiled,))


def row_lengths(lengths: Sequence[int], count_at: Callable[[int], Counts]) -> Table:
    """Sectors per load request of thread-per-row reads by row length: model, and `count_at(N)`."""
    rows = []
    for cols in lengths:
        counted = count_at(cols)
        sectors = number(counted.load_sectors / counted.load_requests)
        model = number(len(coalescing.strided(ITEMSIZE["float32"] * cols).sectors))
        rows.append((number(cols), model, sectors, percent(counted.load_efficiency)))
    heads = ("row length N", "sectors per request (model)", "counted", "bytes used")
    return Table(heads, tuple(rows), frozenset(range(4)))


def shift(
    rows: Mapping[str, Sequence[float]],
    without: Callable[[np.ndarray], np.ndarray],
    shifted: Callable[[np.ndarray], np.ndarray],
) -> Table:
    """Rows of scores by what they are, and what two softmaxes of a matrix (1, N) make of them:
    one without the shift, one with it."""
    cells = []
    for name, scores in rows.items():
        x = np.asarray([scores], dtype=np.float32)
        results = (_some(each(x)[0], 2) for each in (without, shifted))
        cells.append((name, _some(x[0], 3), *results))
    heads = ("row", "scores", "without the shift", "with the shift")
    return Table(heads, tuple(cells), frozenset({1, 2, 3}))


def _some(values: np.ndarray, digits: int) -> str:
    first = ", ".join("NaN" if np.isnan(v) else number(float(v), digits) for v in values[:3])
    return first if values.size <= 3 else f"{first}, …"


def _formula(phase: cost.Phase, field: str) -> str:
    return _maths(phase.formulas[field]) if field in phase.formulas else "–"


def _maths(formula: str) -> str:
    return rf"\({cost.latex(formula)}\)"


def _known_fields(fields: Sequence[str]) -> None:
    if unknown := [field for field in fields if field not in FIELDS]:
        raise ValueError(f"no count {', '.join(unknown)}; there are {', '.join(FIELDS)}")


def _get(counts: Any, field: str) -> float | None:
    return None if counts is None else getattr(counts, field)


def _cell(value: float | None) -> str:
    return "–" if value is None else number(value)


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + number(value)


def _compiled(book: Ledger) -> list[tuple[str, str, str]]:
    """What the compiler reports and what the profiled launch had: name, counted, measured.

    The profiler's shared memory holds what the system takes of each block; here it is left out.
    """
    made, seen = book.compiled, book.measured.counters if book.measured else {}
    spilled = [seen.get(name) for name in LOCAL_SECTORS]
    shared = seen.get("launch__shared_mem_per_block")
    launched = {
        "registers": seen.get("launch__registers_per_thread"),
        "shared": None if shared is None else shared - _reserved(book),
        "sectors": None if None in spilled else sum(spilled),
    }
    cells = {key: MISSING if value is None else number(value) for key, value in launched.items()}
    return [
        ("registers of a thread", _cell(made and made.registers), cells["registers"]),
        ("shared memory of a block [B]", _cell(made and made.shared_bytes), cells["shared"]),
        ("spills of a thread [B]", _cell(made and made.spill_bytes), "–"),
        ("sectors of spilled values", "–", cells["sectors"]),
    ]


def _reserved(book: Ledger) -> int:
    gpu = GPUS.get(book.measured.gpu) if book.measured else None
    return MULTIPROCESSORS[gpu.compute_capability].reserved_bytes if gpu else 0


def _where(book: Ledger) -> str:
    """Whose numbers the last two columns hold."""
    run, made = book.measured, book.compiled
    seen = origin([run], ["counters"])
    if run is None:
        said = f"Measured column: {book.not_measured or MISSING}."
    else:
        said = f"Measured: {seen or f'hardware counters {MISSING}'}."
    if made is None:
        return f"{said} As compiled: {book.not_compiled or MISSING}."
    said += (
        f" As compiled: the counted column is what {made.compiler} made for {made.arch} when this "
        "page was built"
    )
    if not seen:
        return f"{said}."
    theirs = run.counters_provenance.get("NVRTC")
    said += f"; the measured one is the launch that was profiled, made by NVRTC {theirs or '?'}"
    if taken := _reserved(book):
        said += f", without the {number(taken)} B of shared memory that the system takes of a block"
    return f"{said}."
