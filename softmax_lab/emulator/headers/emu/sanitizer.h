// What goes wrong is reported, not performed: the kind of fault, the instruction, the block and the
// thread. Races follow CUDA's rule: only __syncthreads, __syncwarp and a group's sync order memory;
// a shuffle does not.
#pragma once
#include "state.h"

namespace emu {
enum FaultKind : uint32_t {  // report.py has the words
    OUT_OF_BOUNDS = 1,
    MISALIGNED,
    SHARED_OUT_OF_BOUNDS,
    SHARED_RACE,
    GLOBAL_RACE,
    SHARED_UNINITIALISED,
    GLOBAL_UNINITIALISED,
    DIFFERENT_BARRIERS,
    BARRIER_AFTER_EXIT,
    DEADLOCK,
    MASK_NAMES_ABSENT_LANE,
    SHUFFLE_FROM_INACTIVE_LANE,
    WRITE_TO_CONSTANT,
    CALLER_NOT_IN_MASK,
    NULL_POINTER,
    DOUBLE_LITERAL,
    SHUFFLE_WIDTH,
};
constexpr uint32_t NO_BUFFER = ~0u, ANOTHER_BLOCK = ~0u - 1;
constexpr uint32_t VARIABLES = 1u << 30,
                   DYNAMIC = VARIABLES - 1;  // `buffer` of a variable: VARIABLES + its number

struct Details {
    int64_t offset = 0;
    uint32_t buffer = NO_BUFFER, size = 0, write = 0, other = ~0u;
};
static void report(FaultKind kind, uint32_t site, const Details& d = {}) {
    g.counters.faults++;
    for (auto& f : g.faults)
        if (f.kind == kind && f.site == site && f.write == d.write) {
            f.count++;
            return;
        }
    if (g.faults.full()) return;
    uint3 b = g.block->index, t = g.current ? g.current->index : uint3{};
    g.faults.add() = {kind,     site,    1,        d.size,          d.write,
                      d.buffer, d.other, d.offset, {b.x, b.y, b.z}, {t.x, t.y, t.z}};
}

// Has a barrier come between `other`, who was at these epochs, and the running thread?
static bool ordered(uint32_t other, uint32_t epoch, uint16_t warp_epoch) {
    uint32_t me = g.current->linear;
    if (other == me || epoch != g.block->epoch) return true;
    return other / WARP == me / WARP && warp_epoch != g.block->warps[me / WARP].epoch;
}

static void check_granule(Shadow& s, uint32_t site, bool shared, bool atomic, const Details& d) {
    uint32_t me = g.current->linear, serial = g.block->serial;
    uint16_t warp_epoch = g.block->warps[me / WARP].epoch;
    FaultKind race = shared ? SHARED_RACE : GLOBAL_RACE;
    bool both_atomic = atomic && s.atomic;
    auto fault = [&](uint32_t other) {
        Details e = d;
        e.other = other;
        report(race, site, e);
    };
    if (s.serial !=
        serial) {  // last touched by another block: two blocks of a launch have no order
        bool theirs = s.serial >= g.first_serial;
        bool clash = s.writer != NOBODY || (d.write && s.reader != NOBODY);
        if (!shared && theirs && clash && !both_atomic) fault(ANOTHER_BLOCK);
        bool filled = shared && g.group > 1 && s.initialised &&
                      s.serial >= g.group_serial;  // by a block of our cluster
        s = {serial, 0, 0, 0, 0, NOBODY, NOBODY, NOBODY, filled, false};
    }
    if (s.writer != NOBODY && !both_atomic && !ordered(s.writer, s.write_epoch, s.write_warp_epoch))
        fault(s.writer);
    if (d.write) {
        uint16_t r = s.reader;
        if (r == NOBODY || ordered(r, s.read_epoch, s.read_warp_epoch)) r = s.other_reader;
        if (r != NOBODY && !ordered(r, s.read_epoch, s.read_warp_epoch)) fault(r);
        s.writer = (uint16_t)me, s.write_epoch = g.block->epoch, s.write_warp_epoch = warp_epoch;
        s.initialised = true, s.atomic = atomic;
    } else {
        if (shared && !s.initialised) report(SHARED_UNINITIALISED, site, d);
        if (s.reader == NOBODY || s.read_epoch != g.block->epoch ||
            s.read_warp_epoch != warp_epoch) {
            s.reader = (uint16_t)me, s.other_reader = NOBODY;
            s.read_epoch = g.block->epoch, s.read_warp_epoch = warp_epoch;
        } else if (s.reader != me) {
            s.other_reader = (uint16_t)me;
        }
    }
}
static void check(Shadow* shadow, uintptr_t base, uintptr_t address, uint32_t site, bool shared,
                  bool atomic, const Details& d) {
    for (uint32_t o = 0; o < d.size; o += EMU_GRANULE)
        check_granule(shadow[(address - base + o) / EMU_GRANULE], site, shared, atomic, d);
}
}  // namespace emu
