"""The contract as the one table of the book: every clause, here, in a kernel, and elsewhere."""

from __future__ import annotations

from softmax_lab import peers
from softmax_lab.contract import GROUPS, OPERATORS
from softmax_lab.peers import PEERS, Outcome, recorded
from softmax_lab.promises import Clause
from softmax_lab.prose import Table, names
from softmax_lab.units import MISSING

NOTHING = "–"
SHOWN = 3
"""Values of a result that differs which a cell shows."""


def table() -> Table:
    """Every clause of the contract, a line each: what `softmax` and `log_softmax` give, what a
    launch of a kernel does, and what other libraries were seen to do."""
    rows, groups = [], []
    for group, clauses in GROUPS.items():
        groups.append((len(rows), group))
        rows += [_row(clause) for clause in clauses]
    heads = ("input", "softmax, log_softmax", "a kernel", *(p.name for p in PEERS.values()))
    return Table(heads, tuple(rows), groups=tuple(groups), note=_source())


def _row(clause: Clause) -> tuple[str, ...]:
    head = f"**{clause.name}:** {clause.given}"
    return head, clause.says, _kernel(clause), *(_peer(clause, library) for library in PEERS)


def _kernel(clause: Clause) -> str:
    if clause.kernel is None:
        return NOTHING
    return "the same" if clause.kernel == "same" else f"`{clause.kernel.__name__}`"


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
    if outcome.result == ours:
        return "the same"
    kind, *values = outcome.result.split()
    if outcome.refused:
        return f"`{values[0]}`"
    if values == ours.split()[1:]:
        return f"the same, in {kind}"
    more = ", …" if len(values) > SHOWN else ""
    return f"gives {', '.join(values[:SHOWN])}{more}"


def _source() -> str:
    """Versions and date of what was run."""
    found = {}
    for each in recorded().values():
        found.setdefault((each.library, each.version), each)
    if not found:
        return f"Other libraries: {MISSING}."
    seen = names([f"{PEERS[each.library].name} {each.version}" for each in found.values()])
    dates = names(sorted({each.date for each in found.values()}))
    pythons = names(sorted({each.python for each in found.values()}))
    return (
        f"{seen}, each with its default settings, on NumPy arrays (torch: through "
        f"`torch.from_numpy`), on the CPU with Python {pythons}, {dates}."
    )
