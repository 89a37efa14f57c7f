// Idea: the maximum and the sum in one pass: a new maximum rescales the sum so far.
// Launch: 128 rows per block, 1 thread per row; rows below 2^31, up to 2^24 columns a thread, offsets in size_t.
// Traffic: x read twice, y written once, 12 bytes an element; neighbouring threads read `cols` elements apart.
// Source: Milakov & Gimelshein [MG18]; [MSF] gives it as pseudocode.
#include <math_constants.h>

extern "C" __global__ void online(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
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
        if (v > max) {
            sum = sum * expf(max - v) + 1.0f;
            max = v;
        } else {
            sum += expf(v - max);
        }
    }
    // </pass>
    // <contract>
    sum = max == CUDART_INF_F ? CUDART_NAN_F : sum;  // else +inf would come out NaN among zeros
    // </contract>

    // <write>
    for (int i = 0; i < cols; ++i) y[i] = expf(x[i] - max) / sum;
    // </write>
}
