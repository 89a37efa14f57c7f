// The classic access patterns of one warp; the test counts their sectors by hand.
extern "C" __global__ void strided(const float* x, float* y, int stride, int offset) {
    y[threadIdx.x] = x[threadIdx.x * stride + offset];
}
extern "C" __global__ void broadcast(const float* x, float* y, int stride, int offset) { y[threadIdx.x] = x[offset]; }
extern "C" __global__ void quads(const float* x, float* y, int stride, int offset) {
    float4 v = reinterpret_cast<const float4*>(x)[threadIdx.x];
    y[threadIdx.x] = v.x;
}
extern "C" __global__ void banks(const float* x, float* y, int stride, int offset) {
    __shared__ float s[32 * 33];
    s[threadIdx.x * stride] = 1.0f;
    y[threadIdx.x] = 1.0f;
}
extern "C" __global__ void wide_banks(const float* x, float* y, int stride, int offset) {
    __shared__ float4 s[32];
    s[threadIdx.x] = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    y[threadIdx.x] = 1.0f;
}
