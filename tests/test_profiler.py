"""Hardware counters: reading what Nsight Compute prints, and asking it for no more than it has."""

from __future__ import annotations

import re

import pytest

from softmax_lab import counters, derive, gpu, profiler, records
from softmax_lab.profiler import Launch, MetricError, ProfilerError
from softmax_lab.registry import KERNELS

LOADS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
READ = "dram__bytes_read.sum"
HIT = "l1tex__t_sector_hit_rate.pct"

LONG = f'''==WARNING== Note: Running with unmodified GPU clocks.
==PROF== Connected to process 538 (/usr/bin/python3.12)
"ID","Process ID","Kernel Name","Device","Section Name","Metric Name","Metric Unit","Metric Value"
"0","538","naive","0","Command line profiler metrics","{READ}","byte","1,059,328"
"0","538","naive","0","Command line profiler metrics","{LOADS}","","24,576"
"0","538","naive","0","Command line profiler metrics","smsp__inst_executed_op_shfl.sum","","n/a"
"0","538","naive","0","Command line profiler metrics","{HIT}","%","87.25"
"1","538","online(const float *, float *, int, int)","0","x","{READ}","byte","0"
==PROF== Disconnected from process 538
'''

WIDE = f'''something the program printed, with "quotes"
"ID","Kernel Name","Block Size","{READ}","{LOADS}","{counters.OPCODES}","{HIT}"
"","","","byte","","inst","%"
"0","naive","(128, 1, 1)","1,059,328","24576","1,200 (FFMA: 1,000; SHFL: 160; BAR: 40)","n/a"
"1","online","(128, 1, 1)","5.5","","","12"
'''


def test_one_line_a_counter():
    first, second = profiler.parse(LONG)
    assert first == Launch(
        "naive", {READ: (1059328, "byte"), LOADS: (24576, ""), HIT: (87.25, "%")}
    )
    assert second == Launch("online", {READ: (0, "byte")})


def test_one_line_a_launch_with_opcodes():
    first, second = profiler.parse(WIDE)
    assert first.kernel == "naive"
    assert first.values == {
        READ: (1059328, "byte"),
        LOADS: (24576, ""),
        counters.OPCODES: (1200, "inst"),
        f"{counters.OPCODES}.FFMA": (1000, "inst"),
        f"{counters.OPCODES}.SHFL": (160, "inst"),
        f"{counters.OPCODES}.BAR": (40, "inst"),
    }
    assert second.values == {READ: (5.5, "byte"), HIT: (12, "%")}
    counts = counters.counts({name: value for name, (value, _) in first.values.items()}, block=128)
    assert (counts.load_requests, counts.shuffles, counts.barriers) == (24576, 160, 10)
    assert counts.dram_bytes is None  # written bytes were not counted


@pytest.mark.parametrize(
    "text", ["", "==ERROR== The application returned an error code\n", "ID,x\n"]
)
def test_no_table_is_no_launch(text):
    assert profiler.parse(text) == []


def test_launches_keep_their_order():
    lines = [f'"{i}","k{i}","1"' for i in (10, 9, 2)]
    text = "\n".join([f'"ID","Kernel Name","{READ}"', '"","","byte"', *lines])
    assert [launch.kernel for launch in profiler.parse(text)] == ["k2", "k9", "k10"]


# ------------------------------------------------------------------------------ unknown metrics


class Chip:
    """Stands in for Nsight Compute on a chip that knows some metrics, and may name one it lacks."""

    def __init__(self, known: set[str], naming: bool):
        self.known, self.naming, self.calls = known, naming, 0

    def profile(self, metrics):
        self.calls += 1
        if unknown := [name for name in metrics if name not in self.known]:
            raise MetricError(f"==ERROR== no metric {unknown[0] if self.naming else '?'}.")
        return [Launch(kernel, dict.fromkeys(metrics, (1, ""))) for kernel in ("p", "q")]


EIGHT = [f"unit__metric{i}.sum" for i in range(8)]


@pytest.mark.parametrize("naming", [True, False])
@pytest.mark.parametrize("lacks", [(), (2,), (1, 2, 3, 4, 5, 6), (0, 1, 2, 4, 5, 6, 7), (0, 7)])
def test_an_unknown_metric_loses_itself_alone(lacks, naming):
    known = {name for i, name in enumerate(EIGHT) if i not in lacks}
    chip = Chip(known, naming)
    launches = profiler.collect(EIGHT, chip.profile)
    assert [launch.kernel for launch in launches] == ["p", "q"]
    assert [set(launch.values) for launch in launches] == [known, known]
    assert chip.calls <= (len(lacks) + 1 if naming else 15)


def test_no_known_metric_is_an_error():
    with pytest.raises(MetricError):
        profiler.collect(EIGHT, Chip(set(), naming=False).profile)


def test_a_failure_that_is_no_metrics_fault_is_not_repeated():
    calls = []

    def crash(metrics):
        calls.append(metrics)
        raise ProfilerError("the program crashed")

    with pytest.raises(ProfilerError, match="crashed"):
        profiler.collect("ABCD", crash)
    assert len(calls) == 1


# ------------------------------------------------------------------------------ the call


