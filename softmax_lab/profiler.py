"""Hardware counters: each kernel once, in a child process that Nsight Compute watches."""

from __future__ import annotations

import csv
import functools
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from softmax_lab import bench, facts, gpu, provenance, records, registry
from softmax_lab.counters import METRICS, OPCODES, OPTIONAL
from softmax_lab.fingerprint import fingerprint
from softmax_lab.recordrows import Counter
from softmax_lab.records import Session
from softmax_lab.registry import Kernel

SHAPES = ((256, 1024), (250, 1001), (32, 65536), (65536, 1024))
"""Shapes (rows, cols) of the record: the running example, its odd twin, few rows that are long, and
a matrix far beyond L2."""

SHORT = tuple((65536, cols) for cols in (1, 2, 4, 7, 8))
"""Rows up to a sector long, where a thread a row makes every stride from one float to eight."""

NARROW = tuple((65536, cols) for cols in (8, 16, 32, 128))
"""Rows of a sector to a few, where a warp a row has little to do in each."""

SHAPES_OF = {
    "softmax": (*SHAPES, *NARROW),
    "log_softmax": SHAPES,
    "gemv": (*SHAPES, *SHORT, *bench.ALIGNMENTS),
}
"""Shapes of the record by family."""

PROTOCOL = (
    "one launch for each kernel and shape under Nsight Compute, replayed as often as the counters "
    "need; its caches flushed before each replay, clocks left alone; data standard normal; results "
    "compared with float64"
)


class ProfilerError(RuntimeError):
    """Nsight Compute is missing or gave no counters; the message says what to do."""


class MetricError(ProfilerError):
    """Nsight Compute objects to a metric."""


@dataclass(frozen=True)
class Launch:
    """One profiled launch: counters by name as (value, unit). What the chip lacks is not there."""

    kernel: str
    values: Mapping[str, tuple[float, str]]


def run(
    kernels: Iterable[str | Kernel] | None = None,
    shapes: Sequence[tuple[int, int]] | None = None,
    dtype="float32",
    *,
    say: Callable[[str], None] = lambda line: None,
) -> Session:
    """Read the counters of kernels (all that fit the device and type) at shapes (`SHAPES_OF`).

    Raises ValueError for kernels, shapes or a type that do not go together, GPU or not,
    RuntimeError without a GPU, ProfilerError without Nsight Compute or counters.
    """
    device, chosen, dtype = gpu.ready(kernels, dtype, shapes)
    tool, run_name = find(), records.run_id()
    plan, launches = [], []
    for mine, here in bench.plan(chosen, SHAPES_OF, shapes):
        plan += [(kernel, shape) for shape in here for kernel in mine]
        launches += asked(
            functools.partial(_profile, tool, kernels=mine, shapes=here, dtype=dtype), say
        )
    rows = []
    for (kernel, shape), launch in zip(plan, launches, strict=True):
        about = (run_name, kernel.name, fingerprint(kernel, dtype), dtype, *shape)
        rows += [Counter(*about, name, unit, each) for name, (each, unit) in launch.values.items()]
        absent = [name for name in (*METRICS, *OPTIONAL) if name not in launch.values]
        say(f"{kernel.name} at {shape[0]}x{shape[1]}: {len(launch.values)} counters")
        if absent:
            say(f"  not on this GPU: {', '.join(absent)}")
    facts_of_run = provenance.collect(device.id, PROTOCOL)
    facts_of_run["Nsight Compute"] = _version(tool)
    return Session(facts.slug(facts_of_run["GPU"]), tuple(rows), {run_name: facts_of_run})


def child(kernels: Sequence[str], shapes: Sequence[tuple[int, int]], dtype: str) -> None:
    """What Nsight Compute watches: every kernel once at every shape, on poisoned output, judged."""
    import cupy

    for rows, cols in shapes:
        for mine in gpu.by_family(map(registry.get, kernels)).values():
            family = mine[0].family
            host = [each.astype(dtype) for each in family.inputs("normal", rows, cols)]
            there = [cupy.asarray(each) for each in host]
            for kernel in mine:
                y = cupy.empty(family.result(rows, cols), dtype)
                y.data.memset_async(0xFF, y.nbytes)
                gpu.launch(kernel, *there, out=y)
                verdict = family.compare(y.get(), *host, dtype=dtype)
                if not verdict.ok:
                    where = f"{kernel.name} is wrong at {rows}x{cols}"
                    raise RuntimeError(f"{where}: {verdict.message}")


def asked(
    profile: Callable[[Sequence[str]], list[Launch]], say: Callable[[str], None] = lambda line: None
) -> list[Launch]:
    """Launches with METRICS and OPTIONAL; with METRICS alone where the profile fails otherwise."""
    try:
        return collect((*METRICS, *OPTIONAL), profile)
    except ProfilerError as error:
        launches = collect(METRICS, profile)  # raises again if those were not to blame
        say(f"  left out {', '.join(OPTIONAL)}, for with them: {error}")
        return launches


