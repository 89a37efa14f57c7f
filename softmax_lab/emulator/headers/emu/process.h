// The program around the kernels: it maps a launch from one file, runs it, and writes what was seen
// to another. Both files are little-endian 64-bit words and then raw arrays; process.py has the
// other side of each.
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
    uint64_t trace_warp, trace_steps, first_block, last_block, arguments;
    ArgumentRecord argument[32];
};
struct BufferTotals {
    uint64_t unwritten;
};
enum Status : uint64_t { DONE, BAD_CONFIGURATION, ABORTED };

static void bad_input(const char* why) {
    dprintf(2, "the launch file does not fit this program: %s\n", why);
    _exit(BAD_INPUT);
}

static void crashed(int signal, siginfo_t* info, void*) {
    const char* what = signal == SIGSEGV || signal == SIGBUS ? "invalid memory access"
                       : signal == SIGFPE                    ? "integer division by zero"
                                                             : "illegal instruction";
    uintptr_t a = (uintptr_t)info->si_addr, in_stack = (a - g.stacks) % (STACK_BYTES + PAGE);
    if (a - g.stacks < g.stacks_bytes && in_stack < PAGE)
        what = "stack overflow: a thread has 64 KiB for its local arrays and calls";
    if (g.current)
        dprintf(2, "%s in block (%u,%u,%u), thread (%u,%u,%u), address %p\n", what, blockIdx.x,
                blockIdx.y, blockIdx.z, g.current->index.x, g.current->index.y, g.current->index.z,
                info->si_addr);
    else
        dprintf(2, "%s outside of any thread, address %p\n", what, info->si_addr);
    _exit(CRASHED);
}

static void watch(Buffer& b, uintptr_t low, uint64_t bytes, uint64_t element, bool initialised) {
    b.low = low, b.high = low + bytes, b.element = (uint32_t)element;
    if (!COUNTING) return;
    size_t words = bytes / SECTOR / 64 + 1;
    b.loaded = (uint64_t*)reserve(words * 8), b.stored = (uint64_t*)reserve(words * 8);
    if (!initialised) b.written = (uint64_t*)reserve((bytes / EMU_GRANULE / 64 + 1) * 8);
    if (g.sanitize) b.shadow = (Shadow*)reserve((bytes / EMU_GRANULE + 1) * sizeof(Shadow));
}

static void map_arguments(const LaunchRecord& in, int file) {
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
        map_at(at, a.bytes, a.kind == 1 ? file : -1, a.offset);
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

static void write_results(const char* path, Status status, uint64_t unwatched) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0) bad_input("no place for the results");
    List<SiteTotals> used = {g.sites.data, 0, 0};  // in place: a site moves only towards the front
    for (uint64_t i = 0; i < emu_site_count * 2ull; i++)
        if (g.sites.data[i].lanes) g.sites.data[used.count++] = g.sites.data[i];
    List<BufferTotals> buffers;
    buffers.reserve(g.buffers.count + 1);
    for (auto& b : g.buffers) buffers.add().unwritten = unwritten_elements(b);
    struct Part {
        uint64_t count, each;
        const void* data;
    } parts[] = {{sizeof(Counters) / 8, 8, &g.counters},
                 {buffers.count, sizeof(BufferTotals), buffers.data},
                 {used.count, sizeof(SiteTotals), used.data},
                 {g.branches.count, sizeof(SiteTotals), g.branches.data},
                 {g.faults.count, sizeof(FaultRecord), g.faults.data},
                 {g.steps.count, sizeof(Step), g.steps.data}};
    uint64_t head[3 + 2 * 6] = {OUTPUT_MAGIC, status, unwatched}, *h = head + 3;
    for (auto& p : parts) *h++ = p.count, *h++ = p.each;
    write_all(file, head, sizeof head);
    for (auto& p : parts) write_all(file, p.data, p.count * p.each);
    close(file);
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

static int main_program(const char* input, const char* output) {
    int file = open(input, O_RDWR);
    struct stat about;
    if (file < 0 || fstat(file, &about) || (size_t)about.st_size < sizeof(LaunchRecord))
        bad_input("no launch");
    LaunchRecord& in = *(LaunchRecord*)mmap(nullptr, sizeof(LaunchRecord), PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE, file, 0);
    if (&in == MAP_FAILED || in.magic != INPUT_MAGIC || in.arguments > 32)
        bad_input("another version");
    if (in.kernel >= emu_kernel_count) bad_input("no such kernel");
    const Kernel& k = emu_kernels[in.kernel];
    if (k.arguments != in.arguments) {
        dprintf(2, "the kernel takes %u arguments, the launch has %u\n", k.arguments,
                (unsigned)in.arguments);
        _exit(BAD_INPUT);
    }
    limit(in.memory, in.seconds);
    on_crash(crashed);
    g.lockstep = COUNTING && in.lockstep, g.sanitize = COUNTING && in.sanitize;
    g.trace_block = in.trace_block, g.trace_warp = (uint32_t)in.trace_warp;
    g.call = k.call, g.kernel = k.function;
    static void* arguments[33];
    g.arguments = arguments;
    g.steps.reserve(in.trace_steps), g.faults.reserve(256), g.branches.reserve(4096);
    g.sites.reserve(size_t(emu_site_count) * 2 + 2);
    map_arguments(in, file);
    Status status = run(in);
    fflush(stdout);
    write_results(output, status, k.unwatched);
    return 0;
}
}  // namespace emu
