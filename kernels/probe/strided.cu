// Idea: one warp makes one load: lane l reads element `offset + l * stride`, and keeps it.
// Launch: 1 block of 32 threads; the element type is ELEMENT, offset and stride are counted in elements and not negative.
// Traffic: one load request whose sectors stride, offset and element size decide, and one store request that is perfect.
// Source: ours; the access pattern and nothing else.
#include <cuda_fp16.h>

#ifndef ELEMENT
#define ELEMENT float
#endif

extern "C" __global__ void strided(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y, int stride, int offset) {
    const size_t lane = threadIdx.x;
    y[lane] = x[size_t(offset) + lane * size_t(stride)];
}
