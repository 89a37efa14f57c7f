// Mathematical functions: each counts what it is, then lets the C library compute it. A function
// that no counter covers (sqrtf, sinf, ...) is left out on purpose: a compile error is better than
// a silent zero.
#pragma once
#include "vectors.h"

extern "C" {
float expf(float) noexcept;
float exp2f(float) noexcept;
float logf(float) noexcept;
float log2f(float) noexcept;
float log1pf(float) noexcept;
float expm1f(float) noexcept;
float fmaf(float, float, float) noexcept;
double exp(double) noexcept;
double log(double) noexcept;
double fma(double, double, double) noexcept;
double fmax(double, double) noexcept;
double fmin(double, double) noexcept;
int printf(const char*, ...);
int abs(int) noexcept;
}

namespace emu {
// ex2.approx(x * log2 e): the product is rounded first, which is where __expf loses its accuracy.
static EMU_HELPER float fast_exp(float x) { return ::exp2f(x * 1.44269504f); }
static EMU_HELPER float fast_log(float x) { return ::log2f(x) * 0.693147181f; }
// fmaxf and fminf ignore a NaN beside a number.
static EMU_HELPER float max32(float a, float b) { return a != a ? b : b != b ? a : a > b ? a : b; }
static EMU_HELPER float min32(float a, float b) { return a != a ? b : b != b ? a : a < b ? a : b; }
}  // namespace emu

#if EMU_COUNT
#define EMU_FLOAT1(name, expression, counter)                \
    static EMU_HELPER emu::Float name(const emu::Float& a) { \
        float x = a.get();                                   \
        emu::tally(emu::g.counters.counter);                 \
        return expression;                                   \
    }
#define EMU_FLOAT2(name, expression, counter)                                     \
    static EMU_HELPER emu::Float name(const emu::Float& a, const emu::Float& b) { \
        float x = a.get(), y = b.get();                                           \
        emu::tally(emu::g.counters.counter);                                      \
        return expression;                                                        \
    }
#define EMU_DOUBLE1(name, expression)                          \
    static EMU_HELPER emu::Double name(const emu::Double& a) { \
        double x = a.get();                                    \
        emu::tally(emu::g.counters.f64);                       \
        return expression;                                     \
    }
