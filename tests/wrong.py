"""Kernels that are wrong, each as edits of one that is right: what finds the fault, and where.

`WRONG` is data; test_wrong.py runs it. Text that an edit replaces must stand once in the kernel's
file or in a header that it includes.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from softmax_lab import emulator, registry
from softmax_lab.emulator import Out, Run, Source, Virtual

Edit = tuple[str, str]
VALUES = "wrong values"
"""The verdict where only the results show the fault: the oracle's checker refuses them."""


@dataclass(frozen=True)
class Wrong:
    """One fault: `edits` of `kernel` as (old text, new text), and what it must be found by.

    `verdict` is the sanitizer's word for the fault, which it must give at the line that holds
    `line`; or VALUES. `x` is the smallest input that shows it, rows of scores or a shape (rows,
    cols) of normal ones; on `spared` the fault does not show.
    """

    name: str
    kernel: str
    edits: tuple[Edit, ...]
    verdict: str
    why: str
    line: str = ""
    x: tuple = (1, 1)
    spared: tuple[tuple, ...] = ()


WRONG = (
    Wrong(
        name="naive whose guard lets one row more in",
        kernel="naive",
        edits=(("if (row >= size_t(rows)) return;", "if (row > size_t(rows)) return;"),),
        verdict="out of bounds",
        line="max = fmaxf(max, x[i]);",
        spared=((128, 1),),
        why="the thread after the last row reads and writes past the end",
    ),
    Wrong(
        name="naive that reads past the row",
        kernel="naive",
        edits=(("i < cols; ++i) max = ", "i <= cols; ++i) max = "),),
        verdict="out of bounds",
        line="max = fmaxf(max, x[i]);",
        why="past the last row there is nothing; past the others, the next row's first score",
    ),
    Wrong(
        name="naive that leaves the last column out of its sum",
        kernel="naive",
        edits=(("i < cols; ++i) sum +=", "i < cols - 1; ++i) sum +="),),
        verdict=VALUES,
        why="a lost tail: results sum to more than 1",
    ),
    Wrong(
        name="naive from the smallest positive float",
        kernel="naive",
        edits=(("float max = -CUDART_MAX_NORMAL_F;", "float max = 1.17549435e-38f;"),),
        verdict=VALUES,
        x=((-104.0,),),
        spared=(((-80.0,),), ((-80.0, 3.0),)),
        why="FLT_MIN is no number below all others, -FLT_MAX is",
    ),
    Wrong(
        name="naive with an epsilon in the denominator",
        kernel="naive",
        edits=(("expf(x[i] - max) / sum;", "expf(x[i] - max) / (sum + 1e-5f);"),),
        verdict=VALUES,
        why="the sum is 1 or more, so there is no zero to avoid: one column must be exactly 1",
    ),
    Wrong(
        name="naive with its sum in half precision",
        kernel="naive",
        edits=(
            ("#include <math_constants.h>", "#include <cuda_fp16.h>\n#include <math_constants.h>"),
            (
                "sum += expf(x[i] - max);",
                "sum = __half2float(__float2half(sum + expf(x[i] - max)));",
            ),
        ),
        verdict=VALUES,
        x=((0.0, -1.0),),
        spared=(((0.0,) * 2048,),),
        why="eleven bits hold 2048 ones and hardly anything else; 2049 ones are still 2048",
    ),
    Wrong(
        name="naive that tells the row by its thread alone",
        kernel="naive",
        edits=(("size_t(blockIdx.x) * blockDim.x + threadIdx.x", "size_t(threadIdx.x)"),),
        verdict="global race",
        line="y[i] = expf(x[i] - max) / sum;",
        x=(129, 1),
        spared=((128, 1),),
        why="every block computes the first rows, the others are never written",
    ),
    Wrong(
        name="online that does not rescale",
        kernel="online",
        edits=(("sum = sum * expf(max - v) + 1.0f;", "sum = sum + 1.0f;"),),
        verdict=VALUES,
        x=((0.0, 1.0),),
        spared=(((1.0, 0.0),), ((1.0, 1.0),)),
        why="the old terms keep the old maximum; a row that never rises does not show it",
    ),
    Wrong(
        name="warp that adds unlike denominators",
        kernel="warp",
        edits=(("    sum *= expf(max - row_max);", "    "),),
        verdict=VALUES,
        x=((0.0, 1.0),),
        spared=(((1.0,),), ((1.0, 1.0),)),
        why="sums relative to different maxima have no common unit",
    ),
    Wrong(
        name="warp whose lanes without columns return",
        kernel="warp",
        edits=(
            (
                "const unsigned lane = threadIdx.x, end = cols;",
                "const unsigned lane = threadIdx.x, end = cols; if (lane >= end) return;",
            ),
        ),
        verdict="mask names an absent lane",
        line="value = fmaxf(value, __shfl_down_sync(",
        spared=((3, 32),),
        why="the mask says that all 32 lanes come to the shuffle",
    ),
    Wrong(
        name="warp whose maximum stays in lane 0",
        kernel="warp",
        edits=(
            (
                "value = fmaxf(value, __shfl_down_sync(ALL_LANES, value, offset));\n    return "
                "__shfl_sync(ALL_LANES, value, 0);",
                "value = fmaxf(value, __shfl_down_sync(ALL_LANES, value, offset));\n    return "
                "value;",
            ),
        ),
        verdict=VALUES,
        x=((1.0, 0.0),),
        spared=(((1.0,),), ((0.0, 1.0),)),
        why="after a down-shuffle tree the other lanes hold maxima of parts of the row",
    ),
    Wrong(
        name="warp that shuffles four rounds instead of five",
        kernel="warp",
        edits=(
            (
                "__device__ __forceinline__ float warp_sum(float value) {\n    for (int offset = "
                "16;",
                "__device__ __forceinline__ float warp_sum(float value) {\n    for (int offset = "
                "8;",
            ),
        ),
        verdict=VALUES,
        x=(1, 17),
        spared=((3, 16),),
        why="the upper half of the warp is never added",
    ),
    Wrong(
        name="block_tree without the barrier between its trees",
        kernel="block_tree",
        edits=(("    __syncthreads();  // every thread has read slot 0", "    // nobody has"),),
        verdict="shared race",
        line="partial[thread] = sum;",
        why="as published: a late warp may read thread 0's sum where the maximum was",
    ),
    Wrong(
        name="block_tree without a barrier between two levels",
        kernel="block_tree",
        edits=(
            (
                "partial[thread + half]);\n        __syncthreads();  // outside of the `if`",
                "partial[thread + half]);\n        // outside of the `if`",
            ),
        ),
        verdict="shared race",
        line="partial[thread] = fmaxf(",
        why="a level reads what another thread writes in the one before",
    ),
    Wrong(
        name="block_tree with a barrier inside the guard",
        kernel="block_tree",
        edits=(
            (
                "if (thread < half) partial[thread] = fmaxf(partial[thread], partial[thread + "
                "half]);\n        __syncthreads();",
                "if (thread < half) {\n            partial[thread] = fmaxf(partial[thread], "
                "partial[thread + half]);\n            __syncthreads();\n        }",
            ),
        ),
        verdict="different barriers",
        line="__syncthreads();",
        why="half of the block waits where the other half never comes",
    ),
    Wrong(
        name="block_tree from a maximum of 0",
        kernel="block_tree",
        edits=(("float max = -CUDART_MAX_NORMAL_F;", "float max = 0.0f;"),),
        verdict=VALUES,
        x=((-104.0,),),
        spared=(((-80.0,),), ((-80.0, 3.0),)),
        why="0 is no identity of max: scores far below it lose their sum",
    ),
    Wrong(
        name="block_warp with its maximum in an int",
        kernel="block_warp",
        edits=(
            (
                "const float row_max = maxima[mine][0];",
                "const int row_max = int(maxima[mine][0]);",
            ),
        ),
        verdict=VALUES,
        x=((-2147483904.0,),),  # the first float below -2^31
        spared=(((-2147483648.0, -2147483904.0),), ((0.9, -0.9, 700.5),)),
        why="as published: cutting off the fraction does no harm, until the integers end",
    ),
    Wrong(
        name="block_warp whose threads past the last row return",
        kernel="block_warp",
        edits=(
            (
                "    x += row * cols;",
                "    if (row >= size_t(rows)) return;\n    x += row * cols;",
            ),
        ),
        verdict="barrier after exit",
        line="__syncthreads();  // every thread of all four rows",
        x=(1, 1),
        spared=((4, 1),),
        why="as published: the block's other rows wait for threads that are gone",
    ),
    Wrong(
        name="block_warp without the barrier before the fold",
        kernel="block_warp",
        edits=(
            ("    __syncthreads();  // every thread of all four rows", "    // nobody of all four"),
        ),
        verdict="shared uninitialised",
        line="max = fmaxf(max, maxima[mine][w]);",
        why="the row's first thread may fold what other warps have not stored yet",
    ),
    Wrong(
        name="block_warp with one array for maxima and sums",
        kernel="block_warp",
        edits=((", sums[ROWS][WARPS];", "; float (*sums)[WARPS] = maxima;"),),
        verdict="shared race",
        line="sums[mine][warp] = sum;",
        why="a fast warp's sum may overwrite the maximum that a slow one is still to read",
    ),
    Wrong(
        name="block_warp that folds one warp too few",
        kernel="block_warp",
        edits=(("w < WARPS; ++w) sum +=", "w < WARPS - 1; ++w) sum +="),),
        verdict=VALUES,
        x=(1, 225),
        spared=((1, 224),),
        why="a lost tail: the eighth warp's columns are missing from the sum",
    ),
    Wrong(
        name="warp_merge from an identity that is none",
        kernel="warp_merge",
        edits=(("pair = {-CUDART_MAX_NORMAL_F, 0.0f};", "pair = {-CUDART_INF_F, 0.0f};"),),
        verdict=VALUES,
        x=(1, 1),
        spared=((3, 16), (3, 31), (3, 1000)),
        why="as published: below 16 columns two idle lanes merge, exp(-inf + inf) = NaN",
    ),
    Wrong(
        name="warp_merge without the test for +inf",
        kernel="warp_merge",
        edits=(("const float sum = sum_or_nan(pair);", "const float sum = pair.sum;"),),
        verdict=VALUES,
        x=((math.inf, 0.0),),
        spared=(((math.inf,),), ((math.inf, math.inf),)),
        why="+inf comes out as NaN among zeros, not as a row without a distribution",
    ),
    Wrong(
        name="warp_merge that adds unlike denominators",
        kernel="warp_merge",
        edits=(("small.sum * expf(small.max - large.max)", "small.sum"),),
        verdict=VALUES,
        x=((0.0, 1.0),),
        spared=(((1.0,),), ((2.0, 2.0),)),
        why="sums relative to different maxima have no common unit",
    ),
    Wrong(
        name="warp_merge in tiles of 16 lanes",
        kernel="warp_merge",
        edits=(("cg::tiled_partition<32>(", "cg::tiled_partition<16>("),),
        verdict=VALUES,
        x=(1, 17),
        spared=((9, 16),),
        why="rows are dealt out by tiles of 16 lanes, columns by steps of 32",
    ),
    Wrong(
        name="block_online without a barrier before the tree",
        kernel="block_online",
        edits=(
            ("    __syncthreads();  // every thread comes here", "    // every thread comes here"),
        ),
        verdict="shared uninitialised",
        line="mine = merge(mine, {maxima[thread + half], sums[thread + half]});",
        why="the tree reads pairs that no thread has stored yet",
    ),
    Wrong(
        name="block_online without a barrier between two levels",
        kernel="block_online",
        edits=(
            ("        __syncthreads();  // outside of the `if`", "        // outside of the `if`"),
        ),
        verdict="shared race",
        line="mine = merge(mine, {maxima[thread + half], sums[thread + half]});",
        why="a level reads pairs that other threads store in the one before",
    ),
    Wrong(
        name="block_online with shared arrays of half the size",
        kernel="block_online",
        edits=(("maxima[256], sums[256];", "maxima[128], sums[128];"),),
        verdict="shared out of bounds",
        line="maxima[thread] = mine.max;",
        why="one pair of each thread needs as many slots as there are threads",
    ),
    Wrong(
        name="block_online from a maximum of -infinity",
        kernel="block_online",
        edits=(("float max = -CUDART_MAX_NORMAL_F;", "float max = -CUDART_INF_F;"),),
        verdict=VALUES,
        x=(1, 1),
        spared=((1, 256),),
        why="two threads without columns merge: exp(-inf + inf) = NaN",
    ),
    Wrong(
        name="block_online whose tree leaves out a level",
        kernel="block_online",
        edits=(("half = blockDim.x / 2; half > 0", "half = blockDim.x / 2; half > 1"),),
        verdict=VALUES,
        x=(1, 2),
        spared=((3, 1),),
        why="the odd threads' columns are missing",
    ),
    Wrong(
        name="log_softmax/online_warp that subtracts maximum and logarithm at once",
        kernel="log_softmax/online_warp",
        edits=(("(x[i] - row_max) - log_sum;", "x[i] - (row_max + log_sum);"),),
        verdict=VALUES,
        x=((-1e7, -1e7 + 1, -1e7 + 2),),
        spared=(((-1.0, 0.0, 1.0),),),
        why="1e7 plus a logarithm is rounded to an integer",
    ),
    Wrong(
        name="log_softmax/online_warp by exponential and logarithm",
        kernel="log_softmax/online_warp",
        edits=(("(x[i] - row_max) - log_sum;", "logf(expf(x[i] - row_max) / row_sum);"),),
        verdict=VALUES,
        x=((0.0, -100.0),),
        spared=(((0.0, -80.0),),),
        why="it errs where the exponential is subnormal, and is -inf where that is 0",
    ),
    Wrong(
        name="log_softmax/online_block without the logarithm",
        kernel="log_softmax/online_block",
        edits=((" = logf(sum_or_nan(all));", " = sum_or_nan(all);"),),
        verdict=VALUES,
        x=(1, 1),
        why="the sum is subtracted where its logarithm should be",
    ),
)


