// Idea: one block per row; what its threads found meets in shared memory, by a tree: first the maxima, then the sums.
// Launch: 1 row per block, 512 threads (a power of two) per row, 4 bytes of dynamic shared memory each; rows below 2^31, up to 2^24 columns a thread, offsets in size_t.
// Traffic: x read three times, y written once, 16 bytes an element; neighbouring threads read neighbouring elements.
// Source: [OPS] V2, with the barrier that it lacks between its two trees and a maximum that starts from -FLT_MAX.
#include <math_constants.h>

extern "C" __global__ void block_tree(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    // <row>
    extern __shared__ float partial[];  // one value of each thread
    const size_t row = blockIdx.x;
    if (row >= size_t(rows)) return;  // a block is one row: it leaves whole, so nobody waits at a barrier for it
    x += row * cols;
    y += row * cols;
    const unsigned thread = threadIdx.x, end = cols;  // unsigned: i + blockDim.x may pass 2^31
    // </row>

    // <max>
    float max = -CUDART_MAX_NORMAL_F;  // not -infinity: a fully masked row must end in 0/0, like torch's
    for (unsigned i = thread; i < end; i += blockDim.x) max = fmaxf(max, x[i]);
    // </max>

    // <tree>
    partial[thread] = max;
    __syncthreads();  // every thread comes here, with columns or without
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (thread < half) partial[thread] = fmaxf(partial[thread], partial[thread + half]);
        __syncthreads();  // outside of the `if`, so that every thread comes; the next round reads this one's values
    }
    max = partial[0];
    // </tree>
    // <reuse>
    __syncthreads();  // every thread has read slot 0 before thread 0 puts its sum there
    // </reuse>

    // <sum>
    float sum = 0.0f;
    for (unsigned i = thread; i < end; i += blockDim.x) sum += expf(x[i] - max);
    partial[thread] = sum;
    __syncthreads();  // as above
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (thread < half) partial[thread] += partial[thread + half];
        __syncthreads();  // as above
    }
    sum = partial[0];
    // </sum>

    // <write>
    for (unsigned i = thread; i < end; i += blockDim.x) y[i] = expf(x[i] - max) / sum;
    // </write>
}
