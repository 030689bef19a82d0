//===- Job.cpp - A process among those of its job -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Session/Job.h"

#include "JobGuard.h"

#include "ax/Runtime/Agreement.h"
#include "ax/Runtime/Control.h"
#include "ax/Runtime/MpiProcess.h"
#include "ax/Support/Error.h"
#include "ax/Support/FlagTable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

using namespace ax;
using std::chrono::milliseconds;

namespace {

/// The launcher ends all when the first process has ended: so long others leave
/// it to process 0 to say why.
constexpr milliseconds untilSpoken(3000);
/// What a process fails with may be less than what ends the job.
constexpr milliseconds untilReason(300);
constexpr milliseconds shortWhile(20);

std::optional<int64_t> readNumber(const char *variable) {
  const char *text = std::getenv(variable);
  int64_t number;
  if (!text || llvm::StringRef(text).getAsInteger(10, number))
    return std::nullopt;
  return number;
}

/// How many processes the launcher says that it has started, where it does.
std::optional<int64_t> countStarted() {
  for (const char *variable :
       {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (auto count = readNumber(variable))
      return count;
  return std::nullopt;
}

llvm::Error lonely(int64_t started) {
  return makeErrorf(ExitCode::Usage,
                    "{0} processes were started, with nothing to find each "
                    "other by: with Slurm give srun --mpi=pmix (srun "
                    "--mpi=list says what it has), or start them by mpirun",
                    started);
}

} // namespace

bool ax::isOneOfSeveral() {
  std::optional<int64_t> count = countStarted();
  return count ? *count > 1 : rt::isStartedByMpi();
}

void ax::keepOutputOfFirst() {
  if (!isOneOfSeveral() || rt::isFirstOfLauncher())
    return;
  int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nothing < 0)
    return;
  ::dup2(nothing, 1);
  ::close(nothing);
}

class Job::Mpi {
public:
  explicit Mpi(rt::MpiProcess &process) : process(process) {}
  llvm::Expected<std::string> broadcast(std::string text) {
    std::array<char, sizeof(uint64_t)> size;
    uint64_t length = text.size();
    std::memcpy(size.data(), &length, sizeof(length));
    if (llvm::Error error = process.broadcast(size))
      return error;
    std::memcpy(&length, size.data(), sizeof(length));
    text.resize(length);
    if (llvm::Error error = process.broadcast({text.data(), text.size()}))
      return error;
    return text;
  }

  rt::MpiProcess &process;
};

Job::Job(JobOptions options)
    : options(std::move(options)), world(rt::makeLoneWorld()) {}
Job::~Job() = default;

llvm::Expected<std::unique_ptr<Job>> Job::join(const JobOptions &options) {
  std::unique_ptr<Job> job(new Job(options));
  if (!isOneOfSeveral())
    return job;
  if (!rt::isStartedByMpi())
    return lonely(*countStarted());
  auto opened = rt::openMpi();
  if (!opened)
    return opened.takeError();
  job->mpi = std::make_unique<Mpi>(**opened);
  int64_t started = countStarted().value_or(1);
  if ((*opened)->getPlace().numProcesses > 1) {
    if (llvm::Error error = job->joinOthers())
      return error;
  } else if (started > 1) {
    return lonely(started);
  }
  return job;
}

llvm::Error Job::joinOthers() {
  rt::ControlOptions control;
  control.place = mpi->process.getPlace();
  control.address = options.control;
  // A second is the least that a busy machine needs.
  constexpr double least = 1, longest = 1e7;
  double seconds = options.timeoutSeconds == 0
                       ? longest
                       : std::clamp(options.timeoutSeconds, least, longest);
  control.timeout = milliseconds(static_cast<int64_t>(1000 * seconds));
  std::string version = describeVersion(options.tool);
  control.agreed = {
      {"version",
       llvm::join(llvm::split(llvm::StringRef(version).trim(), '\n'), ", ")}};
  control.broadcast = [this](std::string text) {
    return mpi->broadcast(std::move(text));
  };
  auto joined = rt::joinControl(std::move(control));
  if (!joined)
    return joined.takeError();
  world = std::move(*joined);
  guard = std::make_unique<Guard>(
      *world, [this](const std::string &why, int code) { end(why, code); });
  return llvm::Error::success();
}

int Job::failBeforeJoin(const std::string &tool, llvm::Error error) {
  ErrorDescription why = describeError(std::move(error));
  if (rt::isFirstOfLauncher())
    return reportError(tool, makeError(why.code, why.message));
  // The first process that ends makes the launcher end all. Where it does not,
  // it has nothing to say: the error is this process's own.
  std::this_thread::sleep_for(untilSpoken);
  if (!rt::isStartedByMpi())
    return static_cast<int>(why.code);
  std::array<char, 256> host = {};
  ::gethostname(host.data(), host.size() - 1);
  return reportError(tool, makeErrorf(why.code, "rank {0} on host '{1}': {2}",
                                      rt::rankOfLauncher(), host.data(),
                                      why.message));
}

bool Job::isSpeaker() const {
  return world->isFirst() ||
         (world->getPlace().process == 1 && !world->isFirstThere());
}

/// The launcher ends the others, those that are stopped, too.
void Job::tellAndEnd(const std::string &message, int code) {
  llvm::outs().flush();
  reportError(options.tool, makeError(ExitCode::RunFailed, message));
  llvm::errs().flush();
  // What was said is on its way by then.
  std::this_thread::sleep_for(shortWhile);
  mpi->process.abort(code);
}

void Job::end(const std::string &reason, int code) {
  if (!isSpeaker() || reason.empty())
    ::_exit(code);
  tellAndEnd(reason, code);
}

int Job::leave(int code) {
  if (guard)
    guard->letEnd();
  guard.reset();
  world.reset();
  if (mpi)
    if (llvm::Error error = mpi->process.finalize())
      return reportError(options.tool, std::move(error));
  return code;
}

int Job::fail(llvm::Error error) {
  if (!guard)
    return reportError(options.tool, std::move(error));
  guard->letEnd();
  ErrorDescription why = describeError(std::move(error));
  auto waitFor = [](milliseconds time, auto condition) {
    for (milliseconds waited(0); waited < time && !condition();
         waited += shortWhile)
      std::this_thread::sleep_for(shortWhile);
  };
  auto reason = [&] { return world->getAbortReason(); };
  if (why.code == ExitCode::RunFailed)
    waitFor(untilReason, [&] { return !reason().empty(); });
  if (reason().empty())
    world->abort(world->isFirst() ? why.message
                                  : rt::describePlace(world->getPlace()) +
                                        ": " + why.message);
  else if (!llvm::StringRef(why.message).contains(reason()) &&
           !llvm::StringRef(reason()).contains(why.message))
    why.message += " (" + reason() + ")";
  int code = static_cast<int>(why.code);
  waitFor(untilSpoken, [&] { return isSpeaker() || guard->wasTerminated(); });
  if (!isSpeaker())
    ::_exit(code);
  tellAndEnd(why.message, code);
}
