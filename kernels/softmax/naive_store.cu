// Idea: three passes that keep each exponential in y, so that it is computed once; a fourth and a fifth sweep go over y for that.
// Launch: 32 rows per block, 1 thread per row; rows below 2^31, up to 2^24 columns a thread, offsets in size_t.
// Traffic: x read twice, y written twice and read once, 20 bytes an element; neighbouring threads read `cols` elements apart.
// Source: [OPS] V1, with each element read once into a local, a maximum that starts from -FLT_MAX and size_t offsets.
#include <math_constants.h>

extern "C" __global__ void naive_store(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
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
    double sum = 0.0;
    for (int i = 0; i < cols; ++i) {
        const float power = expf(x[i] - max);
        y[i] = power;
        sum += power;
    }
    // </sum>

    // <divide>
    const float total = float(sum);
    for (int i = 0; i < cols; ++i) y[i] = y[i] / total;
    // </divide>
}
