"""What other libraries do with the contract: written down for every clause, and still so."""

from __future__ import annotations

import re

import numpy as np
import pytest

from softmax_lab import __main__, contract_table, peers
from softmax_lab.contract import CLAUSES, GROUPS, OPERATORS
from softmax_lab.peers import PEERS, Outcome
from softmax_lab.prose import plain

ASKED = {
    (clause.name, operator, library)
    for clause in CLAUSES.values()
    for operator in OPERATORS
    for library in PEERS
    if peers.asked(clause)
}


def test_every_clause_was_put_to_every_library():
    assert set(peers.recorded()) == ASKED


def test_a_record_names_version_date_and_python():
    for each in peers.recorded().values():
        assert re.fullmatch(r"\d+\.\d+\.\d+(\+\w+)?", each.version)
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", each.date)
        assert re.fullmatch(r"3\.\d+\.\d+", each.python)
        assert each.refused == bool(each.words)


@pytest.mark.parametrize("library", PEERS)
def test_a_library_that_is_here_does_as_recorded(library):
    if not peers.importable(library):
        pytest.skip(f"{PEERS[library].name} is not installed: pip install {library}")
    changed = {}
    for clause in CLAUSES.values():
        if clause.scope:  # too large, or for two memories
            continue
        for operator in OPERATORS:
            now = peers.run(library, clause, operator)
            then = peers.recorded()[clause.name, operator, library]
            if now.result != then.result:
                changed[clause.name, operator] = now, then
    assert not changed, "record again: python -m softmax_lab contract --peers"


def test_what_is_recorded_is_what_is_run(monkeypatch, tmp_path):
    """A library of one function each, with a fault: it takes no mask for what it is."""
    fake = type("fake", (), {})()
    fake.softmax = lambda x, axis: np.full_like(x, 1 / np.shape(x)[axis], np.float64)
    fake.log_softmax = lambda x, axis, out=None: np.log(fake.softmax(x, axis))
    monkeypatch.setattr(peers, "PEERS", {"even": peers.Peer("Even", "even", peers._function)})
    monkeypatch.setattr(peers, "import_module", lambda name: fake)
    monkeypatch.setattr(peers, "version", lambda name: "1.2.3")
    monkeypatch.setattr(peers, "path", lambda: tmp_path / "peers.csv")
    peers.recorded.cache_clear()
    try:
        peers.record(lambda line: None)
        found = peers.recorded()
    finally:
        peers.recorded.cache_clear()
    assert len(found) == 2 * sum(not clause.scope for clause in CLAUSES.values())
    assert found["masked entry", "softmax", "even"].result == "float64 0.333 0.333 0.333"
    assert found["axis out of range", "softmax", "even"].result == "raises IndexError"
    assert "'out'" in found["out", "softmax", "even"].words


def test_nobody_to_ask_is_said(monkeypatch):
    monkeypatch.setattr(peers, "importable", lambda library: False)
    with pytest.raises(RuntimeError, match="none of torch, scipy, jax can be imported"):
        peers.record()


# --- the table ------------------------------------------------------------------------------------


def cell(clause: str, column: int) -> str:
    return next(row[column] for row in contract_table.table().rows if f"**{clause}:**" in row[0])


def test_the_table_has_every_clause_once_and_every_group():
    table = contract_table.table()
    assert len(table.rows) == len(CLAUSES) == sum(map(len, GROUPS.values()))
    assert [words for _, words in table.groups] == list(GROUPS)
    for library in PEERS:
        versions = {each.version for key, each in peers.recorded().items() if key[2] == library}
        assert all(f"{PEERS[library].name} {version}" in table.note for version in versions)


def test_cells_say_what_differs(monkeypatch):
    def other(result, words="", operator="softmax"):
        found = dict(peers.recorded())
        for each in OPERATORS:
            ours = peers.ours(CLAUSES["out overlaps x"], each)
            key = "out overlaps x", each, "torch"
            given = result if each == operator else ours
            found[key] = Outcome(*key, "1.2.3", "2026-01-01", "3.11.7", given, words)
        monkeypatch.setattr(contract_table, "recorded", lambda: found)
        return cell("out overlaps x", 3)

    ours = peers.ours(CLAUSES["out overlaps x"], "softmax")
    assert other(ours) == "same"
    assert other(ours.replace("float32", "float64")).startswith("softmax: same, in float64")
    assert other("raises IndexError", "bad").startswith("softmax: `IndexError`")
    assert "gives …, NaN, 0.245, 0.665; " in other(
        "float32 0.09 0.245 0.665 0.09 0.245 0.665 nan 0.245 0.665"
    )
    out = "f() got an unexpected keyword argument 'out'"
    assert other("raises TypeError", out).startswith("softmax: has no `out`")


def test_what_was_not_run_is_said(monkeypatch):
    monkeypatch.setattr(contract_table, "recorded", dict)
    assert cell("NaN", 3) == "not measured yet"
    assert "not measured yet" in contract_table.table().note


def test_the_share_that_agrees_is_counted_from_the_table():
    said = str(contract_table.agreement())
    for k, (library, peer) in enumerate(PEERS.items()):
        column = [row[3 + k] for row in contract_table.table().rows]
        asked = sum(peers.asked(clause) for clause in CLAUSES.values())
        missing = column.count("not measured yet")
        assert f"{peer.name} on {column.count('same')} of {asked - missing}" in said, library


@pytest.mark.parametrize("width", [60, 100])
def test_the_command_prints_the_table_in_lines_that_fit(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    assert __main__.main(["contract"]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= width
    for row in contract_table.table().rows:  # the lines of a clause and of its cells are one again
        for words in row:
            assert plain(words) in re.sub(r"\s+", " ", said)
    assert "\n  same: a kernel, torch, SciPy, JAX\n" in said


def test_half_an_option_is_refused(capsys):
    assert __main__.main(["contract", "--large"]) == 1
    assert "--large goes with --peers" in capsys.readouterr().err
