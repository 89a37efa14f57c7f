// All that depends on the operating system: address space, files, limits, the clock and crashes.
#pragma once
#include "base.h"

#if defined(__wasm__)
namespace emu {
constexpr size_t PAGE = 256;
// Why a run ended in a trap; the page asks (page.h).
enum Trouble : uint32_t { NO_TROUBLE, NO_MEMORY, STACK_OVERFLOW };
static Trouble trouble;

static EMU_HELPER size_t whole_pages(size_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

// One linear memory that only grows. All a run reserves lies in one arena at its end, which the
// next run wipes and uses again.
constexpr size_t WASM_PAGE = 65536;
static uintptr_t arena_low, arena_at, arena_high;

static void* reserve(size_t bytes) {
    size_t wanted = whole_pages(bytes + 1);
    if (wanted < bytes || arena_high - arena_at < wanted) {
        size_t more = wanted / WASM_PAGE + 1, old = __builtin_wasm_memory_grow(0, more);
        if (old == size_t(-1)) {
            trouble = NO_MEMORY;
            __builtin_trap();
        }
        if (old * WASM_PAGE != arena_high) arena_at = old * WASM_PAGE;
        if (!arena_low) arena_low = arena_at;
        arena_high = (old + more) * WASM_PAGE;
    }
    void* p = (void*)arena_at;
    arena_at += wanted;
    return p;
}
static void wipe() {
    __builtin_memset((void*)arena_low, 0, arena_at - arena_low);
    arena_at = arena_low;
}
static void guard(void*, size_t) {}

typedef const char* File;  // a launch as the page wrote it into memory
constexpr File NO_FILE = nullptr;
static void map_at(void* where, size_t bytes, File file, uint64_t offset) {
    if (file) __builtin_memcpy(where, file + offset, bytes);
}
static uint64_t nanoseconds() { return 0; }  // the page has a clock of its own
}  // namespace emu

#else
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#undef isnan
#undef isinf

namespace emu {
enum Exit : int { OUT_OF_MEMORY = 71, BAD_INPUT = 72, CRASHED = 73 };
constexpr size_t PAGE = 4096;

static EMU_HELPER size_t whole_pages(size_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

// Address space whose pages cost memory only once they are written; zeroed.
static void* reserve(size_t bytes) {
    void* p = mmap(nullptr, whole_pages(bytes + 1), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED) return p;
    dprintf(2, "out of memory: %zu bytes more do not fit\n", bytes);
    _exit(OUT_OF_MEMORY);
}
static void guard(void* p, size_t bytes) { mprotect(p, bytes, PROT_NONE); }

typedef int File;
constexpr File NO_FILE = -1;
// Maps part of a file (or, without one, fresh memory) at an address inside a reservation.
static void* map_at(void* where, size_t bytes, File file, uint64_t offset) {
    int flags = file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANON | MAP_NORESERVE;
    void* p = mmap(where, whole_pages(bytes + 1), PROT_READ | PROT_WRITE, flags | MAP_FIXED, file,
                   file >= 0 ? (off_t)offset : 0);
    if (p != MAP_FAILED) return p;
    dprintf(2, "out of memory: a buffer of %zu bytes does not fit\n", bytes);
    _exit(OUT_OF_MEMORY);
}
static void limit(uint64_t bytes, uint64_t seconds) {
    rlimit memory = {(rlim_t)bytes, (rlim_t)bytes}, time = {(rlim_t)seconds, (rlim_t)seconds + 1};
    rlimit core = {0, 0};
    setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CPU, &time);
    setrlimit(RLIMIT_CORE, &core);
}
static uint64_t nanoseconds() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return uint64_t(t.tv_sec) * 1000000000u + (uint64_t)t.tv_nsec;
}
// A fiber may have run out of its stack, so the handler needs one of its own.
static void on_crash(void (*handler)(int, siginfo_t*, void*)) {
    static char stack[32 << 10];
    stack_t alternate = {};
    alternate.ss_sp = stack, alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = handler, action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    for (int s : signals) sigaction(s, &action, nullptr);
}
static void write_all(int file, const void* data, size_t bytes) {
    const char* p = (const char*)data;
    while (bytes) {
        ssize_t n = write(file, p, bytes);
        if (n <= 0) _exit(BAD_INPUT);
        p += n, bytes -= (size_t)n;
    }
}
}  // namespace emu
#endif
