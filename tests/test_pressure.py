"""The kernels under pressure: that what goes wrong is counted and told, whatever it is."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import Counter
from dataclasses import dataclass
from types import SimpleNamespace

import fake_gpu
import numpy as np
import pytest

from softmax_lab import gpu, pressure, provenance, recordfile, registry, trial, tried
from softmax_lab.__main__ import main

NAMES = ("warp", "block_tree", "gemv/row_per_warp")


class OutOfMemoryError(MemoryError):
    """CuPy's."""


class CUDADriverError(RuntimeError):
    """CuPy's."""


class Stream:
    """CuPy's: the current one of a thread while it is entered."""

    current = threading.local()

    def __init__(self, non_blocking=False):
        self.non_blocking = non_blocking

    def __enter__(self):
        Stream.current.is_now = self

    def __exit__(self, *error):
        del Stream.current.is_now

    def synchronize(self):
        self.state.pending.discard(self)


@dataclass(frozen=True)
class Launched:
    """A launch as the GPU saw it."""

    kernel: str
    stream: Stream | None
    thread: str
    allocates: bool


@pytest.fixture
def pretend(monkeypatch, tmp_path):
    """A GPU whose launches are the oracle, rounded. Each function in `spoil` may do otherwise: it
    gets (kernel, whether memory is gone, call, out), and what it returns is the launch's. `log` has
    what happened, in order; an output that nobody waited for is garbage."""
    state = SimpleNamespace(full=False, held=0, pending=set(), spoil=[], log=[])

    class Array(fake_gpu.Array):
        def get(self):
            state.pending.discard(None)  # the default stream is waited for
            return np.full_like(self.values, np.nan) if state.pending else self.values

    def waited():
        state.pending.clear()

    device = SimpleNamespace(id=0, compute_capability="90", synchronize=waited)
    cupy = fake_gpu.Device().cupy()
    cupy.asarray = lambda values: Array(np.array(values))
    cupy.empty = lambda shape, dtype: Array(np.empty(shape, dtype))

    def malloc(size):
        if state.held + size > 1000:
            raise cupy.cuda.runtime.CUDARuntimeError
        state.held += size
        return size

    @contextlib.contextmanager
    def using_allocator(_):
        assert 1000 - state.held < 512
        state.full = True
        yield
        state.full = False

    def free(size):
        state.held -= size

    class Barrier(threading.Barrier):
        def wait(self):
            state.log.append(("waits", self.parties))
            return super().wait()

    cupy.get_default_memory_pool = lambda: SimpleNamespace(free_all_blocks=lambda: None)
    cuda = cupy.cuda
    cuda.Device, cuda.using_allocator = lambda: device, using_allocator
    Stream.state = state
    cuda.Stream = Stream
    cuda.MemoryPool = lambda: SimpleNamespace(malloc=None)
    cuda.memory = SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
    cuda.driver = SimpleNamespace(CUDADriverError=CUDADriverError)
    cuda.runtime.malloc, cuda.runtime.free = malloc, free
    cuda.runtime.memGetInfo = lambda: (1000, 1000)
    cuda.runtime.CUDARuntimeError = type("CUDARuntimeError", (RuntimeError,), {})

    def call(kernel, arrays, out):
        if kernel.shared_bytes >= pressure.TOO_MUCH or kernel.block > 1024:
            raise CUDADriverError("CUDA_ERROR_INVALID_VALUE: invalid argument")
        if f"{kernel.symbol}(?" in kernel.path.read_text():
            raise gpu.CompileError(f"{kernel.path.name}(9): error: expected a type")
        if out is None:
            if state.full:
                raise OutOfMemoryError("Out of memory allocating 512 bytes")
            out = cupy.empty(kernel.family.result(*arrays[0].shape), np.float32)
        out.values[...] = kernel.family.oracle(*(each.values for each in arrays))
        return out

    def launch(kernel, *arrays, out=None):
        kernel, stream = registry.get(kernel), getattr(Stream.current, "is_now", None)
        name = threading.current_thread().name
        state.log.append(Launched(kernel.name, stream, name, out is None))
        state.pending.add(stream)
        for each in state.spoil:
            found = each(kernel, state.full, lambda: call(kernel, arrays, out), out)
            if found is not None:
                return found
        return call(kernel, arrays, out)

    monkeypatch.setattr(pressure, "EACH", 2)
    monkeypatch.setattr(trial, "SHAPES", ((37, 33), (5, 70)))
    monkeypatch.setattr(threading, "Barrier", Barrier)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(gpu, "status", lambda: gpu.Status(True, name="Toy GPU"))
    monkeypatch.setattr(gpu, "launch", launch)
    monkeypatch.setattr(gpu, "forget", lambda kernel: state.log.append(("forgets", kernel.name)))
    monkeypatch.setattr(provenance, "collect", lambda *_: {"GPU": "Toy GPU", "date": "today"})
    monkeypatch.setenv("SOFTMAX_LAB_DATA", str(tmp_path))
    return state


