//===- JobGuard.cpp - What ends a process that does not -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "JobGuard.h"

#include "ax/Support/Threads.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <poll.h>
#include <sys/eventfd.h>
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

/// What the guard's thread is told: bits, of which none is lost however many
/// signals come.
enum Call : unsigned { Terminated = 1, Aborted = 2, Limited = 4, Leave = 8 };
std::atomic<unsigned> calls{0};
/// What wakes it, a file that takes any number of calls. A signal handler must
/// not wait, so it is never one that blocks.
std::atomic<int> wakeFile{-1};
pid_t parent = 0;

void callGuard(Call call) {
  int error = errno;
  calls.fetch_or(call);
  uint64_t one = 1;
  // It is full only where the thread is to wake already.
  [[maybe_unused]] ssize_t written =
      ::write(wakeFile.load(), &one, sizeof(one));
  errno = error;
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

llvm::Expected<std::unique_ptr<JobGuard>> JobGuard::create(rt::World &world,
                                                           End end) {
  endWithParent();
  if (wakeFile.load() < 0) {
    int file = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (file < 0)
      return makeErrnoError("cannot wait for signals", errno);
    wakeFile.store(file);
  }
  calls.store(0);
  std::unique_ptr<JobGuard> guard(new JobGuard(world, std::move(end)));
  auto thread = startThread("what ends this process with its job",
                            [&guard = *guard] { guard.watch(); });
  if (!thread)
    return thread.takeError();
  guard->thread = std::move(*thread);
  struct sigaction action = {};
  action.sa_handler = onTerminate;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, &guard->before);
  world.setAbortHandler([](const std::string &) { callGuard(Aborted); });
  return guard;
}

JobGuard::~JobGuard() {
  if (!thread.joinable())
    return;
  world.setAbortHandler(nullptr);
  ::sigaction(SIGTERM, &before, nullptr);
  callGuard(Leave);
  thread.join();
}

void JobGuard::setLimit(milliseconds time, std::string reason) {
  limit = Clock::now() + time;
  limitReason = std::move(reason);
  callGuard(Limited);
}

/// Whether the process begins to end by itself within `time`.
bool JobGuard::endsWithin(milliseconds time) const {
  for (milliseconds waited(0); waited < time; waited += shortWhile) {
    if (isEnding.load())
      return true;
    std::this_thread::sleep_for(shortWhile);
  }
  return false;
}

/// Returns what was called since it was asked last, as soon as there is
/// something, or the time is over.
unsigned JobGuard::waitForCalls(std::optional<Clock::time_point> last) {
  while (true) {
    // The file is read first: what is called later wakes again.
    uint64_t count = 0;
    [[maybe_unused]] ssize_t got =
        ::read(wakeFile.load(), &count, sizeof(count));
    if (unsigned found = calls.exchange(0))
      return found;
    int patience = -1;
    if (last) {
      auto left = std::chrono::ceil<milliseconds>(*last - Clock::now()).count();
      if (left <= 0)
        return 0;
      patience = static_cast<int>(std::min<int64_t>(left, INT_MAX));
    }
    pollfd item = {wakeFile.load(), POLLIN, 0};
    ::poll(&item, 1, patience);
  }
}

void JobGuard::watch() {
  std::optional<Clock::time_point> last;
  while (true) {
    unsigned found = waitForCalls(last);
    if (found & Leave)
      return;
    if (found & Limited)
      last = limit;
    if (last && Clock::now() >= *last) {
      end(limitReason, static_cast<int>(ExitCode::RunFailed));
      last.reset();
    }
    if ((found & Aborted) && !endsWithin(patience))
      end(world.getAbortReason(), static_cast<int>(ExitCode::RunFailed));
    if (!(found & Terminated))
      continue;
    isTerminated.store(true);
    // Why is known by then, if it ever is.
    auto until = Clock::now() + untilKilled;
    while (Clock::now() < until && world.getAbortReason().empty() &&
           !isEnding.load())
      std::this_thread::sleep_for(shortWhile);
    if (!isEnding.load())
      end(world.getAbortReason(), static_cast<int>(ExitCode::Terminated));
  }
}
