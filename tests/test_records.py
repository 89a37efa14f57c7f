"""Records: what a row replaces, what makes it stale, and that nothing else is ever lost."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmax_lab import counters, facts, fingerprint, records, registry
from softmax_lab.__main__ import main
from softmax_lab.recordrows import KINDS, Counter, Timing
from softmax_lab.registry import Kernel

ABOUT = {"GPU": "Toy GPU", "date": "2026-12-01 10:00 UTC", "protocol": "one, two\nthree: four"}
NOW = fingerprint.fingerprint("naive")
ROOF = fingerprint.fingerprint("roof/copy")


@pytest.fixture(autouse=True)
def _folders(tmp_path, monkeypatch):
    """Both places are empty and this test's own."""
    monkeypatch.setenv("SOFTMAX_LAB_DATA", str(tmp_path / "mine"))
    monkeypatch.setattr(records, "__file__", str(tmp_path / "package" / "records.py"))


def timing(rows=256, cols=1024, median=1e-4, **changes) -> Timing:
    row = Timing(
        run="run-1",
        kernel="naive",
        fingerprint=NOW,
        dtype="float32",
        rows=rows,
        cols=cols,
        method="graph",
        level="DRAM",
        pairs=121,
        repeats=15,
        median_s=median,
        p20_s=median / 2,
        p80_s=median * 2,
        copy=ROOF,
        copy_median_s=1e-6,
        copy_p20_s=1e-6,
        copy_p80_s=1.1e-6,
    )
    return dataclasses.replace(row, **changes)


def counter(metric: str, value: float, **changes) -> Counter:
    row = Counter("run-1", "naive", NOW, "float32", 256, 1024, metric, "sector", value)
    return dataclasses.replace(row, **changes)


def write(*rows, gpu="toy", publish=False, about=ABOUT):
    return records.write(gpu, rows, {row.run: about for row in rows}, publish)


# ------------------------------------------------------------------------------ files


def test_what_is_written_is_read_back():
    rows = (timing(), timing(250, 1001, 3.25e-7))
    path = write(*rows)
    assert path == records.folder() / "toy" / "bench.csv"
    table = records.read(path)
    assert set(table.rows) == set(rows)
    assert table.runs["run-1"] == {**ABOUT, "protocol": "one, two three: four"}
    lines = path.read_text().splitlines()
    head = next(i for i, line in enumerate(lines) if not line.startswith("#"))
    assert head >= 4  # provenance comes first
    assert not any(line.startswith("#") for line in lines[head:])
    assert lines[head].split(",")[:3] == ["run", "kernel", "fingerprint"]
    assert not list(path.parent.glob("*.new"))


def test_a_newer_row_replaces_its_like_and_leaves_the_others():
    write(timing(), timing(32, 65536), timing(kernel="other"), timing(method="events"))
    write(timing(median=5e-5, run="run-2"), about={"GPU": "Toy GPU", "date": "later"})
    table = records.table("bench", "toy")
    found = {(row.kernel, row.rows, row.method): (row.run, row.median_s) for row in table.rows}
    assert found == {
        ("naive", 256, "graph"): ("run-2", 5e-5),
        ("naive", 32, "graph"): ("run-1", 1e-4),
        ("other", 256, "graph"): ("run-1", 1e-4),
        ("naive", 256, "events"): ("run-1", 1e-4),
    }
    assert table.runs["run-1"]["date"] != table.runs["run-2"]["date"] == "later"


def test_a_run_that_no_row_names_any_more_loses_its_lines():
    write(timing())
    path = write(timing(run="run-2"))
    assert set(records.read(path).runs) == {"run-2"}


def test_a_profile_is_replaced_whole():
    write(counter("dram__bytes_read.sum", 10), counter("gone.sum", 1))
    path = write(counter("dram__bytes_read.sum", 20, run="run-2"))
    assert [(row.metric, row.value) for row in records.read(path).rows] == [
        ("dram__bytes_read.sum", 20)
    ]


def _write_many(start: int) -> None:
    for i in range(10):
        write(timing(start + i, run=f"run-{start}-{i}"))


