// Shuffles, votes and warp barriers: the lanes named by the mask wait for each other, then
// exchange.
#pragma once
#include "trace.h"
#include "sanitizer.h"

namespace emu {
EMU_WATCHED void watched_warp(WarpOp op, uint32_t mask, const void* in, void* out, uint32_t size,
                              int source, uint32_t argument,
                              uint32_t type) __asm__("emu_watched_warp");
EMU_WATCHED void watched_warp(WarpOp op, uint32_t mask, const void* in, void* out, uint32_t size,
                              int source, uint32_t argument, uint32_t type) {
    Thread& t = *g.current;
    t.site = emu_site, t.op = op, t.mask = mask, t.in = in, t.out = out, t.size = (uint8_t)size;
    t.source = source, t.argument = argument, t.type = (uint8_t)type;
    if (!(mask >> lane() & 1)) report(CALLER_NOT_IN_MASK, t.site);
    wait_as(AT_WARP);
}

// Completes one operation whose lanes have all arrived; lanes that returned cannot come any more
// and are reported.
static void exchange(Thread* first, uint32_t warp, Thread& lead, uint32_t arrived, uint32_t gone) {
    uint32_t size = lead.size, votes = 0;
    WarpOp op = lead.op;
    uint8_t values[32][32];
    if (gone) {
        g.current = &lead;
        report(MASK_NAMES_ABSENT_LANE, lead.site,
               {0, NO_BUFFER, 0, 0, (uint32_t)__builtin_ctz(gone)});
    }
    EMU_EACH_LANE (k, arrived) {
        if (first[k].in) __builtin_memcpy(values[k], first[k].in, size);
        if (op == VOTE && *(const int*)first[k].in) votes |= 1u << k;
    }
    Step* step = nullptr;
    if (traced(warp)) {
        step = &add_step(op == SHUFFLE ? STEP_SHUFFLE
                         : op == VOTE  ? STEP_VOTE
                                       : STEP_WARP_BARRIER,
                         arrived, lead.site);
        step->type = lead.type, step->size = size, step->argument = lead.argument,
        step->buffer = NO_BUFFER;
    }
    g.warp->release(arrived, AT_WARP);
    EMU_EACH_LANE (k, arrived) {
        Thread& t = first[k];
        if (op == VOTE) __builtin_memcpy(t.out, &votes, 4);
        if (op == SHUFFLE) {
            uint32_t from = (uint32_t)t.source;
            if (from < WARP && arrived >> from & 1) {
                __builtin_memcpy(t.out, values[from], size);
            } else {
                g.current = &t;
                report(SHUFFLE_FROM_INACTIVE_LANE, t.site, {0, NO_BUFFER, size, 0, from});
                __builtin_memset(t.out, 0xff, size);
            }
        }
        if (step && op != WARP_BARRIER) {
            step->address[k] = t.source;
            __builtin_memcpy(step->before[k], values[k], smaller(size, 16u));
            __builtin_memcpy(step->after[k], t.out, smaller(size, 16u));
        }
    }
    g.current = nullptr;
    if (op == SHUFFLE) g.counters.shuffles += (size + 3) / 4;
    if (op == VOTE) g.counters.votes++;
    if (op == WARP_BARRIER) g.counters.warp_barriers++, g.warp->epoch++;
}
static bool step_warp(Thread* first, uint32_t warp) {
    uint32_t waiting = g.warp->waiting(AT_WARP);
    bool any = false;
    while (waiting) {
        uint32_t i = (uint32_t)__builtin_ctz(waiting), wanted = first[i].mask | 1u << i,
                 arrived = 0;
        Thread& t = first[i];
        EMU_EACH_LANE (k, waiting & wanted)
            if (first[k].mask == t.mask && first[k].op == t.op) arrived |= 1u << k;
        waiting &= ~arrived;
        uint32_t gone = wanted & g.warp->waiting(FINISHED);
        if ((arrived | gone) != wanted) continue;
        exchange(first, warp, t, arrived, gone);
        any = true;
    }
    return any;
}

template <class T>
constexpr uint32_t type_of = BITS;
template <>
constexpr uint32_t type_of<int> = INT32;
template <>
constexpr uint32_t type_of<float> = FLOAT32;
template <>
constexpr uint32_t type_of<double> = FLOAT64;

EMU_WATCHED void watched_width() __asm__("emu_watched_width");
EMU_WATCHED void watched_width() { report(SHUFFLE_WIDTH, emu_site); }
static EMU_HELPER void check_width(int width) {
    if (width < 1 || width > (int)WARP || (width & (width - 1))) watched_width();
}

template <class T>
EMU_HELPER T shuffle(uint32_t mask, const T& value, int source, uint32_t argument) {
    static_assert(sizeof(T) <= 32, "a shuffle moves at most 32 bytes");
    T out = value;
    alignas(16) unsigned char in[sizeof(T)];
    __builtin_memcpy(in, (const void*)&out, sizeof(T));
    watched_warp(SHUFFLE, mask, in, (void*)&out, sizeof(T), source, argument, type_of<T>);
    __asm__ volatile("" ::: "memory");
    return out;
}
}  // namespace emu

static EMU_HELPER void __syncwarp(unsigned mask = ~0u) {
    emu::watched_warp(emu::WARP_BARRIER, mask, nullptr, nullptr, 0, 0, 0, 0);
}
static EMU_HELPER unsigned __ballot_sync(unsigned mask, int predicate) {
    unsigned out = 0;
    emu::watched_warp(emu::VOTE, mask, &predicate, &out, 4, 0, 0, emu::INT32);
    __asm__ volatile("" ::: "memory");
    return out;
}
static EMU_HELPER int __any_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, predicate) != 0;
}
static EMU_HELPER int __all_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, !predicate) == 0;
}

template <class T>
EMU_HELPER T __shfl_sync(unsigned mask, T v, int source, int width = 32) {
    emu::check_width(width);
    int l = (int)emu::lane();
    return emu::shuffle(mask, v, (l & ~(width - 1)) + (source & (width - 1)), (uint32_t)source);
}
template <class T>
EMU_HELPER T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32) {
    emu::check_width(width);
    int l = (int)emu::lane(), s = l ^ bits;
    return emu::shuffle(mask, v, s >= (l & ~(width - 1)) + width ? l : s, (uint32_t)bits);
}
template <class T>
EMU_HELPER T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32) {
    emu::check_width(width);
    int l = (int)emu::lane();
    return emu::shuffle(mask, v, (l & (width - 1)) + (int)delta >= width ? l : l + (int)delta,
                        delta);
}
template <class T>
EMU_HELPER T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32) {
    emu::check_width(width);
    int l = (int)emu::lane();
    return emu::shuffle(mask, v, (l & (width - 1)) < (int)delta ? l : l - (int)delta, delta);
}
