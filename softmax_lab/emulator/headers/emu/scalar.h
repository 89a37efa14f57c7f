// The counting number. In the counting build `float` and `double` are Scalars (keywords.h), and the
// 16-bit floats are in both builds. A Scalar adds to a counter what is done to it, and asks
// emu_watched_access whenever it is not on a fiber's stack, that is: whenever it is memory.
// Counters are side effects, so no optimiser can change a count.
#pragma once
#include "warp.h"
#include "memory.h"

namespace emu {
// ---- formats: what is stored, and what C++ computes with
template <class T, Type TYPE>
struct Native {
    typedef T Bits;
    typedef T Value;
    static constexpr Type type = TYPE;
    static constexpr bool native = true;
    static constexpr EMU_HELPER T unpack(T x) { return x; }
    static constexpr EMU_HELPER T pack(T x) { return x; }
};
typedef Native<float, FLOAT32> Float32;
typedef Native<double, FLOAT64> Float64;

struct BFloat16 {
    typedef uint16_t Bits;
    typedef float Value;
    static constexpr Type type = BFLOAT16;
    static constexpr bool native = false;
    static constexpr float unpack(uint16_t x) {
        return __builtin_bit_cast(float, uint32_t(x) << 16);
    }
    static constexpr uint16_t pack(float x) {  // to nearest, ties to even
        uint32_t u = __builtin_bit_cast(uint32_t, x);
        if ((u & 0x7fffffff) > 0x7f800000) return 0x7fff;
        return uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
    }
};
struct Float16 {
    typedef uint16_t Bits;
    typedef float Value;
    static constexpr Type type = FLOAT16;
    static constexpr bool native = false;
    static constexpr float unpack(uint16_t x) {
        uint32_t sign = uint32_t(x & 0x8000) << 16, e = x >> 10 & 31, m = x & 1023;
        if (e == 31) return __builtin_bit_cast(float, sign | 0x7f800000 | m << 13);
        if (e) return __builtin_bit_cast(float, sign | (e + 112) << 23 | m << 13);
        float small = float(m) * 0x1p-24f;
        return sign ? -small : small;
    }
    static constexpr uint16_t pack(float x) {  // to nearest, ties to even
        uint32_t u = __builtin_bit_cast(uint32_t, x), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
        if (a > 0x7f800000) return 0x7fff;
        if (a >= 0x477ff000) return uint16_t(sign | 0x7c00);  // 65520 and more round to infinity
        if (a < 0x38800000) {                                 // below 2^-14: a multiple of 2^-24
            float scaled = __builtin_bit_cast(float, a) * 0x1p24f;
            uint32_t n = uint32_t(scaled);
            float rest = scaled - float(n);
            return uint16_t(sign | (n + (rest > 0.5f || (rest == 0.5f && (n & 1)))));
        }
        return uint16_t(sign | ((a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13));
    }
};

template <class F>
struct Scalar {
    typedef typename F::Bits Bits;
    typedef typename F::Value Value;
    Bits bits;

    Scalar() = default;
    template <class T, class = typename EnableIf<builtin<T>>::type>
    constexpr EMU_HELPER Scalar(T x) : bits(F::pack(Value(x))) {}
    template <class G, class = typename EnableIf<!same<F, G>>::type>
    EMU_HELPER Scalar(const Scalar<G>& o) : bits(F::pack(Value(o.get()))) {}
    constexpr EMU_HELPER Scalar(const Scalar& o) : bits(o.load()) {}
    EMU_HELPER Scalar& operator=(const Scalar& o) {
        Bits b = o.load();
        if (!COUNTING || on_stack(this) || watched_access(this, {sizeof(Bits), 1, F::type, 0}, &b))
            bits = b;
        return *this;
    }
    template <class T, class = typename EnableIf<builtin<T>>::type>
    EMU_HELPER explicit operator T() const {
        return T(get());
    }
    constexpr EMU_HELPER Bits load() const {
        if (!COUNTING || __builtin_is_constant_evaluated()) return bits;
        return on_stack(this) || watched_access(this, {sizeof(Bits), 0, F::type, 0}, nullptr)
                   ? bits
                   : F::pack(__builtin_nanf(""));
    }
    EMU_HELPER Value get() const { return F::unpack(load()); }

