// Who runs next. One system thread; the threads of a block run in a fixed order and switch only
// where they wait. A group is the blocks that must be alive together: one, unless the launch is
// cooperative (grid sync) or has clusters.
#pragma once
#include "reconverge.h"
#include "warp.h"

namespace emu {
// `line` says which barrier of the source it is: an optimiser may make two sites of one.
EMU_WATCHED void watched_barrier(uint32_t line) __asm__("emu_watched_barrier");
EMU_WATCHED void watched_barrier(uint32_t line) {
    g.current->site = emu_site, g.current->argument = line;
    wait_as(AT_BLOCK);
}
EMU_WATCHED void watched_group_barrier() __asm__("emu_watched_group_barrier");
EMU_WATCHED void watched_group_barrier() {
    g.current->site = emu_site;
    wait_as(AT_GROUP);
}

static void run_warp(uint32_t warp) {
    Thread* first = g.block->threads + warp * WARP;
    g.warp = g.block->warps + warp, g.warp_threads = first;
    do {
        g.warp->to_run = g.warp->waiting(READY);
        g.warp->in[READY] = 0;
        while (Thread* t = next_lane()) fiber_resume(t->fiber);
        g.current = nullptr;
    } while (step_memory(first, warp) || step_warp(first, warp) || release_joins(first));
}

// With several blocks alive, static shared memory is swapped in and out: there is one copy in the
// program.
static void swap_statics(Block& b, bool in) {
    char* copy = b.statics;
    if (g.group == 1) return;
    for (const Object* o = emu_objects; o->size; o++) {
        if (o->kind != SHARED) continue;
        if (in)
            __builtin_memcpy((void*)o->address, copy, o->size);
        else
            __builtin_memcpy(copy, (void*)o->address, o->size);
        copy += o->size;
    }
}

static void start_block(Block& b, uint64_t number) {
    b.number = number;
    b.index = {unsigned(number % gridDim.x), unsigned(number / gridDim.x % gridDim.y),
               unsigned(number / gridDim.x / gridDim.y)};
    b.serial = ++g.serial, b.epoch = 0;
    for (uint32_t i = 0; i < g.threads; i++) {
        Thread& t = b.threads[i];
        t.linear = i, t.depth = 0;
        t.index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)};
        // Tops spread over the cache's sets: at one distance from each other, all would fall into
        // the same few.
        uintptr_t low = b.stacks + i * (STACK_BYTES + PAGE) + PAGE;
        fiber_make(t.fiber, low, STACK_BYTES - i % 13 * 320);
    }
    for (uint32_t w = 0; w < g.warps;
         w++) {  // lanes beyond the block's last thread count as finished
        uint32_t lanes = g.threads - w * WARP, mask = lanes < WARP ? (1u << lanes) - 1 : ~0u;
        b.warps[w] = {};
        b.warps[w].in[READY] = mask, b.warps[w].in[FINISHED] = ~mask;
    }
    __builtin_memset(b.dynamic, 0xff, g.argument_shared);  // NaN: nobody may rely on what is there
    for (const Object* o = emu_objects; COUNTING && o->size; o++)
        if (o->kind == SHARED && !(g.group > 1)) __builtin_memset((void*)o->address, 0xff, o->size);
    if (g.group > 1) __builtin_memset(b.statics, 0xff, g.statics_bytes);
}

static uint32_t threads_in(const Block& b, State s) {
    uint32_t n = 0;
    for (uint32_t w = 0; w < g.warps; w++) n += (uint32_t)__builtin_popcount(b.warps[w].waiting(s));
    return s == FINISHED ? n - (g.warps * WARP - g.threads) : n;
}
static void release_all(Block& b, State from) {
    for (uint32_t w = 0; w < g.warps; w++) b.warps[w].release(b.warps[w].waiting(from), from);
}
static void report_deadlock() {
    for (uint32_t w = 0; w < g.warps; w++)
        EMU_EACH_LANE (i, g.block->warps[w].waiting(AT_WARP)) {
            g.current = g.block->threads + w * WARP + i;
            report(DEADLOCK, g.current->site, {0, NO_BUFFER, 0, 0, g.current->mask});
        }
    g.current = nullptr;
    g.abort = true;
}
static void finish_barrier(uint32_t finished) {
    Thread* lead = nullptr;
    bool different = false;
    for (uint32_t w = 0; w < g.warps; w++)
        EMU_EACH_LANE (i, g.block->warps[w].waiting(AT_BLOCK)) {
            Thread& t = g.block->threads[w * WARP + i];
            if (!lead) lead = &t;
            different |= t.argument != lead->argument;
        }
    g.current = lead;
    if (different)
        report(DIFFERENT_BARRIERS, lead->site);
    else if (finished)
        report(BARRIER_AFTER_EXIT, lead->site, {0, NO_BUFFER, 0, 0, finished});
    g.current = nullptr;
    g.counters.barriers++;
    g.block->epoch++;
    if (traced(g.trace_warp)) add_step(STEP_BARRIER, ~0u, lead->site);
    release_all(*g.block, AT_BLOCK);
}
// Runs a block until all its threads returned (true) or wait for the group (false).
static bool run_block(Block& b) {
    g.block = &b;
    blockIdx = b.index;
    for (;;) {
        for (uint32_t w = 0; w < g.warps; w++) run_warp(w);
        uint32_t finished = threads_in(b, FINISHED);
        if (finished == g.threads) return true;
        if (finished + threads_in(b, AT_GROUP) == g.threads) return false;
        if (finished + threads_in(b, AT_BLOCK) == g.threads) {
            finish_barrier(finished);
            continue;
        }
        // Some lanes wait for a shuffle that can never complete, or some at a block's and some at a
        // group's barrier.
        if (!threads_in(b, AT_WARP)) report(DIFFERENT_BARRIERS, b.threads[0].site);
        report_deadlock();
        return true;
    }
}
static void run_group(uint64_t first, uint32_t count) {
    g.group_serial = g.serial + 1;
    for (uint32_t i = 0; i < count; i++) start_block(g.blocks.data[i], first + i);
    for (;;) {
        uint32_t waiting = 0;
        for (uint32_t i = 0; i < count && !g.abort; i++) {
            Block& b = g.blocks.data[i];
            swap_statics(b, true);
            waiting += !run_block(b);
            swap_statics(b, false);
        }
        if (!waiting || g.abort) return;
        // All threads of the group have met: what was done before is ordered before what follows.
        g.counters.group_barriers++;
        g.first_serial = g.serial + 1;
        for (uint32_t i = 0; i < count; i++) {
            Block& b = g.blocks.data[i];
            b.serial = ++g.serial, b.epoch++;
            release_all(b, AT_GROUP);
        }
    }
}