def tried_out(name: str, kernels=NAMES) -> dict[str, trial.Tally]:
    """The tallies of one trial alone."""
    under_way = trial.Trial([registry.get(each) for each in kernels], lambda line: None)
    pressure.TRIALS[name](under_way)
    return under_way.tallies


def failures(session) -> dict[tuple[str, str], int]:
    return {(row.kernel, row.trial): row.failures for row in session.rows if row.failures}


def test_what_is_right_passes_and_is_recorded(pretend):
    lines = []
    session, wrong = pressure.run(NAMES, say=lines.append)
    assert wrong == 0 and pretend.held == 0
    rows = recordfile.read(session.save()).rows
    assert {(row.kernel, row.trial) for row in rows} == {
        (name, each) for name in NAMES for each in pressure.TRIALS
    }
    found = {row.trial: (row.launches, row.refusals) for row in rows if row.kernel == "warp"}
    assert found == {
        "streams": (pressure.EACH, 0),
        "threads": (pressure.EACH * pressure.THREADS, 0),
        "memory": (2, 2),
        "compile": (1, 2),
        "shared": (1, 2),
        "block": (1, 2),
    }
    assert lines[0] == f"streams: {3 * pressure.EACH} launches, 0 refusals, 0 wrong"


def test_launches_are_dealt_out_to_streams_that_wait_for_nobody(pretend, monkeypatch):
    monkeypatch.setattr(pressure, "EACH", 12)
    tallies = tried_out("streams")
    streams = Counter(each.stream for each in pretend.log)
    assert len(streams) == pressure.STREAMS and all(each.non_blocking for each in streams)
    assert max(streams.values()) - min(streams.values()) <= 1
    assert not any(each.allocates for each in pretend.log)
    assert all(not each.failures for each in tallies.values())  # and somebody waited for all


def test_threads_begin_together_two_with_each_kernel_that_none_has_loaded(pretend, monkeypatch):
    monkeypatch.setattr(pressure, "EACH", 12)
    tallies = tried_out("threads", registry.KERNELS)
    many = len(registry.KERNELS)
    assert pretend.log[:many] == [("forgets", name) for name in registry.KERNELS]
    assert pretend.log[many:][: pressure.THREADS] == [("waits", 8)] * 8
    launches = pretend.log[many + pressure.THREADS :]
    by_thread = {
        name: [e for e in launches if e.thread == name] for name in {e.thread for e in launches}
    }
    assert len(by_thread) == pressure.THREADS and "MainThread" not in by_thread
    assert len({each.stream for each in launches}) == pressure.THREADS
    assert all(each.stream.non_blocking for each in launches)
    for mine in by_thread.values():
        assert len({each.stream for each in mine}) == 1
        assert len(mine) == 12 * many == 2 * sum(each.allocates for each in mine)
    assert set(Counter(mine[0].kernel for mine in by_thread.values()).values()) == {2}
    assert all(not each.failures for each in tallies.values())


