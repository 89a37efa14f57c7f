"""Where compiled kernels are kept: a folder of the reader's own, or for want of one a spare."""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path

_warned: set[Path] = set()


def cache_folder() -> Path:
    """Where executables lie: $SOFTMAX_LAB_CACHE, else softmax-lab in $XDG_CACHE_HOME or ~/.cache.

    One that cannot be written is replaced by a folder for temporary files, with one warning. Raises
    PermissionError where neither can be written.
    """
    folder, problem = cache_place()
    if problem and folder not in _warned:
        _warned.add(folder)
        warnings.warn(problem, stacklevel=2)
    return folder


def cache_place() -> tuple[Path, str]:
    """The folder of `cache_folder`, and what was wrong with the first choice, or nothing."""
    named = os.environ.get("SOFTMAX_LAB_CACHE")
    if not named:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        named = os.path.join(home, "softmax-lab")
    path = Path(named).absolute()
    if not (refused := _refused(path)):
        return path, ""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    spare = Path(tempfile.gettempdir()) / f"softmax-lab-{user}"
    problem = f"cannot write to the cache {path} ({refused})"
    if refused := _refused(spare, ours=True):
        raise PermissionError(
            f"{problem}, nor to {spare} ({refused}): set SOFTMAX_LAB_CACHE to a folder of yours"
        )
    return spare, f"{problem}; using {spare}"


def _refused(path: Path, ours: bool = False) -> str:
    """Why a folder, made if need be, cannot be written, or nothing; `ours`: nor by anybody else."""
    try:
        path.mkdir(mode=0o700 if ours else 0o777, parents=True, exist_ok=True)
        if ours and hasattr(os, "getuid") and path.stat().st_uid != os.getuid():
            return "it belongs to another user"  # who could leave a program there for us to run
        with tempfile.TemporaryFile(dir=path):
            return ""
    except OSError as failure:
        return failure.strerror or str(failure)
