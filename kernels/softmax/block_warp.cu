// Idea: one row for 8 warps, which reduce by shuffles and hand one value each to the row's first thread through shared memory.
// Launch: 4 rows per block, 256 threads per row along x; rows below 2^31, up to 2^24 columns a thread, offsets in size_t.
// Traffic: x read three times, y written once, 16 bytes an element; neighbouring threads read neighbouring elements.
// Source: [OPS] V3, its maximum kept a float and its early return replaced by rows without columns; 256 bytes of shared memory, not 8192.
#include <math_constants.h>

extern "C" __global__ void block_warp(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    // <row>
    constexpr unsigned WARPS = 8, ROWS = 4;  // a block is (32 * WARPS, ROWS) threads
    __shared__ float maxima[ROWS][WARPS], sums[ROWS][WARPS];
    const unsigned thread = threadIdx.x, mine = threadIdx.y, lane = thread % 32, warp = thread / 32;
    const size_t row = size_t(blockIdx.x) * ROWS + mine;
    // A row past the end has no columns; its threads stay, because the block's other rows meet them at the barriers.
    const unsigned end = row < size_t(rows) ? cols : 0;  // unsigned: i + blockDim.x may pass 2^31
    x += row * cols;
    y += row * cols;
    // </row>

    // <max>
    float max = -CUDART_MAX_NORMAL_F;  // not -infinity: a fully masked row must end in 0/0, like torch's
    for (unsigned i = thread; i < end; i += blockDim.x) max = fmaxf(max, x[i]);
    for (int offset = 16; offset > 0; offset /= 2)
        max = fmaxf(max, __shfl_down_sync(0xffffffffu, max, offset));
    if (lane == 0) maxima[mine][warp] = max;  // after the last round only lane 0 has the maximum of its warp
    // </max>
    // <fold>
    __syncthreads();  // every thread of all four rows comes here; the warps' values are there
    if (thread == 0) {
#pragma unroll 1  // one load at a time, as written: unrolled, the eight values would come in two loads of 16 bytes
        for (unsigned w = 1; w < WARPS; ++w) max = fmaxf(max, maxima[mine][w]);
        maxima[mine][0] = max;
    }
    __syncthreads();  // outside of the `if`, so that every thread comes; the row's value is there
    const float row_max = maxima[mine][0];
    // </fold>

    // <sum>
    float sum = 0.0f;
    for (unsigned i = thread; i < end; i += blockDim.x) sum += expf(x[i] - row_max);
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, offset);  // every lane gets the sum, though one is enough
    if (lane == 0) sums[mine][warp] = sum;  // an array of its own: no thread still reads it
    __syncthreads();  // as above
    if (thread == 0) {
#pragma unroll 1  // as above
        for (unsigned w = 1; w < WARPS; ++w) sum += sums[mine][w];
        sums[mine][0] = sum;
    }
    __syncthreads();  // as above
    const float row_sum = sums[mine][0];
    // </sum>

    // <write>
    for (unsigned i = thread; i < end; i += blockDim.x) y[i] = expf(x[i] - row_max) / row_sum;
    // </write>
}
