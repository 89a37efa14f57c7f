// CUDA's words and built-in variables, as a C++ compiler can read them.
#pragma once
#include "base.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
#define __cluster_dims__(...)
#define __shared__ \
    static  // blocks run one after another, so one copy is enough; scheduler.h keeps several where
            // it must
#define __constant__ __attribute__((section("emu_constant")))
#define __restrict__ __restrict

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
static constexpr int warpSize = 32;

static EMU_HELPER int __popc(unsigned x) { return __builtin_popcount(x); }
static EMU_HELPER int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static EMU_HELPER int __ffs(int x) { return __builtin_ffs(x); }
static EMU_HELPER int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
