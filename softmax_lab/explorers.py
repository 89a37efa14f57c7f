"""The cost explorer and the recorded shapes: data for `explore.js`, and the picture and tables that
stand where no script runs."""

from __future__ import annotations

from collections.abc import Sequence

from softmax_lab import cost, plots, records, registry, roofline
from softmax_lab.alive import View
from softmax_lab.counts import Counts
from softmax_lab.facts import GPUS, ITEMSIZE
from softmax_lab.findings import WORDS
from softmax_lab.ledger import derive
from softmax_lab.livefile import phases, tree
from softmax_lab.prose import Sentence, Table, html, say, together
from softmax_lab.records import Measured
from softmax_lab.registry import COPY
from softmax_lab.runs import TIMING, provenance, shape, timing
from softmax_lab.units import number, scaled

DTYPE = "float32"
DOES = {"softmax": "softmax", "log_softmax": "log-softmax", "gemv": "product"}
"""What a family's kernels compute, in a word."""
MOST = 2**20
"""Rows or columns that the explorer offers: every count then stays below 2^53, exact in a page."""

FLOORS = "time, if DRAM moved"
BEST = "best copy"
"""What times go by beside the data sheet: the rate of one large copy, whatever the size."""
NOTE = (
    "Where rises of a maximum enter, the counts are expected values on independent random scores."
)
ELEMENTS = ("float32", "float16")
WAYS = ("each array once", "what the lanes ask for", "what L1 moves")
"""What may move: what DRAM must at least, what the lanes want of it, and what L1 does."""


def once(family: registry.Family) -> str:
    """Bytes of each array moved once, as a closed form: less no kernel from DRAM to DRAM can do
    with. `Family.once` in symbols."""
    arrays = family.extents("M", "N").values()
    return f"E*({' + '.join('*'.join(shape) for shape in arrays)})"


def costs(kernel: str = "naive", rows: int = 256, cols: int = 1024) -> View:
    """The cost explorer: any kernel of this one's family, M, N and element size; it starts at this
    shape.

    Counts and bytes in closed form, least times by the data sheet and by the copy kernel's best
    rate, the roofline. Raises ValueError for a kernel outside the list or for sizes that are not 1
    to 2^20.
    """
    found = registry.get(kernel)
    sizes = registry.checked_sizes((rows, cols))
    ladder = [each for each in registry.KERNELS.values() if each.family is found.family]
    if found not in ladder or not all(1 <= size <= MOST for size in sizes.values()):
        known = ", ".join(registry.KERNELS)
        raise ValueError(
            f"the explorer takes {known} on 1 to {MOST} rows and columns, got {kernel!r} on "
            f"{rows} × {cols}"
        )
    runs = records.timed(ladder, DTYPE)
    shown = _shown(ladder)
    note = NOTE if any(cost.data(each.executed) for each in ladder) else ""
    kernels = [
        {
            "name": each.name,
            "title": each.title,
            "block": each.block,
            "threads": each.threads_per_row,
            "dtypes": each.dtypes,
            "executed": phases(each.executed),
            "textbook": phases(each.textbook),
        }
        for each in ladder
    ]
    roofs, peak, source = _roofs(runs)
    data = {
        "kernels": kernels,
        "does": DOES[found.family.name],
        "words": {field: WORDS[field] for field in ("flops", *shown)},
        "unstated": [field for field in shown if field not in cost.TEXTBOOK_FIELDS],
        "once": tree(once(found.family)),
        "ways": WAYS,
        "types": [{"name": name, "size": ITEMSIZE[name]} for name in ELEMENTS],
        "roofs": [
            {"label": r.label, "bandwidth": r.bandwidth, "measured": r.measured} for r in roofs
        ],
        "peak": peak,
        "most": MOST,
        "note": note,
        "floors": FLOORS,
        "source": html(source),
        "recorded": {
            "size": ITEMSIZE[DTYPE],
            "runs": {f"{r.kernel} {r.rows} {r.cols}": r.seconds for r in runs},
        },
        "start": {"kernel": found.name, **sizes},
    }
    still = _still(found, rows, cols, runs, roofs, peak, source, shown, note)
    return View("costs", data, still, f"the cost explorer of {found.name}; it shows in a browser")


def offered(kernel: str, names: Sequence[str] | None = None) -> list[registry.Kernel]:
    """The rungs called `names`, of the whole ladder without; ValueError where `kernel` is none of
    them, or one of them is no rung."""
    rungs = registry.LADDER if names is None else [registry.get(name) for name in names]
    for each in (*rungs, registry.get(kernel)):
        if each not in registry.LADDER or each not in rungs:
            known = ", ".join(k.name for k in rungs if k in registry.LADDER)
            raise ValueError(f"{known or 'rungs of the ladder'} are shown, got {each.name!r}")
    return list(rungs)


def shapes(
    kernel: str = "naive", rows: int = 256, cols: int = 1024, names: Sequence[str] | None = None
) -> View | Sentence:
    """The recorded times of the ladder or of its rungs called `names`, shape by shape; it starts at
    this kernel and shape.

    Raises ValueError for a kernel that is not shown, LookupError for a shape that is not in the
    record.
    """
    rungs = offered(kernel, names)
    found, runs = registry.get(kernel), records.timed(rungs, DTYPE)
    if not runs:
        return say("Times on a GPU: not measured yet.")
    known = sorted({(r.rows, r.cols) for r in runs}, key=lambda s: (s[0] * s[1], s))
    if (rows, cols) not in known:
        words = ", ".join(f"{m} × {n}" for m, n in known)
        raise LookupError(f"recorded are {words}; got {rows} × {cols}")
    why = f"No GPU is at work here: these are {number(len(known))} recorded shapes."
    here = [run for run in runs if (run.rows, run.cols) == (rows, cols)]
    body = beside(here)
    data = {
        "kernels": [{"name": each.name, "title": each.title} for each in rungs],
        "shapes": known,
        "heads": body.heads,
        "why": why,
        "source": html(str(provenance(runs[0]))),
        "runs": [
            {
                "kernel": run.kernel,
                "shape": known.index((run.rows, run.cols)),
                "seconds": run.seconds,
                "cells": timing(run),
                "copy": run.copy_seconds,
            }
            for run in runs
        ],
        "start": {"kernel": found.name, "shape": known.index((rows, cols))},
    }
    still = together(Sentence(why), body, provenance(runs[0]))._repr_html_()
    return View("shapes", data, still, str(together(Sentence(why), body)))


