// Idea: softmax/warp.cu with four rows to a block instead of one, and nothing else changed.
// Launch: 4 rows per block, 32 threads per row; rows below 2^31, up to 2^24 columns a thread, offsets in size_t.
// Traffic: x read twice, y written once, 12 bytes an element; neighbouring lanes read neighbouring elements.
// Source: ours, to tell apart what softmax/warp_merge.cu changes at once: rows to a block, operator, hint.
#include <math_constants.h>

#include "../common.cuh"

extern "C" __global__ void warp_four_rows(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    // <row>
    const size_t row = size_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= size_t(rows)) return;  // a warp leaves whole or not at all, and only lanes of one warp meet below
    x += row * cols;
    y += row * cols;
    const unsigned lane = threadIdx.x % 32, end = cols;  // unsigned, as i is
    // </row>

    // <pass>
    float max = -CUDART_MAX_NORMAL_F;  // a lane without columns, or with masked ones, then adds exactly 0
    float sum = 0.0f;
    for (unsigned i = lane; i < end; i += 32) {
        const float v = x[i];
        if (v > max) {
            sum = sum * expf(max - v) + 1.0f;
            max = v;
        } else {
            sum += expf(v - max);
        }
    }
    // </pass>

    // <merge>
    const float row_max = warp_max(max);
    sum *= expf(max - row_max);  // unlike denominators first become alike
    const float row_sum = warp_sum(sum);
    // </merge>

    // <write>
    for (unsigned i = lane; i < end; i += 32) y[i] = expf(x[i] - row_max) / row_sum;
    // </write>
}
