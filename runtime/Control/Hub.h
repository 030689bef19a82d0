//===- Hub.h - The control channel at process 0 -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CONTROL_HUB_H
#define AX_RUNTIME_CONTROL_HUB_H

#include "ChannelState.h"
#include "Gate.h"
#include "Peer.h"

#include "ax/Runtime/Control.h"
#include "ax/Runtime/Listener.h"

#include <list>
#include <map>
#include <set>

namespace ax::rt::control {

/// All that processes agree on comes together here. Every process is a member,
/// this one too, which has no connection.
///
/// A turn of its thread takes what has come meanwhile, and no look at every
/// member: of thousands, each one's message would cost that.
class Hub {
public:
  Hub(const Zmq &zmq, const ControlOptions &options, ChannelState &state,
      const Listener &listener);

  /// Before `run`, of the same thread or one before it.
  llvm::Error open();
  /// Returns when this process leaves.
  void run();

private:
  enum class Stage { Away, Here, Left, Lost };
  struct Member {
    Peer peer;
    Stage stage = Stage::Away;
    /// Of its messages, and of its connection's end.
    std::string route;
    int connection = -1;
    std::vector<std::string> agreed;
    std::optional<Message> exchange;
    /// Where it is in `present`.
    std::list<Member *>::iterator turn;
  };

  void wait();
  void readMessages();
  void readEvents();
  void refuseMore(int error);
  void handle(const std::string &route, int connection, Message message);
  void welcome(const std::string &route, int connection, Message hello);
  void hear(Member &member);
  void drop(Member &member, Stage stage);
  void checkJoined(Clock::time_point now);
  std::string describeAway() const;
  std::string describeDifferences() const;
  void takeRequests();
  void come(Member &member, Message exchange);
  void checkGone();
  void finishExchange();
  void checkSilence(Clock::time_point now);
  void beat();
  void decide(std::string reason, ExitCode code = ExitCode::RunFailed,
              int32_t askedBy = -1);
  Message describeEnding() const;
  void sayGoodbye();

  Member *findMember(const std::string &route);
  void sendTo(const Member &member, const Message &message);
  void sendToAll(const Message &message);

  const ControlOptions &options;
  ChannelState &state;
  const Listener listener;
  ZmqContext context;
  Gate gate;
  ZmqSocket router, monitor;
  std::vector<Member> members;
  std::map<std::string, Member *> routes;
  std::map<int, Member *> connections;
  std::set<int> openConnections;
  /// Those whose connections have not been looked at.
  std::vector<Member *> newcomers;
  size_t numAway;
  /// Processes that have said who they are, those that are refused, too.
  size_t numCallers = 0;
  /// Those that are here, but this one: who was heard last comes last.
  std::list<Member *> present;
  std::vector<const Member *> gone;
  /// How many have come to the exchange, and the first of them.
  size_t numCome = 0;
  const Member *firstCome = nullptr;
  Pulse pulse;
  Clock::time_point start;
  bool joined = false;
  std::optional<Ending> ending;
};

} // namespace ax::rt::control

#endif // AX_RUNTIME_CONTROL_HUB_H
