// What the emulator knows while a launch runs: counters, buffers, blocks, warps and threads.
#pragma once
#include "fibers.h"
#include "platform.h"
#include "vocabulary.h"

namespace emu {
struct Counters {
#define COUNTER(name) uint64_t name;
#include "counters.def"
#undef COUNTER
};

// A growing list in reserved address space: it never moves, and memory is used only where something
// was written.
template <class T>
struct List {
    T* data;
    size_t count, capacity;
    void reserve(size_t n) {
        data = (T*)emu::reserve(n * sizeof(T));
        count = 0, capacity = n;
    }
    bool full() const { return count == capacity; }
    T& add() { return data[count++]; }
    T* begin() { return data; }
    T* end() { return data + count; }
};

enum Space : uint32_t { LOCAL, GLOBAL, SHARED, CONSTANT };
enum Type : uint32_t {
    BITS,
    FLOAT16,
    BFLOAT16,
    FLOAT32,
    FLOAT64,
    INT32
};  // how a trace shows a value

// Who touched a granule of memory last, for the race check.
struct Shadow {
    uint32_t serial, write_epoch,
        read_epoch;  // the block's run number; block barriers passed by then
    uint16_t write_warp_epoch, read_warp_epoch;  // warp barriers passed by then
    uint16_t writer, reader, other_reader;       // threads of the block, or NOBODY
    bool initialised, atomic;
};

struct Buffer {  // global memory: an argument, or a __device__ variable
    uintptr_t low, high;
    uint64_t *loaded, *stored;  // a bit a sector
    uint64_t* written;          // a bit a granule; null where the contents were given
    Shadow* shadow;
    uint32_t element;
};

struct Object {  // a variable of the kernel file; sites.py writes the list into the assembly text
    uintptr_t address;
    uintptr_t size;
    uintptr_t kind;  // Space
};

enum State : uint8_t { READY, AT_MEMORY, AT_WARP, AT_JOIN, AT_BLOCK, AT_GROUP, FINISHED };
enum WarpOp : uint8_t { SHUFFLE, WARP_BARRIER, VOTE };

struct Thread {
    Fiber fiber;
    WarpOp op;
    uint8_t size, write, type, atomic;
    int16_t branch;  // at a join: which way this lane went, -1 where the join is no branch
    uint32_t linear, site, depth;  // number in its block; where it waits; joins it stands in
    uint32_t space, buffer, mask, argument;
    uint3 index;
    int source;
    uintptr_t address;
    int64_t offset;  // of `address` in its buffer
    const void* in;
    void* out;
};

struct Warp {
    uint32_t in[FINISHED + 1];  // which lanes are in each state
    uint32_t to_run;            // the ready lanes that still wait for their turn
    uint16_t epoch;
    uint32_t waiting(State s) const { return in[s]; }
    void release(uint32_t lanes, State from) { in[from] &= ~lanes, in[READY] |= lanes; }
};
// The lanes of a mask, lowest first.
#define EMU_EACH_LANE(i, lanes)                                                          \
    for (uint32_t left_ = lanes, i; left_ && (i = (uint32_t)__builtin_ctz(left_), true); \
         left_ &= left_ - 1)

struct Block {
    uint3 index;
    uint64_t number;
    Thread* threads;
    Warp* warps;
    uint32_t serial, epoch, rank;
    char *dynamic,
        *statics;  // its dynamic shared memory; its copy of the static one while another block runs
    uintptr_t stacks;
};

struct SiteTotals {  // one instruction of the kernel
    uint64_t site, space, write, size, requests, lanes, sectors, useful_bytes, wavefronts, taken;
};

struct Step {  // one instruction of the traced warp
    uint32_t op, space, type, size, mask, site, buffer, sectors, wavefronts, argument;
    int64_t address[32];
    uint8_t before[32][16], after[32][16];
};

struct FaultRecord {
    uint64_t kind, site, count, size, write, buffer, other;
    int64_t offset;
    uint64_t block[3], thread[3];
};

struct Globals {
    Counters counters;
    Thread* current;  // null while the scheduler runs
    Block* block;
    Warp* warp;  // of the running thread
    Thread* warp_threads;
    uint32_t threads, warps, group, serial, first_serial, group_serial;
    bool lockstep, sanitize, abort;
    int64_t trace_block;
    uint32_t trace_warp;
    uint64_t trace_first, traced;  // the first step that is kept; steps that there were
    void (*call)(void*, void**);
    void* kernel;
    void** arguments;
    uintptr_t stacks;
    size_t stacks_bytes;
    uintptr_t dynamic;
    size_t dynamic_bytes, dynamic_each, argument_shared,
        statics_bytes;  // all blocks'; one block's with its gap; what was asked for
    uintptr_t statics_low, statics_high, copies, copies_bytes;
    uint32_t last_buffer;
    Shadow *dynamic_shadow, *statics_shadow;
    List<Buffer> buffers;
    List<Block> blocks;
    List<SiteTotals> sites, branches;
    List<Step> steps;
    List<uint8_t> order;  // the StepOp of each step, kept or not
    List<FaultRecord> faults;
};
static Globals g;

constexpr size_t STACK_BYTES = sizeof(void*) == 8 ? 64 << 10 : 8 << 10;
constexpr size_t DYNAMIC_CAPACITY = 232448;  // [B] 227 KiB, what a block of sm_90 may ask for

// The next lane that the scheduler found ready becomes the running thread; null: there is none
// left.
static EMU_HELPER Thread* next_lane() {
    uint32_t left = g.warp->to_run;
    if (!left) return nullptr;
    g.warp->to_run = left & (left - 1);
    Thread* t = g.warp_threads + __builtin_ctz(left);
    g.current = t;
    threadIdx = t->index;
    return t;
}
static EMU_HELPER void wait_as(State s) {
    Thread& t = *g.current;
    g.warp->in[s] |= 1u << t.linear % WARP;
    Thread* next = STRAIGHT_ON ? next_lane() : nullptr;
    fiber_yield(t.fiber, next ? &next->fiber : nullptr);
}
#if defined(__wasm__)
// page.py makes the kernels' variables weak, so what the optimiser knows the size of is a local. Then
// nothing is left to watch, and it lies in a register: a page's module is half as large.
#define EMU_IS_LOCAL(p) (__builtin_object_size(p, 0) != size_t(-1))
#else
#define EMU_IS_LOCAL(p) false
#endif
static EMU_HELPER bool on_stack(const void* p) {
    return EMU_IS_LOCAL(p) || uintptr_t(p) - g.stacks < g.stacks_bytes;
}
static EMU_HELPER uint32_t lane() { return g.current->linear % WARP; }
template <class T>
EMU_HELPER void tally(T& counter, uint64_t n = 1) {
    if (COUNTING) counter += n;
}
}  // namespace emu

extern "C" const emu::Object emu_objects[];  // ends with size 0
extern "C" const uint32_t emu_site_count;
