// Idea: the online pass without a branch: the new maximum rescales the sum in every step.
// Launch: 128 rows per block, 1 thread per row; rows below 2^31, up to 2^24 columns a thread, offsets in size_t.
// Traffic: x read twice, y written once, 12 bytes an element; neighbouring threads read `cols` elements apart.
// Source: [OPS] Algorithm 2, after Milakov & Gimelshein [MG18].
#include <math_constants.h>

extern "C" __global__ void online_branchfree(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    // <row>
    const size_t row = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (row >= size_t(rows)) return;  // nothing below waits for another thread, so one may leave alone
    x += row * cols;
    y += row * cols;
    // </row>

    // <pass>
    float max = -CUDART_MAX_NORMAL_F;  // not -infinity: a leading -inf would make exp(-inf + inf) = NaN
    float sum = 0.0f;
    for (int i = 0; i < cols; ++i) {
        const float v = x[i];
        const float top = fmaxf(max, v);
        sum = sum * expf(max - top) + expf(v - top);
        max = top;
    }
    // </pass>

    // <write>
    for (int i = 0; i < cols; ++i) y[i] = expf(x[i] - max) / sum;
    // </write>
}
