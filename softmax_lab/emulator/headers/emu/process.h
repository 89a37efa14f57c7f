// The program around the kernels: it maps a launch from one file, runs it, and writes what was seen
// to another. Both files are little-endian 64-bit words and then raw arrays; process.py has the
// other side of each.
#pragma once
#include "launch.h"

namespace emu {
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

static void write_results(const char* path, Status status, uint64_t unwatched) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0) bad_input("no place for the results");
    Part parts[PARTS];
    results(parts);
    uint64_t head[3 + 2 * PARTS] = {OUTPUT_MAGIC, status, unwatched}, *h = head + 3;
    for (auto& p : parts) *h++ = p.count, *h++ = p.each;
    write_all(file, head, sizeof head);
    for (auto& p : parts) write_all(file, p.data, p.count * p.each);
    close(file);
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
    Status status = perform(in, file);
    fflush(stdout);
    write_results(output, status, k.unwatched);
    return 0;
}
}  // namespace emu
