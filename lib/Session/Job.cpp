//===- Job.cpp - A process among those of its job -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Session/Job.h"

#include "JobGuard.h"

#include "ax/Runtime/Agreement.h"
#include "ax/Runtime/Control.h"
#include "ax/Runtime/Launcher.h"
#include "ax/Runtime/MpiProcess.h"
#include "ax/Runtime/TcpMesh.h"
#include "ax/Support/FlagTable.h"
#include "ax/Support/Threads.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <fcntl.h>
#include <mutex>
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
/// More than it takes until one that is silent for too long has ended others.
constexpr milliseconds untilLost(4000);
/// Process 0 says first that it waits: where it is there, it says it for all.
constexpr milliseconds untilNote(10000), untilOthersNote(30000);

/// As the launcher says when it is first asked: MPI may change the environment.
bool isCalledFirst() {
  static const bool isFirst = rt::isFirstOfLauncher();
  return isFirst;
}

llvm::Error lonely(int64_t started) {
  return makeErrorf(ExitCode::Usage,
                    "{0} processes were started, and MPI tells this one of no "
                    "other: with Slurm give srun --mpi=pmix (srun --mpi=list "
                    "says what it has), or --mpi=none",
                    started);
}

/// Says for whom this process waits, if it is long: variables may be left over
/// from elsewhere.
class WaitingNote {
public:
  WaitingNote(std::string tool, const rt::Meeting &meeting) {
    auto started = startThread(
        "a note",
        [this, tool = std::move(tool), text = describe(meeting),
         patience = meeting.place.process == 0 ? untilNote : untilOthersNote] {
          std::unique_lock<std::mutex> lock(mutex);
          if (!changed.wait_for(lock, patience, [&] { return isDone; }))
            llvm::errs() << tool << ": note: " << text << "\n";
        });
    // Who has no thread for a note is told so by who needs one.
    if (started)
      thread = std::move(*started);
    else
      llvm::consumeError(started.takeError());
  }
  ~WaitingNote() {
    if (!thread.joinable())
      return;
    {
      std::lock_guard<std::mutex> lock(mutex);
      isDone = true;
    }
    changed.notify_all();
    thread.join();
  }

private:
  static std::string describe(const rt::Meeting &meeting) {
    return llvm::formatv("waiting for the other processes, of which {0} in the "
                         "environment tells, at {1}, port {2}; without these "
                         "variables all ranks run in one process",
                         meeting.source, meeting.host, meeting.port);
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool isDone = false;
  std::thread thread;
};

} // namespace

bool ax::isOneOfSeveral() { return rt::findLauncher() != rt::Launcher::None; }

void ax::keepOutputOfFirst() {
  if (!isOneOfSeveral() || isCalledFirst())
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
  llvm::Error error = llvm::Error::success();
  switch (rt::findLauncher()) {
  case rt::Launcher::None:
    break;
  case rt::Launcher::Mpi:
    error = job->joinByMpi();
    break;
  case rt::Launcher::Variables:
    error = job->joinByVariables();
    break;
  }
  if (error)
    return error;
  return job;
}

llvm::Error Job::joinByMpi() {
  auto opened = rt::openMpi();
  if (!opened)
    return llvm::make_error<rt::AloneError>(describeError(opened.takeError()));
  mpi = std::make_unique<Mpi>(**opened);
  const rt::ProcessPlace &place = (*opened)->getPlace();
  int64_t started = rt::countStarted().value_or(1);
  if (place.numProcesses == 1)
    return started > 1 ? lonely(started) : llvm::Error::success();
  rt::ControlOptions control;
  control.place = place;
  control.address = options.control;
  control.broadcast = [this](std::string text) {
    return mpi->broadcast(std::move(text));
  };
  return joinControl(std::move(control));
}

llvm::Error Job::joinByVariables() {
  auto meeting = rt::readMeeting(options.control);
  if (!meeting)
    return meeting.takeError();
  rt::ControlOptions control;
  control.place = meeting->place;
  control.address = meeting->address;
  control.meeting = {{meeting->host}, meeting->port, meeting->key};
  // No launcher ends who waits for one that has not come.
  control.joinTimeout = silence();
  {
    WaitingNote note(options.tool, *meeting);
    if (llvm::Error error = joinControl(std::move(control)))
      return error;
  }
  rt::ProcessPlace place = meeting->place;
  auto hosts = world->allGather("hosts", place.host);
  if (!hosts)
    return hosts.takeError();
  rt::placeAmong(place, *hosts);
  world->setPlaceOnHost(place.indexOnHost, place.numOnHost);
  // Where process 0 listens on its own host only, all are there.
  llvm::StringRef own = rt::splitAddress(meeting->address).first;
  return rt::openTcp(*world, llvm::all_equal(*hosts) ? own : "");
}

