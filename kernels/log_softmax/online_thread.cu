// Idea: log-softmax by one thread per row: the online pass of softmax, then a subtraction where softmax exponentiates again and divides. For short rows.
// Launch: 128 rows per block, 1 thread per row; rows below 2^31, up to 2^24 columns a thread, offsets in size_t.
// Traffic: x read twice, y written once, 12 bytes an element; neighbouring threads read `cols` elements apart.
// Source: [OPS] gives the formula; ours from the online softmax.
#include <math_constants.h>

extern "C" __global__ void online_thread(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
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
    const float log_sum = logf(sum);  // the largest score added 1, so it is 0 or more
    for (int i = 0; i < cols; ++i)
        y[i] = (x[i] - max) - log_sum;  // never x - (max + log sum): a large maximum would round the logarithm away
    // </write>
}
