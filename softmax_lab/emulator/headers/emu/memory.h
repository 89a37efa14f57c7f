// Loads and stores: whose memory an address is, and what one instruction of a warp costs there.
// Every access of a watched type outside the fibers' stacks comes through emu_watched_access. It is
// counted, checked and, in lockstep, made to wait for the other lanes at the same instruction;
// together they are one request.
#pragma once
#include "sanitizer.h"
#include "trace.h"

namespace emu {
constexpr uintptr_t NULL_BYTES =
    sizeof(void*) == 8 ? 1 << 20 : 1 << 10;  // an address below was a null pointer plus an offset

struct Access {
    uint8_t size, write, type, atomic;
};

static void grow_bit(uint64_t* bits, size_t i, uint64_t& counter) {
    uint64_t bit = uint64_t(1) << (i & 63);
    if (!(bits[i / 64] & bit)) bits[i / 64] |= bit, counter++;
}

static Buffer* find_buffer(uintptr_t a, uint32_t size) {
    Buffer* b = g.buffers.data + g.last_buffer;  // most often the one before
    if (a >= b->low && a + size <= b->high) return b;
    for (uint32_t i = 0; i < g.buffers.count; i++) {
        b = g.buffers.data + i;
        if (a < b->low || a + size > b->high) continue;
        g.last_buffer = i;
        return b;
    }
    return nullptr;
}
// How far outside the nearest buffer: negative before its start, else bytes after its end.
static Details outside_by(uintptr_t a, Access w) {
    Details d = {0, NO_BUFFER, w.size, w.write};
    auto magnitude = [](int64_t v) { return v < 0 ? -v : v; };
    for (uint32_t i = 0; i < g.buffers.count; i++) {
        Buffer& b = g.buffers.data[i];
        int64_t off =
            a + w.size > b.high && a >= b.low ? int64_t(a - b.high) : int64_t(a) - int64_t(b.low);
        if (a + w.size > b.high && a < b.high && a >= b.low) off = 0;
        if (d.buffer == NO_BUFFER || magnitude(off) < magnitude(d.offset))
            d.buffer = i, d.offset = off;
    }
    return d;
}

static bool global_access(uintptr_t a, Access w, uint32_t site, Thread& t) {
    Buffer* b = find_buffer(a, w.size);
    if (!b) {
        if (a < NULL_BYTES)
            report(NULL_POINTER, site, {int64_t(a), NO_BUFFER, w.size, w.write});
        else
            report(OUT_OF_BOUNDS, site, outside_by(a, w));
        return false;
    }
    Counters& c = g.counters;
    uint32_t id = uint32_t(b - g.buffers.data);
    Details d = {int64_t(a - b->low), id, w.size, w.write};
    if (a % w.size) {
        report(MISALIGNED, site, d);
        return false;
    }
    if (w.write) {
        c.store_bytes += w.size;
        grow_bit(b->stored, (a - b->low) / SECTOR, c.unique_store_sectors);
        if (b->written)
            for (size_t i = (a - b->low) / EMU_GRANULE, end = (a - b->low + w.size) / EMU_GRANULE;
                 i < end; i++)
                b->written[i / 64] |= uint64_t(1) << (i & 63);
    }
    if (!w.write || w.atomic) {
        c.load_bytes += w.size;
        grow_bit(b->loaded, (a - b->low) / SECTOR, c.unique_load_sectors);
        size_t i = (a - b->low) / EMU_GRANULE;
        if (b->written && !w.atomic && !(b->written[i / 64] >> (i & 63) & 1))
            report(GLOBAL_UNINITIALISED, site, d);
    }
    if (g.sanitize) check(b->shadow, b->low, a, site, false, w.atomic, d);
    t.space = GLOBAL, t.buffer = id, t.offset = d.offset;
    return true;
}

// `variable` is its number in emu_objects, or DYNAMIC; `offset` counts from its start.
static bool shared_access(uintptr_t a, Access w, uint32_t site, Thread& t, uint32_t variable,
                          int64_t offset) {
    Details d = {offset, VARIABLES + variable, w.size, w.write};
    if (a % w.size) {
        report(MISALIGNED, site, d);
        return false;
    }
    bool dynamic = variable == DYNAMIC;
    if (g.sanitize)
        check(dynamic ? g.dynamic_shadow : g.statics_shadow, dynamic ? g.dynamic : g.statics_low, a,
              site, true, w.atomic, d);
    t.space = SHARED, t.buffer = d.buffer, t.offset = offset;
    return true;
}

// Finds whose an address is and checks the access; false (and a fault) where it must not happen.
// A constant is free: the hardware has a cache of its own for them.
static bool attribute(uintptr_t a, Access w, uint32_t site, Thread& t) {
    if (a - g.dynamic < g.dynamic_bytes) {
        size_t offset = (a - g.dynamic) % g.dynamic_each;
        if (offset + w.size <= g.argument_shared)
            return shared_access(a, w, site, t, DYNAMIC, int64_t(offset));
        report(SHARED_OUT_OF_BOUNDS, site,
               {int64_t(offset - g.argument_shared), VARIABLES + DYNAMIC, w.size, w.write});
        return false;
    }
    if (a - g.copies < g.copies_bytes) {  // another block's static shared memory, in its copy
        t.space = SHARED, t.buffer = VARIABLES + DYNAMIC, t.offset = int64_t(a - g.copies);
        return true;
    }
    const Object* near = nullptr;
    for (const Object* o = emu_objects; o->size; o++) {
        if (a + w.size <= o->address || a >= o->address + o->size + 4096) continue;
        if (a >= o->address && a + w.size <= o->address + o->size) {
            uint32_t number = uint32_t(o - emu_objects);
            if (o->kind == SHARED)
                return shared_access(a, w, site, t, number, int64_t(a - o->address));
            if (o->kind == GLOBAL) return global_access(a, w, site, t);
            t.space = CONSTANT;
            if (!w.write) return true;
            report(WRITE_TO_CONSTANT, site,
                   {int64_t(a - o->address), VARIABLES + number, w.size, 1});
            return false;
        }
        if (o->kind == SHARED && (!near || o->address > near->address)) near = o;
    }
    if (!near) return global_access(a, w, site, t);
    uint32_t number = VARIABLES + uint32_t(near - emu_objects);
    report(SHARED_OUT_OF_BOUNDS, site,
           {int64_t(a - near->address - near->size), number, w.size, w.write});
    return false;
}

static SiteTotals& totals(uint32_t site, uint32_t space, bool write, uint32_t size) {
    SiteTotals& s = g.sites.data[site * 2 + (space == SHARED)];
    if (!s.lanes) s.site = site, s.space = space, s.write = write, s.size = size;
    return s;
}

// False: do not perform the access.
EMU_WATCHED bool watched_access(const void* p, Access w,
                                const void* value) __asm__("emu_watched_access");
EMU_WATCHED bool watched_access(const void* p, Access w, const void* value) {
    if (!g.current) return true;  // a static initialiser
    uint32_t site = emu_site;
    Thread& t = *g.current;
    if (!attribute((uintptr_t)p, w, site, t)) return false;
    if (t.space == CONSTANT) return true;
    if (!g.lockstep) {
        totals(site, t.space, w.write, w.size).lanes++;
        return true;
    }
    t.site = site, t.address = (uintptr_t)p, t.in = value;
    t.size = w.size, t.write = w.write, t.type = w.type, t.atomic = w.atomic;
    wait_as(AT_MEMORY);
    return true;
}

// ---- one request: lanes of a warp that wait at the same instruction
struct Request {
    Thread* lanes[32];
    uint32_t count, mask;
};

static void sort(uintptr_t* v,
                 uint32_t n) {  // by insertion: at most 128 values, nearly always in order already
    for (uint32_t i = 1; i < n; i++) {
        uintptr_t x = v[i];
        uint32_t k = i;
        for (; k && v[k - 1] > x; k--) v[k] = v[k - 1];
        v[k] = x;
    }
}
static void global_request(const Request& r, SiteTotals& s, Step& step) {
    Counters& c = g.counters;
    uint32_t size = r.lanes[0]->size, unit = smaller(size, 4u), n = 0, useful = 0, sectors = 0;
    uintptr_t units[128];
    for (uint32_t i = 0; i < r.count; i++)
        for (uint32_t o = 0; o < size; o += unit) units[n++] = r.lanes[i]->address + o;
    sort(units, n);
    for (uint32_t i = 0; i < n; i++) {
        useful += i && units[i] == units[i - 1] ? 0 : unit;
        sectors += !i || units[i] / SECTOR != units[i - 1] / SECTOR;
    }
    bool write = r.lanes[0]->write;
    (write ? c.store_requests : c.load_requests)++;
    (write ? c.store_sectors : c.load_sectors) += sectors;
    (write ? c.store_useful_bytes : c.load_useful_bytes) += useful;
    s.sectors += sectors, s.useful_bytes += useful;
    step.sectors = sectors;
}
// 32 banks of 4 bytes. A warp's wide accesses go 128 bytes at a time: 8 lanes of 16 bytes, 16 of 8.
static void shared_request(const Request& r, SiteTotals& s, Step& step) {
    uint32_t size = larger(r.lanes[0]->size, uint8_t(4)), together = smaller(32u, 128 / size),
             wavefronts = 0, i = 0;
    while (i < r.count) {
        uintptr_t words[32];
        uint32_t n = 0, phase = r.lanes[i]->linear % WARP / together, worst = 0;
        uint8_t bank[32] = {};
        for (; i < r.count && r.lanes[i]->linear % WARP / together == phase; i++)
            for (uint32_t o = 0; o < size; o += 4) words[n++] = (r.lanes[i]->address + o) / 4;
        sort(words, n);
        for (uint32_t k = 0; k < n; k++)
            if (!k || words[k] != words[k - 1])
                worst = larger(worst, uint32_t(++bank[words[k] % 32]));
        wavefronts += worst;
    }
    g.counters.shared_requests++;
    g.counters.shared_wavefronts += wavefronts;
    s.wavefronts += wavefronts, step.wavefronts = wavefronts;
}

// The lanes of a warp at the lowest waiting instruction, which is the one that is behind; false:
// none waits at memory.
static bool step_memory(Thread* first, uint32_t warp) {
    uint32_t waiting = g.warp->waiting(AT_MEMORY), site = ~0u;
    if (!waiting) return false;
    EMU_EACH_LANE (i, waiting) site = smaller(site, first[i].site);
    Request r;
    r.count = r.mask = 0;
    EMU_EACH_LANE (i, waiting)
        if (first[i].site == site) r.lanes[r.count++] = &first[i], r.mask |= 1u << i;
    g.warp->release(r.mask, AT_MEMORY);
    Thread& lead = *r.lanes[0];
    if (lead.space == LOCAL) return true;  // a point in a loop: lanes meet, nothing is counted
    SiteTotals& s = totals(site, lead.space, lead.write, lead.size);
    Step step;
    step.sectors = step.wavefronts = 0;
    if (lead.space == GLOBAL)
        global_request(r, s, step);
    else
        shared_request(r, s, step);
    s.requests++, s.lanes += r.count;
    if (traced(warp)) trace_memory(r.lanes, r.count, r.mask, step);
    return true;
}
}  // namespace emu
