// The list of kernels in the file, and how one is called with arguments whose types only the
// compiler knows.
#pragma once
#include "atomics.h"
#include "scheduler.h"

namespace emu {
template <size_t... I>
struct Indices {};
#if defined(__clang__)
template <class T, T... I>
struct AsIndices {
    typedef Indices<I...> type;
};
template <size_t N>
using FirstIndices = typename __make_integer_seq<AsIndices, size_t, N>::type;
#else
template <size_t N>
using FirstIndices = Indices<__integer_pack(N)...>;
#endif

template <class T>
struct Argument {  // a copy on the fiber's own stack: a kernel may change its parameters
    alignas(T) unsigned char bytes[sizeof(T)];
    EMU_HELPER explicit Argument(const void* p) { __builtin_memcpy(bytes, p, sizeof(T)); }
    EMU_HELPER T& get() { return *reinterpret_cast<T*>(bytes); }
};
// The emulator sees accesses through floats, vectors and structs of them. Through other pointers it
// sees atomics alone.
template <class T>
constexpr bool unwatched_pointer = false;
template <class T>
constexpr bool unwatched_pointer<T*> =
    builtin<typename Plain<T>::type> || same<typename Plain<T>::type, void>;

template <class F>
struct Caller;
template <class... A>
struct Caller<void (*)(A...)> {
    template <size_t... I>
    static void go(void* f, void** a, Indices<I...>) {
        ((void (*)(A...))f)(Argument<typename Plain<A>::type>(a[I]).get()...);
    }
    static void call(void* f, void** a) { go(f, a, FirstIndices<sizeof...(A)>{}); }
};
struct Kernel {
    void* function;
    void (*call)(void*, void**);
    uint32_t arguments;
    uint64_t unwatched;  // a bit an argument
};
template <class... A>
constexpr uint64_t unwatched_arguments() {
    uint64_t bits = 0, bit = 1;
    ((bits |= unwatched_pointer<A> ? bit : 0, bit <<= 1), ...);
    return bits;
}
template <class... A>
static Kernel kernel_of(void (*f)(A...)) {
    return {(void*)f, Caller<void (*)(A...)>::call, sizeof...(A),
            COUNTING ? unwatched_arguments<A...>() : 0};
}
}  // namespace emu