/// How long a process may be missing.
milliseconds Job::silence() const {
  // A second is the least that a busy machine needs.
  constexpr double least = 1, longest = 1e7;
  double seconds = options.timeoutSeconds == 0
                       ? longest
                       : std::clamp(options.timeoutSeconds, least, longest);
  return milliseconds(static_cast<int64_t>(1000 * seconds));
}

llvm::Error Job::joinControl(rt::ControlOptions control) {
  control.timeout = silence();
  std::string version = describeVersion(options.tool);
  control.agreed = {
      {"version",
       llvm::join(llvm::split(llvm::StringRef(version).trim(), '\n'), ", ")}};
  auto joined = rt::joinControl(std::move(control));
  if (!joined)
    return joined.takeError();
  world = std::move(*joined);
  auto made = JobGuard::create(
      *world, [this](const std::string &why, int code) { end(why, code); });
  if (!made)
    return llvm::make_error<rt::AloneError>(describeError(made.takeError()));
  guard = std::move(*made);
  return llvm::Error::success();
}

int Job::failBeforeJoin(const std::string &tool, llvm::Error error) {
  bool isAlone = error.isA<rt::AloneError>();
  ErrorDescription why = describeError(std::move(error));
  bool isOfMpi = rt::findLauncher() == rt::Launcher::Mpi;
  if (isCalledFirst() || (isAlone && !isOfMpi))
    return reportError(tool, makeError(why.code, why.message));
  // MPI's launcher ends all when the first process has ended. Where that does
  // not, it may not lack what this one does.
  std::this_thread::sleep_for(untilSpoken);
  if (!isAlone)
    return static_cast<int>(why.code);
  std::array<char, 256> host = {};
  ::gethostname(host.data(), host.size() - 1);
  return reportError(tool, makeErrorf(why.code, "rank {0} on host '{1}': {2}",
                                      rt::rankOfMpiLauncher(), host.data(),
                                      why.message));
}

bool Job::isSpeaker() const {
  return world->isFirst() ||
         (world->getPlace().process == 1 && !world->isFirstThere());
}

/// MPI's launcher ends the others, those that are stopped, too.
void Job::tellAndEnd(const std::string &message, int code) {
  // The guard and what fails meanwhile have the same to tell: one does, and the
  // other waits for the end.
  telling.lock();
  llvm::outs().flush();
  reportError(options.tool, makeError(ExitCode::RunFailed, message));
  llvm::errs().flush();
  // What was said is on its way by then.
  std::this_thread::sleep_for(shortWhile);
  if (mpi)
    mpi->process.abort(code);
  // The others have been told why, and end themselves.
  ::_exit(code);
}

void Job::end(const std::string &reason, int code) {
  // What the job ends with says who speaks: that is not for others to find out.
  bool speaks = isSpeaker();
  if (!reason.empty())
    world->abort(speaks ? reason
                        : rt::describePlace(world->getPlace()) + ": " + reason);
  if (!speaks || reason.empty())
    ::_exit(code);
  tellAndEnd(reason, code);
}

int Job::leave(int code) {
  // MPI's end waits for all processes. So it comes before that of the control
  // channel, which notices one that is lost, and the guard ends this one then;
  // of one that hangs and is not lost, a little later.
  milliseconds limit = silence() + untilLost;
  if (guard && mpi)
    guard->setLimit(
        limit,
        llvm::formatv("MPI has not ended within {0:f0} s (MPI_Finalize): a "
                      "process does not come to its end",
                      std::chrono::duration<double>(limit).count())
            .str());
  llvm::Error error = mpi ? mpi->process.finalize() : llvm::Error::success();
  // It may let some go before others: process 0 stays to tell of who is left.
  if (guard && mpi && !error)
    if (llvm::Error missing = world->barrier("end of the job"))
      return fail(std::move(missing));
  if (guard)
    guard->letEnd();
  guard.reset();
  world.reset();
  return error ? reportError(options.tool, std::move(error)) : code;
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
  // What is not finite all find, each a little later than the others.
  if (why.code == ExitCode::RunFailed || why.code == ExitCode::NotFinite)
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
