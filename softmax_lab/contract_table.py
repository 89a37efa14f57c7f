"""The contract as the one table of the book: every clause, here, in a kernel, and elsewhere."""

from __future__ import annotations

import re
from textwrap import wrap

from softmax_lab import peers
from softmax_lab.contract import CLAUSES, GROUPS, OPERATORS
from softmax_lab.peers import PEERS, Outcome, recorded
from softmax_lab.promises import Clause
from softmax_lab.prose import Sentence, Table, names, plain
from softmax_lab.units import MISSING

NOTHING, SAME = "–", "same"
SHOWN = 3
"""Values of a result that differs which a cell shows: those of the first row that differs, for the
rows of the contract are as long."""

NO_OUT = "unexpected keyword argument 'out'"


def table() -> Table:
    """Every clause of the contract, a line each: what `softmax` and `log_softmax` give, what a
    launch of a kernel does, and what other libraries were seen to do."""
    rows, groups = [], []
    for group, clauses in GROUPS.items():
        groups.append((len(rows), group))
        rows += [_row(clause) for clause in clauses]
    heads = ("input", "softmax, log_softmax", "a kernel", *(p.name for p in PEERS.values()))
    return Table(heads, tuple(rows), groups=tuple(groups), note=_source())


def text(width: int) -> str:
    """The table for a terminal of `width` columns: each clause a paragraph, what is the same in one
    line of it."""
    whole, out = table(), []
    groups = dict(whole.groups)
    for k, (given, says, *others) in enumerate(whole.rows):
        if k in groups:
            out += ["", groups[k].upper()]
        same = [head for head, cell in zip(whole.heads[2:], others, strict=True) if cell == SAME]
        apart = [(h, c) for h, c in zip(whole.heads[2:], others, strict=True) if c != SAME]
        lines = [(plain(given), ""), (whole.heads[1], says), *apart]
        lines += [(SAME, ", ".join(same))] if same else []
        for depth, (label, words) in enumerate(lines):
            paragraph = f"{label}: {plain(words)}" if words else label
            before = "  " * min(depth, 1)
            out += wrap(paragraph, width, initial_indent=before, subsequent_indent=before + "  ")
    return "\n".join([*out, "", *wrap(plain(whole.note), width)]).lstrip()


def agreement() -> Sentence:
    """On how many clauses each of the other libraries does the same by both operators."""
    parts = []
    for library, peer in PEERS.items():
        cells = [_peer(c, library) for c in CLAUSES.values() if peers.asked(c)]
        same, asked = cells.count(SAME), len(cells) - cells.count(MISSING)
        parts.append(f"{peer.name} on {same} of {asked}")
    return Sentence(f"The same, type and all, by both operators: {names(parts)} clauses.")


def _row(clause: Clause) -> tuple[str, ...]:
    head = f"**{clause.name}:** {clause.given}"
    cells = head, clause.says, _kernel(clause), *(_peer(clause, library) for library in PEERS)
    return tuple(map(_signs, cells))


def _signs(words: str) -> str:
    """Infinities, NaN and minus signs as they are printed in books."""
    words = re.sub(r"([-+])inf\b", lambda m: {"-": "−∞", "+": "+∞"}[m[1]], words)
    return re.sub(r"\bnan\b", "NaN", re.sub(r"(?<=[\s(e])-(?=\d)", "−", words))


def _kernel(clause: Clause) -> str:
    if clause.kernel is None:
        return NOTHING
    return SAME if clause.kernel == "same" else f"`{clause.of_a_kernel}`"


def _peer(clause: Clause, library: str) -> str:
    """What a library did, in the fewest words: by both operators where they differ."""
    if not peers.asked(clause):
        return NOTHING
    found = {operator: recorded().get((clause.name, operator, library)) for operator in OPERATORS}
    if None in found.values():
        return MISSING
    cells = {operator: _beside(each, clause) for operator, each in found.items()}
    plain, log = cells.values()
    return plain if plain == log or _both(*cells.values()) else _apart(plain, log)


def _both(plain: str, log: str) -> bool:
    """Whether it is enough to show what softmax did: the logarithm differs in the same way."""
    return plain.startswith("gives") and log.startswith("gives")


def _apart(plain: str, log: str) -> str:
    return f"softmax: {plain}; log_softmax: {log}"


def _beside(outcome: Outcome, clause: Clause) -> str:
    """One outcome beside ours."""
    ours = peers.ours(clause, outcome.operator)
    if outcome.result == ours and NO_OUT not in outcome.words:
        return SAME
    kind, *values = outcome.result.split()
    if outcome.refused:
        return "has no `out`" if NO_OUT in outcome.words else f"`{values[0]}`"
    if values == (wanted := ours.split()[1:]):
        return f"{SAME}, in {kind}"
    apart = [k for k, pair in enumerate(zip(values, wanted, strict=False)) if pair[0] != pair[1]]
    start = apart[0] // SHOWN * SHOWN if len(values) == len(wanted) else 0
    before, after = "…, " * (start > 0), ", …" * (len(values) > start + SHOWN)
    return f"gives {before}{', '.join(values[start : start + SHOWN])}{after}"


def _source() -> str:
    """Versions and date of what was run."""
    found = {}
    for each in recorded().values():
        found.setdefault((each.library, each.version), each)
    if not found:
        return f"Other libraries: {MISSING}."
    found = dict(sorted(found.items(), key=lambda pair: list(PEERS).index(pair[0][0])))
    seen = names([f"{PEERS[each.library].name} {each.version}" for each in found.values()])
    dates = names(sorted({each.date for each in found.values()}))
    pythons = names(sorted({each.python for each in found.values()}))
    return (
        f"{seen}, each with its default settings, on NumPy arrays (torch: through "
        f"`torch.from_numpy`), on the CPU with Python {pythons}, {dates}."
    )
