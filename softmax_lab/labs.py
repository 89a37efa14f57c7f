"""The shape lab: choose a kernel and a shape; with a GPU it is timed now, elsewhere the record is
shown. The lab is handed the function that measures, and launches nothing itself."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from html import escape

import ipywidgets as w

from softmax_lab import agreement, registry
from softmax_lab.alive import View, in_the_book, styled
from softmax_lab.explorers import MOST, beside, offered, shapes
from softmax_lab.prose import Sentence, say, together
from softmax_lab.records import Measured
from softmax_lab.runs import against_copy, provenance

Measure = Callable[[str, int, int], Measured]

CALM = 0.4
"""Seconds [s] without a change before a measurement starts: a slider is dragged through many."""

TICK, PATIENCE = 0.25, 20.0
"""How often a running measurement is looked at [s], and after how long the lab says so [s]."""

KEPT = 8
"""Measurements that stay in the table [rows]."""


def shape_lab(
    measure: Measure | None = None,
    kernel: str = "naive",
    rows: int = 256,
    cols: int = 1024,
    names: Sequence[str] | None = None,
) -> View | Sentence | w.VBox:
    """The lab, starting at this kernel and shape; `names` are the rungs it offers, all without.

    `measure(kernel, rows, cols)` times one launch now (`bench.measure`); None, or a page of the
    book, shows the recorded grid and says so. What it raises is shown in place; while it runs the
    controls stay alive. Raises as `explorers.shapes` does.
    """
    if measure is None or in_the_book():
        return shapes(kernel, rows, cols, names)
    return Lab(measure, kernel, rows, cols, names).box


class Lab:
    """The controls of a lab that measures, and what they last found."""

    def __init__(
        self,
        measure: Measure,
        kernel: str,
        rows: int,
        cols: int,
        names: Sequence[str] | None = None,
    ):
        rungs = [(f"{each.name}: {each.title}", each.name) for each in offered(kernel, names)]
        self.measure, self.runs, self.fault = measure, [], ""
        self.kernel = w.Dropdown(
            options=rungs, value=registry.get(kernel).name, description="Kernel"
        )
        self.rows, self.cols = _Scale("Rows", rows), _Scale("Columns", cols)
        self.again = w.Button(description="Measure", tooltip="Time this kernel at this shape now")
        self.status, self.shown = w.HTML(), w.HTML(layout=w.Layout(width="100%"))
        self._pool = ThreadPoolExecutor(1, "shape-lab")  # one launch at a time
        self._job: Future | None = None
        self._wanted = False
        self._timer: asyncio.TimerHandle | None = None
        self.kernel.observe(self._changed, "value")
        for scale in (self.rows, self.cols):
            scale.exact.observe(self._changed, "value")
        self.again.on_click(lambda _: self._start())
        bar = w.Layout(display="flex", flex_flow="row wrap", width="100%")
        self.box = w.VBox(
            [
                w.Box([self.kernel, self.again], layout=bar),
                w.Box(self.rows.parts, layout=bar),
                w.Box(self.cols.parts, layout=bar),
                self.status,
                self.shown,
            ]
        )
        self._say(
            "A GPU is here: move a slider, type a size, or press Measure, and it is timed now."
        )

    @property
    def busy(self) -> bool:
        """Whether a measurement is going on."""
        return self._job is not None

    def _say(self, words: str, wrong: bool = False) -> None:
        kind = "lab-wrong" if wrong else "lab-note"
        self.status.value = f'<p class="{kind}" role="status">{escape(words)}</p>'

    def _changed(self, _) -> None:
        """Wait until the controls have been still for a while."""
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(CALM, self._start)

    def _start(self) -> None:
        """Measure what the controls say, now or as soon as the running measurement is done."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._job:
            self._wanted = True
            return
        self._wanted = False
        asked = (self.kernel.value, self.rows.exact.value, self.cols.exact.value)
        self._since = time.monotonic()
        self._say("Measuring {} on {} × {} …".format(*asked))
        self._job = self._pool.submit(self.measure, *asked)
        self._watch(asked)

    def _watch(self, asked: tuple[str, int, int]) -> None:
        job, what = self._job, "{} on {} × {}".format(*asked)
        if not job.done():
            if (waited := time.monotonic() - self._since) > PATIENCE:
                words = f"{what} has not answered for {waited:.0f} s. The lab goes on when it does."
                self._say(words, wrong=True)
            asyncio.get_running_loop().call_later(TICK, self._watch, asked)
            return
        self._job = None
        if (error := job.exception()) is not None:
            words = f"{what} could not be timed. {type(error).__name__}: {error}"
            self._say(words, wrong=True)
        else:
            self._show(job.result())
        if self._wanted:
            self._start()

    def _show(self, run: Measured) -> None:
        self.runs = [run, *self.runs][:KEPT]
        self._say(f"{run.kernel} on {run.rows} × {run.cols}: measured now.")
        record = agreement.timed(run)
        beside_it = (say("{words}", words=str(record)),) if record else ()
        parts = (against_copy(run), *beside_it, beside(self.runs), provenance(run))
        self.shown.value = styled(together(*parts)._repr_html_())


class _Scale:
    """A slider over powers of two and a field for any whole number between."""

    def __init__(self, name: str, start: int):
        top = round(math.log2(MOST))
        self.slider = w.SelectionSlider(
            options=[(str(2**k), k) for k in range(top + 1)],
            value=_octave(start),
            description=name,
            continuous_update=False,
            layout=w.Layout(width="auto", flex="1 1 18rem"),
        )
        self.exact = w.BoundedIntText(
            value=start, min=1, max=MOST, description=f"{name}, exactly", continuous_update=False
        )
        self.exact.style.description_width = "initial"
        self.parts = [self.slider, self.exact]
        self.slider.observe(self._slid, "value")
        self.exact.observe(self._typed, "value")

    def _slid(self, change) -> None:
        if _octave(self.exact.value) != change.new:  # else the field led, and stays exact
            self.exact.value = 2**change.new

    def _typed(self, change) -> None:
        self.slider.value = _octave(change.new)


def _octave(size: int) -> int:
    return round(math.log2(size))
