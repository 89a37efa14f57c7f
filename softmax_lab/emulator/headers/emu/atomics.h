// Atomics. A thread switches only where it waits, so after the access has been granted the three
// steps need no lock. One atomic is one request: it loads and stores, and its addition or
// comparison counts like any other.
#pragma once
#include "functions.h"

namespace emu {
template <class T>
EMU_HELPER bool atomic_access(T* p, const T& value) {
    return !COUNTING || on_stack(p) || watched_access(p, {sizeof(T), 1, type_of<T>, 1}, &value);
}
template <class T>
EMU_HELPER T peek(const T* p) {
    T v;
    __builtin_memcpy((void*)&v, (const void*)p, sizeof(T));
    return v;
}
template <class T>
EMU_HELPER void poke(T* p, const T& v) {
    __builtin_memcpy((void*)p, (const void*)&v, sizeof(T));
}
}  // namespace emu

#define EMU_ATOMIC(name, expression)                                       \
    template <class T>                                                     \
    EMU_HELPER T name(T* p, const typename emu::Exactly<T>::type& given) { \
        T value = given;                                                   \
        if (!emu::atomic_access(p, value)) return value;                   \
        T old = emu::peek(p);                                              \
        emu::poke<T>(p, expression);                                       \
        return old;                                                        \
    }
EMU_ATOMIC(atomicAdd, T(old + value))
EMU_ATOMIC(atomicSub, T(old - value))
EMU_ATOMIC(atomicMax, T(value > old ? value : old))
EMU_ATOMIC(atomicMin, T(value < old ? value : old))
EMU_ATOMIC(atomicAnd, T(old& value))
EMU_ATOMIC(atomicOr, T(old | value))
EMU_ATOMIC(atomicXor, T(old ^ value))
EMU_ATOMIC(atomicExch, value)
EMU_ATOMIC(atomicInc, T(old >= value ? 0 : old + 1))
#undef EMU_ATOMIC
template <class T>
EMU_HELPER T atomicCAS(T* p, const typename emu::Exactly<T>::type& expected,
                       const typename emu::Exactly<T>::type& given) {
    T value = given, wanted = expected;
    if (!emu::atomic_access(p, value)) return value;
    T old = emu::peek(p);
    if (__builtin_memcmp((const void*)&old, (const void*)&wanted, sizeof(T)) == 0)
        emu::poke(p, value);
    return old;
}
