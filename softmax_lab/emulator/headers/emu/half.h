// The 16-bit floats of <cuda_fp16.h> and <cuda_bf16.h>: conversions, arithmetic on one and on
// pairs. An operation on them counts like one on float and rounds once, to nearest.
#pragma once
#include "functions.h"

typedef emu::Scalar<emu::Float16> __half;
typedef emu::Scalar<emu::BFloat16> __nv_bfloat16;
typedef __half half;
typedef __nv_bfloat16 nv_bfloat16;
EMU_VECTOR2(__half2, __half)
EMU_VECTOR2(__nv_bfloat162, __nv_bfloat16)
typedef __half2 half2;
typedef __nv_bfloat162 nv_bfloat162;

#define EMU_HALF(T, T2, word, to, from)                                                         \
    static EMU_HELPER emu::real32 word##2float(const T& x) { return x.get(); }                  \
    static EMU_HELPER T to(const emu::real32& x) { return T(float(x)); }                        \
    static EMU_HELPER T to##_rn(const emu::real32& x) { return T(float(x)); }                   \
    static EMU_HELPER float2 from(const T2& v) {                                                \
        return make_float2(word##2float(v.x), word##2float(v.y));                               \
    }                                                                                           \
    static EMU_HELPER T __hadd(const T& a, const T& b) { return a + b; }                        \
    static EMU_HELPER T __hsub(const T& a, const T& b) { return a - b; }                        \
    static EMU_HELPER T __hmul(const T& a, const T& b) { return a * b; }                        \
    static EMU_HELPER T __hdiv(const T& a, const T& b) { return a / b; }                        \
    static EMU_HELPER bool __hgt(const T& a, const T& b) { return a > b; }                      \
    static EMU_HELPER bool __hlt(const T& a, const T& b) { return a < b; }                      \
    static EMU_HELPER T __hmax(const T& a, const T& b) {                                        \
        return T(float(emu_fmaxf(word##2float(a), word##2float(b))));                           \
    }                                                                                           \
    static EMU_HELPER T __hmin(const T& a, const T& b) {                                        \
        return T(float(emu_fminf(word##2float(a), word##2float(b))));                           \
    }                                                                                           \
    static EMU_HELPER T hexp(const T& x) { return T(float(emu_expf(word##2float(x)))); }        \
    static EMU_HELPER T hlog(const T& x) { return T(float(emu_logf(word##2float(x)))); }        \
    static EMU_HELPER T2 __hadd2(const T2& a, const T2& b) { return T2(a.x + b.x, a.y + b.y); } \
    static EMU_HELPER T2 __hsub2(const T2& a, const T2& b) { return T2(a.x - b.x, a.y - b.y); } \
    static EMU_HELPER T2 __hmul2(const T2& a, const T2& b) { return T2(a.x * b.x, a.y * b.y); } \
    static EMU_HELPER T2 __hmax2(const T2& a, const T2& b) {                                    \
        return T2(__hmax(a.x, b.x), __hmax(a.y, b.y));                                          \
    }

EMU_HALF(__half, __half2, __half, __float2half, __half22float2)
EMU_HALF(__nv_bfloat16, __nv_bfloat162, __bfloat16, __float2bfloat16, __bfloat1622float2)
#undef EMU_HALF
static EMU_HELPER __half2 __floats2half2_rn(emu::real32 a, emu::real32 b) {
    return __half2(__float2half(a), __float2half(b));
}
static EMU_HELPER __half2 __float22half2_rn(const float2& v) { return __floats2half2_rn(v.x, v.y); }
static EMU_HELPER __half2 __float2half2_rn(emu::real32 a) { return __floats2half2_rn(a, a); }
static EMU_HELPER __half2 __halves2half2(const __half& a, const __half& b) { return __half2(a, b); }
static EMU_HELPER __half __low2half(const __half2& v) { return v.x; }
static EMU_HELPER __half __high2half(const __half2& v) { return v.y; }
static EMU_HELPER emu::real32 __low2float(const __half2& v) { return __half2float(v.x); }
static EMU_HELPER emu::real32 __high2float(const __half2& v) { return __half2float(v.y); }
static EMU_HELPER __nv_bfloat162 __floats2bfloat162_rn(emu::real32 a, emu::real32 b) {
    return __nv_bfloat162(__float2bfloat16(a), __float2bfloat16(b));
}
static EMU_HELPER __nv_bfloat162 __float22bfloat162_rn(const float2& v) {
    return __floats2bfloat162_rn(v.x, v.y);
}
