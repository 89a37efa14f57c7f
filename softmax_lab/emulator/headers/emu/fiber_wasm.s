# Fibers for WebAssembly, where locals cannot be swapped: Binaryen's asyncify unwinds a fiber into its
# buffer and rewinds it. A control block (fibers.h: Control) holds asyncify's {next, end}, then our
# saved stack pointer, then "started".
# emu_fiber_enter(control) starts a fiber or goes on with it; it returns when that leaves or ends.
# emu_fiber_leave(control) goes back to whoever entered; it runs again at the end of the rewind.
	.text
	.globaltype __stack_pointer, i32
	.functype emu_fiber_main () -> ()
	.functype asyncify_start_unwind (i32) -> ()
	.import_module asyncify_start_unwind, asyncify
	.import_name asyncify_start_unwind, start_unwind
	.functype asyncify_stop_unwind () -> ()
	.import_module asyncify_stop_unwind, asyncify
	.import_name asyncify_stop_unwind, stop_unwind
	.functype asyncify_start_rewind (i32) -> ()
	.import_module asyncify_start_rewind, asyncify
	.import_name asyncify_start_rewind, start_rewind
	.functype asyncify_stop_rewind () -> ()
	.import_module asyncify_stop_rewind, asyncify
	.import_name asyncify_stop_rewind, stop_rewind

	.section .text.emu_fiber_enter,"",@
	.globl emu_fiber_enter
	.type emu_fiber_enter,@function
emu_fiber_enter:
	.functype emu_fiber_enter (i32) -> ()
	.local i32
	global.get __stack_pointer
	local.set 1
	local.get 0
	i32.load 8
	global.set __stack_pointer
	local.get 0
	i32.load 12
	if
	i32.const 0
	i32.const 1
	i32.store emu_rewinding
	local.get 0
	call asyncify_start_rewind
	end_if
	call emu_fiber_main
	call asyncify_stop_unwind
	local.get 1
	global.set __stack_pointer
	end_function

	.section .text.emu_fiber_leave,"",@
	.globl emu_fiber_leave
	.type emu_fiber_leave,@function
emu_fiber_leave:
	.functype emu_fiber_leave (i32) -> ()
	i32.const 0
	i32.load emu_rewinding
	if
	call asyncify_stop_rewind
	i32.const 0
	i32.const 0
	i32.store emu_rewinding
	else
	local.get 0
	global.get __stack_pointer
	i32.store 8
	local.get 0
	i32.const 1
	i32.store 12
	local.get 0
	call asyncify_start_unwind
	end_if
	end_function

	.section .bss.emu_rewinding,"",@
	.hidden emu_rewinding
	.type emu_rewinding,@object
	.p2align 2
emu_rewinding:
	.int32 0
	.size emu_rewinding, 4
