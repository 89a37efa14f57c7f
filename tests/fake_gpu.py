"""A GPU for tests of the clock: CuPy's calls on NumPy arrays, and a time that only they move.

The host pays for each call, the device for each launch; the first launch of a kernel compiles.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

CALL, RECORD, GRAPH, COMPILE = 5e-6, 1e-6, 7e-6, 0.25  # what the host pays [s]
IDLE, RATE = 1e-6, 4e12  # what the device takes [s] for a launch, and its speed [B/s]


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

    def run(self, kernel, arguments):
        x, y = arguments[:2]
        took = IDLE
        if kernel == "roof/copy":
            last = len(x) - self.broken
            y.values[:last] = x.values[:last]
            took += (x.nbytes + y.nbytes) / RATE
        self.gpu = max(self.gpu, self.host) + took

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
            Device=lambda: SimpleNamespace(id=0),
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
