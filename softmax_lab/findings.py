"""What a ledger says, in computed sentences: what agrees, what does not, and by how much."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from softmax_lab import reference, unrolling
from softmax_lab.counts import Counts
from softmax_lab.ledger import Ledger
from softmax_lab.prose import Sentence, names, say
from softmax_lab.records import Measured
from softmax_lab.roofline import moved_bytes
from softmax_lab.units import MISSING, fill, number
from softmax_lab.unrolling import FLOATS, Loop

WORDS = {
    "add": "additions",
    "sub": "subtractions",
    "mul": "multiplications",
    "div": "divisions",
    "f64": "operations in double",
    "exp": "exponentials",
    "log": "logarithms",
    "compare": "comparisons",
    "updates": "comparisons that came out true",
    "flops": "FLOPs",
    "load_bytes": "bytes loaded [B]",
    "store_bytes": "bytes stored [B]",
    "load_useful_bytes": "distinct bytes loaded [B]",
    "store_useful_bytes": "distinct bytes stored [B]",
    "load_requests": "load requests",
    "load_sectors": "load sectors",
    "store_requests": "store requests",
    "store_sectors": "store sectors",
    "l2_sectors": "L2 sectors",
    "dram_bytes": "DRAM bytes [B]",
    "shuffles": "shuffles",
    "barriers": "barriers",
    "shared_requests": "shared-memory requests",
    "shared_wavefronts": "shared-memory wavefronts",
    "branches": "branches met by warps",
    "diverged": "branches that diverged",
}
"""What tables call the fields of `Counts` (and `flops`)."""


EXPANDED = {"exp": 10, "div": 10, "log": 24}
"""FLOPs that an exponential, a division and a logarithm become on the GPU: four multiply-adds, an
addition and a multiplication around the power of two; five multiply-adds around an estimate of the
reciprocal; eleven, an addition and a multiplication for a polynomial, without any special function.
Every recorded launch has this number of them, to the unit. (A logarithm of a subnormal number would
have one multiplication more; the sum of a row is 1 or larger.)"""

_ONE = {"exp": "an exponential", "div": "a division", "log": "a logarithm"}

_FLOPS_OF = {"fadd": 1, "fmul": 1, "ffma": 2, "dadd": 1, "dmul": 1, "dfma": 2}


def agreement(book: Ledger) -> Sentence:
    """Whether derived, counted and measured are one number, and which ones are not."""
    said = []
    if book.counted is not None:
        both = {field: getattr(book.counted, field) for field in book.executed.known()}
        both = {
            field: (getattr(book.executed, field), other)
            for field, other in both.items()
            if other is not None
        }
        said.append(_compared("Derived and counted", both))
    if book.measured is None:
        said.append(f"The GPU's own counters: {MISSING}.")
    else:
        theirs = book.measured.counts.known()
        both = {
            f: (getattr(book.executed, f), v)
            for f, v in theirs.items()
            if getattr(book.executed, f) is not None
        }
        said.append(
            _compared("Derived and the GPU's own counters", both)
            if both
            else f"Hardware counters: {MISSING}."
        )
    return Sentence(" ".join(said))


def accuracy(y: np.ndarray, x: np.ndarray) -> Sentence:
    """The checker's verdict on y (rows, cols) as the softmax of x, and what it allowed."""
    verdict = reference.compare(y, x)
    if verdict.allowed is None:
        return say("Against softmax in float64: {words}.", words=verdict.message)
    unit, cols = reference.UNIT["float32"], x.shape[1]
    roundings = verdict.allowed / unit
    summing = reference.SUM_ERROR * cols**0.5
    return say(
        "Against softmax in float64, the result that comes nearest to its limit differs by {error} "
        "of its value. It may differ by {allowed}. That is {roundings} roundings, each of them "
        "{unit}: {few} for the operations outside the sum, {depth} since its score lies that far "
        "below the maximum, and {summing} for a sum of {cols} terms. So even this one uses only "
        "**{worst:%}** of what is allowed.",
        error=verdict.worst * verdict.allowed,
        roundings=roundings,
        unit=unit,
        allowed=verdict.allowed,
        few=reference.OPERATION_ERROR,
        depth=roundings - summing - reference.OPERATION_ERROR,
        summing=summing,
        cols=cols,
        worst=verdict.worst,
    )


def hardware_flops(book: Ledger) -> Sentence:
    """FLOPs of the source against those the GPU counted, and whether what expf and division expand
    to explains the difference."""
    seen = measured(book.measured, "flops")
    if seen is None:
        return say("FLOPs executed by the GPU: not measured yet.")
    done = book.executed
    plain = done.flops - done.div + done.f64
    expected = plain + sum(getattr(done, field) * each for field, each in EXPANDED.items())
    met = [field for field in EXPANDED if getattr(done, field)] or list(EXPANDED)
    became = [fill(f"{{n}} for {_ONE[field]}", n=EXPANDED[field]) for field in met]
    products = [fill("{n} times {k}", n=EXPANDED[f], k=getattr(done, f)) for f in met]
    apart = "to the unit" if expected == seen else "which is not the GPU's number"
    return say(
        "The source does {source} FLOPs and {exps} exponentials; the GPU executed {seen} FLOPs, "
        "{ratio:×} as many. Count, in FLOPs, {became}: {plain} other FLOPs of the source and "
        "{products} make {expected}, {apart}.",
        source=done.flops,
        exps=done.exp,
        plain=plain,
        seen=seen,
        ratio=seen / done.flops,
        expected=expected,
        apart=apart,
        became=names(became),
        products=names(products),
    )


