"""What was tried, as pages tell it: of the records, and "not measured yet" where there are none."""

from __future__ import annotations

import os

import pytest

from softmax_lab import recordfile, records, registry, tried
from softmax_lab.fingerprint import fingerprint
from softmax_lab.recordrows import Pressed, Sanitized, Soaked

ABOUT = {
    "GPU": "Toy GPU",
    "date": "2026-12-01 10:00 UTC",
    "driver": "1",
    "shapes": "5x7 37x33",
    "compute-sanitizer": "2026.1.0",
    "controls": "memcheck found reads_one_too_many; synccheck missed half_the_block",
}
NAMES = ("warp", "naive", "roof/copy")


@pytest.fixture(autouse=True)
def nothing_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTMAX_LAB_DATA", str(tmp_path))
    monkeypatch.setattr(records, "folder", lambda publish=False: tmp_path / str(publish))


def at(name: str) -> tuple:
    return "run", name, fingerprint(name), "float32", 37, 33


def sanitized(errors: int = 0) -> None:
    rows = [
        Sanitized(*at(name), tool, 2, errors if (name, tool) == ("warp", "racecheck") else 0)
        for name in NAMES
        for tool in ("memcheck", "racecheck")
    ]
    records.write("toy", rows, {"run": ABOUT})


def soaked(failures: int = 0) -> None:
    rows = [
        Soaked(*at(name), 7, 500, failures * (name == "warp"), 0.25) for name in ("warp", "naive")
    ]
    records.write("toy", rows, {"run": ABOUT})


def pressed(failures: int = 0) -> None:
    rows = [
        Pressed(*at(name), trial, 10, 2 * (trial == "memory"), failures * (name == "warp"))
        for name in ("warp", "naive")
        for trial in tried.TRIALS
    ]
    records.write("toy", rows, {"run": ABOUT})


def test_without_records_nothing_is_said():
    for view in (tried.under_tools, tried.at_random, tried.under_pressure):
        assert "not measured yet" in str(view())
        assert view()._repr_html_()


def test_a_clean_run_in_the_order_of_the_list():
    sanitized()
    words, table, controls, source = tried.under_tools().parts
    assert str(words) == "12 launches of 3 kernels, at 2 shapes under each of 2 tools: no error."
    assert [row[0] for row in table.rows] == ["`naive`", "`warp`", "`roof/copy`"]
    assert all(row[1:] == ("0", "0") for row in table.rows)
    assert "missed half_the_block" in str(controls)
    assert "Toy GPU, 2026-12-01" in str(source) and "compute-sanitizer 2026.1.0" in str(source)


def test_errors_are_told_and_where():
    sanitized(errors=3)
    words, table, *_ = tried.under_tools().parts
    assert "3 errors" in str(words)
    assert [row for row in table.rows if row[1:] != ("0", "0")] == [("`warp`", "0", "3")]


def test_random_launches_are_summed():
    soaked()
    words, table, absent, _ = tried.at_random().parts
    assert "naive_store" in str(absent) and " warp," not in str(absent)
    assert str(words) == "1\u202f000 launches of 2 kernels, seed 7: none was wrong."
    assert table.rows == (("`naive`", "500", "0", "25%"), ("`warp`", "500", "0", "25%"))
    soaked(failures=2)
    assert "2 were wrong" in str(tried.at_random().parts[0])


def test_trials_are_told_one_by_one_and_which_kernel_failed():
    pressed()
    words, table, absent, source = tried.under_pressure().parts
    assert str(words) == (
        "120 launches of 2 kernels, and 4 calls that failed as they had to: nothing was wrong."
    )
    assert table.rows[0] == (tried.TRIALS["streams"], "20", "0", "0")
    assert table.rows[2] == (tried.TRIALS["memory"], "20", "4", "0")
    assert "naive_store" in str(absent) and "Toy GPU, 2026-12-01" in str(source)
    pressed(failures=3)
    words, table, wrong, *_ = tried.under_pressure().parts
    assert "18 were wrong" in str(words) and table.rows[0][3] == "3"
    assert "warp" in str(wrong) and "naive" not in str(wrong)


def test_what_other_source_did_is_not_told(monkeypatch):
    soaked()
    monkeypatch.setattr(records, "fingerprint", lambda *kernel: "of today")
    assert "not measured yet" in str(tried.at_random())


# ------------------------------------------------------------------------------ what is published


@pytest.mark.parametrize("kind", ["sanitize", "soak", "pressure"])
def test_what_is_published_is_clean(kind, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("SOFTMAX_LAB_DATA", os.devnull)
    for slug in records.gpus():
        rows = recordfile.read(records.folder(publish=True) / slug / f"{kind}.csv").rows
        for row in rows:
            assert not (row.errors if kind == "sanitize" else row.failures), row
            assert kind != "soak" or row.worst <= 1
        if rows and kind == "sanitize":
            names = {row.kernel for row in rows}
            assert names <= {*registry.KERNELS, *registry.EXHIBITS}
