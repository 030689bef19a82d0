//===- FiberStack.cpp - Where a thread of a block is ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FiberStack.h"

#ifdef AX_ASAN_FIBERS
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef AX_TSAN_FIBERS
#include <sanitizer/tsan_interface.h>
#endif

using namespace ax;

#ifdef AX_PORTABLE_FIBERS
#ifdef AX_ASAN_FIBERS
/// The one whose turn it was before, until the next one knows its stack.
static FiberStack *previous;
#endif
#else
// Saves what a function must leave as it was, and goes on where `to` did so. A
// context of the C library would have the mask of signals, too, for which the
// system is called at each turn.
extern "C" void axSwitchFiber(void **from, void *to);
asm(R"(
  .text
  .p2align 4
  .hidden axSwitchFiber
  .globl axSwitchFiber
  .type axSwitchFiber, @function
axSwitchFiber:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size axSwitchFiber, .-axSwitchFiber
)");
#endif

FiberStack::FiberStack() {
#ifdef AX_TSAN_FIBERS
  ofSanitizer = __tsan_get_current_fiber();
#endif
}

FiberStack::~FiberStack() {
#ifdef AX_TSAN_FIBERS
  if (stack)
    __tsan_destroy_fiber(ofSanitizer);
#endif
}

void FiberStack::setStack(char *begin, size_t bytes) {
  stack = begin;
  size = bytes;
#ifdef AX_TSAN_FIBERS
  ofSanitizer = __tsan_create_fiber(0);
#endif
}

void FiberStack::prepare(void (*entry)()) {
#ifdef AX_ASAN_FIBERS
  // Nobody returned from what was on it.
  fakeStack = nullptr;
  __asan_unpoison_memory_region(stack, size);
#endif
#ifdef AX_PORTABLE_FIBERS
  getcontext(&context);
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = size;
  context.uc_link = nullptr;
  makecontext(&context, entry, 0);
#else
  // As if `entry` had been called from nowhere, and then switched.
  constexpr size_t registers = 6;
  auto **place = reinterpret_cast<void **>(stack + size);
  *--place = nullptr;
  *--place = reinterpret_cast<void *>(entry);
  top = place - registers;
#endif
}

void FiberStack::switchTo(FiberStack &to, [[maybe_unused]] bool isLast) {
#ifdef AX_ASAN_FIBERS
  previous = this;
  __sanitizer_start_switch_fiber(isLast ? nullptr : &fakeStack, to.stack,
                                 to.size);
#endif
#ifdef AX_TSAN_FIBERS
  __tsan_switch_to_fiber(to.ofSanitizer, 0);
#endif
#ifdef AX_PORTABLE_FIBERS
  swapcontext(&context, &to.context);
#else
  axSwitchFiber(&top, to.top);
#endif
  arrive();
}

void FiberStack::arrive() {
#ifdef AX_ASAN_FIBERS
  const void *bottom;
  size_t bytes;
  __sanitizer_finish_switch_fiber(fakeStack, &bottom, &bytes);
  if (!previous->stack) {
    previous->stack = const_cast<char *>(static_cast<const char *>(bottom));
    previous->size = bytes;
  }
#endif
}
