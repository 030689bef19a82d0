//===- ChannelState.h - Between the channel's thread and others -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CONTROL_CHANNELSTATE_H
#define AX_RUNTIME_CONTROL_CHANNELSTATE_H

#include "Message.h"

#include "ax/Runtime/World.h"
#include "ax/Support/ExitCode.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace ax::rt::control {

/// Why the job ends.
struct Ending {
  std::string reason;
  ExitCode code = ExitCode::RunFailed;
  /// The process that asked for it, if one did.
  int32_t askedBy = -1;
  /// Process 0 is lost.
  bool isFirstLost = false;
  /// This process was never connected with it: nobody else tells people.
  bool isAlone = false;
};

/// What the channel's thread and those that use the channel tell each other.
/// Safe from any thread, but for what is said to be the channel's.
class ChannelState {
public:
  explicit ChannelState(int32_t process);
  ChannelState(const ChannelState &) = delete;
  ~ChannelState();

  // Of those that use the channel.

  llvm::Error waitUntilJoined();
  llvm::Expected<std::vector<std::string>>
  exchange(ExchangeKind kind, llvm::StringRef what, std::string value);
  void abort(const std::string &reason);
  std::string getReason() const;
  bool isFirstLost() const;
  void setAbortHandler(std::function<void(const std::string &)> handler);
  void setProgress(std::function<std::string()> progress);
  void leave();

  // Of the channel's thread.

  /// A descriptor that can be read when one of the others has said something.
  int getWakeFile() const { return wakeFile; }
  void clearWake();
  void markJoined();
  /// Returns an exchange that was asked for, once.
  std::optional<Message> takeExchange();
  /// Returns why a user of this process wants to end the job, once.
  std::optional<std::string> takeAbort();
  bool wantsToLeave() const;
  void giveResult(uint64_t number, std::vector<std::string> values);
  /// Everything that waits fails. The first call decides.
  void end(Ending ending);
  bool hasEnded() const;
  /// A Heartbeat of this process.
  Message describeProgress();

private:
  void wake();
  void callHandler(std::unique_lock<std::mutex> &lock);

  const int32_t process;
  const int wakeFile;
  mutable std::mutex mutex;
  std::condition_variable changed;
  bool joined = false, leaving = false;
  std::optional<Ending> ending;
  std::optional<std::string> abortRequest;
  /// Numbers of exchanges: begun by users, and the last whose result is there.
  uint64_t numBegun = 0, numDone = 0;
  std::string lastName;
  std::optional<Message> request;
  std::vector<std::string> result;
  /// Called with no lock but these, which who takes them away waits for.
  std::recursive_mutex handlerMutex, progressMutex;
  std::function<void(const std::string &)> handler;
  std::function<std::string()> progress;
};

} // namespace ax::rt::control

#endif // AX_RUNTIME_CONTROL_CHANNELSTATE_H
