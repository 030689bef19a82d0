//===- Spoke.h - The control channel at other processes ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CONTROL_SPOKE_H
#define AX_RUNTIME_CONTROL_SPOKE_H

#include "ChannelState.h"
#include "Peer.h"
#include "Zmq.h"

#include "ax/Runtime/Control.h"

namespace ax::rt::control {

/// What process 0 says reaches this one here. It notices by itself when that
/// one is missing; of others, process 0 tells.
class Spoke {
public:
  Spoke(const Zmq &zmq, const ControlOptions &options, ChannelState &state,
        const ControlAddress &address)
      : options(options), state(state), address(address), context(zmq),
        pulse(options.timeout) {}

  /// Returns when this process leaves.
  void run();

private:
  struct Connection {
    Connection(ZmqContext &context, const std::string &monitorName)
        : dealer(context, ZMQ_DEALER), monitor(context, ZMQ_PAIR),
          monitorName(monitorName) {}
    llvm::Error open(const ControlAddress &address, const std::string &host);
    ZmqSocket dealer, monitor;
    const std::string monitorName;
  };

  bool connect();
  bool isFirstGone();
  bool waitForHandshake(Connection &made, const std::string &host,
                        Clock::time_point last);
  std::string describeNoAnswer() const;
  void sleep(Connection &at, long milliseconds);
  void pause(std::chrono::milliseconds time);
  void wait();
  void readMessages();
  void handle(Message message);
  void takeResult(Message result);
  void takeRequests();
  void refuseExchange();
  void end(std::string reason, bool isFirstLost = false);
  void endWithoutFirst(llvm::StringRef what, Clock::time_point now);
  void sayGoodbye();
  void send(const Message &message);

  const ControlOptions &options;
  ChannelState &state;
  const ControlAddress address;
  ZmqContext context;
  std::unique_ptr<Connection> connection;
  Pulse pulse;
  Peer first;
  /// Since when none of its addresses has let this one connect, and all have
  /// answered.
  std::optional<Clock::time_point> refusedSince;
  /// The last address at which somebody had another key, if any.
  std::string turnedAwayAt;
  /// Process 0 has left, or is lost.
  bool isAlone = false;
  std::optional<Message> waiting;
};

} // namespace ax::rt::control

#endif // AX_RUNTIME_CONTROL_SPOKE_H
