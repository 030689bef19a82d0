//===- ChannelState.cpp - Between the channel's thread and others ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ChannelState.h"

#include "ax/Runtime/Control.h"
#include "ax/Support/Error.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace ax::rt::control {

using Lock = std::lock_guard<std::mutex>;

/// How long `abort` waits for process 0 to say what was first.
static constexpr std::chrono::seconds abortWait(2);
/// What one process tells of another one is a line.
static constexpr size_t longestProgress = 1000;

ChannelState::ChannelState(int32_t process)
    : process(process), wakeFile(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

ChannelState::~ChannelState() { close(wakeFile); }

void ChannelState::wake() {
  uint64_t one = 1;
  // It is full only where the thread is to wake already.
  [[maybe_unused]] ssize_t written = write(wakeFile, &one, sizeof(one));
}

void ChannelState::clearWake() {
  uint64_t count;
  [[maybe_unused]] ssize_t got = read(wakeFile, &count, sizeof(count));
}

llvm::Error ChannelState::waitUntilJoined() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return joined || ending; });
  if (!ending)
    return llvm::Error::success();
  if (ending->isAlone)
    return llvm::make_error<AloneError>(
        ErrorDescription{ending->code, ending->reason});
  return makeError(ending->code, ending->reason);
}

llvm::Expected<std::vector<std::string>>
ChannelState::exchange(ExchangeKind kind, llvm::StringRef what,
                       std::string value) {
  if (value.size() + what.size() + 64 > largestMessage)
    return makeErrorf(ExitCode::RunFailed,
                      "{0}: {1} bytes are too many for the control channel, "
                      "which carries {2} at most",
                      what, value.size(), largestMessage);
  std::unique_lock<std::mutex> lock(mutex);
  uint64_t number = ++numBegun;
  lastName = what.str();
  request = Message{MessageKind::Exchange, number, static_cast<uint64_t>(kind),
                    lastName, std::move(value)};
  wake();
  changed.wait(lock, [&] { return ending || numDone == number; });
  if (numDone == number)
    return std::move(result);
  return makeErrorf(ending->code, "{0}: {1}", what, ending->reason);
}

void ChannelState::abort(const std::string &reason) {
  std::unique_lock<std::mutex> lock(mutex);
  if (!ending && !abortRequest)
    abortRequest = reason;
  wake();
  changed.wait_for(lock, abortWait, [&] { return ending.has_value(); });
  lock.unlock();
  // Process 0 does not answer; it counts that the job ends.
  end({reason, ExitCode::RunFailed, process});
}

std::string ChannelState::getReason() const {
  Lock lock(mutex);
  return ending ? ending->reason : "";
}

bool ChannelState::isFirstLost() const {
  Lock lock(mutex);
  return ending && ending->isFirstLost;
}

void ChannelState::setAbortHandler(
    std::function<void(const std::string &)> given) {
  std::lock_guard<std::recursive_mutex> calls(handlerMutex);
  handler = std::move(given);
  std::unique_lock<std::mutex> lock(mutex);
  callHandler(lock);
}

/// `handlerMutex` is held.
void ChannelState::callHandler(std::unique_lock<std::mutex> &lock) {
  if (!handler || !ending || ending->askedBy == process)
    return;
  std::string reason = ending->reason;
  lock.unlock();
  // Once, whoever sets another one.
  std::function<void(const std::string &)> told = std::move(handler);
  handler = nullptr;
  told(reason);
}

void ChannelState::setProgress(std::function<std::string()> given) {
  std::lock_guard<std::recursive_mutex> calls(progressMutex);
  progress = std::move(given);
}

void ChannelState::leave() {
  Lock lock(mutex);
  leaving = true;
  wake();
}

void ChannelState::markJoined() {
  Lock lock(mutex);
  joined = true;
  changed.notify_all();
}

std::optional<Message> ChannelState::takeExchange() {
  Lock lock(mutex);
  std::optional<Message> taken = std::move(request);
  request.reset();
  return taken;
}

std::optional<std::string> ChannelState::takeAbort() {
  Lock lock(mutex);
  std::optional<std::string> taken = std::move(abortRequest);
  abortRequest.reset();
  return taken;
}

bool ChannelState::wantsToLeave() const {
  Lock lock(mutex);
  return leaving;
}

void ChannelState::giveResult(uint64_t number,
                              std::vector<std::string> values) {
  Lock lock(mutex);
  if (number != numBegun)
    return;
  numDone = number;
  result = std::move(values);
  changed.notify_all();
}

void ChannelState::end(Ending given) {
  std::lock_guard<std::recursive_mutex> calls(handlerMutex);
  std::unique_lock<std::mutex> lock(mutex);
  if (ending)
    return;
  ending = std::move(given);
  changed.notify_all();
  callHandler(lock);
}

bool ChannelState::hasEnded() const {
  Lock lock(mutex);
  return ending.has_value();
}

Message ChannelState::describeProgress() {
  Message message;
  {
    std::lock_guard<std::recursive_mutex> calls(progressMutex);
    if (progress)
      message.text = shorten(progress(), longestProgress);
  }
  Lock lock(mutex);
  message.number = numBegun;
  message.name = shorten(lastName);
  return message;
}

} // namespace ax::rt::control
