"""Where a run's numbers come from: the machine, its versions and clocks, the command, the date."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePath

from softmax_lab import nvrtc


def collect(device: int, protocol: str, clocks: Sequence[tuple[int, int]] = ()) -> dict[str, str]:
    """Provenance of a run on a device; `clocks` are those seen while it ran, see `clocks_now`."""
    import cupy

    runtime = cupy.cuda.runtime
    driver = (smi(device, "driver_version") or ["unknown"])[0]
    return {
        "GPU": device_name(device),
        "driver": f"{driver} (CUDA {nvrtc.dotted(runtime.driverGetVersion())})",
        "CUDA": nvrtc.dotted(runtime.runtimeGetVersion()),
        "CuPy": cupy.__version__,
        "NVRTC": nvrtc.version(),
        "clocks seen": clocks_text(clocks or clocks_now(device)),
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "command": command(sys.argv),
        "protocol": protocol,
    }


def device_name(device: int) -> str:
    """The name that the driver gives a device."""
    import cupy

    return cupy.cuda.runtime.getDeviceProperties(device)["name"].decode()


def clocks_now(device: int) -> list[tuple[int, int]]:
    """The clocks of multiprocessors and memory [MHz] at this moment, or nothing if unknown."""
    values = smi(device, "clocks.sm,clocks.mem")
    return [(int(values[0]), int(values[1]))] if values and all(map(str.isdigit, values)) else []


def clocks_text(seen: Sequence[tuple[int, int]]) -> str:
    """The range of clocks seen, such as "SM 1755–1980 MHz, memory 3201 MHz"."""
    if not seen:
        return "unknown"
    spans = [(min(values), max(values)) for values in zip(*seen, strict=True)]
    texts = [f"{low}" if low == high else f"{low}–{high}" for low, high in spans]
    return f"SM {texts[0]} MHz, memory {texts[1]} MHz"


def command(argv: Sequence[str]) -> str:
    """A command line to repeat a run, without this machine's folders."""
    path = PurePath(argv[0] if argv else "python")
    program = f"python -m {path.parent.name}" if path.name == "__main__.py" else path.name
    rest = (PurePath(each).name if each.startswith(("/", "~", ".")) else each for each in argv[1:])
    return " ".join([program, *rest])  # a kernel's name may hold a slash too


def program(name: str) -> str | None:
    """Path of one of CUDA's tools, or None: on PATH, in CUDA_PATH, CUDA_HOME, /usr/local/cuda."""
    if found := shutil.which(name):
        return found
    roots = [os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
    places = (Path(root) / "bin" / name for root in roots if root)
    return next((str(place) for place in places if place.is_file()), None)


def environment() -> dict[str, str]:
    """The environment for a child process that is to import this very package."""
    here = str(Path(__file__).resolve().parent.parent)
    paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def smi(device: int, query: str) -> list[str] | None:
    """What nvidia-smi answers about a device of this process, or None without an answer."""
    import cupy

    if not (tool := shutil.which("nvidia-smi")):
        return None
    bus = cupy.cuda.Device(device).pci_bus_id  # its own numbering knows no CUDA_VISIBLE_DEVICES
    call = [tool, f"--id={bus}", f"--query-gpu={query}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(call, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return [cell.strip() for cell in done.stdout.strip().split(",")]
