// Idea: three passes over a row by one thread: its maximum, its sum of exponentials, its results.
// Launch: 128 rows per block, 1 thread per row; rows below 2^31, up to 2^24 columns a thread, offsets in size_t.
// Traffic: x read three times, y written once, 16 bytes an element; neighbouring threads read `cols` elements apart.
// Source: the starting point of [MSF]; [OPS] V1 is the same mapping with its exponentials kept in y.
#include <math_constants.h>

extern "C" __global__ void naive(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    // <row>
    const size_t row = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (row >= size_t(rows)) return;  // nothing below waits for another thread, so one may leave alone
    x += row * cols;
    y += row * cols;
    // </row>

    // <max>
    float max = -CUDART_MAX_NORMAL_F;  // not -infinity: a fully masked row must end in 0/0, like torch's
    for (int i = 0; i < cols; ++i) max = fmaxf(max, x[i]);
    // </max>

    // <sum>
    float sum = 0.0f;
    for (int i = 0; i < cols; ++i) sum += expf(x[i] - max);
    // </sum>

    // <write>
    for (int i = 0; i < cols; ++i) y[i] = expf(x[i] - max) / sum;
    // </write>
}