def collect(
    metrics: Sequence[str], profile: Callable[[Sequence[str]], list[Launch]]
) -> list[Launch]:
    """Launches with as many of `metrics` as the chip has; those that spoil a run are left out.

    `profile(metrics)` raises MetricError where one is unknown; its text may name it.
    """
    try:
        return profile(metrics)
    except MetricError as error:
        named = [name for name in metrics if _names(str(error), name)]
        if len(metrics) == 1:
            raise
        if named and len(named) < len(metrics):
            return collect([name for name in metrics if name not in named], profile)
        halves, parts, first = len(metrics) // 2, [], error
    for half in (metrics[:halves], metrics[halves:]):
        try:
            parts.append(collect(half, profile))
        except MetricError as error:
            first = error
    if not parts:
        raise first
    return [Launch(each[0].kernel, _union(each)) for each in zip(*parts, strict=True)]


def parse(text: str) -> list[Launch]:
    """Launches in order from Nsight Compute's CSV, one line a counter or one line a launch.

    Other lines around the table are passed over, and so are counters without a number (`n/a`).
    """
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    rows = list(csv.DictReader(line for line in lines[start:] if line.startswith('"')))
    found: dict[int, tuple[str, dict]] = {}
    units = next((row for row in rows if not row["ID"]), {})  # the second line of the wide form
    for row in rows:
        if not row["ID"]:
            continue
        if "Metric Name" in row:
            cells = [(row["Metric Name"], row["Metric Value"], row["Metric Unit"])]
        else:
            cells = [
                (name, row[name], units.get(name, ""))
                for name in (*METRICS, *OPTIONAL)
                if name in row
            ]
        _, values = found.setdefault(int(row["ID"]), (row["Kernel Name"], {}))
        for name, value, unit in cells:
            values |= _numbers(name, value or "", unit or "")
    return [
        Launch(kernel.partition("(")[0], values) for _, (kernel, values) in sorted(found.items())
    ]


def find() -> str:
    """Path of Nsight Compute's command line. Raises ProfilerError with what to do."""
    if tool := provenance.program("ncu"):
        return tool
    places = sorted(Path("/opt/nvidia/nsight-compute").glob("*/ncu"), key=_by_version, reverse=True)
    if found := next(filter(Path.is_file, places), None):
        return str(found)
    raise ProfilerError(
        "Nsight Compute (ncu) not found on PATH, in CUDA_PATH, CUDA_HOME, /usr/local/cuda or "
        "/opt/nvidia/nsight-compute: install it, with CUDA's toolkit or by itself"
    )


def command(
    tool: str,
    metrics: Sequence[str],
    kernels: Sequence[Kernel],
    shapes: Sequence[tuple[int, int]],
    dtype: str,
) -> list[str]:
    """The call that profiles a child process: only our kernels, clocks as they are, base units."""
    symbols = "|".join(sorted({kernel.symbol for kernel in kernels}))
    watch = ["--kernel-name", f"regex:^({symbols})$", "--clock-control", "none"]
    form = [
        "--csv",
        "--page",
        "raw",
        "--print-units",
        "base",
        "--print-metric-instances",
        "details",
    ]
    work = [sys.executable, "-m", "softmax_lab", "profile", "--child", "--dtype", dtype]
    work += ["--kernels", ",".join(kernel.name for kernel in kernels)]
    work += ["--shapes", ",".join(f"{rows}x{cols}" for rows, cols in shapes)]
    return [tool, *form, *watch, "--metrics", ",".join(metrics), *work]


def _profile(tool, metrics, *, kernels, shapes, dtype) -> list[Launch]:
    call = command(tool, metrics, kernels, shapes, dtype)
    done = subprocess.run(call, capture_output=True, text=True, env=provenance.environment())
    launches = parse(done.stdout)
    got = [launch.kernel for launch in launches]
    wanted = [kernel.symbol for _ in shapes for kernel in kernels]
    if done.returncode or got != wanted:
        said = [
            line for line in (done.stdout + done.stderr).splitlines() if not line.startswith('"')
        ]
        if "ERR_NVGPUCTRPERM" in "".join(said):
            said.append("Counters are closed to this user: run as root, or see ERR_NVGPUCTRPERM.")
        counted = f"{len(got)} of {len(wanted)} launches profiled, exit status {done.returncode}"
        about_metrics = any("==ERROR==" in line and "metric" in line.lower() for line in said)
        problem = MetricError if about_metrics else ProfilerError
        raise problem("\n".join([f"Nsight Compute failed ({counted}):", *said[-30:]]))
    return launches


def _numbers(name: str, text: str, unit: str) -> dict[str, tuple[float, str]]:
    """A counter's value, and for the opcode table one entry an opcode; nothing for `n/a`."""
    total, _, parts = text.partition(" (")
    out = {}
    if (value := _number(total)) is not None:
        out[name] = value, unit
    if name == OPCODES:
        for opcode, amount in re.findall(r"([A-Z][\w.]*): ([\d,.]+)", parts):
            if (value := _number(amount)) is not None:
                out[f"{name}.{opcode}"] = value, unit
    return out


def _number(text: str) -> float | None:
    """`1,059,328` as a number, None for what is none; an int where the text is one."""
    plain = text.strip().replace(",", "")
    if not re.fullmatch(r"-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", plain):
        return None
    return int(plain) if plain.lstrip("-").isdigit() else float(plain)


def _names(text: str, metric: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(metric)}(?!\w)", text) is not None


def _union(launches: Iterable[Launch]) -> dict:
    return {name: value for launch in launches for name, value in launch.values.items()}


def _by_version(path: Path) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", path.parent.name)]


def _version(tool: str) -> str:
    said = subprocess.run([tool, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"Version (\S+)", said)
    return found[1] if found else "unknown"