EMU_FLOAT1(exp, ::expf(x), exp)
EMU_FLOAT1(log, ::logf(x), log)
EMU_DOUBLE1(exp, ::exp(x))
EMU_DOUBLE1(log, ::log(x))
EMU_FLOAT2(__fadd_rn, x + y, add)
EMU_FLOAT2(__fsub_rn, x - y, sub)
EMU_FLOAT2(__fmul_rn, x* y, mul)
EMU_FLOAT2(__fdiv_rn, x / y, div)
EMU_FLOAT2(__fdividef, x / y, div)
EMU_FLOAT1(__frcp_rn, 1.0f / x, div)
EMU_FLOAT2(max, emu::max32(x, y), compare)
EMU_FLOAT2(min, emu::min32(x, y), compare)
static EMU_HELPER emu::Float emu_fma(const emu::Float& a, const emu::Float& b,
                                     const emu::Float& c) {
    float x = a.get(), y = b.get(), z = c.get();
    emu::tally(emu::g.counters.mul), emu::tally(emu::g.counters.add);
    return ::fmaf(x, y, z);
}
// The C library has these names already; a macro (below) sends the kernel's calls here.
EMU_FLOAT1(emu_expf, ::expf(x), exp)
EMU_FLOAT1(emu_exp2f, ::exp2f(x), exp)
EMU_FLOAT1(emu_expm1f, ::expm1f(x), exp)
EMU_FLOAT1(emu_fast_expf, emu::fast_exp(x), exp)
EMU_FLOAT1(emu_logf, ::logf(x), log)
EMU_FLOAT1(emu_log2f, ::log2f(x), log)
EMU_FLOAT1(emu_log1pf, ::log1pf(x), log)
EMU_FLOAT1(emu_fast_logf, emu::fast_log(x), log)
EMU_FLOAT2(emu_fmaxf, emu::max32(x, y), compare)
EMU_FLOAT2(emu_fminf, emu::min32(x, y), compare)
static EMU_HELPER emu::Float emu_fabsf(const emu::Float& a) { return __builtin_fabsf(a.get()); }
static EMU_HELPER bool isnan(const emu::Float& a) { return __builtin_isnan(a.get()); }
static EMU_HELPER bool isinf(const emu::Float& a) { return __builtin_isinf(a.get()); }
static EMU_HELPER bool isfinite(const emu::Float& a) { return __builtin_isfinite(a.get()); }
#undef EMU_FLOAT1
#undef EMU_FLOAT2
#undef EMU_DOUBLE1
#else
static EMU_HELPER float exp(float x) { return ::expf(x); }
static EMU_HELPER float log(float x) { return ::logf(x); }
static EMU_HELPER float __fadd_rn(float x, float y) { return x + y; }
static EMU_HELPER float __fsub_rn(float x, float y) { return x - y; }
static EMU_HELPER float __fmul_rn(float x, float y) { return x * y; }
static EMU_HELPER float __fdiv_rn(float x, float y) { return x / y; }
static EMU_HELPER float __fdividef(float x, float y) { return x / y; }
static EMU_HELPER float __frcp_rn(float x) { return 1.0f / x; }
static EMU_HELPER float emu_fma(float x, float y, float z) { return ::fmaf(x, y, z); }
static EMU_HELPER float emu_expf(float x) { return ::expf(x); }
static EMU_HELPER float emu_exp2f(float x) { return ::exp2f(x); }
static EMU_HELPER float emu_expm1f(float x) { return ::expm1f(x); }
static EMU_HELPER float emu_fast_expf(float x) { return emu::fast_exp(x); }
static EMU_HELPER float emu_logf(float x) { return ::logf(x); }
static EMU_HELPER float emu_log2f(float x) { return ::log2f(x); }
static EMU_HELPER float emu_log1pf(float x) { return ::log1pf(x); }
static EMU_HELPER float emu_fast_logf(float x) { return emu::fast_log(x); }
static EMU_HELPER float emu_fmaxf(float x, float y) { return emu::max32(x, y); }
static EMU_HELPER float emu_fminf(float x, float y) { return emu::min32(x, y); }
static EMU_HELPER float emu_fabsf(float x) { return __builtin_fabsf(x); }
static EMU_HELPER bool isnan(float x) { return __builtin_isnan(x); }
static EMU_HELPER bool isinf(float x) { return __builtin_isinf(x); }
static EMU_HELPER bool isfinite(float x) { return __builtin_isfinite(x); }
#endif
static EMU_HELPER emu::real32 max(float a, float b) { return emu_fmaxf(a, b); }
static EMU_HELPER emu::real32 min(float a, float b) { return emu_fminf(a, b); }
#define EMU_INTEGER(T)                                          \
    static EMU_HELPER T max(T a, T b) { return a > b ? a : b; } \
    static EMU_HELPER T min(T a, T b) { return a < b ? a : b; }
EMU_INTEGER(int)
EMU_INTEGER(unsigned)
EMU_INTEGER(long)
EMU_INTEGER(unsigned long)
EMU_INTEGER(long long)
EMU_INTEGER(unsigned long long)
#undef EMU_INTEGER

static EMU_HELPER emu::real32 __int_as_float(int i) { return __builtin_bit_cast(float, i); }
static EMU_HELPER emu::real32 __uint_as_float(unsigned i) { return __builtin_bit_cast(float, i); }
static EMU_HELPER int __float_as_int(emu::real32 x) { return __builtin_bit_cast(int, float(x)); }
static EMU_HELPER unsigned __float_as_uint(emu::real32 x) {
    return __builtin_bit_cast(unsigned, float(x));
}

namespace emu {
template <class F>
EMU_HELPER double printable(const Scalar<F>& x) {
    return (double)x.get();
}
template <class T>
EMU_HELPER T printable(const T& x) requires(builtin<T>) {
    return x;
}
template <class T>
EMU_HELPER T* printable(T* x) {
    return x;
}
template <class... A>
static int print(const char* format, const A&... a) {
    return ::printf(format, printable(a)...);
}
}  // namespace emu
