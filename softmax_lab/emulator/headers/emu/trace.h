// The trace: what one chosen warp did, instruction by instruction, with every lane's value before
// and after. A Step has the same 1320 bytes in every build, so that a page can read it like the
// driver does (report.py: STEP).
#pragma once
#include "state.h"

namespace emu {
enum StepOp : uint32_t {
    STEP_LOAD = 1,
    STEP_STORE,
    STEP_ATOMIC,
    STEP_SHUFFLE,
    STEP_WARP_BARRIER,
    STEP_VOTE,
    STEP_BARRIER
};

static bool traced(uint32_t warp) {
    return g.trace_block == (int64_t)g.block->number && g.trace_warp == warp;
}
// A long trace is read in parts: steps before `trace_first`, or more than there is room for, are
// only counted.
static Step& add_step(StepOp op, uint32_t mask, uint32_t site) {
    static Step outside;
    bool kept = g.traced++ >= g.trace_first && !g.steps.full();
    if (!g.order.full()) g.order.add() = (uint8_t)op;
    Step& s = kept ? g.steps.add() : outside;
    s.op = op, s.mask = mask, s.site = site;
    return s;
}
static void trace_memory(Thread** lanes, uint32_t count, uint32_t mask, const Step& costs) {
    Thread& lead = *lanes[0];
    Step& s = add_step(lead.atomic  ? STEP_ATOMIC
                       : lead.write ? STEP_STORE
                                    : STEP_LOAD,
                       mask, lead.site);
    s.space = lead.space, s.type = lead.type, s.size = lead.size, s.buffer = lead.buffer;
    s.sectors = costs.sectors, s.wavefronts = costs.wavefronts;
    for (uint32_t i = 0; i < count; i++) {
        Thread& t = *lanes[i];
        uint32_t k = t.linear % WARP;
        s.address[k] = t.offset;
        __builtin_memcpy(t.write ? s.before[k] : s.after[k], (const void*)t.address, t.size);
        if (t.write && t.in) __builtin_memcpy(s.after[k], t.in, t.size);
    }
}
}  // namespace emu
