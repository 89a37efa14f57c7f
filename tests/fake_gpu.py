"""A GPU for tests of the clock: CuPy's calls on NumPy arrays, and a time that only they move.

The host pays for each call, the device for each launch; the first launch of a kernel compiles.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np

from softmax_lab import gpu, provenance, registry, stopwatch

CALL, RECORD, GRAPH, COMPILE = 5e-6, 1e-6, 7e-6, 0.25  # what the host pays [s]
IDLE, RATE = 1e-6, 4e12  # what the device takes [s] for a launch, and its speed [B/s]
L2 = 1 << 16


class Array:
    """A device array as far as the stopwatch knows one."""

    device = SimpleNamespace(id=0)

    def __init__(self, values):
        self.values = values
        self.data = SimpleNamespace(
            memset_async=lambda byte, size: self.values.view(np.uint8).fill(byte),
            copy_from_device_async=self._copy,
            owner=self,
        )

    def _copy(self, source, size):
        self.values[...] = source.owner.values

    shape = property(lambda self: self.values.shape)
    dtype = property(lambda self: self.values.dtype)
    itemsize = property(lambda self: self.values.itemsize)
    nbytes = property(lambda self: self.values.nbytes)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, place):
        return Array(self.values[place])

    def reshape(self, shape):
        return Array(self.values.reshape(shape))

    def set(self, values):
        self.values[...] = values

    def get(self):
        return self.values


class Device:
    """Two clocks: `host` is now, `gpu` is when everything launched so far will be done [s]."""

    def __init__(self, broken: bool = False):
        self.host = self.gpu = 0.0
        self.broken = broken  # a copy kernel that loses the last row
        self.capturing: list | None = None
        self.loaded: set[str] = set()
        self.slower: dict[str, float] = {}  # kernel → how many times as long it takes as it should

    def function(self, kernel, dtype, device):
        def launch(grid, block, arguments):
            if kernel not in self.loaded:
                self.host += COMPILE
                self.loaded.add(kernel)
            if self.capturing is not None:
                self.capturing.append((kernel, arguments))
                return
            self.host += CALL
            self.run(kernel, arguments)

        kernel = getattr(kernel, "name", kernel)
        return launch

    def launch(self, kernel, x, *, out):
        """What `gpu.launch` does, for softmax kernels."""
        self.function(kernel, "float32", 0)(None, None, (x, out))

    def run(self, kernel, arguments):
        x, y = arguments[:2]
        took = IDLE
        if kernel == "roof/copy":
            last = len(x) - self.broken
            y.values[:last] = x.values[:last]
            took += (x.nbytes + y.nbytes) / RATE
        elif kernel in registry.KERNELS:
            y.values[...] = registry.get(kernel).family.oracle(x.values)
            took += 2 * (x.nbytes + y.nbytes) / RATE
        self.gpu = max(self.gpu, self.host) + took * self.slower.get(kernel, 1)

    def wait(self):
        self.host = max(self.host, self.gpu)

    def cupy(self):
        """What `import cupy` gives."""
        device = self

        class Stream:
            def __init__(self, non_blocking=False):
                pass

            def __enter__(self):
                return self

            def __exit__(self, *error):
                pass

            def synchronize(self):
                device.wait()

            def begin_capture(self):
                device.capturing = []

            def end_capture(self):
                captured, device.capturing = device.capturing, None

                def launch(stream):
                    device.host += GRAPH
                    for each in captured:
                        device.run(*each)

                return SimpleNamespace(launch=launch)

        class Event:
            def record(self, stream):
                device.host += RECORD
                self.at = device.gpu = max(device.gpu, device.host)

            def synchronize(self):
                device.wait()

        cuda = SimpleNamespace(
            Device=lambda: SimpleNamespace(id=0, compute_capability="90"),
            runtime=SimpleNamespace(
                getDeviceProperties=lambda device: {"l2CacheSize": L2},
                memGetInfo=lambda: (1 << 30, 1 << 30),
            ),
            Stream=Stream,
            Event=Event,
            get_elapsed_time=lambda a, b: 1e3 * (b.at - a.at),
            get_current_stream=Stream,
        )
        return SimpleNamespace(
            cuda=cuda,
            empty=lambda shape, dtype: Array(np.zeros(shape, dtype)),
            get_default_memory_pool=lambda: SimpleNamespace(free_all_blocks=lambda: None),
        )


def pretend(monkeypatch, name: str = "Toy GPU", **how) -> Device:
    """Let the package find a made-up device for its GPU."""
    device = Device(**how)
    monkeypatch.setitem(sys.modules, "cupy", device.cupy())
    monkeypatch.setattr(gpu, "status", lambda: gpu.Status(True, name=name))
    monkeypatch.setattr(gpu, "function", device.function)
    monkeypatch.setattr(gpu, "launch", device.launch)
    monkeypatch.setattr(gpu, "forget", device.loaded.discard)
    monkeypatch.setattr(stopwatch.time, "perf_counter", lambda: device.host)
    monkeypatch.setattr(provenance, "clocks_now", lambda device: [(1000, 2000)])
    about = {"GPU": name, "date": "2026-12-01 10:00 UTC"}
    monkeypatch.setattr(provenance, "collect", lambda *each: {**about, "protocol": each[1]})
    return device


# --- arrays that compute ------------------------------------------------------------------------


class Place:
    """A pointer of CuPy's: `+` moves it by bytes."""

    def __init__(self, ptr: int, owner, device):
        self.ptr, self.owner, self.device = ptr, owner, device

    def __add__(self, by: int):
        return Place(self.ptr + by, self.owner, self.device)


