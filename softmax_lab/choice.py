"""Which kernel the operators launch, by family and shape: the one place that says so."""

from __future__ import annotations

from softmax_lab import registry
from softmax_lab.families import SIZE_LIMIT, Family
from softmax_lab.registry import Kernel

_ANY = SIZE_LIMIT - 1
_FEW = 1024  # rows; one warp each would leave most places for warps on a large GPU empty

BEST: dict[str, tuple[tuple[int, int, str], ...]] = {
    "softmax": (
        (_FEW, 4, "online"),
        (_FEW, 255, "warp_merge"),
        (_FEW // 4, 512, "block_online"),
        (_FEW // 4, _ANY, "block_tree"),
        (_FEW, _ANY, "block_online"),
        (_ANY, 8, "online"),
        (_ANY, 1024, "warp_merge"),
        (_ANY, _ANY, "block_online"),
    ),
    "log_softmax": (
        (_FEW, 4, "log_softmax/online_thread"),
        (_FEW, 255, "log_softmax/online_warp"),
        (_FEW, _ANY, "log_softmax/online_block"),
        (_ANY, 16, "log_softmax/online_thread"),
        (_ANY, 1024, "log_softmax/online_warp"),
        (_ANY, _ANY, "log_softmax/online_block"),
    ),
}
"""By family: for up to so many rows of up to so many columns this kernel, the first that fits. A
test holds it against the recorded times."""


def best(family: Family, rows: int, cols: int) -> Kernel | None:
    """The kernel of a family that the operators launch on a matrix (rows, cols), None where none
    takes its rows."""
    for most_rows, most_cols, name in BEST.get(family.name, ()):
        kernel = registry.get(name)
        if rows <= most_rows and cols <= min(most_cols, kernel.max_cols):
            return kernel
    return None
