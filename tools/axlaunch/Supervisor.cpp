//===- Supervisor.cpp - One command at a time, and its processes ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Supervisor.h"

#include "ax/Support/Error.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <fcntl.h>
#include <map>
#include <optional>
#include <set>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ax;
using Clock = std::chrono::steady_clock;

constexpr int stopSignals[] = {SIGINT, SIGTERM, SIGUSR1};

Supervisor::Supervisor(std::chrono::seconds grace) : grace(grace) {
  sigemptyset(&watched);
  sigaddset(&watched, SIGCHLD);
  for (int number : stopSignals)
    sigaddset(&watched, number);
  // Who ignores it gets no status of children.
  std::signal(SIGCHLD, SIG_DFL);
  sigprocmask(SIG_BLOCK, &watched, &before);
  // What a command that has ended leaves becomes a child of ours.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/// What the child does until it is the command. Calls nothing but what may be
/// called between fork and exec.
[[noreturn]] static void become(char *const *words, const sigset_t &mask,
                                pid_t parent, int report) {
  // In a group of its own the terminal's Ctrl-C does not reach it: mpirun
  // would kill ranks that are still saving.
  setpgid(0, 0);
  // Nor may such a group read from the terminal.
  if (int input = open("/dev/null", O_RDONLY); input > 0) {
    dup2(input, 0);
    close(input);
  }
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent)
    _exit(1);
  for (int number : {SIGPIPE, SIGXFSZ})
    signal(number, SIG_DFL);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execvp(words[0], words);
  int fault = errno;
  [[maybe_unused]] ssize_t written = write(report, &fault, sizeof(fault));
  _exit(1);
}

llvm::Error Supervisor::start(llvm::ArrayRef<std::string> words) {
  std::vector<char *> texts;
  for (const std::string &word : words)
    texts.push_back(const_cast<char *>(word.c_str()));
  texts.push_back(nullptr);
  std::string action = "cannot start '" + words.front() + "'";
  // Closed by exec, which tells that it has succeeded.
  int report[2];
  if (pipe2(report, O_CLOEXEC))
    return makeErrnoError(action, errno);
  pid_t parent = getpid();
  child = fork();
  if (child == 0)
    become(texts.data(), before, parent, report[1]);
  int fault = child < 0 ? errno : 0;
  close(report[1]);
  if (child > 0) {
    ssize_t got;
    do
      got = read(report[0], &fault, sizeof(fault));
    while (got < 0 && errno == EINTR);
    if (got > 0)
      waitpid(child, &status, 0);
  }
  close(report[0]);
  return fault ? makeErrnoError(action, fault) : llvm::Error::success();
}

/// Takes what has ended.
void Supervisor::reap() {
  for (int found; pid_t pid = waitpid(-1, &found, WNOHANG);) {
    if (pid < 0)
      break;
    if (pid == child) {
      status = found;
      child = 0;
    }
  }
}

namespace {

struct Process {
  pid_t parent;
  std::string name;
};

/// All of this host that have not ended.
std::map<pid_t, Process> listProcesses() {
  std::map<pid_t, Process> found;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it("/proc", code), end;
       !code && it != end; it.increment(code)) {
    pid_t pid, parent;
    if (llvm::sys::path::filename(it->path()).getAsInteger(10, pid))
      continue;
    auto stat = llvm::MemoryBuffer::getFileAsStream(it->path() + "/stat");
    if (!stat)
      continue;
    // `PID (name) STATE PARENT ...`, where the name may be anything.
    auto [start, rest] = (*stat)->getBuffer().rsplit(") ");
    auto [state, behind] = rest.split(' ');
    if (state != "Z" && !behind.split(' ').first.getAsInteger(10, parent))
      found[pid] = {parent, start.split('(').second.str()};
  }
  return found;
}

std::vector<pid_t> listChildren() {
  std::vector<pid_t> found;
  for (const auto &[pid, process] : listProcesses())
    if (process.parent == getpid())
      found.push_back(pid);
  return found;
}

/// Whether axrun is among the children, theirs and so on.
bool hasRanks() {
  std::map<pid_t, Process> all = listProcesses();
  for (const auto &[pid, process] : all) {
    if (process.name != "axrun" && process.name != "axrun-core")
      continue;
    auto at = all.find(pid);
    while (at != all.end() && at->second.parent != getpid())
      at = all.find(at->second.parent);
    if (at != all.end())
      return true;
  }
  return false;
}

} // namespace

/// Ends all children: those of children become children, too.
void Supervisor::endAll() {
  Clock::time_point deadline = Clock::now() + grace;
  std::set<pid_t> asked;
  for (;;) {
    reap();
    std::vector<pid_t> left = listChildren();
    if (left.empty())
      return;
    bool isLate = Clock::now() >= deadline;
    for (pid_t pid : left)
      if (isLate || asked.insert(pid).second)
        kill(pid, isLate ? SIGKILL : SIGTERM);
    constexpr timespec pause{0, 20 * 1000 * 1000};
    nanosleep(&pause, nullptr);
  }
}

/// Returns when the command has ended. A launcher that waits for a host that is
/// cut off would not: mpirun does so until TCP gives up, a quarter of an hour.
int Supervisor::waitFor(int handOn) {
  constexpr timespec second{1, 0};
  std::optional<Clock::time_point> lastRank;
  while (child) {
    siginfo_t info;
    int number = sigtimedwait(&watched, &info, &second);
    Clock::time_point now = Clock::now();
    if (number < 0 && hasRanks()) {
      lastRank = now;
    } else if (number < 0 && lastRank && now - *lastRank > patience()) {
      tell("axlaunch", "the command has no rank on this host any more and does "
                       "not end: it is ended");
      endAll();
      return static_cast<int>(ExitCode::RunFailed);
    } else if (number == SIGCHLD) {
      reap();
    } else if (number > 0 && !stopSignal) {
      stopSignal = number;
      tell("axlaunch", "stopping: the command saves and ends; once more stops "
                       "at once");
      kill(child, handOn);
    } else if (number > 0) {
      endAll();
    }
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

llvm::Expected<int> Supervisor::run(llvm::ArrayRef<std::string> words,
                                    int handOn) {
  if (llvm::Error error = start(words))
    return error;
  int code = waitFor(handOn);
  endAll();
  return code;
}
