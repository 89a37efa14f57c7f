"""compute-sanitizer over every kernel: what it says is read, and what it does not say is no
success."""

from __future__ import annotations

import sys
import textwrap
from types import SimpleNamespace

import pytest

from softmax_lab import gpu, planted, provenance, recordfile, registry, sanitize
from softmax_lab.__main__ import main

CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at naive+0x120
=========     by thread (41,0,0) in block (1,0,0)
=========     Address 0x7f0 is out of bounds
=========
========= ERROR SUMMARY: 2 errors
"""
RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Read access at block_tree+0x210
=========     and Write access at block_tree+0x2a0 [12 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


def test_closing_lines_are_read():
    assert sanitize.parse(CLEAN) == sanitize.Report(0, ())
    report = sanitize.parse("a line of the program\n" + MEMCHECK)
    assert report.errors == 2
    assert report.said[0] == "Invalid __global__ read of size 4 bytes"
    assert sanitize.parse(RACECHECK).errors == 1
    none = "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"
    assert sanitize.parse(none).errors == 0
    assert sanitize.parse(CLEAN + MEMCHECK).errors == 2  # of two processes


@pytest.mark.parametrize("text", ["", "========= Error: Device not supported\n", "ok\n"])
def test_silence_is_no_success(text):
    with pytest.raises(sanitize.SanitizerError, match="no summary"):
        sanitize.parse(text)


def test_every_tool_has_controls_among_the_planted_defects():
    faulty = {each.name for each in planted.planted() if each.fault}
    assert set(sanitize.CONTROLS) == {"memcheck", "racecheck", "initcheck", "synccheck"}
    assert {name for names in sanitize.CONTROLS.values() for name in names} <= faulty


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """A compute-sanitizer whose findings are a function of (tool, what is run) to text."""
    place = tmp_path / "compute-sanitizer"

    def install(body: str, status: int = 0):
        text = f"""\
            #!{sys.executable} -IS
            import sys
            if "--version" in sys.argv:
                print("NVIDIA (R) Compute Sanitizer\\nVersion 2026.1.0"), sys.exit()
            CLEAN, MEMCHECK = {CLEAN!r}, {MEMCHECK!r}
            value = lambda name: sys.argv[sys.argv.index(name) + 1] if name in sys.argv else ""
            tool, planted, kernels = value("--tool"), value("--planted"), value("--kernels")
            assert "--child" in sys.argv
            print({body})
            sys.exit({status})
            """
        place.write_text(textwrap.dedent(text))
        place.chmod(0o755)

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SOFTMAX_LAB_DATA", str(tmp_path))
    device = SimpleNamespace(id=0, compute_capability="90")
    fake = SimpleNamespace(cuda=SimpleNamespace(Device=lambda: device))
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setattr(gpu, "status", lambda: gpu.Status(True, name="Toy GPU"))
    monkeypatch.setattr(provenance, "collect", lambda *each: {"GPU": "Toy GPU"})
    return install


FOUND = "MEMCHECK if planted else CLEAN"


def test_a_clean_run_names_every_kernel_and_exhibit_under_every_tool(tool):
    tool(FOUND)
    session, errors = sanitize.run()
    assert errors == 0
    assert {(row.kernel, row.tool) for row in session.rows} == {
        (name, each)
        for name in (*registry.KERNELS, *registry.EXHIBITS)
        for each in sanitize.CONTROLS
    }
    (about,) = session.provenance.values()
    assert about["compute-sanitizer"] == "2026.1.0"
    assert about["controls"].count("found") == len(sanitize.CONTROLS)
    assert "250x1001" in about["shapes"]
    rows = recordfile.read(session.save()).rows
    assert rows == tuple(sorted(session.rows, key=lambda row: row.key))


def test_what_is_not_clean_is_named(tool):
    tool("MEMCHECK if planted or 'warp' in kernels.split(',') and tool == 'memcheck' else CLEAN")
    lines = []
    session, errors = sanitize.run(["naive", "warp"], say=lines.append)
    assert errors == 2
    named = {(row.kernel, row.tool): row.errors for row in session.rows if row.errors}
    assert named == {("warp", "memcheck"): 2}
    assert "  warp: 2 errors" in lines


def test_a_tool_that_finds_no_planted_defect_is_told(tool):
    tool("CLEAN if tool == 'synccheck' or not planted else MEMCHECK")
    lines = []
    session, _ = sanitize.run(["naive"], say=lines.append)
    assert any("synccheck" in line and "missed" in line for line in lines)
    (about,) = session.provenance.values()
    assert "synccheck missed" in about["controls"]


def test_a_process_that_fails_without_a_word_is_no_success(tool):
    tool(FOUND, status=3)
    with pytest.raises(sanitize.SanitizerError, match="status 3"):
        sanitize.run(["naive"])
    tool("''")
    with pytest.raises(sanitize.SanitizerError, match="no summary"):
        sanitize.run(["naive"])


def test_the_command_fails_where_a_tool_found_something(tool, capsys):
    call = ["sanitize", "--kernels", "naive", "--shapes", "5x7"]
    tool(FOUND)
    assert main(call) == 0
    tool("MEMCHECK")
    assert main(call) == 1
    assert "recorded in" in capsys.readouterr().out


def test_without_the_program_it_says_so(tool, monkeypatch):
    monkeypatch.setattr(provenance, "program", lambda name: None)
    with pytest.raises(sanitize.SanitizerError, match="comes with CUDA's toolkit"):
        sanitize.run(["naive"])


@pytest.mark.gpu
def test_what_the_tools_watch_runs_by_itself():
    for each in sanitize.CONTROLS:
        sanitize.child(each, [*registry.KERNELS, *registry.EXHIBITS], [(5, 7), (37, 33)])