INT_OFFSETS = (
    ("const size_t row = blockIdx.x;", "const int row = blockIdx.x;"),
    ("if (row >= size_t(rows)) return;", "if (row >= rows) return;"),
)
"""Edits of a kernel with one row a block: all five published kernels compute offsets so, and int
times int wraps at 2^31 elements."""


def edited(name: str, *edits: Edit) -> Source:
    """The source of a kernel with `edits` made; a header that holds an edited text is put in its
    place."""
    kernel = registry.get(name)
    text = kernel.path.read_text(encoding="utf-8")
    for old, new in edits:
        if old not in text:
            text = re.sub(r'#include "([^"]+)"\n', lambda m: _header(kernel.path.parent, m), text)
        assert text.count(old) == 1, f"{name} holds {old!r} {text.count(old)} times, not once"
        text = text.replace(old, new)
    return Source(text, kernel.path.name, kernel.path.parent)


def _header(folder, include: re.Match) -> str:
    text = (folder / include[1]).read_text(encoding="utf-8")
    return re.sub(r"^#pragma once$", "", text, flags=re.M)


def run(name: str, x: np.ndarray | Virtual, *edits: Edit, **how) -> Run:
    """One launch of an edited kernel on the emulator; `how` goes to `emulator.launch`.

    Of an array of address space only the last block runs.
    """
    kernel = registry.get(name)
    grid, block = kernel.geometry(x.shape[0])
    y = Out(x.shape)
    if isinstance(x, Virtual):
        y, how = x, how | {"blocks": (grid - 1, grid)}
    how = {"kernel": kernel.symbol, "shared": kernel.shared_bytes} | how
    return emulator.launch(edited(name, *edits), grid, block, (x, y, *x.shape), **how)
