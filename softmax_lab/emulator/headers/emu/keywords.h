// The last header before a kernel: from here on `float` counts, and control flow has places where
// lanes meet again.
// (The library's names become macros here because the C library owns the functions.)
#pragma once
#include "kernels.h"

#define expf emu_expf
#define exp2f emu_exp2f
#define expm1f emu_expm1f
#define logf emu_logf
#define log2f emu_log2f
#define log1pf emu_log1pf
#define fmaf emu_fma
#define __fmaf_rn emu_fma
#define fmaxf emu_fmaxf
#define fminf emu_fminf
#define fabsf emu_fabsf
#define __expf emu_fast_expf
#define __logf emu_fast_logf
#define printf ::emu::print

#define INFINITY (__int_as_float(0x7f800000))
#define NAN (__int_as_float(0x7fffffff))
#define FLT_MAX (__int_as_float(0x7f7fffff))
#define FLT_MIN (__int_as_float(0x00800000))
#define FLT_EPSILON (__int_as_float(0x34000000))

#if EMU_COUNT
#define float ::emu::Float
#define double ::emu::Double
// translate.py defines EMU_FILE, the number of a source file, at its start.
#define EMU_PLACE (EMU_FILE << 20 | __LINE__)
#define if(...) if (::emu::Join emu_join_(EMU_PLACE); emu_join_.took((__VA_ARGS__)))
#define for(...) if (::emu::LoopTag{}) ; else for (__VA_ARGS__) if (::emu::LoopTag{}) ; else
#define switch(...) if (::emu::LoopTag{}) ; else switch (__VA_ARGS__)
#define while(...) while (::emu::watched_loop() && (__VA_ARGS__))
#endif
