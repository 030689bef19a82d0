//===- SanitizerOptions.cpp - Defaults of builds with sanitizers ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's shared library is not instrumented: what our code poisons in its
// allocators, it hands out without unpoisoning. And memory that is not there is
// an error of ours, not of the sanitizer's. oneDNN's library is not either:
// equal primitives of several ranks share a description from its cache, and how
// that is guarded cannot be seen. Nor can how MLIR publishes the locks of its
// context, which threads make when they first need them; ours are no such
// locks. ZeroMQ's threads hand messages to each other in ways that cannot be
// seen either; what our threads tell each other does not go through it. libpgm,
// which ZeroMQ opens and closes with the first and the last context of a
// process, counts them in a way that cannot be seen. cuBLASLt, where there is
// no card, keeps what it had begun to make.
//
//===----------------------------------------------------------------------===//
extern "C" const char *__asan_default_options();
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0:allocator_may_return_null=1";
}

extern "C" const char *__lsan_default_suppressions();
extern "C" const char *__lsan_default_suppressions() {
  return "leak:libcublasLt.so\n";
}

extern "C" const char *__tsan_default_options();
extern "C" const char *__tsan_default_options() {
  return "allocator_may_return_null=1";
}

extern "C" const char *__tsan_default_suppressions();
extern "C" const char *__tsan_default_suppressions() {
  return "called_from_lib:libdnnl.so\n"
         "called_from_lib:libzmq.so\n"
         "called_from_lib:libpgm-5.3.so\n"
         "race:ax::rt::dnnlFormatKey\n"
         "race_top:pthread_rwlock_rdlock\n"
         "race_top:pthread_rwlock_wrlock\n";
}
