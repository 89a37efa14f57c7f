"""Kernels that are wrong, each as edits of one that is right: what finds the fault, and where.

`WRONG` is data; test_wrong.py runs it. Text that an edit replaces must stand once in the kernel's
file or in a header that it includes.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from softmax_lab import emulator, registry
from softmax_lab.emulator import Out, Run, Source, Virtual

Edit = tuple[str, str]
VALUES = "wrong values"
"""The verdict where only the results show the fault: the oracle's checker refuses them."""

ELSEWHERE = "another block's rows"
"""The verdict where every access lies inside of the arrays, and yet in rows that others compute."""


@dataclass(frozen=True)
class Wrong:
    """One fault: `edits` of `kernel` as (old text, new text), and what it must be found by.

    `verdict` is the sanitizer's word for the fault, which it must give at the line that holds
    `line`; or VALUES or ELSEWHERE. `x` is the smallest input that shows it, rows of scores or a
    shape (rows, cols) of normal ones, as `smallest` finds it; on `spared` the fault does not show.
    `threads` launches with another block than the kernel's own; `traps` are those of published
    kernels. A `kernel` that ends in .cu is a file in tests/foreign.
    """

    name: str
    kernel: str
    edits: tuple[Edit, ...]
    verdict: str
    why: str
    line: str = ""
    x: tuple | Virtual = (1, 1)
    spared: tuple[tuple, ...] = ()
    threads: int | None = None
    traps: tuple[str, ...] = ()


def offsets(kind: str) -> tuple[Edit, ...]:
    """Edits of a kernel with one row a block: offsets are computed in integers of that type.

    All five published kernels take int, and int times int wraps at 2^31 elements; unsigned wraps at
    2^32, and then to the start of the array.
    """
    return (
        ("const size_t row = blockIdx.x;", f"const {kind} row = blockIdx.x;"),
        ("if (row >= size_t(rows)) return;", f"if (row >= {kind}(rows)) return;"),
    )


FAR, FARTHER = Virtual((2**23 + 1, 2**8)), Virtual((2**24 + 1, 2**8))
"""Arrays of address space only, whose last row starts at element 2^31 and at 2^32."""


