//===- Interrupt.h - Ctrl-C while training ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SESSION_INTERRUPT_H
#define AX_LIB_SESSION_INTERRUPT_H

#include <array>
#include <csignal>

namespace ax {

/// While there is one, a first SIGINT, SIGTERM or SIGUSR1 is only noted, and a
/// second one, of any kind, ends the process.
class Interrupt {
public:
  /// `isTold`: whether standard error says so.
  explicit Interrupt(bool isTold);
  ~Interrupt();
  Interrupt(const Interrupt &) = delete;
  Interrupt &operator=(const Interrupt &) = delete;

  /// The number of the first signal; 0: there was none.
  static int getSignal();
  static bool isRequested() { return getSignal() != 0; }

private:
  std::array<struct sigaction, 3> before;
};

} // namespace ax

#endif // AX_LIB_SESSION_INTERRUPT_H
