"""What the explorer and the recorded shapes are handed, and what they refuse."""

from __future__ import annotations

import json

import pytest

from softmax_lab import alive, cost, explorers, facts, ledger, live, records, registry
from softmax_lab.records import Measured


def test_the_cost_explorer_brings_formulas_and_no_numbers_of_its_own():
    data = json.loads(json.dumps(explorers.costs("warp", 37, 100).data))
    assert [each["name"] for each in data["kernels"]] == [k.name for k in registry.LADDER]
    warp = next(each for each in data["kernels"] if each["name"] == "warp")
    assert dict(map(tuple, warp["executed"]))["write"]["exp"] == ["*", "M", "N"]
    assert data["start"] == {"kernel": "warp", "rows": 37, "cols": 100}
    sheet, copy = data["roofs"]
    assert sheet["bandwidth"] == facts.GPUS["nvidia-h200"].dram_bytes_per_s
    assert 0.8 < copy["bandwidth"] / sheet["bandwidth"] < 1
    run = records.lookup("warp", 256, 1024)
    assert data["recorded"]["runs"]["warp 256 1024"] == run.seconds
    assert run.provenance["date"] in data["source"]


@pytest.mark.parametrize("kernel", registry.KERNELS)
def test_a_kernel_is_explored_beside_its_family_alone(kernel):
    family = registry.get(kernel).family
    data = explorers.costs(kernel, 37, 101).data
    assert [each["name"] for each in data["kernels"]] == [
        k.name for k in registry.KERNELS.values() if k.family is family
    ]
    lookup = ledger.symbols(registry.get(kernel), {"rows": 37, "cols": 101})
    assert cost.value(explorers.once(family), lookup) == family.once(37, 101)
    timed = records.timed([registry.get(each["name"]) for each in data["kernels"]])
    assert data["recorded"]["runs"].keys() == {f"{r.kernel} {r.rows} {r.cols}" for r in timed}
    assert timed, "its times are in the record"
    assert ("expected values" in data["note"]) == (family is not registry.GEMV)
    assert ("exp" in data["words"]) == (family is not registry.GEMV)


def test_the_copy_roof_is_the_best_rate_and_is_named():
    def run(rows, seconds, level="DRAM"):
        about = {"date": "2031-02-03"}
        return Measured(
            *("naive", "float32", rows, 1000, "nvidia-h200"),
            seconds=1,
            copy_seconds=seconds,
            level=level,
            provenance=about,
        )

    runs = [run(1000, 2e-6), run(10000, 4e-6), run(3000, 1e-7, "L2")]
    roofs, _, said = explorers._roofs(runs)
    assert roofs[-1].bandwidth == 2 * 4 * 10000 * 1000 / 4e-6
    assert "10\u202f000\u00a0×\u00a01\u202f000" in said and "2031-02-03" in said
    (only,), peak, said = explorers._roofs([])
    assert only.label == "data sheet" and peak and "Copy" not in said


def test_without_records_the_explorer_has_the_data_sheet_alone(monkeypatch):
    monkeypatch.setattr(records, "timed", lambda *_: ())
    view = explorers.costs("naive", 4, 4)
    assert [roof["label"] for roof in view.data["roofs"]] == ["data sheet"]
    assert view.data["recorded"]["runs"] == {}
    assert "not measured yet" in str(explorers.shapes())


@pytest.mark.slow
def test_the_recorded_shapes_are_those_of_the_record():
    data = explorers.shapes("warp", 65536, 1024).data
    for run in data["runs"]:
        shape = data["shapes"][run["shape"]]
        assert run["seconds"] == ledger.measure(run["kernel"], *shape).seconds
    assert data["shapes"][data["start"]["shape"]] == (65536, 1024)
    found = {(run["kernel"], run["shape"]) for run in data["runs"]}
    timed = records.timed(registry.LADDER)
    assert found == {(r.kernel, data["shapes"].index((r.rows, r.cols))) for r in timed}
    assert len(found) == len(data["runs"])
    assert {kernel for kernel, _ in found} == {each.name for each in registry.LADDER}


def test_only_the_rungs_asked_for_are_shown():
    names = registry.so_far("online")
    view = explorers.shapes("naive", 256, 1024, names)
    assert [each["name"] for each in view.data["kernels"]] == names
    assert {run["kernel"] for run in view.data["runs"]} == set(names)
    assert "block_" not in view.still and "block_" in explorers.shapes().still


def test_a_table_of_runs_names_shapes_only_where_they_differ():
    runs = [records.lookup(name, 256, 1024) for name in ("naive", "warp")]
    assert "shape" not in explorers.beside(runs).heads
    assert "shape" in explorers.beside([*runs, records.lookup("warp", 250, 1001)]).heads


def test_timed_runs_leave_out_what_other_source_was_recorded_with(monkeypatch):
    before = records.timed(registry.LADDER)
    real = records.fingerprint

    def changed(kernel, dtype="float32"):
        return "0" * 16 if registry.get(kernel).name == "warp" else real(kernel, dtype)

    monkeypatch.setattr(records, "fingerprint", changed)
    after = records.timed(registry.LADDER)
    assert {run.kernel for run in before} - {run.kernel for run in after} == {"warp"}


@pytest.mark.parametrize(
    ("view", "error", "message"),
    [
        (lambda: explorers.costs("nave"), ValueError, "no kernel"),
        (lambda: explorers.costs("naive", 0, 4), ValueError, "1 to 1048576"),
        (lambda: explorers.costs("naive", 4, 2**21), ValueError, "1 to 1048576"),
        (lambda: explorers.costs("naive", 4.5, 4), TypeError, "integer"),
        (lambda: explorers.shapes("naive", 3, 3), LookupError, "256 × 1024"),
        (lambda: explorers.shapes("nave"), ValueError, "no kernel"),
        (lambda: explorers.shapes("warp", names=["naive"]), ValueError, "naive are shown, got 'wa"),
        (lambda: explorers.shapes(names=["roof/copy"]), ValueError, "ladder are shown, got 'roof/"),
    ],
)
def test_nonsense_is_refused(view, error, message):
    with pytest.raises(error, match=message):
        view()


def test_in_the_book_a_view_brings_no_script_of_its_own(monkeypatch):
    view = explorers.shapes()
    assert view._repr_html_().count("<script") == 2 + len(alive.SCRIPTS)  # its data and the start
    monkeypatch.setenv(live.IN_THE_BOOK, "1")
    assert view._repr_html_().count("<script") == 1
    assert len(explorers.costs()._repr_html_()) < 60_000