    template <class T>
    EMU_HELPER Scalar& operator+=(const T& o) {
        return *this = Scalar(*this + o);
    }
    template <class T>
    EMU_HELPER Scalar& operator-=(const T& o) {
        return *this = Scalar(*this - o);
    }
    template <class T>
    EMU_HELPER Scalar& operator*=(const T& o) {
        return *this = Scalar(*this * o);
    }
    template <class T>
    EMU_HELPER Scalar& operator/=(const T& o) {
        return *this = Scalar(*this / o);
    }
    EMU_HELPER Scalar operator-() const {
        return Scalar(-get());
    }  // a sign flip is free, as in the hardware's operands
    EMU_HELPER Scalar operator+() const { return *this; }
    EMU_HELPER bool operator!() const { return get() == 0; }
};
typedef Scalar<Float32> Float;
typedef Scalar<Float64> Double;
static_assert(sizeof(Float) == 4 && sizeof(Scalar<Float16>) == 2,
              "a Scalar has the size of what it stands for");

template <>
constexpr uint32_t type_of<Float> = FLOAT32;
template <>
constexpr uint32_t type_of<Double> = FLOAT64;
template <>
constexpr uint32_t type_of<Scalar<Float16>> = FLOAT16;
template <>
constexpr uint32_t type_of<Scalar<BFloat16>> = BFLOAT16;
template <class T>
concept PairOfFloats = sizeof(T) == 8 && requires { T{Float(), Float()}; };
template <PairOfFloats T>
constexpr uint32_t type_of<T> = FLOAT32;  // a shuffle moves both words

// ---- operators. `Meet` is the type in which two operands meet: double where one is double; none
// for half with float, which CUDA refuses too.
template <class A, class B>
struct Meet {};
template <class F>
struct Meet<Scalar<F>, Scalar<F>> {
    typedef F type;
};
template <>
struct Meet<Float, Double> {
    typedef Float64 type;
};
template <>
struct Meet<Double, Float> {
    typedef Float64 type;
};
template <class B>
requires builtin<B> struct Meet<Double, B> {
    typedef Float64 type;
};
template <class B>
requires builtin<B> struct Meet<B, Double> {
    typedef Float64 type;
};
template <class B>
requires integral<B> struct Meet<Float, B> {
    typedef Float32 type;
};
template <class B>
requires integral<B> struct Meet<B, Float> {
    typedef Float32 type;
};
template <>
struct Meet<Float, float> {
    typedef Float32 type;
};
template <>
struct Meet<float, Float> {
    typedef Float32 type;
};
template <>
struct Meet<Float, double> {
    typedef Float64 type;
};
template <>
struct Meet<double, Float> {
    typedef Float64 type;
};

template <class V, class F>
EMU_HELPER V value_of(const Scalar<F>& x) {
    return V(x.get());
}
template <class V, class T, class = typename EnableIf<builtin<T>>::type>
EMU_HELPER V value_of(T x) {
    return V(x);
}

// `x * 0.5` computes in double because its literal lacks an f: hardly ever meant, and slow on most
// GPUs. A variable declared double is meant.
EMU_WATCHED void watched_double() __asm__("emu_watched_double");
EMU_WATCHED void watched_double() {
    if (g.sanitize && g.current) report(DOUBLE_LITERAL, emu_site);
}
template <class A, class B>
constexpr bool by_literal =
    (same<A, Float> && same<B, double>) || (same<A, double> && same<B, Float>);

#define EMU_ARITHMETIC(op, counter)                                    \
    template <class A, class B, class F = typename Meet<A, B>::type>   \
    EMU_HELPER Scalar<F> operator op(const A& a, const B& b) {         \
        typedef typename F::Value V;                                   \
        V x = value_of<V>(a), y = value_of<V>(b);                      \
        if (by_literal<A, B>) watched_double();                        \
        tally(same<F, Float64> ? g.counters.f64 : g.counters.counter); \
        return Scalar<F>(V(x op y));                                   \
    }
EMU_ARITHMETIC(+, add)
EMU_ARITHMETIC(-, sub)
EMU_ARITHMETIC(*, mul)
EMU_ARITHMETIC(/, div)
#undef EMU_ARITHMETIC
#define EMU_COMPARISON(op, ordering)                                   \
    template <class A, class B, class F = typename Meet<A, B>::type>   \
    EMU_HELPER bool operator op(const A& a, const B& b) {              \
        typedef typename F::Value V;                                   \
        V x = value_of<V>(a), y = value_of<V>(b);                      \
        bool yes = x op y;                                             \
        if (by_literal<A, B>) watched_double();                        \
        if (same<F, Float64>)                                          \
            tally(g.counters.f64);                                     \
        else                                                           \
            tally(g.counters.compare), tally(g.counters.updates, ordering && yes); \
        return yes;                                                    \
    }
EMU_COMPARISON(<, true)
EMU_COMPARISON(>, true)
EMU_COMPARISON(<=, true)
EMU_COMPARISON(>=, true)
EMU_COMPARISON(==, false)
EMU_COMPARISON(!=, false)
#undef EMU_COMPARISON
}  // namespace emu
