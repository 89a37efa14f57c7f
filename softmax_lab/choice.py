"""Which kernel the operators launch, by family and row length: the one place that says so."""

from __future__ import annotations

from softmax_lab import registry
from softmax_lab.families import SIZE_LIMIT, Family
from softmax_lab.registry import Kernel

BEST: dict[str, tuple[tuple[int, str], ...]] = {
    "softmax": ((16, "online"), (2048, "warp"), (SIZE_LIMIT - 1, "block_online")),
    "log_softmax": (
        (2048, "log_softmax/online_warp"),
        (SIZE_LIMIT - 1, "log_softmax/online_block"),
    ),
}
"""By family, for rows of up to so many columns, this kernel. A test holds it against the recorded
times."""


def best(family: Family, cols: int) -> Kernel | None:
    """The kernel of a family that the operators launch on rows of `cols` columns, None where none
    takes them."""
    for most, name in BEST.get(family.name, ()):
        kernel = registry.get(name)
        if cols <= min(most, kernel.max_cols):
            return kernel
    return None