def test_writers_at_once_lose_nothing():
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_write_many, args=(1000 * k,)) for k in range(1, 5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    table = records.table("bench", "toy")
    assert {row.rows for row in table.rows} == {
        1000 * k + i for k in range(1, 5) for i in range(10)
    }
    assert {row.run for row in table.rows} == set(table.runs)


def test_a_writer_that_dies_half_way_leaves_the_old_file(monkeypatch):
    path = write(timing())
    before = path.read_bytes()
    monkeypatch.setattr(type(path), "replace", lambda *_: (_ for _ in ()).throw(OSError(5, "I/O")))
    with pytest.raises(PermissionError, match="cannot write"):
        write(timing(1, 1))
    assert path.read_bytes() == before


def test_write_refuses_what_it_could_not_explain():
    with pytest.raises(ValueError, match="no provenance for the run run-1"):
        records.write("toy", [timing()], {})
    with pytest.raises(ValueError, match="one kind"):
        records.write("toy", [timing(), counter("a", 1)], {"run-1": ABOUT})
    with pytest.raises(ValueError, match="one kind"):
        records.write("toy", [], {})
    assert records.gpus() == ()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_nobody_may_write_is_one_clear_message(tmp_path, monkeypatch):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    monkeypatch.setenv("SOFTMAX_LAB_DATA", str(closed / "here"))
    with pytest.raises(PermissionError, match="set SOFTMAX_LAB_DATA to a folder of yours"):
        write(timing())


def test_a_file_in_the_way_is_one_clear_message(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SOFTMAX_LAB_DATA", str(tmp_path / "file"))
    with pytest.raises(PermissionError, match="set SOFTMAX_LAB_DATA to a folder of yours"):
        write(timing())


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [("1024", "wide", r"line \d+: "), (",DRAM", "", r"line \d+: "), ("rows,", "", "columns")],
)
def test_a_file_that_cannot_be_read_names_its_line(old, new, match):
    path = write(timing())
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(ValueError, match=match):
        records.read(path)


def test_the_users_folder_follows_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert records.folder() == tmp_path / "mine"
    monkeypatch.delenv("SOFTMAX_LAB_DATA")
    assert records.folder() == tmp_path / "xdg" / "softmax-lab"


def test_run_names_differ():
    assert len({records.run_id() for _ in range(50)}) == 50


# ------------------------------------------------------------------------------ lookup


def test_lookup_joins_times_and_counters():
    write(timing())
    write(
        counter("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", 24576),
        counter("lts__t_sectors_op_read.sum", 100),
        counter("dram__bytes_read.sum", 30.5),
        counter("dram__bytes_write.sum", 0),
        about={**ABOUT, "Nsight Compute": "2025.3"},
    )
    found = records.lookup("naive", 256, 1024)
    assert (found.seconds, found.copy_seconds, found.level) == (1e-4, 1e-6, "DRAM")
    assert found.counts.load_requests == 24576
    assert found.counts.dram_bytes == 30.5
    assert found.counts.l2_sectors is None  # only half of it was counted: unknown, not a half
    assert found.counts.add is None
    assert found.counters["lts__t_sectors_op_read.sum"] == 100
    assert found.provenance["GPU"] == "Toy GPU"
    assert found.counters_provenance["Nsight Compute"] == "2025.3"


def test_lookup_of_times_alone_knows_no_counts():
    write(timing())
    assert records.lookup("naive", 256, 1024).counts.known() == {}


def test_lookup_never_guesses_but_names_the_nearest():
    with pytest.raises(LookupError, match="not measured yet, nor is any other"):
        records.lookup("naive", 256, 1024)
    write(timing(256, 1024), timing(32, 65536))
    with pytest.raises(LookupError, match="nearest recorded is 256 × 1024 on toy"):
        records.lookup("naive", 512, 1024)
    with pytest.raises(LookupError, match="nearest recorded is 32 × 65536 on toy"):
        records.lookup("naive", 64, 65536)
    with pytest.raises(LookupError, match="on elsewhere is not measured yet"):
        records.lookup("naive", 256, 1024, gpu="elsewhere")
    both = dataclasses.replace(registry.get("naive"), dtypes=("float32", "float16"))
    with pytest.raises(LookupError, match="float16"):
        records.lookup(both, 256, 1024, "float16")
    with pytest.raises(ValueError, match="naive takes float32, got 'junk'"):
        records.lookup("naive", 256, 1024, "junk")
    with pytest.raises(ValueError, match="naive"):
        records.lookup("nothing", 256, 1024)


def test_an_events_row_is_no_answer():
    write(timing(method="events"))
    assert records.lookup("naive", 256, 1024).seconds is None


def test_the_readers_own_rows_win_for_their_gpu_and_shape():
    write(timing(median=1.0), timing(32, 65536, 2.0), publish=True)
    write(timing(median=3.0, run="mine"))
    assert records.lookup("naive", 256, 1024).seconds == 3.0
    assert records.lookup("naive", 32, 65536).seconds == 2.0
    assert records.gpus() == ("toy",)


def test_a_readers_stale_row_hides_nothing():
    write(timing(median=1.0), publish=True)
    write(timing(median=3.0, run="mine", fingerprint="0" * 16))
    assert records.lookup("naive", 256, 1024).seconds == 1.0


def test_stale_rows_are_found_and_never_answer():
    write(timing(fingerprint="0" * 16), timing(32, 65536))
    write(counter("a", 1, kernel="forgotten"), publish=True)
    assert {(row.kernel, row.rows) for _, row in records.stale()} == {
        ("naive", 256),
        ("forgotten", 256),
    }
    with pytest.raises(LookupError, match="other source than today's"):
        records.lookup("naive", 256, 1024)
    assert records.lookup("naive", 32, 65536).seconds == 1e-4


def test_a_row_beside_another_copy_kernel_is_stale():
    write(timing(copy="0" * 16))
    assert len(records.stale()) == 1


def test_drop_takes_one_kernel_from_both_places_and_no_more():
    write(timing(), timing(kernel="other"), publish=True)
    write(timing(32, 65536, run="mine"))
    write(counter("a", 1), counter("b", 2))
    assert records.drop("naive") == 4
    assert records.drop("naive") == 0
    assert [row.kernel for row in records.table("bench", "toy").rows] == ["other"]
    assert records.table("profile", "toy").rows == ()


def test_live_is_what_the_reader_asked_for(monkeypatch):
    for value, wanted in (("", False), ("0", False), ("1", True)):
        monkeypatch.setenv("SOFTMAX_LAB_LIVE", value)
        assert records.live() is wanted


def test_kinds_are_checked():
    assert set(KINDS) == {"bench", "profile", "clock", "rerun", "sanitize", "soak", "pressure"}
    with pytest.raises(ValueError, match="bench or profile"):
        records.table("times", "toy")


# ------------------------------------------------------------------------------ what is published


@pytest.fixture
def published(monkeypatch):
    """The package's own records, one (GPU, kind) table after another."""
    monkeypatch.undo()
    monkeypatch.setenv("SOFTMAX_LAB_DATA", os.devnull)
    return [(slug, records.table(kind, slug)) for slug in records.gpus() for kind in KINDS]


def test_nothing_published_is_stale(published):
    found = sorted({(path.parent.name, path.stem, row.kernel) for path, row in records.stale()})
    assert not found, "other source than today's: measure again, or `records drop` the kernel"


def test_every_published_run_says_where_it_comes_from(published):
    wanted = {
        "GPU",
        "driver",
        "CUDA",
        "CuPy",
        "NVRTC",
        "clocks seen",
        "date",
        "command",
        "protocol",
    }
    for slug, table in published:
        assert {row.run for row in table.rows} == set(table.runs)
        for about in table.runs.values():
            assert wanted <= set(about)
            assert facts.slug(about["GPU"]) == slug


def test_no_published_time_is_faster_than_memory(published):
    for slug, table in published:
        for row in table.rows:
            if not isinstance(row, Timing):
                continue
            assert row.p20_s <= row.median_s <= row.p80_s
            assert row.copy_p20_s <= row.copy_median_s <= row.copy_p80_s
            if row.level == "DRAM" and slug in facts.GPUS:
                peak = facts.GPUS[slug].dram_bytes_per_s
                for name, seconds in ((row.kernel, row.median_s), ("roof/copy", row.copy_median_s)):
                    useful = registry.get(name).family.once(row.rows, row.cols, row.dtype)
                    assert useful / seconds <= peak, name


# ------------------------------------------------------------------------------ fingerprints


def kernel(tmp_path, monkeypatch, source: str, **changes) -> Kernel:
    (tmp_path / "softmax").mkdir(exist_ok=True)
    (tmp_path / "softmax" / "naive.cu").write_text(source)
    monkeypatch.setattr(registry, "kernel_folder", lambda: tmp_path)
    return dataclasses.replace(registry.get("naive"), **changes)


SOURCE = (
    '#include "../common.cuh"\n#define A(x) x  // twice\nint f() { return A(1) + g("a  b"); }\n'
)


def test_comments_and_white_space_do_not_count(tmp_path, monkeypatch):
    (tmp_path / "common.cuh").write_text("int g(const char*);")
    first = fingerprint.fingerprint(kernel(tmp_path, monkeypatch, SOURCE))
    same = (
        '// a comment\n  #  include   "../common.cuh"\n#define A(x) /* two\nlines */ \\\n  x\n'
        'int f( )\n{\n  return A(1)+g( "a  b" ) ; /* " */\n}'
    )
    assert fingerprint.fingerprint(kernel(tmp_path, monkeypatch, same)) == first


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A(1)", "A(2)"),
        ("a  b", "a b"),
        ("a  b", "a // b"),
        ("int f", "intf"),
        ("+ g", "+ +g"),
        ("A(x) x", "A (x) x"),
        ("#define", "//#define"),
    ],
)
def test_code_counts(tmp_path, monkeypatch, old, new):
    (tmp_path / "common.cuh").write_text("int g(const char*);")
    first = fingerprint.fingerprint(kernel(tmp_path, monkeypatch, SOURCE))
    changed = SOURCE.replace(old, new)
    assert changed != SOURCE
    assert fingerprint.fingerprint(kernel(tmp_path, monkeypatch, changed)) != first


