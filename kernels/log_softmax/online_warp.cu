// Idea: log-softmax by one warp per row: the online pass and merge of softmax, then a subtraction where softmax exponentiates again and divides.
// Launch: 1 row per block, 32 threads per row; rows below 2^31, up to 2^24 columns a thread, offsets in size_t.
// Traffic: x read twice, y written once, 12 bytes an element; neighbouring lanes read neighbouring elements.
// Source: [OPS] gives the formula; ours from the warp softmax.
#include <math_constants.h>

#include "../common.cuh"

extern "C" __global__ void online_warp(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    // <row>
    const size_t row = blockIdx.x;
    if (row >= size_t(rows)) return;  // a block is one warp and one row: it leaves whole or not at all
    x += row * cols;
    y += row * cols;
    const unsigned lane = threadIdx.x, end = cols;  // unsigned, as i is
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
    const float log_sum = logf(row_sum);  // the largest score added 1, so it is 0 or more
    for (unsigned i = lane; i < end; i += 32)
        y[i] = (x[i] - row_max) - log_sum;  // never x - (max + log sum): a large maximum would round the logarithm away
    // </write>
}
