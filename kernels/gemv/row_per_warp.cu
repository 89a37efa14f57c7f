// Idea: y = A x by one warp a row: lane l takes columns l, l + 32, …, so that the warp reads side by side; then the lanes' sums meet.
// Launch: 4 rows per block, 32 threads per row; rows below 2^31, up to 2^24 columns a thread, offsets in size_t.
// Traffic: A read once, x once for every row, y written once; neighbouring lanes read neighbouring elements of both.
// Source: ours; the access pattern of the warp softmax without anything around it.

#include "../common.cuh"

extern "C" __global__ void row_per_warp(const float* __restrict__ A, const float* __restrict__ x, float* __restrict__ y,
                                        int rows, int cols) {
    // <row>
    const unsigned lane = threadIdx.x % 32, end = cols;  // unsigned, as i is
    const size_t row = size_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= size_t(rows)) return;  // a warp leaves whole or not at all, and only lanes of one warp meet below
    A += row * cols;
    // </row>

    // <walk>
    float sum = 0.0f;
    for (unsigned i = lane; i < end; i += 32) {
        const float a = A[i];
        const float b = x[i];
        sum += a * b;
    }
    // </walk>

    // <store>
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum;
    // </store>
}
