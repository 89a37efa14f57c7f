"""The shape lab with a stand-in for the GPU: quick, slow, failing, and moved while it works."""

from __future__ import annotations

import asyncio
import threading

import ipywidgets as w
import pytest

from softmax_lab import alive, labs, live, records, registry
from softmax_lab.explorers import MOST


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(labs, "CALM", 0.1)
    monkeypatch.setattr(labs, "TICK", 0.005)


class Gpu:
    """A callable that measures: it notes what was asked and waits until it may answer."""

    def __init__(self, error: Exception | None = None):
        self.asked, self.may, self.error = [], threading.Event(), error
        self.may.set()

    def __call__(self, kernel: str, rows: int, cols: int):
        self.asked.append((kernel, rows, cols))
        assert self.may.wait(10)
        if self.error:
            raise self.error
        return records.lookup(kernel, 256, 1024)


async def rest(lab) -> None:
    """Until the lab has nothing more to do."""
    for _ in range(400):
        await asyncio.sleep(0.01)
        if not (lab.busy or lab._wanted or lab._timer):
            return
    raise AssertionError("the lab does not come to rest")


def in_a_notebook(steps):
    """Run a coroutine function in a loop, as a kernel does."""
    return asyncio.run(steps())


def test_nothing_is_launched_before_the_reader_asks():
    async def steps():
        gpu = Gpu()
        lab = labs.Lab(gpu, "naive", 256, 1024)
        await asyncio.sleep(0.1)
        assert gpu.asked == []
        lab.again.click()
        await rest(lab)
        assert gpu.asked == [("naive", 256, 1024)]
        assert "measured now" in lab.status.value
        run = records.lookup("naive", 256, 1024)
        assert run.provenance["date"] in lab.shown.value

    in_a_notebook(steps)


def test_the_lab_offers_the_rungs_it_is_given():
    names = registry.so_far("online")
    assert [value for _, value in labs.Lab(Gpu(), "naive", 8, 8, names).kernel.options] == names
    every = [value for _, value in labs.Lab(Gpu(), "naive", 8, 8).kernel.options]
    assert every == [kernel.name for kernel in registry.LADDER]
    shown = labs.shape_lab(None, "naive", 256, 1024, names)
    assert [each["name"] for each in shown.data["kernels"]] == names
    with pytest.raises(ValueError, match="online are shown, got 'warp'"):
        labs.shape_lab(Gpu(), "warp", 8, 8, names)


def test_a_drag_over_many_sizes_is_one_launch(monkeypatch):
    monkeypatch.setattr(labs, "CALM", 0.5)  # far above the steps below, on a busy machine too

    async def steps():
        gpu = Gpu()
        lab = labs.Lab(gpu, "naive", 256, 1024)
        for octave in range(4, 12):
            lab.rows.slider.value = octave
            await asyncio.sleep(0.01)
        lab.kernel.value = "warp"
        await rest(lab)
        assert gpu.asked == [("warp", 2048, 1024)]

    in_a_notebook(steps)


def test_changes_while_it_works_are_one_more_launch():
    async def steps():
        gpu = Gpu()
        gpu.may.clear()
        lab = labs.Lab(gpu, "naive", 256, 1024)
        lab.again.click()
        for cols in (7, 8, 9):
            lab.cols.exact.value = cols
            await asyncio.sleep(1.5 * labs.CALM)
        assert gpu.asked == [("naive", 256, 1024)]
        gpu.may.set()
        await rest(lab)
        assert gpu.asked == [("naive", 256, 1024), ("naive", 256, 9)]
        assert len(lab.runs) == 2

    in_a_notebook(steps)


def test_a_failure_shows_its_message_in_place_and_the_lab_goes_on():
    async def steps():
        gpu = Gpu(ValueError("input and output take 8.8 TB, the GPU has 140 GB <free>"))
        lab = labs.Lab(gpu, "naive", 256, 1024)
        lab.again.click()
        await rest(lab)
        assert "ValueError: input and output take 8.8 TB" in lab.status.value
        assert "&lt;free&gt;" in lab.status.value and "lab-wrong" in lab.status.value
        gpu.error = None
        lab.again.click()
        await rest(lab)
        assert "measured now" in lab.status.value
        assert "ValueError" not in lab.status.value

    in_a_notebook(steps)


def test_a_slow_launch_says_so_and_the_loop_stays_alive(monkeypatch):
    async def steps():
        gpu = Gpu()
        gpu.may.clear()
        lab = labs.Lab(gpu, "naive", 256, 1024)
        lab.again.click()
        assert "Measuring naive on 256 × 1024" in lab.status.value
        monkeypatch.setattr(labs, "PATIENCE", 0.05)
        for _ in range(400):  # would never be reached if the lab waited for the launch
            if "has not answered for" in lab.status.value:
                break
            await asyncio.sleep(0.01)
        assert "has not answered for" in lab.status.value
        gpu.may.set()
        await rest(lab)
        assert "measured now" in lab.status.value

    in_a_notebook(steps)


def test_a_typed_size_stays_exact_and_the_slider_follows():
    async def steps():
        lab = labs.Lab(Gpu(), "naive", 256, 1024)
        lab.rows.exact.value = 700
        assert (lab.rows.exact.value, lab.rows.slider.value) == (700, 9)
        lab.rows.slider.value = 10
        assert lab.rows.exact.value == 1024
        lab.rows.exact.value = 2 * MOST
        assert lab.rows.exact.value == MOST
        await rest(lab)

    in_a_notebook(steps)


def test_without_a_gpu_and_in_the_book_the_record_is_shown(monkeypatch):
    assert isinstance(labs.shape_lab(None), alive.View)
    assert isinstance(labs.shape_lab(Gpu()), w.VBox)
    monkeypatch.setenv(live.IN_THE_BOOK, "1")
    view = labs.shape_lab(Gpu())
    assert isinstance(view, alive.View)
    assert "No GPU is at work here" in view.still


def test_every_control_has_a_name():
    box = labs.Lab(Gpu(), "naive", 256, 1024).box

    def walk(widget):
        yield widget
        for child in getattr(widget, "children", ()):
            yield from walk(child)

    kinds = (w.Dropdown, w.SelectionSlider, w.BoundedIntText, w.Button)
    controls = [each for each in walk(box) if isinstance(each, kinds)]
    assert len(controls) == 6
    assert all(each.description for each in controls)
    assert not any(
        each.continuous_update for each in controls if hasattr(each, "continuous_update")
    )


@pytest.mark.gpu
def test_on_a_gpu_it_times_now_and_says_why_a_matrix_does_not_fit():
    from softmax_lab import bench

    async def until(lab, words: str) -> None:
        for _ in range(1200):
            await asyncio.sleep(0.05)
            if not lab.busy and words in lab.status.value:
                return
        raise AssertionError(lab.status.value)

    async def steps():
        lab = labs.Lab(bench.measure, "warp", 100, 333)
        lab.again.click()
        await until(lab, "warp on 100 × 333: measured now.")
        assert lab.runs[0].seconds > 0
        lab.rows.exact.value = lab.cols.exact.value = MOST
        await until(lab, "could not be timed")
        assert "free" in lab.status.value
        lab.rows.exact.value = lab.cols.exact.value = 64
        await until(lab, "warp on 64 × 64: measured now.")

    in_a_notebook(steps)
