// The threads of a block are fibers: each has a stack of its own, and a switch saves a few
// registers. Three functions are all the rest knows: fiber_make, fiber_resume (from the scheduler)
// and fiber_yield (to it, or straight to the next fiber, which saves half of the switches). A
// hand-written switch costs 3-8 ns, where ucontext costs 160-210 ns (it calls the kernel for the
// signal mask).
#pragma once
#include "platform.h"

extern "C" void emu_fiber_main(void) __asm__(
    "emu_fiber_main");  // what every fiber runs; scheduler.h has it

namespace emu {
struct Fiber {
    void* saved;  // where its registers lie while it does not run
};

#if defined(__wasm__)
// WebAssembly's locals cannot be swapped, so Binaryen's asyncify saves and restores them
// (fiber_wasm.s holds the two calls). A fiber's control block lies at the low end of its stack and
// is followed by asyncify's buffer.
struct Control {
    uint32_t buffer, buffer_end, stack, started;
};
constexpr uint32_t ASYNCIFY_BYTES = 2048;
constexpr uint32_t CANARIES = 16, CANARY = 0x5afe57ac;
extern "C" void emu_fiber_enter(void* control) __asm__("emu_fiber_enter");
extern "C" void emu_fiber_leave(void* control) __asm__("emu_fiber_leave");

static EMU_HELPER void fiber_make(Fiber& f, uintptr_t low, size_t bytes) {
    Control* c = (Control*)low;
    uint32_t first = uint32_t(low + sizeof(Control)), end = first + ASYNCIFY_BYTES;
    *c = {first, end, uint32_t(low + bytes) & ~15u, 0};
    for (uint32_t i = 0; i < CANARIES; i++) ((uint32_t*)end)[i] = CANARY;
    f.saved = c;
}
// Nothing stops a stack that grows into asyncify's buffer (that buffer's own end is checked by
// asyncify): so look, at each switch, at how deep it stands and whether the words before the buffer
// are whole.
static EMU_HELPER void fiber_resume(Fiber& f) {
    emu_fiber_enter(f.saved);
    const Control& c = *(const Control*)f.saved;
    const uint32_t* words = (const uint32_t*)c.buffer_end;
    bool whole = c.stack >= c.buffer_end + CANARIES * 4;
    for (uint32_t i = 0; i < CANARIES; i++) whole &= words[i] == CANARY;
    if (whole) return;
    trouble = STACK_OVERFLOW;
    __builtin_trap();
}
static EMU_HELPER void fiber_yield(Fiber& f, Fiber*) { emu_fiber_leave(f.saved); }
constexpr bool STRAIGHT_ON = false;  // asyncify can only unwind to the scheduler

#else
extern "C" void emu_switch(void** save, void* to) __asm__("emu_switch");
static void* outside;  // the scheduler's own registers while a fiber runs

#if defined(__x86_64__)
// Callee-saved registers only. The last two instructions stand for `ret`, whose predictor would
// always miss.
__asm__(
    ".text\n.p2align 4\nemu_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\n"
    "popq %rcx\njmpq *%rcx\n");
constexpr int FRAME_BYTES = 64, ENTRY_WORD = 6;
#elif defined(__aarch64__)
__asm__(
    ".text\n.p2align 4\nemu_switch:\n"
    "sub sp,sp,#160\nstp x19,x20,[sp]\nstp x21,x22,[sp,#16]\nstp x23,x24,[sp,#32]\nstp "
    "x25,x26,[sp,#48]\n"
    "stp x27,x28,[sp,#64]\nstp x29,x30,[sp,#80]\nstp d8,d9,[sp,#96]\nstp d10,d11,[sp,#112]\n"
    "stp d12,d13,[sp,#128]\nstp d14,d15,[sp,#144]\nmov x9,sp\nstr x9,[x0]\nmov sp,x1\n"
    "ldp x19,x20,[sp]\nldp x21,x22,[sp,#16]\nldp x23,x24,[sp,#32]\nldp x25,x26,[sp,#48]\n"
    "ldp x27,x28,[sp,#64]\nldp x29,x30,[sp,#80]\nldp d8,d9,[sp,#96]\nldp d10,d11,[sp,#112]\n"
    "ldp d12,d13,[sp,#128]\nldp d14,d15,[sp,#144]\nadd sp,sp,#160\nbr x30\n");
constexpr int FRAME_BYTES = 160, ENTRY_WORD = 11;
#else
#error \
    "the emulator has no context switch for this processor: x86-64, aarch64, wasm32 are there"
#endif

static EMU_HELPER void fiber_make(Fiber& f, uintptr_t low, size_t bytes) {
    void** frame = (void**)(((low + bytes) & ~uintptr_t(15)) - FRAME_BYTES);
    frame[ENTRY_WORD] = (void*)emu_fiber_main;
    f.saved = frame;
}
static EMU_HELPER void fiber_resume(Fiber& f) { emu_switch(&outside, f.saved); }
static EMU_HELPER void fiber_yield(Fiber& f, Fiber* next) {
    emu_switch(&f.saved, next ? next->saved : outside);
}
constexpr bool STRAIGHT_ON = true;
#endif
}  // namespace emu
