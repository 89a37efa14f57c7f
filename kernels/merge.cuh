// What several kernels share: the (maximum, sum) of a part of a row, and how those of two parts become one.
#pragma once
#include <math_constants.h>

// <pair>
struct __align__(8) MaxSum {  // aligned, so that it can move as one word of 8 bytes
    float max, sum;           // the sum of exp(x - max) over the part
};
// </pair>

// <merge>
// The sum beside the smaller maximum is re-based to the larger one. (-FLT_MAX, 0) changes no part whose maximum is
// -FLT_MAX or more, and absorbs one that is masked whole. With -infinity in its place, two parts that have seen nothing
// would make exp(-inf + inf) = NaN.
__device__ __forceinline__ MaxSum merge(MaxSum a, MaxSum b) {
    const bool rises = b.max > a.max;
    const MaxSum large = rises ? b : a, small = rises ? a : b;
    return {large.max, large.sum + small.sum * expf(small.max - large.max)};
}
// </merge>

// <block>
// Every thread of the block must call it, a power of two of them, and gets the pair of all. The arrays are shared
// memory, an element a thread, and must not be in use.
__device__ __forceinline__ MaxSum block_merge(MaxSum mine, float* maxima, float* sums) {
    const unsigned thread = threadIdx.x;
    maxima[thread] = mine.max;
    sums[thread] = mine.sum;
    __syncthreads();  // every thread comes here, with columns or without
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (thread < half) {
            mine = merge(mine, {maxima[thread + half], sums[thread + half]});
            maxima[thread] = mine.max;
            sums[thread] = mine.sum;
        }
        __syncthreads();  // outside of the `if`, so that every thread comes; the next round reads this one's pairs
    }
    const float max = maxima[0], sum = sums[0];
    return {max, sum};
}
// </block>

// <contract>
// The sum as the contract wants it: a row with +inf has no distribution, and would come out as NaN among zeros.
__device__ __forceinline__ float sum_or_nan(MaxSum all) { return all.max == CUDART_INF_F ? CUDART_NAN_F : all.sum; }
// </contract>