@pytest.mark.parametrize("name", ["compile", "shared", "block"])
def test_each_kernel_fails_twice_unloaded_and_is_launched_again(pretend, name):
    tried_out(name)
    wanted = []
    for kernel in NAMES:
        wanted += [("forgets", kernel), *[Launched(kernel, None, "MainThread", True)] * 2]
        wanted.append(Launched(kernel, None, "MainThread", False))
    assert pretend.log == wanted


def test_the_page_names_every_trial():
    assert set(tried.TRIALS) == set(pressure.TRIALS)


def test_all_kernels_of_the_list_are_pressed_unless_some_are_named(pretend):
    session, _ = pressure.run()
    assert {row.kernel for row in session.rows} == set(registry.KERNELS)
    with pytest.raises(ValueError, match="no kernel 'nope'"):
        pressure.run(["nope"])


def test_wrong_numbers_are_told(pretend):
    def rounded(kernel, full, call, out):
        if kernel.name != "warp":
            return None
        out = call()
        out.values[..., -1] += 0.5
        return out

    pretend.spoil.append(rounded)
    lines = []
    session, wrong = pressure.run(NAMES, say=lines.append)
    assert wrong
    assert set(failures(session)) == {("warp", name) for name in pressure.TRIALS}
    assert any(line.startswith("  warp: 37x33:") for line in lines)


def test_an_output_left_as_it_was_is_told(pretend):
    def lazy(kernel, full, call, out):
        """Says that it ran."""
        return out if full else None

    pretend.spoil.append(lazy)
    session, _ = pressure.run(NAMES)
    assert failures(session) == {(name, "memory"): 1 for name in NAMES}


def test_an_error_in_a_thread_is_told_and_the_others_go_on(pretend):
    def loses(kernel, full, call, out):
        if kernel.name == "warp" and threading.current_thread() is not threading.main_thread():
            raise RuntimeError("lost")

    pretend.spoil.append(loses)
    lines = []
    session, _ = pressure.run(NAMES, say=lines.append)
    assert failures(session) == {("warp", "threads"): pressure.EACH * pressure.THREADS}
    assert "  warp: RuntimeError: lost" in lines


def test_a_failed_compile_that_is_taken_for_the_kernel_is_told(pretend):
    failed = set()

    def remembers(kernel, full, call, out):
        try:
            return call() if kernel.name == "warp" else None
        except gpu.CompileError:
            if kernel.name in failed:
                return fake_gpu.Array(np.zeros((1, 1), np.float32))
            failed.add(kernel.name)
            raise

    pretend.spoil.append(remembers)
    lines = []
    session, _ = pressure.run(NAMES, say=lines.append)
    assert failures(session) == {("warp", "compile"): 1}
    assert "  warp: no error where CompileError was due" in lines


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("odd"), "ValueError where CUDADriverError was due: odd"),
        (CUDADriverError("odd"), "CUDADriverError without 'CUDA_ERROR': odd"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_of_another_kind_is_told(pretend, error, words):
    def raises(kernel, full, call, out):
        if kernel.shared_bytes >= pressure.TOO_MUCH:
            raise error

    pretend.spoil.append(raises)
    lines = []
    session, wrong = pressure.run(["warp"], say=lines.append)
    assert failures(session) == {("warp", "shared"): wrong} and wrong == 2
    assert f"  warp: {words}" in lines


def test_memory_is_let_go_of_when_a_trial_breaks(pretend):
    with pytest.raises(KeyError), pressure._no_memory_left():
        raise KeyError(pretend.held)
    assert pretend.held == 0


def test_the_command_fails_where_something_was_wrong(pretend, capsys):
    call = ["pressure", "--kernels", "warp"]
    assert main(call) == 0
    assert "recorded in" in capsys.readouterr().out
    pretend.spoil.append(lambda kernel, full, call, out: out)
    assert main(call) == 1
    assert " 0 wrong" not in capsys.readouterr().out
    assert main(["pressure", "--kernels", "nope"]) == 1


def test_without_a_gpu_it_says_why():
    if not gpu.status().available:
        with pytest.raises(RuntimeError, match=gpu.status().reason[:20]):
            pressure.run()
