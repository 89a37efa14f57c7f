// Idea: one warp a row with loads of four floats: a quarter of the load instructions for the same bytes.
// Launch: 4 rows per block, 32 threads per row; rows below 2^31, up to 2^24 columns a thread, offsets in size_t; any alignment.
// Traffic: as row_per_warp; a full load of the warp is 512 bytes. Rows that do not start at 16 bytes are read float by float.
// Source: ours.

#include "../common.cuh"

// <aligned>
__device__ __forceinline__ bool by_sixteen(const float* p) {
    return reinterpret_cast<size_t>(p) % sizeof(float4) == 0;
}
// </aligned>

extern "C" __global__ void row_per_warp_vec4(const float* __restrict__ A, const float* __restrict__ x, float* __restrict__ y,
                                             int rows, int cols) {
    // <row>
    const unsigned lane = threadIdx.x % 32, end = cols;  // unsigned, as i is
    const size_t row = size_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= size_t(rows)) return;  // a warp leaves whole or not at all, and only lanes of one warp meet below
    A += row * cols;
    // </row>

    // <vectors>
    float sum = 0.0f;
    unsigned done = 0;  // columns that the loads of four have taken
    if (by_sixteen(A) && by_sixteen(x)) {  // the same for the whole warp
        const float4* A4 = reinterpret_cast<const float4*>(A);
        const float4* x4 = reinterpret_cast<const float4*>(x);
        for (unsigned i = lane; i < end / 4; i += 32) {
            const float4 a = A4[i];
            const float4 b = x4[i];
            sum += a.x * b.x;
            sum += a.y * b.y;
            sum += a.z * b.z;
            sum += a.w * b.w;
        }
        done = end / 4 * 4;
    }
    // </vectors>

    // <rest>
    for (unsigned i = done + lane; i < end; i += 32) {  // up to three columns, or a row off the boundary whole
        const float a = A[i];
        const float b = x[i];
        sum += a * b;
    }
    // </rest>

    // <store>
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum;
    // </store>
}
