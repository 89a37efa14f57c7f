// What several kernels share: reductions inside one warp. Every lane of the warp must call them, and gets the result.
#pragma once

constexpr unsigned ALL_LANES = 0xffffffffu;

// <max>
// Lane l receives lane l + offset's value; lanes past the end keep their own, so after the last round only lane 0
// holds the whole warp's result, and hands it to the others.
__device__ __forceinline__ float warp_max(float value) {
    for (int offset = 16; offset > 0; offset /= 2)
        value = fmaxf(value, __shfl_down_sync(ALL_LANES, value, offset));
    return __shfl_sync(ALL_LANES, value, 0);
}
// </max>

// <sum>
__device__ __forceinline__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_down_sync(ALL_LANES, value, offset);
    return __shfl_sync(ALL_LANES, value, 0);
}
// </sum>
