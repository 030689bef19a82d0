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

namespace ax::rt::control {

class Gate {
public:
  Gate(ZmqContext &context, std::string key)
      : socket(context, ZMQ_REP), key(std::move(key)) {}
  /// Has to come before anybody can connect.
  llvm::Error open() { return socket.bind("inproc://zeromq.zap.01"); }
  /// Answers all that is asked now.
  void answer();

  ZmqSocket socket;

private:
  const std::string key;
};

} // namespace ax::rt::control

#endif // AX_RUNTIME_CONTROL_GATE_H
