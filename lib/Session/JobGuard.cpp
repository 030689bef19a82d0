//===- JobGuard.cpp - What ends a process that does not -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "JobGuard.h"

#include "ax/Support/ExitCode.h"

#include <array>
#include <chrono>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

using namespace ax;
using std::chrono::milliseconds;

namespace {

/// How long a process may take to notice that its job has ended.
constexpr milliseconds patience(2000);
/// Launchers kill a second after SIGTERM.
constexpr milliseconds untilKilled(700);
constexpr milliseconds shortWhile(10);

/// What the guard's thread reads.
enum Call : char { Terminated = 't', Aborted = 'a', Leave = 'l' };
std::array<int, 2> calls = {-1, -1};
pid_t parent = 0;

void callGuard(Call call) {
  // A pipe that is full has enough to be read.
  [[maybe_unused]] ssize_t written = ::write(calls[1], &call, 1);
}

void onTerminate(int) { callGuard(Terminated); }

/// A thread of the parent may have ended, and not the parent.
void onParentsEnd(int) {
  if (::getppid() != parent)
    ::_exit(static_cast<int>(ExitCode::Terminated));
}

void endWithParent() {
  parent = ::getppid();
  struct sigaction action = {};
  action.sa_handler = onParentsEnd;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGRTMIN + 1, &action, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGRTMIN + 1);
}

} // namespace

Job::Guard::Guard(rt::World &world,
                  std::function<void(const std::string &, int)> end)
    : world(world), end(std::move(end)) {
  endWithParent();
  // There is one of a process.
  if (calls[0] < 0 && ::pipe2(calls.data(), O_CLOEXEC) != 0)
    return;
  thread = std::thread([this] { watch(); });
  struct sigaction action = {};
  action.sa_handler = onTerminate;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, &before);
  world.setAbortHandler([](const std::string &) { callGuard(Aborted); });
}

Job::Guard::~Guard() {
  if (!thread.joinable())
    return;
  world.setAbortHandler(nullptr);
  ::sigaction(SIGTERM, &before, nullptr);
  callGuard(Leave);
  thread.join();
}

/// Whether the process begins to end by itself within `time`.
bool Job::Guard::endsWithin(milliseconds time) const {
  for (milliseconds waited(0); waited < time; waited += shortWhile) {
    if (isEnding.load())
      return true;
    std::this_thread::sleep_for(shortWhile);
  }
  return false;
}

void Job::Guard::watch() {
  for (char call; ::read(calls[0], &call, 1) == 1;) {
    if (call == Leave)
      return;
    if (call == Aborted) {
      if (!endsWithin(patience))
        end(world.getAbortReason(), static_cast<int>(ExitCode::RunFailed));
      continue;
    }
    isTerminated.store(true);
    // Why is known by then, if it ever is.
    auto last = std::chrono::steady_clock::now() + untilKilled;
    while (std::chrono::steady_clock::now() < last &&
           world.getAbortReason().empty() && !isEnding.load())
      std::this_thread::sleep_for(shortWhile);
    if (!isEnding.load())
      end(world.getAbortReason(), static_cast<int>(ExitCode::Terminated));
  }
}