def one_maximum(statement: str) -> tuple[Edit, ...]:
    """Edits of block_tree: its threads put their maxima into one word by `statement`, no tree."""
    loop = "    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {\n        if (thread "
    maxima = "< half) partial[thread] = fmaxf("
    return (
        ("partial[thread] = max;", "if (thread == 0) partial[0] = -CUDART_MAX_NORMAL_F;"),
        (
            loop + maxima,
            f"    {statement};\n{loop.replace('half > 0', 'half > blockDim.x')}{maxima}",
        ),
        ("max = partial[0];\n", "__syncthreads();\n    max = partial[0];\n"),
    )


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
        traps=("T8",),
    ),
    Wrong(
        name="naive that leaves the last column out of its sum",
        kernel="naive",
        edits=(("i < cols; ++i) sum +=", "i < cols - 1; ++i) sum +="),),
        verdict=VALUES,
        why="a lost tail: results sum to more than 1",
        traps=("T17",),
    ),
    Wrong(
        name="naive from the smallest positive float",
        kernel="naive",
        edits=(("float max = -CUDART_MAX_NORMAL_F;", "float max = 1.17549435e-38f;"),),
        verdict=VALUES,
        x=((-104.0,),),
        spared=(((-80.0,),), ((-80.0, 3.0),)),
        why="FLT_MIN is no number below all others, -FLT_MAX is",
        traps=("T3",),
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
        x=((0.0, 1.0),),
        spared=(((0.0,) * 2048,),),
        why="eleven bits hold 2048 ones and hardly anything else; 2049 ones are still 2048",
        traps=("T6",),
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
        traps=("T20",),
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
        traps=("T10",),
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
        x=((0.0, -1.0),),
        spared=(((1.0,),), ((0.0, 1.0),)),
        why="after a down-shuffle tree the other lanes hold maxima of parts of the row",
        traps=("T13",),
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
        traps=("T11",),
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
        traps=("T3",),
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
        traps=("T7",),
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
        traps=("T10",),
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
        traps=("T11",),
    ),
    Wrong(
        name="block_warp that folds one warp too few",
        kernel="block_warp",
        edits=(("w < WARPS; ++w) sum +=", "w < WARPS - 1; ++w) sum +="),),
        verdict=VALUES,
        x=(1, 225),
        spared=((1, 224),),
        why="a lost tail: the eighth warp's columns are missing from the sum",
        traps=("T17",),
    ),
    Wrong(
        name="warp_merge from an identity that is none",
        kernel="warp_merge",
        edits=(("pair = {-CUDART_MAX_NORMAL_F, 0.0f};", "pair = {-CUDART_INF_F, 0.0f};"),),
        verdict=VALUES,
        x=(1, 1),
        spared=((3, 16), (3, 31), (3, 1000)),
        why="as published: below 16 columns two idle lanes merge, exp(-inf + inf) = NaN",
        traps=("T1",),
    ),
    Wrong(
        name="warp_merge without the test for +inf",
        kernel="warp_merge",
        edits=(("const float sum = sum_or_nan(pair);", "const float sum = pair.sum;"),),
        verdict=VALUES,
        x=((0.0, math.inf),),
        spared=(((math.inf,),), ((math.inf, math.inf),)),
        why="+inf comes out as NaN among zeros, not as a row without a distribution",
    ),
    Wrong(
        name="warp_merge that adds unlike denominators",
        kernel="warp_merge",
        edits=(("small.sum * expf(small.max - large.max)", "small.sum"),),
        verdict=VALUES,
        x=((-math.inf,),),
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
        traps=("T1",),
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
        name="log_softmax/online_thread without the test for +inf",
        kernel="log_softmax/online_thread",
        edits=(("sum = max == CUDART_INF_F ? CUDART_NAN_F : sum;", ";"),),
        verdict=VALUES,
        x=((0.0, math.inf),),
        spared=((3, 5),),
        why="-inf stands beside NaN where the whole row has no distribution",
    ),
    Wrong(
        name="log_softmax/online_thread that starts from zero",
        kernel="log_softmax/online_thread",
        edits=(("float max = -CUDART_MAX_NORMAL_F;", "float max = 0.0f;"),),
        verdict=VALUES,
        x=((-100.0,),),
        spared=(((1.0, 0.0),), ((-1.0, 0.0),)),
        why="a row of scores far below 0 has a subnormal sum, or none: digits are lost, then all",
    ),
    Wrong(
        name="log_softmax/online_warp that subtracts maximum and logarithm at once",
        kernel="log_softmax/online_warp",
        edits=(("(x[i] - row_max) - log_sum;", "x[i] - (row_max + log_sum);"),),
        verdict=VALUES,
        x=((100.0, 100.0),),
        spared=(((-1.0, 0.0, 1.0),),),
        why="the logarithm loses the digits that the maximum needs; at 1e7 all of them",
    ),
    Wrong(
        name="log_softmax/online_warp by exponential and logarithm",
        kernel="log_softmax/online_warp",
        edits=(("(x[i] - row_max) - log_sum;", "logf(expf(x[i] - row_max) / row_sum);"),),
        verdict=VALUES,
        x=((0.0, 100.0),),
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
    Wrong(
        name="naive that answers zeros where there is no distribution",
        kernel="naive",
        edits=(("expf(x[i] - max) / sum;", "sum > 0.0f ? expf(x[i] - max) / sum : 0.0f;"),),
        verdict=VALUES,
        x=((math.inf,),),
        why="meant for rows that are masked whole, it swallows a NaN that means something",
        traps=("T2",),
    ),
    Wrong(
        name="naive from the infinity of a type that has no limits",
        kernel="naive",
        edits=(
            (
                'extern "C" __global__ void naive(',
                "template <class T> struct limits {\n    static __device__ T infinity() { return "
                'T(); }\n};\n\nextern "C" __global__ void naive(',
            ),
            ("float max = -CUDART_MAX_NORMAL_F;", "float max = -limits<float>::infinity();"),
        ),
        verdict=VALUES,
        x=((-104.0,),),
        why="as published for a half type: limits nobody has specialised give 0, not infinity",
        traps=("T4",),
    ),
    Wrong(
        name="naive whose maximum starts from the thread's own element",
        kernel="naive",
        edits=(("float max = -CUDART_MAX_NORMAL_F;", "float max = x[threadIdx.x];"),),
        verdict="out of bounds",
        line="float max = x[threadIdx.x];",
        x=(2, 1),
        why="an element of another row, and past the last row of none",
        traps=("T5",),
    ),
    Wrong(
        name="naive with its sum in bfloat16",
        kernel="naive",
        edits=(
            ("#include <math_constants.h>", "#include <cuda_bf16.h>\n#include <math_constants.h>"),
            (
                "sum += expf(x[i] - max);",
                "sum = __bfloat162float(__float2bfloat16(sum + expf(x[i] - max)));",
            ),
        ),
        verdict=VALUES,
        x=((0.0, 1.0),),
        spared=(((0.0,) * 256,),),
        why="eight bits hold 256 ones, and the sum of more ones is still 256",
        traps=("T6",),
    ),
    Wrong(
        name="naive that sums one term too many",
        kernel="naive",
        edits=(("i < cols; ++i) sum +=", "i <= cols; ++i) sum +="),),
        verdict="out of bounds",
        line="sum += expf(x[i] - max);",
        why="the formula as published runs from 0 to N",
        traps=("T8",),
    ),
    Wrong(
        name="naive that adds to what it never set",
        kernel="naive_store",
        edits=(("y[i] = power;", "y[i] += power;"),),
        verdict="global uninitialised",
        line="y[i] += power;",
        why="the output holds what was there before",
    ),
    Wrong(
        name="naive with a literal in double",
        kernel="naive",
        edits=(("expf(x[i] - max) / sum;", "expf(x[i] - max) * (1.0 / sum);"),),
        verdict="double arithmetic by a literal",
        line="expf(x[i] - max) * (1.0 / sum);",
        why="1.0 is a double and makes the division one, which costs far more",
    ),
    Wrong(
        name="naive that leaves out the shift",
        kernel="naive",
        edits=(
            ("sum += expf(x[i] - max);", "sum += expf(x[i]);"),
            ("y[i] = expf(x[i] - max)", "y[i] = expf(x[i])"),
        ),
        verdict=VALUES,
        x=((100.0,),),
        spared=(((1.0, 2.0),),),
        why="the exponential of a score overflows",
    ),
    Wrong(
        name="warp launched with half a warp",
        kernel="warp",
        edits=(),
        threads=16,
        verdict="mask names an absent lane",
        line="value = fmaxf(value, __shfl_down_sync(",
        why="as published for short rows: 16 threads, and a mask that says 32",
        traps=("T10",),
    ),
    Wrong(
        name="warp_merge whose guard asks the thread instead of the row",
        kernel="warp_merge",
        edits=(("if (row >= size_t(rows)) return;", "if (threadIdx.x >= unsigned(cols)) return;"),),
        verdict=VALUES,
        x=(2, 32),
        spared=((1, 32), (4, 128)),
        why="as published: one warp owns a row, yet threads beyond the columns leave, whole rows",
        traps=("T9",),
    ),
    Wrong(
        name="block_tree that trusts a warp to run in lockstep",
        kernel="block_tree",
        edits=(
            (
                "partial[thread + half]);\n        __syncthreads();  // outside",
                "partial[thread + half]);\n        if (half > 16) __syncthreads();  // outside",
            ),
        ),
        verdict="shared race",
        line="partial[thread] = fmaxf(",
        why="since Volta lanes of a warp need not run together",
        traps=("T13",),
    ),
    Wrong(
        name="block_tree whose maximum is an atomic one of integers",
        kernel="block_tree",
        edits=one_maximum("atomicMax(reinterpret_cast<int*>(partial), __float_as_int(max))"),
        verdict=VALUES,
        x=((-1.0,),),
        spared=(((1.0,),), ((0.0, -1.0),)),
        why="as integers, negative floats are in reverse order",
        traps=("T7",),
    ),
    Wrong(
        name="block_tree whose maximum is read, compared and exchanged",
        kernel="block_tree",
        edits=one_maximum("if (max > partial[0]) atomicExch(partial, max)"),
        verdict="shared race",
        line="if (max > partial[0]) atomicExch(partial, max);",
        why="between the comparison and the exchange another thread may have put more there",
        traps=("T14",),
    ),
    Wrong(
        name="block_tree in which every thread writes the whole row",
        kernel="block_tree",
        edits=(("i = thread; i < end; i += blockDim.x) y[i]", "i = 0; i < end; ++i) y[i]"),),
        verdict="global race",
        line="y[i] = expf(x[i] - max) / sum;",
        why="as published: right, and as many times the traffic as there are threads",
        traps=("T20",),
    ),
    Wrong(
        name="block_tree with int offsets",
        kernel="block_tree",
        edits=offsets("int"),
        verdict="out of bounds",
        line="max = fmaxf(max, x[i]);",
        x=FAR,
        why="int times int wraps at 2^31 elements, and the row begins before the array",
        traps=("T15",),
    ),
    Wrong(
        name="block_online with int offsets",
        kernel="block_online",
        edits=offsets("int"),
        verdict="out of bounds",
        line="const float v = x[i];",
        x=FAR,
        why="as in all five published kernels",
        traps=("T15",),
    ),
    Wrong(
        name="block_online with unsigned offsets",
        kernel="block_online",
        edits=offsets("unsigned"),
        verdict=ELSEWHERE,
        line="const float v = x[i];",
        x=FARTHER,
        why="they wrap to 0 at 2^32 elements: the first row is written twice, the last one never",
        traps=("T15",),
    ),
    Wrong(
        name="block_warp whose rows lie along the grid's y",
        kernel="block_warp",
        edits=(("size_t(blockIdx.x) * ROWS", "size_t(blockIdx.y) * ROWS"),),
        verdict="global race",
        line="y[i] = expf(x[i] - row_max) / row_sum;",
        x=(5, 1),
        why="a grid of one row of blocks: all of them compute the first rows",
    ),
    Wrong(
        name="block_warp that shuffles in the mask of half a warp",
        kernel="block_warp",
        edits=(("__shfl_xor_sync(0xffffffffu", "__shfl_xor_sync(0x0000ffffu"),),
        verdict="caller not in mask",
        line="sum += __shfl_xor_sync(0x0000ffffu",
        why="the other half is not named, and calls all the same",
    ),
    Wrong(
        name="block_warp whose shuffles have a width of twelve",
        kernel="block_warp",
        edits=(
            (
                "max, offset));\n    if (lane == 0) maxima",
                "max, offset, 12));\n    if (lane == 0) maxima",
            ),
        ),
        verdict="shuffle width is no power of two up to 32",
        line="max = fmaxf(max, __shfl_down_sync(0xffffffffu, max, offset, 12));",
        why="a width has to be a power of two",
    ),
    Wrong(
        name="block_warp whose butterfly starts at eight",
        kernel="block_warp",
        edits=(
            (
                "    for (int offset = 16; offset > 0; offset /= 2)\n        sum +=",
                "    for (int offset = 8; offset > 0; offset /= 2)\n        sum +=",
            ),
        ),
        verdict=VALUES,
        x=(1, 17),
        spared=((3, 16),),
        why="the two halves of a warp never meet",
    ),
    Wrong(
        name="gemv vec4 that trusts every row to start at 16 bytes",
        kernel="gemv/row_per_warp_vec4",
        edits=(("if (by_sixteen(A) && by_sixteen(x)) {", "{"),),
        verdict="misaligned",
        line="const float4 a = A4[i];",
        x=(2, 5),
        spared=((3, 8), (1, 5)),
        why="where the columns are no multiple of four, only the first row starts so",
        traps=("T16",),
    ),
    Wrong(
        name="gemv vec4 that loses its tail",
        kernel="gemv/row_per_warp_vec4",
        edits=(("done = end / 4 * 4;", "done = end;"),),
        verdict=VALUES,
        x=(1, 1),
        spared=((3, 8),),
        why="up to three columns are left over after the loads of four",
        traps=("T17",),
    ),
    Wrong(
        name="gemv vec4 that loads four where fewer are left",
        kernel="gemv/row_per_warp_vec4",
        edits=(("i < end / 4; i += 32", "i < (end + 3) / 4; i += 32"),),
        verdict="out of bounds",
        line="const float4 a = A4[i];",
        x=(1, 1),
        spared=((1, 4),),
        why="a load before the test of the bounds reads past the row",
        traps=("T17",),
    ),
    Wrong(
        name="gemv row_per_warp that stores from every lane",
        kernel="gemv/row_per_warp",
        edits=(("if (lane == 0) y[row] = sum;", "y[row] = sum;"),),
        verdict="global race",
        line="y[row] = sum;",
        why="32 lanes write one element: alike today, and a race all the same",
    ),
    Wrong(
        name="two blocks a row with a fence for a barrier",
        kernel="grid_fence.cu",
        edits=(),
        verdict="global race",
        line="sums[2 * row + blockIdx.x] = sum;",
        why="as published: a fence orders one thread's writes and waits for no other block",
        traps=("T12",),
    ),
)


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


