//===- Control.h - What processes of a job tell each other ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The world of a job of several processes: one TCP connection of each process
// to process 0, apart from the one that carries tensors, so that a peer which
// is gone, cut off or stopped is noticed whatever the other does. Messages and
// connections are ZeroMQ's. Its shared library is opened when a job has several
// processes, and only then: who runs alone needs none, and its static one would
// bring the libraries of encryption and multicast that it was built with.
//
// Nothing is encrypted. The key keeps out who is not of the job; it does not
// hide anything from who can read the network.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_CONTROL_H
#define AX_RUNTIME_CONTROL_H

#include "ax/Runtime/World.h"
#include "ax/Support/Error.h"

#include <chrono>
#include <optional>
#include <utility>

namespace ax::rt {

/// Where process 0 is found, and what it takes to be let in.
struct ControlAddress {
  /// Addresses in digits, the likeliest first.
  std::vector<std::string> hosts = {};
  uint16_t port = 0;
  /// 128 bits, random where process 0 makes them, as hexadecimal digits.
  std::string key = {};

  std::string encode() const;
  /// An Internal error of what `encode` did not make.
  static llvm::Expected<ControlAddress> decode(llvm::StringRef bytes);
};

struct ControlOptions {
  ProcessPlace place;
  /// HOST:PORT where process 0 listens; either may be missing. Without a host,
  /// all its addresses are tried by the others; without a port, or with 0, the
  /// system chooses one. An IPv6 address is in brackets.
  std::string address = {};
  /// A process that is silent for so long is lost.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
  /// How long process 0 waits for the others, and they for it.
  std::chrono::milliseconds joinTimeout = std::chrono::seconds(600);
  /// Names and values in which all processes have to be equal.
  std::vector<std::pair<std::string, std::string>> agreed = {};
  /// Returns on all processes what process 0 gave: the launcher's broadcast.
  /// Called once in each, unless process 0 cannot have it all: it always calls.
  std::function<llvm::Expected<std::string>(std::string)> broadcast = {};
  /// In place of the broadcast: what all know without it. Hosts may be names
  /// here; process 0 takes the port of `address`, and the key.
  std::optional<ControlAddress> meeting = {};
};

/// Of a process that process 0 knows nothing of, or that has lost it before all
/// had joined: nobody else tells people.
class AloneError : public llvm::ErrorInfo<AloneError, AxError> {
public:
  static char ID;
  explicit AloneError(const ErrorDescription &why);
};

/// Returns when all processes have joined and agree in `agreed`. An error is
/// the same on all of them that have joined: Usage where they differ, where
/// process 0 cannot listen, or there is no ZeroMQ; RunFailed where one is
/// missing. Errors of who has not, and of who alone lacks ZeroMQ, are
/// AloneErrors.
///
/// The world's destructor says goodbye, so that nobody takes who is done for
/// lost; it takes two seconds at most. `abort` returns when it is decided why
/// the job ends, after two seconds at most.
llvm::Expected<std::unique_ptr<World>> joinControl(ControlOptions options);

} // namespace ax::rt

#endif // AX_RUNTIME_CONTROL_H
