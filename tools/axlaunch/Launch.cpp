//===- Launch.cpp - Runs until one is done --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Launch.h"

#include "Supervisor.h"
#include "ax/Runtime/Checkpoint.h"
#include "ax/Support/Error.h"

#include "llvm/Support/FileSystem.h"

#include <cstdlib>
#include <cstring>

using namespace ax;

/// What shells, env and launchers end with when there is no such command, or
/// none that they may run.
constexpr int notRun = 126, notFound = 127;

/// Codes that the same command would end with again, or with which axrun ends
/// training as it was asked to. Others are a failure of a rank (8), a signal
/// (from 129 on), or what launchers end with when they cannot start it: mpirun
/// 1 with too few slots and 255 with a host that it does not reach.
static bool isFinal(int code) {
  if (code == notRun || code == notFound)
    return true;
  switch (static_cast<ExitCode>(code)) {
  case ExitCode::Success:
  case ExitCode::Usage:
  case ExitCode::BadModel:
  case ExitCode::Unsupported:
  case ExitCode::BadPlan:
  case ExitCode::BadInput:
  case ExitCode::InputOutput:
  case ExitCode::NotFinite:
  case ExitCode::Internal:
  case ExitCode::Interrupted:
  case ExitCode::Terminated:
    return true;
  case ExitCode::Differs:
  case ExitCode::RunFailed:
    return false;
  }
  return false;
}

Next Restarts::after(int code, bool hasSaved) {
  if (isFinal(code))
    return Next::End;
  idle = hasSaved ? 0 : idle + 1;
  constexpr int mostIdle = 2;
  if (idle == mostIdle && !fallbacksLeft)
    return Next::GiveUpIdle;
  if (!left)
    return Next::GiveUpOften;
  --left;
  if (idle < mostIdle)
    return Next::Again;
  idle = 0;
  --fallbacksLeft;
  return Next::FewerRanks;
}

namespace {

std::string describe(int code) {
  std::string text = "exit code " + std::to_string(code);
  constexpr int base = 128;
  if (code > base && code < base + NSIG)
    text += " (signal " + std::to_string(code - base) + ", " +
            strsignal(code - base) + ")";
  return text;
}

/// The checkpoint that a run would go on from.
using Saved = std::optional<std::pair<int64_t, std::string>>;

Saved findNewest(const std::string &folder) {
  auto all = rt::checkpoint::newestFirst(folder);
  return all.empty() ? Saved() : Saved(all.front());
}

bool hasText(const std::string &path) {
  uint64_t size = 0;
  return !path.empty() && llvm::sys::fs::is_regular_file(path) &&
         !llvm::sys::fs::file_size(path, size) && size > 0;
}

class Job {
public:
  explicit Job(const LaunchOptions &options)
      : options(options), supervisor(options.grace), command(options.command),
        atStart(findNewest(command.getSave())),
        ownsLog(!hasText(command.getLog())) {}

  llvm::Expected<int> run();

private:
  /// The newest checkpoint, if this job has saved it.
  Saved findOwn() const {
    Saved saved = findNewest(command.getSave());
    return saved == atStart ? Saved() : saved;
  }
  llvm::Expected<int> runOnce();
  int endOf(int code) const;
  void prepareAgain(Next next);

  const LaunchOptions &options;
  Supervisor supervisor;
  /// As it was given, or the fallback that is taken.
  Command command;
  size_t numFallbacks = 0;
  /// Not this job's.
  Saved atStart;
  /// There was no log before.
  bool ownsLog;
  uint64_t numRestarts = 0;
};

llvm::Expected<int> Job::runOnce() {
  Command now = findOwn() ? command.resumedFrom(command.getSave()) : command;
  // mpirun hands SIGUSR1 on, as srun does. On SIGTERM mpirun kills ranks before
  // long, and srun's Ctrl-C asks for their states.
  return supervisor.run(now.getWords(), SIGUSR1);
}

/// The exit code of a job whose last run ended with `code`.
int Job::endOf(int code) const {
  constexpr int byHandedOn = 128 + SIGUSR1;
  int signal = supervisor.getStopSignal();
  bool hasStopped = code == static_cast<int>(ExitCode::Interrupted) ||
                    code == static_cast<int>(ExitCode::Terminated) ||
                    code == byHandedOn;
  // Else it was done already, or failed on its way.
  if (!signal || !hasStopped)
    return code;
  return static_cast<int>(signal == SIGTERM ? ExitCode::Terminated
                                            : ExitCode::Interrupted);
}

void Job::prepareAgain(Next next) {
  if (next == Next::FewerRanks) {
    command = options.fallbacks[numFallbacks++];
    tell("axlaunch", "two runs in a row saved no step: the next one is of '" +
                         command.getPlan() + "'");
  }
  std::string from = "from the start: nothing is saved yet";
  if (Saved saved = findOwn())
    from = "from step " + std::to_string(saved->first) + " in '" +
           command.getSave() + "'";
  else if (!command.getResume().empty())
    from = "from '" + command.getResume() + "': nothing is saved yet";
  else if (ownsLog && hasText(command.getLog()))
    // axrun goes on with a log where it goes on with a run, and only there.
    // Where this fails it says so.
    llvm::sys::fs::remove(command.getLog());
  tell("axlaunch", "restart " + llvm::Twine(++numRestarts) + " of " +
                       llvm::Twine(options.maxRestarts) + ", " + from);
}

llvm::Expected<int> Job::run() {
  Restarts restarts(options.maxRestarts, options.fallbacks.size());
  for (;;) {
    Saved before = findNewest(command.getSave());
    auto code = runOnce();
    if (!code)
      return code.takeError();
    if (supervisor.getStopSignal())
      return endOf(*code);
    Saved saved = findNewest(command.getSave());
    Next next = restarts.after(*code, saved != before);
    if (next == Next::End)
      return *code;
    tell("axlaunch", "the run ended with " + describe(*code));
    auto giveUp = [&](const llvm::Twine &why) {
      return makeError(ExitCode::RunFailed,
                       why + "; what is saved: " +
                           (saved ? "'" + saved->second + "'" : "nothing"));
    };
    if (next == Next::GiveUpIdle)
      return giveUp("gives up: two runs in a row saved no step (axrun "
                    "--save-every=N saves more often)");
    if (next == Next::GiveUpOften)
      return giveUp("gives up after --max-restarts=" +
                    llvm::Twine(options.maxRestarts));
    prepareAgain(next);
  }
}

} // namespace

llvm::Expected<int> ax::launch(const LaunchOptions &options) {
  // Who has set one of these knows better.
  auto set = [](const char *parameter, const std::string &value) {
    setenv(parameter, value.c_str(), /*overwrite=*/0);
  };
  // mpirun's own second is less than what saving may take of the ranks that end
  // after the first one.
  set("OMPI_MCA_odls_base_sigkill_timeout",
      std::to_string(options.grace.count()));
  // Seconds until it asks a silent host for a sign, between such questions, and
  // how many there are: of a host that is cut off it knows in 20 seconds in
  // place of 8 minutes.
  set("OMPI_MCA_oob_tcp_keepalive_time", "10");
  set("OMPI_MCA_oob_tcp_keepalive_intvl", "2");
  set("OMPI_MCA_oob_tcp_keepalive_probes", "5");
  return Job(options).run();
}
