// One launch, in the layout that every program around the kernels reads and writes: process.py has
// the other side of it for a process, live.js for a page.
#pragma once
#include "kernels.h"

extern const emu::Kernel emu_kernels[];
extern const uint64_t emu_kernel_count;

namespace emu {
constexpr uint64_t INPUT_MAGIC = 0x31756d652d787866, OUTPUT_MAGIC = 0x316e75722d787866;

struct ArgumentRecord {
    uint64_t kind;         // 0 a value, 1 an array in the file, 2 an array of address space only
    uint64_t bytes;        // [B]
    uint64_t offset;       // of the array in the file, or the value itself
    uint64_t element;      // [B]
    uint64_t initialised;  // 0: an output, whose unwritten elements are counted
};
struct LaunchRecord {
    uint64_t magic, memory, seconds, kernel, grid[3], block[3], shared, group, lockstep, sanitize;
    int64_t trace_block;
    uint64_t trace_warp, trace_first, trace_steps, trace_order, first_block, last_block, arguments;
    ArgumentRecord argument[32];
};
struct BufferTotals {
    uint64_t unwritten;
};
enum Status : uint64_t { DONE, BAD_CONFIGURATION, ABORTED };

static void watch(Buffer& b, uintptr_t low, uint64_t bytes, uint64_t element, bool initialised) {
    b.low = low, b.high = low + bytes, b.element = (uint32_t)element;
    if (!COUNTING) return;
    size_t words = bytes / SECTOR / 64 + 1;
    b.loaded = (uint64_t*)reserve(words * 8), b.stored = (uint64_t*)reserve(words * 8);
    if (!initialised) b.written = (uint64_t*)reserve((bytes / EMU_GRANULE / 64 + 1) * 8);
    if (g.sanitize) b.shadow = (Shadow*)reserve((bytes / EMU_GRANULE + 1) * sizeof(Shadow));
}

static void map_arguments(const LaunchRecord& in, File file) {
    constexpr size_t GAP = 64 << 10;  // never mapped: a plain run's overrun ends in a message
    size_t total = GAP;
    for (uint64_t i = 0; i < in.arguments; i++)
        if (in.argument[i].kind) total += whole_pages(in.argument[i].bytes + 1) + GAP;
    char* at = (char*)reserve(total);
    guard(at, total);
    at += GAP;
    g.buffers.reserve(64);
    for (uint64_t i = 0; i < in.arguments; i++) {
        const ArgumentRecord& a = in.argument[i];
        if (!a.kind) {
            g.arguments[i] = (void*)&a.offset;
            continue;
        }
        map_at(at, a.bytes, a.kind == 1 ? file : NO_FILE, a.offset);
        Buffer& b = g.buffers.add();
        watch(b, (uintptr_t)at, a.bytes, a.element, a.initialised);
        g.arguments[i] = (void*)&b.low;
        at += whole_pages(a.bytes + 1) + GAP;
    }
    for (const Object* o = emu_objects; o->size; o++)
        if (o->kind == GLOBAL && !g.buffers.full())
            watch(g.buffers.add(), o->address, o->size, 4, true);
}

static uint64_t unwritten_elements(const Buffer& b) {
    if (!b.written || !b.element) return 0;
    uint64_t n = 0, each = larger(b.element / EMU_GRANULE, 1u),
             granules = (b.high - b.low) / EMU_GRANULE;
    for (uint64_t e = 0; e + each <= granules; e += each) {
        bool all = true;
        for (uint64_t i = e; i < e + each; i++) all &= b.written[i / 64] >> (i & 63) & 1;
        n += !all;
    }
    return n;
}

// The tables of a run in the order in which they are handed back.
struct Part {
    uint64_t count, each;
    const void* data;
};
constexpr uint32_t PARTS = 8;
static void results(Part (&parts)[PARTS]) {
    List<SiteTotals> used = {g.sites.data, 0, 0};  // in place: a site moves only towards the front
    for (uint64_t i = 0; i < emu_site_count * 2ull; i++)
        if (g.sites.data[i].lanes) g.sites.data[used.count++] = g.sites.data[i];
    static List<BufferTotals> buffers;
    buffers.reserve(g.buffers.count + 1);
    for (auto& b : g.buffers) buffers.add() = {unwritten_elements(b)};
    const Part all[PARTS] = {{sizeof(Counters) / 8, 8, &g.counters},
                             {buffers.count, sizeof(BufferTotals), buffers.data},
                             {used.count, sizeof(SiteTotals), used.data},
                             {g.branches.count, sizeof(SiteTotals), g.branches.data},
                             {g.faults.count, sizeof(FaultRecord), g.faults.data},
                             {g.steps.count, sizeof(Step), g.steps.data},
                             {g.order.count, 1, g.order.data},
                             {1, sizeof g.traced, &g.traced}};
    __builtin_memcpy(parts, all, sizeof all);
}

static Status run(const LaunchRecord& in) {
    auto size = [](const uint64_t* v) {
        return dim3((unsigned)v[0], (unsigned)v[1], (unsigned)v[2]);
    };
    if (!prepare(size(in.grid), size(in.block), in.shared, (uint32_t)in.group))
        return BAD_CONFIGURATION;
    g.first_serial = 1;
    uint64_t blocks = in.grid[0] * in.grid[1] * in.grid[2], last = smaller(in.last_block, blocks);
    uint64_t start = nanoseconds();
    for (uint64_t b = in.first_block; b < last && !g.abort; b += in.group)
        run_group(b, (uint32_t)smaller(in.group, last - b));
    g.counters.nanoseconds = nanoseconds() - start;
    return g.abort ? ABORTED : DONE;
}

// Everything between reading a launch and writing its results; the caller has checked it.
static Status perform(const LaunchRecord& in, File file) {
    const Kernel& k = emu_kernels[in.kernel];
    g.lockstep = COUNTING && in.lockstep, g.sanitize = COUNTING && in.sanitize;
    g.trace_block = in.trace_block, g.trace_warp = (uint32_t)in.trace_warp;
    g.trace_first = in.trace_first;
    g.call = k.call, g.kernel = k.function;
    static void* arguments[33];
    g.arguments = arguments;
    g.steps.reserve(in.trace_steps), g.order.reserve(in.trace_order), g.faults.reserve(256), g.branches.reserve(4096);
    g.sites.reserve(size_t(emu_site_count) * 2 + 2);
    map_arguments(in, file);
    return run(in);
}
}  // namespace emu