def test_headers_constants_and_types_count(tmp_path, monkeypatch):
    (tmp_path / "common.cuh").write_text("int g(const char*);")
    made = kernel(tmp_path, monkeypatch, SOURCE)
    seen = {fingerprint.fingerprint(made), fingerprint.fingerprint(made, "float16")}
    seen.add(fingerprint.fingerprint(dataclasses.replace(made, rows_per_block=64)))
    seen.add(fingerprint.fingerprint(dataclasses.replace(made, threads_per_row=32)))
    seen.add(fingerprint.fingerprint(dataclasses.replace(made, shared_bytes=512)))
    seen.add(fingerprint.fingerprint(dataclasses.replace(made, rows_along_y=True)))
    (tmp_path / "common.cuh").write_text(
        '#include "common.cuh"\nint g(char*);'
    )  # and no endless loop
    seen.add(fingerprint.fingerprint(made))
    monkeypatch.setattr(fingerprint, "FLAGS", ("--std=c++20",))
    seen.add(fingerprint.fingerprint(made))
    assert len(seen) == 8


def test_prose_about_a_kernel_does_not_count():
    made = registry.get("naive")
    assert fingerprint.fingerprint(dataclasses.replace(made, title="x", textbook=())) == NOW


@given(st.text(alphabet="ab1./*\"'\n #<>+-=()", max_size=40))
def test_tokens_survive_new_spacing(text):
    tokens = fingerprint.tokens(text)
    if not any(token.startswith("#") or "\n" in token for token in tokens):
        assert fingerprint.tokens("\n  ".join(tokens)) == tokens


