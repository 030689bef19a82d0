//===- FaultGuard.cpp - Touching memory that is not there -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FaultGuard.h"

#include <csetjmp>
#include <csignal>
#include <pthread.h>

namespace simgpu {

namespace {

/// The work that is under way: handlers of signals are given nothing else.
sigjmp_buf wayBack;
pthread_t worker;
uintptr_t faultAddress;
struct sigaction previousSegv, previousBus;

void handleFault(int signal, siginfo_t *info, void *) {
  if (!pthread_equal(pthread_self(), worker)) {
    // It happens again when this returns.
    sigaction(signal, signal == SIGBUS ? &previousBus : &previousSegv, nullptr);
    return;
  }
  faultAddress = reinterpret_cast<uintptr_t>(info->si_addr);
  siglongjmp(wayBack, 1);
}

/// Handlers, while they are needed: those that come later would otherwise never
/// let us have a fault of ours.
class Handlers {
public:
  Handlers() {
    worker = pthread_self();
    struct sigaction action = {};
    action.sa_sigaction = handleFault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &previousSegv);
    sigaction(SIGBUS, &action, &previousBus);
  }
  ~Handlers() {
    sigaction(SIGSEGV, &previousSegv, nullptr);
    sigaction(SIGBUS, &previousBus, nullptr);
  }
};

} // namespace

std::optional<uintptr_t> catchFault(llvm::function_ref<void()> work) {
  Handlers handlers;
  if (sigsetjmp(wayBack, 1))
    return faultAddress;
  work();
  return std::nullopt;
}

} // namespace simgpu
