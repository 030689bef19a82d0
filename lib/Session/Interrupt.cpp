//===- Interrupt.cpp - Ctrl-C while training ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Interrupt.h"

#include <atomic>
#include <unistd.h>

using namespace ax;

/// The number of the first signal; 0: there was none.
static std::atomic<int> first{0};
static std::atomic<bool> isTold{false};
// SIGUSR1 is what launchers hand on to ranks.
constexpr int handledSignals[] = {SIGINT, SIGTERM, SIGUSR1};

static void note(int number) {
  int none = 0;
  if (!first.compare_exchange_strong(none, number)) {
    // Blocked while we are here, and so taken when we return.
    std::signal(number, SIG_DFL);
    raise(number);
    return;
  }
  if (!isTold.load())
    return;
  constexpr char text[] =
      "\naxrun: stopping after this step; once more stops at once\n";
  // There is nobody to tell when it fails.
  [[maybe_unused]] ssize_t written = ::write(2, text, sizeof(text) - 1);
}

Interrupt::Interrupt(bool isTold) {
  ::isTold.store(isTold);
  first.store(0);
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  for (int number : handledSignals)
    sigaddset(&action.sa_mask, number);
  for (size_t i = 0; i < before.size(); ++i)
    sigaction(handledSignals[i], &action, &before[i]);
}

Interrupt::~Interrupt() {
  for (size_t i = 0; i < before.size(); ++i)
    sigaction(handledSignals[i], &before[i], nullptr);
}

int Interrupt::getSignal() { return first.load(); }