class Gpu:
    """A device: current while it is entered."""

    current = 0

    def __init__(self, number: int = 0):
        self.id, self._before = number, []

    def __enter__(self):
        self._before.append(Gpu.current)
        Gpu.current = self.id

    def __exit__(self, *error):
        Gpu.current = self._before.pop()


def _held(array):
    """The values of an array that this device may touch: its own, and aligned as hardware wants."""
    if not isinstance(array, CupyArray):
        return array
    assert array.device.id == Gpu.current, f"of GPU {array.device.id}, current is {Gpu.current}"
    values = array.values
    starts = (values.ctypes.data, *values.strides)
    assert not any(start % values.itemsize for start in starts), "a misaligned access"
    return values


class CupyArray(np.lib.mixins.NDArrayOperatorsMixin):
    """As much of `cupy.ndarray` as the operators use, on NumPy's memory. It refuses what a GPU
    would: accesses that are not aligned, and those of another device than the current one."""

    def __init__(self, shape, dtype=float, memptr=None, strides=None):
        self.device = Gpu(Gpu.current) if memptr is None else memptr.device
        if memptr is None:
            self.values = np.empty(shape, dtype)
            self.values.view(np.uint8 if self.values.ndim else dtype).fill(0x5A)
            return
        there = SimpleNamespace(owner=memptr.owner)
        there.__array_interface__ = {
            "data": (memptr.ptr, False),
            "shape": tuple(shape),
            "strides": strides,
            "typestr": np.dtype(dtype).str,
            "version": 3,
        }
        self.values = np.asarray(there)

    @classmethod
    def of(cls, values, device):
        """These values, on that device."""
        array = cls.__new__(cls)
        array.values, array.device = values, device
        return array

    def __getattr__(self, name):
        if name in ("shape", "dtype", "strides", "itemsize", "size", "ndim", "nbytes", "flags"):
            return getattr(self.values, name)
        raise AttributeError(name)

    @property
    def data(self):
        return Place(self.values.ctypes.data, self.values, self.device)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, where):
        return CupyArray.of(self.values[where], self.device)

    def __setitem__(self, where, what):
        _held(self)[where] = _held(what)

    def __array__(self, *_, **__):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        assert method == "__call__"
        return CupyArray.of(ufunc(*map(_held, inputs), **keywords), self.device)

    def get(self):
        return self.values.copy()

    def set(self, values):
        self.values[...] = values

    def swapaxes(self, a, b):
        return CupyArray.of(self.values.swapaxes(a, b), self.device)

    def view(self, dtype):
        return CupyArray.of(self.values.view(dtype), self.device)

    def reshape(self, *shape):
        new = self.values.reshape(*shape)
        if not np.shares_memory(new, self.values):
            _held(self)  # a copy
        return CupyArray.of(new, self.device)

    def astype(self, dtype, copy=True):
        if not copy and self.dtype == dtype:
            return self
        return CupyArray.of(_held(self).astype(dtype), self.device)

    def copy(self, order="C"):
        return CupyArray.of(_held(self).copy(order), self.device)

    def max(self, axis, keepdims):
        return CupyArray.of(_held(self).max(axis, keepdims=keepdims), self.device)

    def sum(self, axis, keepdims):
        return CupyArray.of(_held(self).sum(axis, keepdims=keepdims), self.device)


def computing(stream):
    """What `import cupy` gives, for arrays that compute; `stream` is the current one."""
    return SimpleNamespace(
        ndarray=CupyArray,
        empty=CupyArray,
        zeros=lambda shape, dtype: CupyArray.of(np.zeros(shape, dtype), Gpu(Gpu.current)),
        cuda=SimpleNamespace(get_current_stream=lambda: stream, Device=Gpu),
    )


def kernel_function(launched: list):
    """`gpu.function` for arrays that compute: the oracle in place of the kernel, each launch
    noted."""

    def function(kernel, dtype, device):
        def launch(grid, block, arguments, shared=0):
            x, y, rows, cols = arguments
            launched.append((kernel.name, int(rows), int(cols)))
            with np.errstate(over="ignore"):
                _held(y)[...] = kernel.family.oracle(_held(x)).astype(np.float32)

        return launch

    return function
