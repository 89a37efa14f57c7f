"""A published table beside its repetition: times, rates and errors, and why they differ."""

from __future__ import annotations

from softmax_lab import published
from softmax_lab.facts import GPUS, Gpu
from softmax_lab.prose import Sentence, Table, say
from softmax_lab.published import ASKED, USEFUL, Again
from softmax_lab.roofline import rate
from softmax_lab.runs import about
from softmax_lab.runs import shape as written
from softmax_lab.units import MISSING, number, percent, times


def clocks(again: Again | None) -> Table:
    """Times of one launch at the published shapes: as published, by the same protocol on another
    GPU, and by ours there."""
    rows = []
    for theirs in published.table():
        here = again and again.at(theirs.rows, theirs.cols)
        ours = (here.calls_s, here.graph_s, here.cold_s) if here else (None,) * 3
        cells = [MISSING if each is None else number(1e6 * each) for each in ours]
        ratio = times(here.cold_s / here.graph_s if here else None)
        shape = written(theirs.rows, theirs.cols)
        rows.append((shape, number(1e6 * theirs.seconds), *cells, ratio))
    name = where(again)
    heads = ("shape", f"{source()}, as published [µs]", f"{name}, by calls [µs]")
    heads += (f"{name}, one graph [µs]", f"{name}, cold [µs]", "cold over graph")
    note = say(
        "Calls and graph: the published protocol, {n} launches on one pair of matrices after "
        "{w} warm-ups, their mean; called one by one, or in one graph. Cold: ours, the median of "
        "graphs that go round many pairs. {about}",
        n=published.LAUNCHES,
        w=published.WARM_UPS,
        about=_about(again),
    )
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))), note=note.words)


def rates(again: Again | None) -> Table:
    """Useful rates at the published shapes, and the rate of all bytes asked for over what the data
    sheet says of DRAM."""
    rows, sheet = [], again and GPUS.get(again.gpu)
    for theirs in published.table():
        here = again and again.at(theirs.rows, theirs.cols)
        size = theirs.rows * theirs.cols
        cells = _rate(size, theirs.seconds, published.gpu())
        for seconds in (here.graph_s, here.cold_s) if here else (None, None):
            cells += _rate(size, seconds, sheet)
        rows.append((written(theirs.rows, theirs.cols), *cells))
    heads = ["shape"]
    for each in (source(), f"{where(again)}, one graph", f"{where(again)}, cold"):
        heads += [f"{each}: useful [GB/s]", "asked, of DRAM's"]
    note = say(
        "Useful: {useful} bytes of an element, read once and written once, which the published "
        "table calls effective. Asked: the {asked} bytes that two passes ask for, a second, over "
        "the data sheet's rate of DRAM. {about}",
        useful=USEFUL,
        asked=ASKED,
        about=_about(again),
    )
    return Table(tuple(heads), tuple(rows), frozenset(range(1, 7)), note=note.words)


def cached() -> Sentence:
    """Published rates above what DRAM can deliver, and what caches must have kept from it."""
    sheet = published.gpu().dram_bytes_per_s
    fastest = min(published.table(), key=lambda each: each.seconds / (each.rows * each.cols))
    asked = rate(ASKED * fastest.rows * fastest.cols, fastest.seconds)
    return say(
        "At {shape} the published time makes {useful:GB/s} of useful bytes, but the lanes ask for "
        "{asked:GB/s}, on a card whose DRAM moves {sheet:GB/s}. So of all that was asked for at "
        "least {kept:GB/s}, {share:%}, never reached DRAM.",
        shape=written(fastest.rows, fastest.cols),
        useful=asked * USEFUL / ASKED,
        asked=asked,
        sheet=sheet,
        kept=asked - sheet,
        share=1 - sheet / asked,
    )


