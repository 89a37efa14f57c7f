// CUDA's vector types. One that is 8 or 16 bytes wide is one access, as in the hardware, whatever
// its elements are.
#pragma once
#include "scalar.h"

namespace emu {
template <class V>
EMU_HELPER void copy_vector(V* to, const V* from, uint8_t type) {
    alignas(16) unsigned char v[sizeof(V)];
    constexpr uint8_t size = sizeof(V);
    if (!COUNTING || on_stack(from) || watched_access(from, {size, 0, type, 0}, nullptr))
        __builtin_memcpy(v, (const void*)from, size);
    else
        __builtin_memset(v, 0xff, size);
    if (!COUNTING || on_stack(to) || watched_access(to, {size, 1, type, 0}, v))
        __builtin_memcpy((void*)to, v, size);
}
#if EMU_COUNT
typedef Float real32;
typedef Double real64;
#else
typedef float real32;
typedef double real64;
#endif
}  // namespace emu

#define EMU_VECTOR_COPIES(name, T)                                                  \
    name() = default;                                                               \
    EMU_HELPER name(const name& o) { emu::copy_vector(this, &o, emu::type_of<T>); } \
    EMU_HELPER name& operator=(const name& o) {                                     \
        emu::copy_vector(this, &o, emu::type_of<T>);                                \
        return *this;                                                               \
    }
#define EMU_VECTOR2(name, T)                      \
    struct alignas(2 * sizeof(T)) name {          \
        T x, y;                                   \
        EMU_VECTOR_COPIES(name, T)                \
        EMU_HELPER name(T x, T y) : x(x), y(y) {} \
    };                                            \
    static EMU_HELPER name make_##name(T x, T y) { return name(x, y); }
#define EMU_VECTOR4(name, T)                                            \
    struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) name {      \
        T x, y, z, w;                                                   \
        EMU_VECTOR_COPIES(name, T)                                      \
        EMU_HELPER name(T x, T y, T z, T w) : x(x), y(y), z(z), w(w) {} \
    };                                                                  \
    static EMU_HELPER name make_##name(T x, T y, T z, T w) { return name(x, y, z, w); }

EMU_VECTOR2(float2, emu::real32)
EMU_VECTOR4(float4, emu::real32)
EMU_VECTOR2(double2, emu::real64)
EMU_VECTOR2(int2, int)
EMU_VECTOR4(int4, int)
EMU_VECTOR2(uint2, unsigned)
EMU_VECTOR4(uint4, unsigned)
EMU_VECTOR4(short4, short)
EMU_VECTOR4(ushort4, unsigned short)
EMU_VECTOR4(uchar4, unsigned char)
EMU_VECTOR2(longlong2, long long)
EMU_VECTOR2(ulonglong2, unsigned long long)

// Loads and stores with a hint for the caches, which the emulator does not have.
#define EMU_LOAD(name)              \
    template <class T>              \
    EMU_HELPER T name(const T* p) { \
        return *p;                  \
    }
#define EMU_STORE(name)                                                   \
    template <class T>                                                    \
    EMU_HELPER void name(T* p, const typename emu::Exactly<T>::type& v) { \
        *p = v;                                                           \
    }
EMU_LOAD(__ldg)
EMU_LOAD(__ldca)
EMU_LOAD(__ldcg)
EMU_LOAD(__ldcs)
EMU_LOAD(__ldlu)
EMU_LOAD(__ldcv)
EMU_STORE(__stwb)
EMU_STORE(__stcg)
EMU_STORE(__stcs)
EMU_STORE(__stwt)
#undef EMU_LOAD
#undef EMU_STORE