# ------------------------------------------------------------------------------ counters


def test_counters_in_the_terms_of_counts():
    opcodes = {"SHFL": 320, "BAR": 24, "LDS": 8, "STS": 4, "FFMA": 9}
    values = {f"{counters.OPCODES}.{name}": value for name, value in opcodes.items()}
    counts = counters.counts(values, block=256)
    assert (counts.shuffles, counts.barriers, counts.shared_requests) == (320, 3, 12)
    assert counts.branches is None
    none = counters.counts({f"{counters.OPCODES}.FFMA": 9}, block=32)
    assert (none.shuffles, none.barriers) == (0, 0)  # counted, and there were none
    assert counters.counts({counters.OPCODES: 9}, block=32).shuffles is None  # no table, no answer


def test_the_map_uses_only_counters_that_are_asked_for():
    assert {name for names in counters.COUNTED.values() for name in names} <= set(counters.METRICS)


# ------------------------------------------------------------------------------ command line


def test_records_commands(tmp_path, capsys):
    def call(*arguments):  # in this process: a new one would drop the package's own records
        code = main(["records", *arguments])
        return code, capsys.readouterr().out

    write(timing(), timing(32, 65536, fingerprint="0" * 16))
    code, listed = call("list")
    assert code == 0
    assert "toy  bench    naive float32 32x65536: 1 rows" in listed
    code, stale = call("stale")
    assert code == 1
    assert "1 rows of naive were recorded from other source" in stale
    assert call("drop")[0] == 1
    assert call("drop", "naive") == (0, "2 rows of naive removed\n")
    assert not records.read(tmp_path / "mine" / "toy" / "bench.csv").rows
    assert call("drop", "naive") == (1, "0 rows of naive removed\n")


def test_only_a_name_that_is_known_is_dropped(capsys):
    write(timing(kernel="retired"), timing())
    assert main(["records", "drop", "nope"]) == 1
    said = capsys.readouterr()
    assert "no kernel and no record is called 'nope'; there are naive, " in said.err
    assert said.err.endswith("retired\n") and not said.out
    assert main(["records", "drop", "retired"]) == 0  # gone from the list, but its row is there
    assert [row.kernel for row in records.table("bench", "toy").rows] == ["naive"]
