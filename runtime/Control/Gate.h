//===- Gate.h - Who is let in -----------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ZeroMQ asks, before a connection carries anything, whether its password is
// right (mechanism PLAIN, protocol ZAP 1.0). So what strangers say never gets
// to where messages are read, and their connections are closed.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_CONTROL_GATE_H
#define AX_RUNTIME_CONTROL_GATE_H

#include "Zmq.h"

#include "llvm/ADT/StringRef.h"

namespace ax::rt::control {

/// What to do where processes that have their keys from the environment do not
/// let each other in.
inline constexpr llvm::StringLiteral adviceOnKeys =
    "AXRUN_KEY in the environment, or else the job's number there, has to be "
    "the same for all processes";

class Gate {
public:
  Gate(ZmqContext &context, std::string key)
      : socket(context, ZMQ_REP), key(std::move(key)) {}
  /// Has to come before anybody can connect.
  llvm::Error open() { return socket.bind("inproc://zeromq.zap.01"); }
  /// Answers all that is asked now.
  void answer();
  /// Whether somebody has shown another key.
  bool hasRefused() const { return refused; }

  ZmqSocket socket;

private:
  const std::string key;
  bool refused = false;
};

} // namespace ax::rt::control

#endif // AX_RUNTIME_CONTROL_GATE_H
