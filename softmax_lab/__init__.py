"""Softmax Lab: CUDA softmax kernels whose every number is derived, counted and measured.

`derive`, `count` and `measure` are the three verbs over `KERNELS`; `launch` runs one kernel;
`softmax` and `log_softmax` are the operators, on any NumPy or CuPy array.
Importing this package needs NumPy alone: a GPU, CuPy and a C++ compiler are looked for when a call
needs them.
"""

from softmax_lab.counts import Counts
from softmax_lab.ledger import count, derive, launch, measure
from softmax_lab.ops import log_softmax, softmax
from softmax_lab.registry import KERNELS, LADDER

__all__ = [
    "KERNELS",
    "LADDER",
    "Counts",
    "count",
    "derive",
    "launch",
    "log_softmax",
    "measure",
    "softmax",
]
__version__ = "0.1.0"