def beside(runs: Sequence[Measured]) -> Table:
    """Timed runs, one a row: kernel, shape where shapes differ, and what `runs.timing` gives."""
    one = len({(run.rows, run.cols) for run in runs}) == 1
    heads = ("kernel", *(() if one else ("shape",)), *TIMING)
    rows = [
        (f"`{run.kernel}`", *(() if one else (shape(run.rows, run.cols),)), *timing(run))
        for run in runs
    ]
    return Table(heads, tuple(rows), frozenset(range(1 if one else 2, len(heads))))


def _shown(ladder: Sequence[registry.Kernel]) -> list[str]:
    """Counts that some kernel of the ladder states, in the order of tables."""
    stated = {field for k in ladder for p in k.executed for field in p.formulas}
    return [field for field in WORDS if field in stated]


def _roofs(runs: Sequence[Measured]) -> tuple[list[plots.Roof], float | None, str]:
    """Bandwidths and FP32 peak of the machine the records are from, and where they come from."""
    gpu = GPUS.get(runs[0].gpu if runs else plots.REFERENCE_GPU)
    roofs, said = [], []
    if gpu:
        roofs.append(plots.Roof("data sheet", gpu.dram_bytes_per_s, gpu.source))
        said.append(
            f"Data sheet: {scaled(gpu.dram_bytes_per_s, 'B/s')} and "
            f"{scaled(gpu.fp32_flops_per_s, 'FLOP/s')} FP32 ({gpu.source})."
        )
    copied = [run for run in runs if run.copy_seconds and run.level == "DRAM"]
    if copied:
        best, least = max(copied, key=_copy_rate), min(copied, key=lambda run: run.copy_seconds)
        roofs.append(plots.Roof(BEST, _copy_rate(best), shape(best.rows, best.cols), measured=True))
        said.append(
            f"Copy kernel: {scaled(_copy_rate(best), 'B/s')} is its best rate "
            f"beside these kernels, on {shape(best.rows, best.cols)}: other copies reach less. "
            "Its shortest run took "
            f"{scaled(least.copy_seconds, 's')}, on {shape(least.rows, least.cols)}: a launch "
            "has a price of its own, and a matrix whose floor is below it does not come near it. "
            f"{provenance(best)}"
        )
    return roofs, gpu.fp32_flops_per_s if gpu else None, " ".join(said)


def _copy_rate(run: Measured) -> float:
    return roofline.rate(COPY.family.once(run.rows, run.cols, run.dtype), run.copy_seconds)


def _still(kernel, rows, cols, runs, roofs, peak, source, fields, note) -> str:
    """What the explorer first shows, drawn now."""
    did = derive(kernel.name, rows, cols)
    useful = derive(kernel.name, rows, cols, form="textbook")
    least = kernel.family.once(rows, cols, DTYPE)
    moved = roofline.moved_bytes(did)["L1"]
    run = next((r for r in runs if (r.kernel, r.rows, r.cols) == (kernel.name, rows, cols)), None)
    points = roofline.points(
        kernel.title, did.flops, {"L1": moved, "DRAM": least}, run and run.seconds
    )
    where = f"{shape(rows, cols)} {DTYPE}; DRAM at best: {WAYS[0]}"
    title = f"Roofline of {kernel.title}"
    chart = plots.roofline(points, roofs, peak, "data sheet", where=where, title=title)
    ways = tuple(zip(WAYS, (least, did.bytes, moved), strict=True))
    bill = _bill(did, useful, fields, note)
    floors = _floors(ways, did, roofs, peak)
    return together(floors, chart, bill, Sentence(source, source=True))._repr_html_()


def _floors(ways, did: Counts, roofs: Sequence[plots.Roof], peak: float | None) -> Table:
    heads = (FLOORS, "bytes", "intensity [FLOP/B]", *(roof.label for roof in roofs))
    limit = {"flops": did.flops, "peak": peak} if peak else {}
    rows = tuple(
        (
            words,
            scaled(moved, "B"),
            number(did.flops / moved),
            *(scaled(roofline.floor_time(moved, roof.bandwidth, **limit), "s") for roof in roofs),
        )
        for words, moved in ways
    )
    return Table(heads, rows, frozenset(range(1, len(heads))))


def _bill(did: Counts, useful: Counts, fields: Sequence[str], note: str) -> Table:
    rows = []
    for field in ("flops", *fields):
        mine, theirs = getattr(did, field), getattr(useful, field)
        if mine or theirs:
            rows.append((WORDS[field], _tally(mine), "–" if theirs is None else _tally(theirs)))
    return Table(("count", "executed", "textbook"), tuple(rows), frozenset({1, 2}), note=note)


def _tally(count: float) -> str:
    """A count; where an expected value is in it, it says so."""
    return number(count) if count == int(count) else f"≈\u00a0{number(count, 4)}"