def sectors_per_request(book: Ledger) -> Sentence:
    """Sectors of one load request, as derived, counted and measured."""

    def each(counts: Counts | None) -> float | None:
        if counts is None or not counts.load_requests:
            return None
        return counts.load_sectors / counts.load_requests

    return say(
        "Sectors per load request on rows of {cols} floats. Derived: **{a}**. Counted: **{b}**. "
        "Measured on the GPU: **{c}**. Of the bytes that move at L1, {share:%} are used.",
        cols=book.cols,
        a=each(book.executed),
        b=each(book.counted),
        c=each(book.measured.counts if book.measured else None),
        share=book.executed.load_efficiency,
    )


NEAR = 1.3
"""Up to this multiple of one read and one write the caches are said to catch the waste."""


WHOLE = 1.05
"""Up to this multiple of what lanes ask for L1 is said to waste hardly anything."""


def levels(book: Ledger) -> Sentence:
    """What the bytes moved at L1, L2 and DRAM say of the caches."""
    family = book.kernel.family
    once = family.once(book.rows, book.cols)
    near, asked = moved_bytes(book.executed)["L1"], book.executed.bytes
    far = moved_bytes(book.measured.counts) if book.measured else {}
    words = (
        "On {rows} × {cols}, L1 moves {near:B}, {waste:×} the {asked:B} that the lanes ask for. "
    )
    known = {
        "rows": book.rows,
        "cols": book.cols,
        "near": near,
        "waste": near / asked,
        "asked": asked,
        "once": once,
    }
    if "L2" not in far or "DRAM" not in far:
        return say(words + "L2 and DRAM: not measured yet.", **known)
    words += (
        "L2 moves {l2:B} and DRAM {dram:B}, {share:×} the {once:B} of reading every input and "
        "writing every result once. "
    )
    if far["DRAM"] > NEAR * once:
        words += "The caches do not keep all that is read again: DRAM pays for the rest."
    elif near > WHOLE * asked:
        words += "The caches catch the waste: what L1 moves again, DRAM does not."
    else:
        little = "Hardly anything" if near > asked else "Nothing"
        words += f"{little} is wasted at L1, and caches spare DRAM what is read again."
    if far["DRAM"] < once:
        words += " DRAM is below that minimum, for some results were still in L2 at the end."
    return say(words, **known, l2=far["L2"], dram=far["DRAM"], share=far["DRAM"] / once)


def measured(run: Measured | None, field: str) -> float | None:
    """A count as the GPU saw it; its FLOPs are the arithmetic instructions its threads executed."""
    if run is None:
        return None
    if field != "flops":
        return getattr(run.counts, field)
    name = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
    seen = {
        op: run.counters[name.format(op)] for op in _FLOPS_OF if name.format(op) in run.counters
    }
    return (
        sum(_FLOPS_OF[op] * n for op, n in seen.items())
        if {"fadd", "fmul", "ffma"} <= set(seen)
        else None
    )


def _compared(who: str, pairs: Mapping[str, tuple[float, float]]) -> str:
    apart = [
        f"{WORDS[field]} ({number(a)} against {number(b)})"
        for field, (a, b) in pairs.items()
        if a != b
    ]
    if not apart:
        return f"{who} are equal in all {number(len(pairs))} counts that both take alike."
    equal = number(len(pairs) - len(apart))
    return (
        f"{who} are equal in {equal} of {number(len(pairs))} counts; they differ in {names(apart)}."
    )


def unrolled(book: Ledger, loop: Loop = FLOATS) -> Sentence:
    """Load requests and sectors that the GPU has beyond the source, against those that come of a
    first loop unrolled in the way of `loop` (kernels with a warp on a row)."""
    if book.measured is None or book.measured.counts.load_requests is None:
        return say(f"The GPU's own counters at this shape: {MISSING}.")
    split, seams = unrolling.added(book.rows, book.cols, loop)
    beyond = book.measured.counts - book.executed
    return say(
        "On {rows} × {cols} the GPU made {more} load requests and {wider} sectors more than the "
        "source asks for ({asked} and {touched}). A loop unrolled {unroll} times makes {split} and "
        "{seams} more: {verdict}.",
        rows=book.rows,
        cols=book.cols,
        more=beyond.load_requests,
        wider=beyond.load_sectors,
        asked=book.executed.load_requests,
        touched=book.executed.load_sectors,
        unroll=loop.blocks[0],
        split=split,
        seams=seams,
        verdict="the difference, to the unit"
        if (beyond.load_requests, beyond.load_sectors) == (split, seams)
        else "not the difference",
    )
