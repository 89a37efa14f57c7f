// After the kernels: the keywords are themselves again and the program gets its entry.
#undef float
#undef double
#undef if
#undef for
#undef switch
#undef while
#undef printf
#if defined(__wasm__)
#include "page.h"
#else
#include "process.h"
int main(int argc, char** argv) {
    if (argc != 3) return emu::BAD_INPUT;
    return emu::main_program(argv[1], argv[2]);
}
#endif
