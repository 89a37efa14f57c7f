"""Questions and their answers: computed, never typed, and refused where no answer fits."""

from __future__ import annotations

import pytest

from softmax_lab import ledger, live, predictions
from softmax_lab.counts import Counts
from softmax_lab.predictions import choice, number, of, predict, sourced
from softmax_lab.prose import Sentence
from softmax_lab.records import Measured

REPLIES = {4: "Four?", 32: "Yes."}


def run(seconds, copy=None):
    about, counted = {"date": "2031-02-03"}, {"date": "2032-04-05"}
    return Measured(
        *("naive", "float32", 8, 9, "nvidia-h200"),
        seconds=seconds,
        copy_seconds=copy,
        level="DRAM",
        provenance=about,
        counters_provenance=counted,
    )


def test_values_of_a_ledger_are_those_of_its_columns():
    book = ledger.ledger("naive", 256, 1024)
    assert of(book, "load_sectors", "load_requests") == {
        "derived": 32,
        "counted": 32,
        "measured": 32,
    }
    assert of(book, "exp") == {"derived": 524288, "counted": 524288, "measured": None}
    bare = ledger.ledger("naive", 3, 100, counted=False)
    assert of(bare, "load_sectors", "load_requests") == {
        "derived": 3,
        "counted": None,
        "measured": None,
    }


def test_the_right_option_is_the_one_that_equals_the_truth():
    assert choice("?", REPLIES, {"derived": 4, "measured": 32}).right == 1
    assert choice("?", REPLIES, {"derived": 4, "measured": None}).right == 0
    assert choice("?", REPLIES, {"measured": None}).right is None
    with pytest.raises(ValueError, match=r"no option of \[4, 32\] is the answer, 16"):
        choice("How many?", REPLIES, {"measured": 16})


def test_of_one_thing_there_is_one():
    def labels(unit):
        return [label for label, _ in choice("?", {1: "", 4: ""}, right=0, unit=unit).options]

    assert labels("sectors") == ["1 sector", "4 sectors"]
    assert labels("µs") == ["1 µs", "4 µs"]
    assert labels("") == ["1", "4"]


def test_times_compare():
    assert predictions.share_of_copy(run(4.0, 1.0)) == {"measured": 25}
    assert predictions.share_of_copy(run(4.0)) == {"measured": None}
    assert predictions.share_of_copy(None) == {"measured": None}
    assert predictions.gain(run(3.0), run(2.0)) == {"measured": 1.5}
    assert predictions.gain(run(3.0), None) == {"measured": None}


@pytest.mark.parametrize(
    ("ratio", "place"), [(0.5, 0), (0.98, 1), (1.02, 1), (1.15, 2), (1.32, 3), (1.9, 4)]
)
def test_a_gain_against_what_was_promised(ratio, place):
    assert predictions.against_promise(run(ratio), run(1.0), 4 / 3) == place
    assert predictions.against_promise(run(ratio), None, 4 / 3) is None


def test_runs_of_one_machine_share_a_line():
    elsewhere = Measured("naive", "float32", 3, 3, "tesla-t4", seconds=1.0)
    lines = predictions._where([run(1.0), run(2.0), elsewhere])
    assert [str(line).split(":")[0] for line in lines] == [
        "Measured on 8\u00a0×\u00a09 float32",
        "Measured on 3\u00a0×\u00a03 float32",
    ]


def test_counters_are_sourced_by_the_run_that_read_them():
    times, counters = (
        run(1.0),
        Measured(
            *("warp", "float32", 3, 4, "nvidia-h200"), counters_provenance={"date": "2032-04-05"}
        ),
    )
    said = sourced(Sentence("So."), runs=[times, None], counters=[counters, None])
    first, clock, read = map(str, said.parts)
    assert first == "So."
    assert clock.startswith("Measured on 8\u00a0×\u00a09 float32: NVIDIA H200, 2031-02-03.")
    assert clock.endswith("Each timed launch found its data in DRAM.")
    assert read == "Hardware counters read on 3\u00a0×\u00a04 float32: NVIDIA H200, 2032-04-05."
    asked = number("?", {"measured": 1.0})
    assert "2032" not in predict(asked, runs=[times]).data["then"]
    both = predict(asked, runs=[times], counters=[times]).data["then"]
    assert "2031-02-03" in both and "2032-04-05" in both and both.count("data in DRAM") == 1


def test_the_page_gets_questions_and_answers(monkeypatch):
    monkeypatch.setenv(live.IN_THE_BOOK, "1")
    asked = choice("How **many**?", REPLIES, {"derived": 32, "counted": 32}, unit="sectors")
    view = predict(asked, number("Share?", {"measured": None}, "%"), runs=[run(1.0), None])
    assert view.data["levels"] == ["derived", "counted", "measured"]
    first, second = view.data["questions"]
    assert first["ask"] == "How <strong>many</strong>?"
    assert [label for label, _ in first["options"]] == ["4 sectors", "32 sectors"]
    assert (first["right"], first["measurable"]) == (1, False)
    assert (second["options"], second["measurable"]) == (None, True)
    for words in ("2031-02-03", "NVIDIA H200", "data in DRAM", "8\u00a0×\u00a09"):
        assert words in view.data["then"]
    assert "not measured yet" in view.still
    before, answers = view.still.split("<details>")
    assert "2031" not in before and "Yes." not in before
    assert "2031" in answers and "Yes." in answers


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: predict(), "at least one question"),
        (lambda: number("?", {}), "nothing answers"),
        (lambda: number("?", {"derived": -1}), "finite and 0 or more, got -1"),
        (lambda: number("?", {"measured": float("inf")}), "finite and 0 or more, got inf"),
        (lambda: number("?", {"guessed": 3}), "levels are derived, counted, measured"),
        (lambda: choice("?", REPLIES, right=2), "2 options, got number 2"),
    ],
)
def test_nonsense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_count_that_nobody_knows_is_no_zero():
    assert Counts().exp is None
    assert number("?", {"derived": None, "measured": None}).truth is None


@pytest.mark.parametrize(
    ("seconds", "place"), [((2, 1, 3), 1), ((1, 1.02, 3), 3), ((1.1, 9), 0), ((1, None), None)]
)
def test_the_fastest_stands_out_or_nobody_does(seconds, place):
    assert predictions.fastest([each and run(each) for each in seconds]) == place
