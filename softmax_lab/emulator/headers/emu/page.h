// The program around the kernels in a page: what process.h is for a process. The page writes a
// launch where `emu_page_room` says, laid out like the file that process.py writes, calls
// `emu_page_run` and reads the answer out of memory (live.js).
#pragma once
#include "launch.h"

namespace emu {
struct PageResults {
    uint64_t status, unwatched, parts[PARTS][3], buffers, outputs[32];
};
struct PageCrash {
    uint32_t trouble, in_thread, block[3], thread[3];
};
static PageResults page_results;
static PageCrash page_crash;
static char* page_launch;
}  // namespace emu

extern "C" {
#define EMU_PAGE(name) __attribute__((export_name(#name), used)) name
void* EMU_PAGE(emu_page_room)(size_t bytes) {
    emu::wipe();
    emu::g = {};
    emu_site = 0;
    return emu::page_launch = (char*)emu::reserve(bytes);
}
void* EMU_PAGE(emu_page_run)() {
    using namespace emu;
    const LaunchRecord& in = *(const LaunchRecord*)page_launch;
    PageResults& out = page_results;
    out.status = perform(in, page_launch);
    out.unwatched = emu_kernels[in.kernel].unwatched;
    Part parts[PARTS];
    results(parts);
    for (uint32_t i = 0; i < PARTS; i++)
        out.parts[i][0] = parts[i].count, out.parts[i][1] = parts[i].each,
        out.parts[i][2] = (uintptr_t)parts[i].data;
    out.buffers = 0;
    for (auto& b : g.buffers)
        if (out.buffers < 32) out.outputs[out.buffers++] = b.low;
    return &out;
}
// After a trap: why, and in which thread.
void* EMU_PAGE(emu_page_crash)() {
    using namespace emu;
    uint3 t = g.current ? g.current->index : uint3{};
    page_crash = {trouble, g.current != nullptr, {blockIdx.x, blockIdx.y, blockIdx.z},
                  {t.x, t.y, t.z}};
    return &page_crash;
}
}
