"""`Counts`: what a kernel does, in units that can be derived, counted and measured alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from softmax_lab.facts import SECTOR


@dataclass(frozen=True)
class Counts:
    """Work and traffic of one launch. None is unknown, never zero; a sum with an unknown is
    unknown.

    Arithmetic counts source operations on floats: `fma` is a mul and an add, `exp` is any
    exponential, `compare` any comparison or fmaxf/fminf, `updates` the order comparisons (<, >, …)
    that came out true, `f64` operations on doubles. `load_bytes`, `store_bytes` [B] are what lanes
    ask for in global memory; `…_useful_bytes` [B] count a byte once a request; a request is one
    instruction of one warp, a sector 32 bytes. `l2_sectors`, `dram_bytes` are hardware's.
    `shuffles` are warp instructions of 4 bytes a lane; `barriers` are counted once a block;
    `branches` are the `if` statements that warps met, `diverged` those on which a warp's lanes
    disagreed.
    """

    add: float | None = None
    sub: float | None = None
    mul: float | None = None
    div: float | None = None
    f64: float | None = None
    exp: float | None = None
    log: float | None = None
    compare: float | None = None
    updates: float | None = None
    load_bytes: float | None = None
    store_bytes: float | None = None
    load_useful_bytes: float | None = None
    store_useful_bytes: float | None = None
    load_requests: float | None = None
    load_sectors: float | None = None
    store_requests: float | None = None
    store_sectors: float | None = None
    l2_sectors: float | None = None
    dram_bytes: float | None = None
    shuffles: float | None = None
    barriers: float | None = None
    shared_requests: float | None = None
    shared_wavefronts: float | None = None
    branches: float | None = None
    diverged: float | None = None

    def __add__(self, other: Counts) -> Counts:
        return self._each(other, lambda a, b: a + b)

    def __sub__(self, other: Counts) -> Counts:
        return self._each(other, lambda a, b: a - b)

    def _each(self, other: Counts, combine: Callable[[float, float], float]) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in FIELDS}
        return Counts(
            **{name: None if None in pair else combine(*pair) for name, pair in pairs.items()}
        )

    def known(self) -> dict[str, float]:
        """The fields that are known, in declaration order."""
        return {name: value for name in FIELDS if (value := getattr(self, name)) is not None}

    @property
    def flops(self) -> float | None:
        """Floating-point operations [FLOP]: add + sub + mul + div. An exponential is not one (see
        the glossary)."""
        return _total(self.add, self.sub, self.mul, self.div)

    @property
    def bytes(self) -> float | None:
        """Global bytes that lanes ask for [B], loads and stores."""
        return _total(self.load_bytes, self.store_bytes)

    @property
    def intensity(self) -> float | None:
        """Arithmetic intensity [FLOP/B] on the bytes asked for; None where nothing moves."""
        return _ratio(self.flops, self.bytes)

    @property
    def load_efficiency(self) -> float | None:
        """Distinct bytes asked for over bytes moved in sectors, for loads; 1 is perfect
        coalescing."""
        return _ratio(self.load_useful_bytes, _total(self.load_sectors), SECTOR)

    @property
    def store_efficiency(self) -> float | None:
        """Distinct bytes asked for over bytes moved in sectors, for stores."""
        return _ratio(self.store_useful_bytes, _total(self.store_sectors), SECTOR)


FIELDS = tuple(field.name for field in fields(Counts))
"""Names of the fields of `Counts`, in the order tables show them."""

HARDWARE_ONLY = ("l2_sectors", "dram_bytes")
"""Fields that only caches decide: neither a formula nor the emulator states them."""

ZERO = Counts(**{name: None if name in HARDWARE_ONLY else 0 for name in FIELDS})
"""Nothing done: the sum of no phases, and the cost of an empty matrix."""


def _total(*parts: float | None) -> float | None:
    return None if None in parts else sum(parts)


def _ratio(over: float | None, under: float | None, unit: float = 1) -> float | None:
    return None if over is None or not under else over / (unit * under)
