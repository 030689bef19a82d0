//===- SanitizerOptions.cpp - Defaults of builds with sanitizers ----------===//
//
// LLVM's shared library is not instrumented: what our code poisons in its
// allocators, it hands out without unpoisoning. And memory that is not there is
// an error of ours, not of the sanitizer's.
//
//===----------------------------------------------------------------------===//
extern "C" const char *__asan_default_options();
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0:allocator_may_return_null=1";
}

extern "C" const char *__tsan_default_options();
extern "C" const char *__tsan_default_options() {
  return "allocator_may_return_null=1";
}
