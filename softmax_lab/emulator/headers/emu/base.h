// Fixed-size integers, a few type questions and the attributes that the other headers share.
// No standard header is included on the kernel's side: it would cost a quarter of a second a
// compile, it could not come after `#define float`, and the same text also becomes WebAssembly,
// where there is little of a standard library.
#pragma once
#ifndef EMU_COUNT
#define EMU_COUNT 0  // 0: plain build, `float` is float. 1: counting build, `float` is emu::Float.
#endif
#ifndef EMU_GRANULE
#define EMU_GRANULE \
    4  // [B] smallest access that is watched for races; 2 where a kernel uses 16-bit floats
#endif

typedef __SIZE_TYPE__ size_t;
typedef __INT8_TYPE__ int8_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __INT16_TYPE__ int16_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __INT32_TYPE__ int32_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __UINTPTR_TYPE__ uintptr_t;

// A helper melts into the kernel. Clang also keeps its lines out of the line table, so that an
// instruction inlined from it carries the kernel's line; GCC cannot, and sites.py asks addr2line
// for the kernel's frame instead.
#if defined(__clang__)
#define EMU_HELPER inline __attribute__((always_inline, nodebug))
#define EMU_WATCHED static __attribute__((noinline, nomerge, used))
#else
#define EMU_HELPER inline __attribute__((always_inline))
#define EMU_WATCHED static __attribute__((noinline, noclone, used))
#endif

// The number of the instruction that is running. sites.py writes an assignment before every call of
// a watched function (those named emu_watched_*) into the assembly text: a number survives inlining
// and tail calls, where a return address would not, and WebAssembly has no return addresses.
extern "C" {
volatile uint32_t emu_site __attribute__((used)) = 0;
}

namespace emu {
constexpr bool COUNTING = EMU_COUNT;
constexpr uint32_t WARP = 32, SECTOR = 32, NOBODY = 0xffff;

template <bool B, class T = void>
struct EnableIf {};
template <class T>
struct EnableIf<true, T> {
    typedef T type;
};
template <class A, class B>
constexpr bool same = false;
template <class A>
constexpr bool same<A, A> = true;
template <class T>
struct Plain {
    typedef T type;
};  // without const, volatile and reference
template <class T>
struct Plain<T&> : Plain<T> {};
template <class T>
struct Plain<T&&> : Plain<T> {};
template <class T>
struct Plain<const T> : Plain<T> {};
template <class T>
struct Plain<volatile T> : Plain<T> {};
template <class T>
struct Plain<const volatile T> : Plain<T> {};
template <class T>
struct Exactly {
    typedef T type;
};  // blocks deduction: an argument that follows another one's type
template <class T>
constexpr bool floating = same<T, float> || same<T, double>;
template <class T>
constexpr bool integral =
    same<T, bool> || same<T, char> || same<T, signed char> || same<T, unsigned char> ||
    same<T, short> || same<T, unsigned short> || same<T, int> || same<T, unsigned> ||
    same<T, long> || same<T, unsigned long> || same<T, long long> || same<T, unsigned long long>;
template <class T>
constexpr bool builtin = floating<T> || integral<T>;

template <class T>
EMU_HELPER constexpr T smaller(T a, T b) {
    return a < b ? a : b;
}
template <class T>
EMU_HELPER constexpr T larger(T a, T b) {
    return a > b ? a : b;
}
}  // namespace emu
