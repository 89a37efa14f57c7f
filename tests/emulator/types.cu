// Odds and ends that kernels use; the comments count the arithmetic of one thread.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>
#include <math_constants.h>
#include "helpers.cuh"
namespace cg = cooperative_groups;

constexpr float LOG2E = 1.4426950408889634f;
__constant__ float table[4] = {0.5f, 1.0f, 2.0f, 4.0f};
union Bits {
    float f;
    unsigned u;
};
struct Pair {
    float a;
    int b;
};

// 32 threads: 4 mul, 10 add, 1 sub, 2 div, 1 exp, 5 compare
extern "C" __global__ void mixture(const float* __restrict__ x, float* y, int n, float scale) {
    __shared__ Pair pairs[32];
    __shared__ float4 quads[8];
    int t = threadIdx.x;
    float v = x[t] * LOG2E;                        // mul
    v = table[t % 4] * v;                          // mul
    Bits b;
    b.f = v;
    b.u ^= 0x80000000u;
    float a[4];
    for (int k = 0; k < 4; k++) a[k] = v + k;      // 4 add
    float w = t & 1 ? a[0] : 0.0f;
    int whole = (int)a[3];
    w += (float)whole;                             // add
    w = 1.0f / (1.0f + expf(-w)) * scale;          // add div mul exp
    w = fminf(fmaxf(w, -1.0f), 1.0f);              // 2 compare
    pairs[t] = Pair{w, t};
    if (t < 8) quads[t] = make_float4(w, w, w, w);
    __syncthreads();
    Pair p = pairs[31 - t];
    float4 q = quads[t % 8];
    float out = twice(p.a) + q.x + b.f;            // 3 add
    float low = min(v, 0.0f), high = max(low, w);  // 2 compare
    if (isinf(high) || high != high) out = 0;      // compare
    out += __fdividef(high, 2.0f);                 // div add
    out -= low;                                    // sub
    y[t] = out *= 2;                               // mul
    if (t == 0 && n < 0) printf("never %f\n", v);
}

// A template and a double: 32 threads, 2 f64 operations
template <int K> __global__ void doubles(const float* x, float* y) {
    double v = x[threadIdx.x] * 0.5;
    y[threadIdx.x] = v + K;
}
template __global__ void doubles<3>(const float*, float*);

// 32 threads: 1 add and 1 mul in half precision, 2 bytes in, 2 bytes out
extern "C" __global__ void halves(const __half* x, __half* y) {
    __half v = x[threadIdx.x];
    y[threadIdx.x] = __float2half(__half2float(v + v) * 0.25f);
}

// 32 threads: 16 bytes in and out at once
extern "C" __global__ void vectors(const float* x, float* y) {
    const uint4* from = reinterpret_cast<const uint4*>(x);
    reinterpret_cast<uint4*>(y)[threadIdx.x] = from[threadIdx.x];
}

// One warp: 5 shuffles of 4 bytes, 5 of 8, a vote; every lane gets the sum, the largest element and its index
extern "C" __global__ void warp_work(const float* x, float* y, float scale) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    float v = x[warp.thread_rank()];
    float sum = cg::reduce(warp, v, cg::plus<float>());
    float2 best = make_float2(v, warp.thread_rank());
    for (int o = 16; o > 0; o /= 2) {
        float2 other = __shfl_xor_sync(0xffffffffu, best, o);
        if (other.x > best.x) best = other;
    }
    int all = __all_sync(0xffffffffu, v < 100.0f);
    y[warp.thread_rank()] = sum + scale * (best.x + best.y) + all;
}

// Two blocks of a cluster read each other's static and dynamic shared memory
extern "C" __global__ void cluster(const float* x, float* y) {
    extern __shared__ float d[];
    __shared__ float s[32];
    cg::cluster_group both = cg::this_cluster();
    int t = threadIdx.x, i = blockIdx.x * 32 + t;
    s[t] = x[i];
    d[t] = 2.0f * x[i];
    both.sync();
    const float* theirs = both.map_shared_rank(s, both.block_rank() ^ 1);
    const float* other = both.map_shared_rank(d, both.block_rank() ^ 1);
    y[i] = theirs[t] + other[t];
    both.sync();
}

// Atomics: a float sum, an integer maximum, a counter
extern "C" __global__ void atomics(const float* x, float* y, int* largest, unsigned* counter) {
    atomicAdd(&y[0], x[threadIdx.x]);
    atomicMax(largest, int(threadIdx.x));
    atomicInc(counter, 1000u);
    atomicCAS(counter + 1, 0u, threadIdx.x + 1);
}

// An int array is memory that is not watched
extern "C" __global__ void gathers(const float* x, const int* index, float* y) { y[threadIdx.x] = x[index[threadIdx.x]]; }

// A copy by the whole block into shared memory, as the asynchronous one is written: copy, wait, read.
extern "C" __global__ void copies_ahead(const float* x, float* y) {
    __shared__ float tile[64];
    cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, tile, x, sizeof(tile));
    cg::wait(block);
    y[threadIdx.x] = tile[63 - threadIdx.x];
}
// The same without the wait: whoever reads may come before the copy.
extern "C" __global__ void reads_too_early(const float* x, float* y) {
    __shared__ float tile[64];
    cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, tile, x, sizeof(tile));
    y[threadIdx.x] = tile[63 - threadIdx.x];
}
