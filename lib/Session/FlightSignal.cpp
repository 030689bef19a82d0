//===- FlightSignal.cpp - Flight records on SIGUSR2 -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FlightSignal.h"

#include "ax/Support/Threads.h"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

using namespace ax;

/// Where the handler writes a byte.
static std::atomic<int> signalled{-1};
constexpr char toWrite = 'w', toLeave = 'l';

static void onSignal(int) {
  int error = errno;
  // A pipe that is full has enough to be read.
  [[maybe_unused]] ssize_t written = ::write(signalled.load(), &toWrite, 1);
  errno = error;
}

llvm::Expected<std::unique_ptr<FlightSignal>>
FlightSignal::create(std::shared_ptr<rt::FlightRecorder> recorder,
                     std::function<void(const std::string &)> warn) {
  std::array<int, 2> pipe;
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0)
    return makeErrnoError("cannot wait for SIGUSR2", errno);
  ::fcntl(pipe[1], F_SETFL, O_NONBLOCK);
  std::unique_ptr<FlightSignal> made(new FlightSignal(pipe));
  auto thread = startThread("SIGUSR2", [&signal = *made, recorder, warn] {
    signal.serve(*recorder, warn);
  });
  if (!thread)
    return thread.takeError();
  made->thread = std::move(*thread);
  signalled.store(pipe[1]);
  struct sigaction action = {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR2, &action, &made->before);
  return made;
}

FlightSignal::~FlightSignal() {
  if (thread.joinable()) {
    ::sigaction(SIGUSR2, &before, nullptr);
    // Nothing else is lost where it is full: the thread reads on.
    while (::write(pipe[1], &toLeave, 1) != 1)
      std::this_thread::yield();
    thread.join();
  }
  ::close(pipe[0]);
  ::close(pipe[1]);
}

void FlightSignal::serve(
    rt::FlightRecorder &recorder,
    const std::function<void(const std::string &)> &warn) const {
  char call = 0;
  while (true) {
    ssize_t count = ::read(pipe[0], &call, 1);
    if (count < 0 && errno == EINTR)
      continue;
    if (count != 1 || call == toLeave)
      return;
    if (llvm::Error error = recorder.writeNow("SIGUSR2"))
      if (std::string text = describeError(std::move(error)).message; warn)
        warn("no flight record: " + text);
  }
}