def fits(gpu: Gpu) -> Sentence:
    """Which GPU's L2 holds the matrices of the published shapes from one launch to the next."""
    pairs = [USEFUL * each.rows * each.cols for each in published.table()]
    small, large = min(pairs), max(pairs)

    def holds(sheet: Gpu) -> str:
        if sheet.l2_bytes >= large:
            return "all of it stays there from one launch to the next"
        return "not one pair fits" if sheet.l2_bytes < small else "some of it stays there"

    sentences = [
        say(
            "L2 of an {name} holds {l2:B}: {what}.",
            name=sheet.name.removeprefix("NVIDIA ").removeprefix("GeForce "),
            l2=sheet.l2_bytes,
            what=holds(sheet),
        ).words
        for sheet in (published.gpu(), gpu)
    ]
    return say(
        "Input and output together are {small:B}, on the last shape {large:B}. {each}",
        small=small,
        large=large,
        each=" ".join(sentences),
    )


def warmth(again: Again | None) -> Sentence:
    """How far the two protocols are apart on one GPU."""
    known = again.published if again else ()
    if not known:
        return say(f"How far the two protocols are apart on one GPU: {MISSING}.")
    ratios = [each.cold_s / each.graph_s for each in known]
    calls = [each.calls_s / each.graph_s for each in known]
    return say(
        "On the {name} the cold protocol takes {low:×} to {high:×} of the warm one's time. Called "
        "one by one from Python, the same launches take up to {calls:×} the time of those in a "
        "graph: where that is well above one, the clock shows the caller and not the kernel.",
        name=where(again),
        low=min(ratios),
        high=max(ratios),
        calls=max(calls),
    )


def errors(again: Again | None) -> Table:
    """Largest absolute errors at the published shapes, and the same times the row's length."""
    rows = []
    for theirs in published.table():
        here = again and again.at(theirs.rows, theirs.cols)
        cells = [number(theirs.max_error), number(theirs.max_error * theirs.cols)]
        cells += (
            [number(here.max_error), number(here.max_error * here.cols)] if here else [MISSING] * 2
        )
        rows.append((written(theirs.rows, theirs.cols), *cells))
    heads = ("shape", source(), r"times \(N\)", where(again), r"times \(N\)")
    note = f"Largest absolute difference from float64, of a whole matrix. {_about(again)}"
    return Table(heads, tuple(rows), frozenset(range(1, 5)), note=note)


def further(again: Again | None) -> Sentence:
    """How the errors of the repetition compare with the published ones."""
    known = again.published if again else ()
    if not known:
        return say(f"How the errors compare with the published ones: {MISSING}.")
    more = [
        ours.max_error / each.max_error
        for each in published.table()
        if (ours := again.at(each.rows, each.cols))
    ]
    return say(
        "On the {name} they are {low:×} to {high:×} the published ones. That may be the numbers in "
        "the matrices as well as the kernel or the GPU: ours are standard normal, the published "
        "ones we do not know. Compare a column with itself.",
        name=where(again),
        low=min(more),
        high=max(more),
    )


def source() -> str:
    """What tables call the GPU that the published table is from."""
    return published.gpu().name.removeprefix("NVIDIA GeForce ")


def where(again: Again | None) -> str:
    """What tables call the GPU of the repetition; the book's own where nothing is recorded."""
    slug = again.gpu if again else "nvidia-h200"
    return GPUS[slug].name.removeprefix("NVIDIA ") if slug in GPUS else slug


def _rate(size: int, seconds: float | None, sheet: Gpu | None) -> list[str]:
    if seconds is None:
        return [MISSING] * 2
    share = rate(ASKED * size, seconds) / sheet.dram_bytes_per_s if sheet else None
    return [number(rate(USEFUL * size, seconds) / 1e9), "–" if share is None else percent(share)]


def _about(again: Again | None) -> str:
    return f"{', '.join(about(again.gpu, again.provenance))}." if again else f"Here: {MISSING}."


def sources() -> Sentence:
    """Where the published table comes from, and by which protocol."""
    known = published.about()
    return Sentence(f"{known['source']}, {known['GPU']}; {known['protocol']}.", source=True)