def run(name: str, given, *edits: Edit, threads: int | None = None, **how) -> Run:
    """One launch of an edited kernel on the emulator, on an array or a tuple of them; `how` goes to
    `emulator.launch`.

    Of an array of address space only the last block runs, and its first warp is traced.
    """
    arrays = given if isinstance(given, tuple) else (given,)
    kernel = registry.get(name)
    rows, cols = arrays[0].shape
    grid, block = kernel.geometry(rows)
    far = isinstance(arrays[0], Virtual)
    y = (Virtual if far else Out)(kernel.family.result(rows, cols))
    if far:
        how |= {"blocks": (grid - 1, grid), "trace": (grid - 1, 0)}
    how = {"kernel": kernel.symbol, "shared": kernel.shared_bytes} | how
    source = edited(name, *edits)
    return emulator.launch(source, grid, threads or block, (*arrays, y, rows, cols), **how)


def strayed(name: str, found: Run, rows: int, cols: int) -> list[int]:
    """Lines of the kernel at which its last block, which was traced, left its own rows of a matrix
    (rows, cols) or of the result."""
    kernel = registry.get(name)
    first = (kernel.geometry(rows)[0] - 1) * kernel.rows_per_block
    sizes = kernel.family.extents(rows, cols)
    steps = [step for step in found.trace if sizes.get(step.array, ())[:1] == (rows,)]
    assert {step.array for step in steps} > {"y"}, "neither read nor written"
    return [
        step.line
        for step in steps
        if min(at for at in step.address if at is not None)
        < first * math.prod(sizes[step.array][1:]) * 4
    ]
