"""What torch, SciPy and JAX do with every clause of the contract: run, written down, read again."""

from __future__ import annotations

import csv
import io
import platform
import warnings
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from softmax_lab.contract import CLAUSES, OPERATORS
from softmax_lab.promises import Clause

LARGE = 3
"""Results that are kept of the first and the last row, where there are more than an int counts."""


@dataclass(frozen=True)
class Outcome:
    """What a library did on one clause: `result` is the element type and values to a few digits, or
    the exception, in whose `words` it says why."""

    clause: str
    operator: str
    library: str
    version: str
    date: str
    python: str
    result: str
    words: str = ""

    @property
    def refused(self) -> bool:
        """Whether it raised an exception."""
        return self.result.startswith("raises ")


@dataclass(frozen=True)
class Peer:
    """A library: the module that is imported, and how its operators are called on NumPy input."""

    name: str
    module: str
    call: Callable[[ModuleType, str, Any, dict[str, Any]], Any]


def _torch(torch: ModuleType, operator: str, x, keywords: dict):
    tensors = {
        key: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
        for key, value in keywords.items()
    }
    axis = tensors.pop("axis", -1)
    x = torch.from_numpy(x) if isinstance(x, (np.ndarray, np.generic)) else x
    return getattr(torch, operator)(x, axis, **tensors).numpy()


def _function(module: ModuleType, operator: str, x, keywords: dict):
    return np.asarray(getattr(module, operator)(x, **{"axis": -1, **keywords}))


PEERS = {
    "torch": Peer("torch", "torch", _torch),
    "scipy": Peer("SciPy", "scipy.special", _function),
    "jax": Peer("JAX", "jax.nn", _function),
}
"""The libraries by the name of their distribution."""


def asked(clause: Clause) -> bool:
    """Whether a clause can be put to another library on a machine without a GPU."""
    return clause.scope != "gpu"


def importable(library: str) -> bool:
    """Whether it can be imported here."""
    try:
        import_module(PEERS[library].module)
    except ImportError:
        return False
    return True


def run(library: str, clause: Clause, operator: str) -> Outcome:
    """What the library that is installed here does on one clause, with its default settings.

    Raises ImportError where it is not installed.
    """
    peer = PEERS[library]
    module = import_module(peer.module)
    x, keywords = clause.call()
    words = ""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            result = told(peer.call(module, operator, x, keywords), clause)
    except Exception as error:  # whatever it raises is what it does
        result = f"raises {type(error).__name__}"
        words = " ".join(str(error).split())[:200]
    day = datetime.now(UTC).date().isoformat()
    where = version(library), day, platform.python_version()
    return Outcome(clause.name, operator, library, *where, result, words)


def told(y: np.ndarray, clause: Clause) -> str:
    """A result as the record has it: its type and values, for a large one those of both ends.

    Two digits of a float16 agree wherever it was rounded on the way.
    """
    if clause.scope == "large":
        y = np.concatenate([y[0, :LARGE], y[-1, :LARGE]])
    digits = 2 if y.dtype == np.float16 else 3
    values = y.ravel() if y.dtype.kind == "c" else y.ravel().astype(np.float64) + 0.0  # no -0
    return " ".join([str(y.dtype), *(f"{value:.{digits}g}" for value in values)])


def ours(clause: Clause, operator: str) -> str:
    """What the contract wants, in the same words."""
    wanted = clause.wanted(operator)
    if isinstance(wanted, type):
        return f"raises {wanted.__name__}"
    shape = np.shape(clause.call()[0])
    with np.errstate(under="ignore", over="ignore"):
        return told(np.broadcast_to(np.array(wanted, clause.dtype), shape), clause)


# ---------------------------------------------------------------------------------- the record


def path() -> Path:
    """The record, one line to a clause, operator and library."""
    return Path(__file__).resolve().parent / "data" / "peers.csv"


@cache
def recorded() -> dict[tuple[str, str, str], Outcome]:
    """What was written down, by clause, operator and library."""
    lines = path().read_text("utf-8").splitlines() if path().is_file() else []
    rows = csv.reader(line for line in lines if not line.startswith("#"))
    next(rows, None)
    found = (Outcome(*row) for row in rows)
    return {(each.clause, each.operator, each.library): each for each in found}


def record(say: Callable[[str], None] = print, large: bool = False) -> Path:
    """Put the clauses to the libraries that are importable here and write down what they do; the
    lines of others stay, and unless `large` those of more elements than an int counts.

    Raises RuntimeError where there is none.
    """
    here = [library for library in PEERS if importable(library)]
    if not here:
        raise RuntimeError(f"none of {', '.join(PEERS)} can be imported: pip install one")
    found = dict(recorded())
    for library in here:
        put = [c for c in CLAUSES.values() if asked(c) and (large or c.scope != "large")]
        say(f"{PEERS[library].name} {version(library)}: {len(put)} clauses")
        for clause in put:
            for operator in OPERATORS:
                found[clause.name, operator, library] = run(library, clause, operator)
    rewrite(path(), found.values())
    recorded.cache_clear()
    return path()


def rewrite(place: Path, outcomes: Iterable[Outcome]) -> None:
    """Write the record in the contract's order; clauses that are no longer there are left out."""
    order = {name: k for k, name in enumerate(CLAUSES)}
    kept = [each for each in outcomes if each.clause in order]
    kept.sort(key=lambda e: (order[e.clause], e.operator, e.library))
    text = io.StringIO()
    text.write("# What other libraries do on the clauses of the contract, on the CPU.\n")
    text.write("# Written by: python -m softmax_lab contract --peers\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([each.name for each in fields(Outcome)])
    writer.writerows(map(astuple, kept))
    place.write_text(text.getvalue(), encoding="utf-8", newline="\n")