static EMU_HELPER void* dynamic_shared() { return g.block->dynamic; }

// Where another block of the group has the shared variable that we have at `a`. Its static ones are
// in its copy, because ours are in the program while we run.
static uintptr_t shared_of(uintptr_t a, uint32_t rank) {
    if (rank == g.block->rank || rank >= g.group) return a;
    if (a - g.dynamic < g.dynamic_bytes)
        return a + (int64_t(rank) - int64_t(g.block->rank)) * int64_t(g.dynamic_each);
    uintptr_t at = (uintptr_t)g.blocks.data[rank].statics;
    for (const Object* o = emu_objects; o->size; o++) {
        if (o->kind != SHARED) continue;
        if (a >= o->address && a < o->address + o->size) return at + (a - o->address);
        at += o->size;
    }
    return a;
}

// The memory that a launch needs beside its buffers. Returns false for an impossible configuration.
static bool prepare(dim3 grid, dim3 block, size_t shared, uint32_t group) {
    uint64_t threads = uint64_t(block.x) * block.y * block.z,
             blocks = uint64_t(grid.x) * grid.y * grid.z;
    if (!threads || threads > 1024 || !blocks || shared > DYNAMIC_CAPACITY || !group) return false;
    gridDim = grid, blockDim = block;
    g.threads = (uint32_t)threads, g.warps = uint32_t(threads + WARP - 1) / WARP, g.group = group;
    size_t each = (STACK_BYTES + PAGE) * threads;
    g.stacks_bytes = each * group, g.stacks = (uintptr_t)reserve(g.stacks_bytes);
    for (uint64_t i = 0; i < threads * group; i++)
        guard((void*)(g.stacks + i * (STACK_BYTES + PAGE)), PAGE);
    g.argument_shared = shared, g.dynamic_each = (shared + 4095) / 4096 * 4096 + 4096;
    g.dynamic_bytes = g.dynamic_each * group, g.dynamic = (uintptr_t)reserve(g.dynamic_bytes);
    g.statics_low = ~uintptr_t(0);
    for (const Object* o = emu_objects; o->size; o++) {
        if (o->kind != SHARED) continue;
        g.statics_low = smaller(g.statics_low, o->address),
        g.statics_high = larger(g.statics_high, o->address + o->size);
        g.statics_bytes += o->size;
    }
    if (g.sanitize) {
        g.dynamic_shadow = (Shadow*)reserve(g.dynamic_bytes / EMU_GRANULE * sizeof(Shadow));
        if (g.statics_bytes)
            g.statics_shadow = (Shadow*)reserve(
                (g.statics_high - g.statics_low) / EMU_GRANULE * sizeof(Shadow) + 64);
    }
    g.blocks.reserve(group);
    Thread* fibers = (Thread*)reserve(threads * group * sizeof(Thread));
    Warp* warps = (Warp*)reserve(g.warps * group * sizeof(Warp));
    char* statics = (char*)reserve(g.statics_bytes * group);
    g.copies = (uintptr_t)statics, g.copies_bytes = g.statics_bytes * group;
    for (uint32_t i = 0; i < group; i++) {
        Block& b = g.blocks.add();
        b.rank = i, b.threads = fibers + i * threads, b.warps = warps + i * g.warps;
        b.dynamic = (char*)(g.dynamic + i * g.dynamic_each),
        b.statics = statics + i * g.statics_bytes;
        b.stacks = g.stacks + i * each;
    }
    return true;
}
}  // namespace emu

extern "C" __attribute__((noinline, used)) void emu_fiber_main(void) {
    emu::g.call(emu::g.kernel, emu::g.arguments);
#if defined(__wasm__)
    emu::g.warp->in[emu::FINISHED] |= 1u << emu::lane();
#else
    emu::wait_as(emu::FINISHED);
    __builtin_trap();
#endif
}

static EMU_HELPER void __syncthreads(unsigned line = __builtin_LINE()) {
    emu::watched_barrier(line);
}
static EMU_HELPER void __threadfence() {
}  // threads run one after another: memory is always up to date
static EMU_HELPER void __threadfence_block() {}