def test_the_call_watches_our_kernels_and_leaves_the_clocks():
    kernels = list(KERNELS.values())
    call = profiler.command("ncu", ["a", "b"], kernels, [(256, 1024), (3, 5)], "float32")
    pattern = call[call.index("--kernel-name") + 1].removeprefix("regex:")
    assert all(re.search(pattern, kernel.symbol) for kernel in kernels)
    assert not re.search(pattern, "cupy_copy__float32")
    assert not re.search(pattern, f"not_{kernels[0].symbol}")
    assert call[call.index("--clock-control") + 1] == "none"
    assert call[call.index("--metrics") + 1] == "a,b"
    assert call[call.index("--shapes") + 1] == "256x1024,3x5"
    assert call[call.index("profile") + 1] == "--child"


def test_the_tool_is_found_where_it_is_installed(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    monkeypatch.delenv("CUDA_PATH", raising=False)
    (tmp_path / "cuda" / "bin").mkdir(parents=True)
    tool = tmp_path / "cuda" / "bin" / "ncu"
    tool.write_text("")
    assert profiler.find() == str(tool)
    tool.unlink()
    (tmp_path / "ncu").write_text("")
    (tmp_path / "ncu").chmod(0o755)
    assert profiler.find() == str(tmp_path / "ncu")


def test_without_the_tool_the_message_says_what_to_do(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(profiler.Path, "is_file", lambda path: False)
    with pytest.raises(ProfilerError, match=r"Nsight Compute .* not found .* install it"):
        profiler.find()


def test_a_profile_without_a_gpu_says_why():
    if gpu.status().available:
        pytest.skip("there is a GPU")
    with pytest.raises(RuntimeError, match=gpu.status().reason[:20]):
        profiler.run(["naive"])


# ------------------------------------------------------------------------------ on a GPU


@pytest.mark.gpu
def test_hardware_counts_what_the_access_pattern_says(tmp_path, monkeypatch):
    """64 rows are two warps: each pass over 64 columns is 64 requests a warp, 32 sectors each."""
    try:
        profiler.find()
    except ProfilerError as missing:
        pytest.skip(str(missing))
    monkeypatch.setenv("SOFTMAX_LAB_DATA", str(tmp_path))
    session = profiler.run(["naive"], [(64, 64), (3, 5)])
    session.save()
    found = records.lookup("naive", 64, 64, gpu=session.gpu)
    assert found.counts.load_requests == 3 * 64 * 2
    assert found.counts.store_requests == 64 * 2
    assert found.counts.load_sectors == 32 * found.counts.load_requests
    assert found.counts.dram_bytes is not None
    assert found.counts.shuffles == 0
    assert found.counts.barriers == 0
    assert found.counters["launch__registers_per_thread"] > 8
    assert found.counters_provenance["Nsight Compute"][:2] == "20"
    assert records.lookup("naive", 3, 5, gpu=session.gpu).counts.load_requests == 3 * 5


@pytest.mark.gpu
def test_hardware_counts_two_families_in_one_run():
    """64 rows of 128 floats: 32 sectors for a load of A and one for x, then 4 for each."""
    try:
        profiler.find()
    except ProfilerError as missing:
        pytest.skip(str(missing))
    names = ["naive", *(name for name in KERNELS if name.startswith("gemv/"))]
    session = profiler.run(names, [(64, 128)])
    found = {
        (row.kernel, row.metric): row.value for row in session.rows if "pipe_lsu" in row.metric
    }
    sectors = LOADS.replace("requests", "sectors")
    assert found["naive", LOADS] == 3 * 128 * 2
    for name in names[1:]:
        derived = derive(name, 64, 128)
        assert found[name, LOADS] == derived.load_requests
        assert found[name, sectors] == derived.load_sectors


# ------------------------------------------------------------------------------ optional counters


def test_what_the_chip_lacks_of_the_optional_counters_leaves_the_rest():
    asked = (*counters.METRICS, *counters.OPTIONAL)
    assert len(set(asked)) == len(asked)
    for lost in (counters.OPTIONAL[:1], counters.OPTIONAL):
        chip = Chip(set(asked) - set(lost), naming=False)
        launches = profiler.asked(chip.profile)
        assert [set(each.values) for each in launches] == 2 * [set(asked) - set(lost)]


def test_a_profile_that_fails_with_the_optional_counters_is_made_without():
    def profile(metrics):
        if set(metrics) & set(counters.OPTIONAL):
            raise ProfilerError("Failed to prepare kernel for profiling")
        return [Launch("p", dict.fromkeys(metrics, (1, "")))]

    said = []
    (launch,) = profiler.asked(profile, said.append)
    assert set(launch.values) == set(counters.METRICS)
    assert counters.OPTIONAL[0] in said[0] and "Failed to prepare" in said[0]

    def crash(metrics):
        raise ProfilerError("the program crashed")

    with pytest.raises(ProfilerError, match="crashed"):
        profiler.asked(crash)


def test_optional_counters_are_read_from_the_wide_form_too():
    name = counters.WAITING["barrier"]
    text = f'"ID","Kernel Name","{name}"\n"","","inst"\n"0","naive","0.25"\n'
    assert profiler.parse(text)[0].values == {name: (0.25, "inst")}
