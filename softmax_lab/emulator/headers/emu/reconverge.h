// Where the lanes of a warp meet again after they went different ways, as the hardware makes them.
// In the counting build `if`, `for` and `switch` carry a Join (keywords.h). Its destructor runs at
// the end of the statement however a lane leaves it, also by return, break or continue, and waits
// there for the warp's other lanes. Joins are soft: when nothing else in the warp can move, the
// innermost let go. So they decide only which lanes run together, and can never block a program.
// Checked by 12 patterns of divergence whose requests are known (tests/emulator/flow.cu).
#pragma once
#include "memory.h"

namespace emu {
struct LoopTag {};

EMU_WATCHED bool watched_loop() __asm__("emu_watched_loop");
EMU_WATCHED bool watched_loop() {
    if (g.lockstep && g.current) {
        g.current->site = emu_site, g.current->space = LOCAL;
        wait_as(AT_MEMORY);
    }
    return true;
}
static __attribute__((noinline)) void join(uint32_t place, int branch) {
    Thread& t = *g.current;
    t.site = place, t.branch = (int16_t)branch;
    wait_as(AT_JOIN);
    t.depth--;
}
struct Join {
    uint32_t place;   // file number << 20 | line
    int branch = -1;  // which way this lane went; -1: a loop, no branch
    constexpr EMU_HELPER explicit Join(uint32_t place) : place(place) {
        if (!__builtin_is_constant_evaluated() && g.lockstep && g.current) g.current->depth++;
    }
    constexpr EMU_HELPER ~Join() {
        if (!__builtin_is_constant_evaluated() && g.lockstep && g.current) join(place, branch);
    }
    template <class T>
    constexpr EMU_HELPER bool took(const T& condition) {
        return branch = static_cast<bool>(condition);
    }
    constexpr EMU_HELPER bool took(LoopTag) { return false; }
};

static void count_branch(uint32_t place, uint32_t met, uint32_t taken) {
    bool diverged = taken && taken < met;
    g.counters.branches++;
    g.counters.diverged += diverged;
    SiteTotals* s = nullptr;
    for (auto& b : g.branches)
        if (b.site == place) s = &b;
    if (!s) {
        if (g.branches.full()) return;
        s = &g.branches.add();
        s->site = place;
    }
    s->requests++, s->lanes += met, s->taken += taken, s->wavefronts += diverged;
}

// Nothing else in the warp can move: the lanes at the innermost joins go on, each group that met at
// one `if` together.
static bool release_joins(Thread* first) {
    uint32_t waiting = g.warp->waiting(AT_JOIN), depth = 0, innermost = 0, branches = 0;
    if (!waiting) return false;
    EMU_EACH_LANE (i, waiting) depth = larger(depth, first[i].depth);
    EMU_EACH_LANE (i, waiting) {
        if (first[i].depth != depth) continue;
        innermost |= 1u << i;
        if (first[i].branch >= 0) branches |= 1u << i;
    }
    g.warp->release(innermost, AT_JOIN);
    while (branches) {
        uint32_t place = first[__builtin_ctz(branches)].site, met = 0, taken = 0;
        EMU_EACH_LANE (i, branches) {
            if (first[i].site != place) continue;
            met++, taken += (uint32_t)first[i].branch;
            branches &= ~(1u << i);
        }
        count_branch(place, met, taken);
    }
    return true;
}
}  // namespace emu
