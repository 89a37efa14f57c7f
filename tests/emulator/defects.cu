// One planted defect a kernel; the line that a report must name carries FAULT and the kind (a race may be seen from its
// other side, OR HERE, where the threads do not run in lockstep). A kernel without FAULT is the
// repaired twin of the one before it and must run clean. The first comment line of a kernel is its launch.
#include <cooperative_groups.h>

// grid 1, block 129
extern "C" __global__ void reads_one_too_many(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) {
        float v = x[i];  // FAULT out of bounds
        if (i < n) y[i] = v;
    }
}
// grid 1, block 129
extern "C" __global__ void reads_in_bounds(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
// grid 2, block 128
extern "C" __global__ void writes_without_guard(const float* x, float* y, int n) {
    y[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f;  // FAULT out of bounds
}
// grid 1, block 32
extern "C" __global__ void negative_index(const float* x, float* y, int n) {
    y[threadIdx.x] = x[int(threadIdx.x) - 1];  // FAULT out of bounds
}
// grid 1, block 16
extern "C" __global__ void misaligned_vector(const float* x, float* y, int n) {
    const float4* p = reinterpret_cast<const float4*>(x + 1);
    float4 v = p[threadIdx.x];  // FAULT misaligned
    y[threadIdx.x] = v.x + v.y + v.z + v.w;
}
// grid 1, block 16
extern "C" __global__ void aligned_vector(const float* x, float* y, int n) {
    const float4* p = reinterpret_cast<const float4*>(x);
    float4 v = p[threadIdx.x];
    y[threadIdx.x] = v.x + v.y + v.z + v.w;
}
// grid 1, block 16
extern "C" __global__ void integer_vector_outside(const float* x, float* y, int n) {
    const uint4* p = reinterpret_cast<const uint4*>(x);
    uint4 v = p[threadIdx.x + 24];  // FAULT out of bounds
    y[threadIdx.x] = __uint_as_float(v.x);
}
// grid 1, block 128, shared 256
extern "C" __global__ void dynamic_shared_too_small(const float* x, float* y, int n) {
    extern __shared__ float s[];
    int t = threadIdx.x;
    s[t] = x[t];  // FAULT shared out of bounds
    __syncthreads();
    if (t < 64) y[t] = s[t];
}
// grid 1, block 128
extern "C" __global__ void static_shared_overrun(const float* x, float* y, int n) {
    __shared__ float s[128];
    __shared__ float other[128];
    int t = threadIdx.x;
    s[t] = other[t] = x[t];
    __syncthreads();
    y[t] = s[t] + other[t + 1];  // FAULT shared out of bounds
}
// grid 1, block 128, shared 512
extern "C" __global__ void half_initialised(const float* x, float* y, int n) {
    extern __shared__ float s[];
    int t = threadIdx.x;
    if (t < 64) s[t] = x[t];
    __syncthreads();
    y[t] = s[t];  // FAULT shared uninitialised
}
// grid 1, block 32
extern "C" __global__ void output_read_first(const float* x, float* y, int n) {
    y[threadIdx.x] += x[threadIdx.x];  // FAULT global uninitialised
}
// grid 1, block 128
extern "C" __global__ void no_barrier_between_levels(const float* x, float* y, int n) {
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int o = 64; o > 0; o /= 2)
        if (t < o) s[t] += s[t + o];  // FAULT shared race
    if (t == 0) y[0] = s[0];
}
// grid 1, block 128
extern "C" __global__ void barrier_between_levels(const float* x, float* y, int n) {
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int o = 64; o > 0; o /= 2) {
        if (t < o) s[t] += s[t + o];
        __syncthreads();
    }
    if (t == 0) y[0] = s[0];
}
// grid 1, block 128
extern "C" __global__ void overwrites_while_others_read(const float* x, float* y, int n) {
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    float first = s[0];   // OR HERE
    s[t] = first + 1.0f;  // FAULT shared race
    __syncthreads();
    y[t] = s[t];
}
// grid 1, block 128
extern "C" __global__ void waits_before_overwriting(const float* x, float* y, int n) {
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    float first = s[0];
    __syncthreads();
    s[t] = first + 1.0f;
    __syncthreads();
    y[t] = s[t];
}
// grid 1, block 32
extern "C" __global__ void warp_without_syncwarp(const float* x, float* y, int n) {
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = x[t];       // OR HERE
    y[t] = s[31 - t];  // FAULT shared race
}
// grid 1, block 32
extern "C" __global__ void warp_with_syncwarp(const float* x, float* y, int n) {
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncwarp();
    y[t] = s[31 - t];
}
// grid 1, block 64
extern "C" __global__ void all_write_one_element(const float* x, float* y, int n) {
    y[0] = x[threadIdx.x];  // FAULT global race
}
// grid 1, block 64
extern "C" __global__ void all_add_to_one_element(const float* x, float* y, int n) {
    if (threadIdx.x == 0) y[0] = 0.0f;
    __syncthreads();
    atomicAdd(&y[0], x[threadIdx.x]);
}
// grid 2, block 32
extern "C" __global__ void blocks_without_order(const float* x, float* y, int n) {
    if (blockIdx.x == 0) y[threadIdx.x] = x[threadIdx.x];
    else y[threadIdx.x + 32] = y[threadIdx.x];  // FAULT global race
}
// grid 2, block 32, cooperative
extern "C" __global__ void blocks_with_grid_sync(const float* x, float* y, int n) {
    if (blockIdx.x == 0) y[threadIdx.x] = x[threadIdx.x];
    cooperative_groups::this_grid().sync();
    if (blockIdx.x == 1) y[threadIdx.x + 32] = y[threadIdx.x];
}
// grid 1, block 128
extern "C" __global__ void two_barriers_in_two_branches(const float* x, float* y, int n) {
    if (threadIdx.x < 64) {
        y[threadIdx.x] = 1.0f;
        __syncthreads();  // FAULT different barriers
    } else {
        y[threadIdx.x] = 2.0f;
        __syncthreads();
    }
}
// grid 1, block 128
extern "C" __global__ void barrier_after_some_returned(const float* x, float* y, int n) {
    if (threadIdx.x >= 100) return;
    __syncthreads();  // FAULT barrier after exit
    y[threadIdx.x] = 1.0f;
}
// grid 1, block 128
extern "C" __global__ void half_the_block_at_the_barrier(const float* x, float* y, int n) {
    if (threadIdx.x < 64) __syncthreads();  // FAULT barrier after exit
    y[threadIdx.x] = 1.0f;
}
// grid 1, block 64
extern "C" __global__ void half_a_warp_at_the_barrier(const float* x, float* y, int n) {
    if (threadIdx.x % 32 < 16) __syncthreads();  // FAULT barrier after exit
    y[threadIdx.x] = x[threadIdx.x];
}
// grid 1, block 32
extern "C" __global__ void mask_of_lanes_that_left(const float* x, float* y, int n) {
    if (threadIdx.x >= 20) return;
    float v = x[threadIdx.x];
    v += __shfl_down_sync(0xffffffffu, v, 1);  // FAULT mask names an absent lane
    y[threadIdx.x] = v;
}
// grid 1, block 32
extern "C" __global__ void reads_a_lane_outside_the_mask(const float* x, float* y, int n) {
    float v = x[threadIdx.x];
    if (threadIdx.x < 16)
        v += __shfl_sync(0x0000ffffu, v, 20);  // FAULT shuffle from an inactive lane
    y[threadIdx.x] = v;
}
// grid 1, block 32
extern "C" __global__ void caller_outside_the_mask(const float* x, float* y, int n) {
    float v = x[threadIdx.x];
    v += __shfl_xor_sync(0x0000ffffu, v, 8);  // FAULT caller not in mask
    y[threadIdx.x] = v;
}
// grid 1, block 32
extern "C" __global__ void full_mask_in_a_branch(const float* x, float* y, int n) {
    float v = x[threadIdx.x];
    if (threadIdx.x < 16)
        v += __shfl_xor_sync(0xffffffffu, v, 8);  // FAULT deadlock
    else
        __syncthreads();
    y[threadIdx.x] = v;
}
__constant__ float table[4] = {1.0f, 2.0f, 3.0f, 4.0f};
// grid 1, block 4
extern "C" __global__ void writes_a_constant(const float* x, float* y, int n) {
    const_cast<float*>(table)[threadIdx.x] = x[threadIdx.x];  // FAULT write to constant
    y[threadIdx.x] = table[threadIdx.x];
}
// grid 1, block 4
extern "C" __global__ void reads_a_constant(const float* x, float* y, int n) {
    y[threadIdx.x] = table[threadIdx.x];
}
// grid 1, block 32
extern "C" __global__ void null_pointer(const float* x, float* y, int n) {
    const float* p = nullptr;
    y[threadIdx.x] = p[threadIdx.x];  // FAULT null pointer
}
// grid 1, block 32
extern "C" __global__ void computes_in_double(const float* x, float* y, int n) {
    const float v = x[threadIdx.x];
    y[threadIdx.x] = v * 0.5 + 1.0f;  // FAULT double arithmetic by a literal
}
// grid 1, block 32
extern "C" __global__ void computes_in_float(const float* x, float* y, int n) {
    const float v = x[threadIdx.x];
    y[threadIdx.x] = v * 0.5f + 1.0f;
}
// grid 1, block 32
extern "C" __global__ void sums_in_double_on_purpose(const float* x, float* y, int n) {
    double sum = 0.0;
    for (int i = 0; i < 4; ++i) sum += x[threadIdx.x + 32 * i];
    y[threadIdx.x] = float(sum);
}
// grid 1, block 32
extern "C" __global__ void width_of_twelve(const float* x, float* y, int n) {
    const float v = x[threadIdx.x];
    y[threadIdx.x] = __shfl_down_sync(0xffffffffu, v, 1, 12);  // FAULT shuffle width is no power of two up to 32
}
// grid 1, block 32
extern "C" __global__ void width_of_eight(const float* x, float* y, int n) {
    const float v = x[threadIdx.x];
    y[threadIdx.x] = __shfl_down_sync(0xffffffffu, v, 1, 8);
}
