//===- FlightSignal.h - Flight records on SIGUSR2 ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SESSION_FLIGHTSIGNAL_H
#define AX_LIB_SESSION_FLIGHTSIGNAL_H

#include "ax/Runtime/FlightRecorder.h"

#include <array>
#include <csignal>
#include <thread>

namespace ax {

/// While there is one, of which a process has one at a time, SIGUSR2 has the
/// records written, by a thread beside those that work.
class FlightSignal {
public:
  /// `warn` is told when they cannot be. A RunFailed error where there can be
  /// no thread.
  static llvm::Expected<std::unique_ptr<FlightSignal>>
  create(std::shared_ptr<rt::FlightRecorder> recorder,
         std::function<void(const std::string &)> warn);
  ~FlightSignal();

private:
  explicit FlightSignal(std::array<int, 2> pipe) : pipe(pipe) {}
  void serve(rt::FlightRecorder &recorder,
             const std::function<void(const std::string &)> &warn) const;

  std::array<int, 2> pipe;
  std::thread thread;
  struct sigaction before = {};
};

} // namespace ax

#endif // AX_LIB_SESSION_FLIGHTSIGNAL_H
