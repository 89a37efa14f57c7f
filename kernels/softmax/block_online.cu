// Idea: one block per row, each thread an online pass of its own; then one tree in shared memory merges the threads' (max, sum) pairs.
// Launch: 1 row per block, 256 threads per row; rows below 2^31, up to 2^24 columns a thread, offsets in size_t.
// Traffic: x read twice, y written once, 12 bytes an element; neighbouring threads read neighbouring elements.
// Source: [FSK] describes it; ours from that, with the branch form of the step.
#include <math_constants.h>

#include "../merge.cuh"

extern "C" __global__ void block_online(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    // <row>
    __shared__ float maxima[256], sums[256];  // one pair of each thread
    const size_t row = blockIdx.x;
    if (row >= size_t(rows)) return;  // a block is one row: it leaves whole, so nobody waits at a barrier for it
    x += row * cols;
    y += row * cols;
    const unsigned thread = threadIdx.x, end = cols;  // unsigned: i + blockDim.x may pass 2^31
    // </row>

    // <pass>
    float max = -CUDART_MAX_NORMAL_F;  // a thread without columns, or with masked ones, then adds exactly 0
    float sum = 0.0f;
    for (unsigned i = thread; i < end; i += blockDim.x) {
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
    const MaxSum all = block_merge({max, sum}, maxima, sums);
    const float row_sum = sum_or_nan(all);
    // </merge>

    // <write>
    for (unsigned i = thread; i < end; i += blockDim.x) y[i] = expf(x[i] - all.max) / row_sum;
    // </write>
}
