"""The live bench: one line in a notebook, and a reader without Python runs the kernels."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice
from pathlib import Path

import numpy as np

from softmax_lab import emulator, registry
from softmax_lab.cuts import cuts
from softmax_lab.findings import WORDS
from softmax_lab.units import number

PARTS = (
    *("live_core.js", "page.js", "formulas.js", "live_art.js", "live_inputs.js"),
    *("live_steps.js", "live_bench.js"),
)
"""The bench's scripts, in the order in which they run."""
SCRIPTS = (*PARTS, "live.js", "kernels.wasm.js")
BUNDLE = "bench.js"
"""What a page loads for its parts: each request would cost the reader some milliseconds."""
STYLE = "live.css"
IN_THE_BOOK = "SOFTMAX_LAB_IN_THE_BOOK"
"""Set where a page of the book is being built: its pages load the scripts themselves."""
SHOWN = (
    *("add", "sub", "mul", "div", "exp", "compare", "updates"),
    *("load_requests", "load_sectors", "store_requests", "store_sectors"),
    *("shuffles", "branches", "diverged"),
)
"""Counts of the picture that stands where no script runs."""


@dataclass(frozen=True)
class Bench:
    """A bench as HTML: what it shows without a script, and what a script starts from."""

    kernel: str
    options: dict[str, str]
    still: str

    def _repr_html_(self) -> str:
        data = "".join(f' data-{key}="{escape(value)}"' for key, value in self.options.items())
        host = f'<div class="lab-bench"{data}>{self.still}</div>'
        return host if os.environ.get(IN_THE_BOOK) else host + _scripts()

    def __str__(self) -> str:
        return f"a live bench of {self.kernel}; it shows in a browser"

    __repr__ = __str__


def bench(
    kernel: str = "naive",
    *,
    row: Sequence[float] | None = None,
    rows: int | None = None,
    cols: int | None = None,
    cut: str | None = None,
) -> Bench:
    """A bench that starts with `kernel` on rows × cols normal numbers, or on `rows` times this
    `row`, for readers to change. Further inputs of its family are then ones.

    `cut` names a line to take away (`cuts.cuts()`); then the reader predicts before it runs, on
    what shows the loss unless scores are given. Raises ValueError for an unknown kernel or cut, or
    a row without numbers.
    """
    found = registry.get(kernel)
    known = {each.name: each.line for each in cuts() if each.kernel is found}
    if cut is not None and cut not in known:
        raise ValueError(f"{kernel} can lose {', '.join(known) or 'no line'}, got {cut!r}")
    if cut is not None and row is None and rows is None and cols is None:
        row = known[cut].row or None
        rows, cols = (1, None) if row else known[cut].shape
    rows, cols = (1 if rows is None else rows), (8 if cols is None else cols)
    options = {"kernel": found.name, "rows": str(rows), "cols": str(cols)}
    if row is None:
        arrays = _drawn(found.family, rows, cols)
    else:
        x = np.tile(np.asarray(row, dtype=np.float32), (rows, 1))
        if x.ndim != 2 or not x.size:
            raise ValueError(f"row is a sequence of numbers, got {row!r}")
        options["cols"] = str(x.shape[1])
        options["row"] = " ".join(f"{value:.9g}" for value in x[0])
        extents = found.family.extents(*x.shape)
        others = found.family.inputs_named[1:]
        arrays = (x, *(np.ones(extents[name], np.float32) for name in others))
    if cut is not None:
        options["cut"] = cut
    return Bench(found.name, options, _still(found, arrays))


def _drawn(family: registry.Family, rows: int, cols: int) -> list[np.ndarray]:
    """The numbers that a bench in the page draws for "normal" (`live_inputs.js`): one sequence
    fills a family's inputs one after the other."""
    shapes = [family.extents(rows, cols)[name] for name in family.inputs_named]
    sizes = [math.prod(shape) for shape in shapes]
    values = np.array(list(islice(_normals(), sum(sizes))), dtype=np.float32)
    parts = np.split(values, np.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def _normals(seed: int = 1) -> Iterator[float]:
    """Standard normal numbers by mulberry32 and Box-Muller, as `normals` in `live_inputs.js`."""
    state, word = seed, 2**32 - 1

    def uniform() -> float:
        nonlocal state
        t = state = state + 0x6D2B79F5 & word
        t = (t ^ t >> 15) * (t | 1) & word
        t ^= t + (t ^ t >> 7) * (t | 61) & word
        return (t ^ t >> 14) / 2**32

    while True:
        radius = math.sqrt(-2 * math.log(1 - uniform()))
        yield radius * math.cos(2 * math.pi * uniform())


def _still(kernel: registry.Kernel, arrays: Sequence[np.ndarray]) -> str:
    """What the bench in the page runs first, without the cut, run now by the native emulator."""
    run, (rows, cols) = emulator.run(kernel, *arrays), arrays[0].shape
    first = run.y[0] if run.y.ndim == 2 else run.y
    counted = [(WORDS[field], getattr(run.counts, field)) for field in SHOWN]
    body = "".join(
        f'<tr><th scope="row">{name}</th><td class="num">{number(value)}</td></tr>'
        for name, value in counted
        if value
    )
    shown = ", ".join(f"{value:.4g}" for value in first[:8])
    return (
        f'<p class="lab-note"><code>{kernel.name}</code>, with every line in place, on '
        f"{rows} × {cols} {'scores' if run.y.ndim == 2 else 'entries'}, as the emulator ran it "
        f"when this page was made: y = {shown}{' …' if first.size > 8 else ''}. With JavaScript, "
        f"it runs here.</p>"
        f'<div class="lab-scroll"><table class="lab-table"><thead><tr><th scope="col">count</th>'
        f'<th scope="col" class="num">counted</th></tr></thead><tbody>{body}</tbody></table></div>'
    )


def static_folder() -> Path:
    """Where the pages' scripts are: in `book/` of a checkout, inside an installed package.

    Raises FileNotFoundError where neither holds them.
    """
    package = Path(__file__).resolve().parent
    folders = (package / "page", package.parent / "book" / "_static")
    for folder in folders:
        if all((folder / name).is_file() for name in (*SCRIPTS, STYLE)):
            return folder
    raise FileNotFoundError(f"a live bench needs {', '.join(SCRIPTS)} in {folders[1]}: `make live`")


def bundle() -> str:
    """The text of the bench's parts as one script."""
    return "".join(_texts(*PARTS))


def _texts(*names: str) -> list[str]:
    folder = static_folder()
    return [(folder / name).read_text(encoding="utf-8") for name in names]


def _scripts() -> str:
    """For JupyterLab, which loads no files of ours: the renderer and the kernels themselves."""
    (style,) = _texts(STYLE)
    scripts = "".join(f"<script>{text}</script>" for text in _texts(*SCRIPTS))
    return f"<style>{style}</style>{scripts}<script>SoftmaxLab.mount();</script>"
