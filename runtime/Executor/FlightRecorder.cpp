//===- FlightRecorder.cpp - What each rank did last -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/FlightRecorder.h"

#include "FlightLog.h"
#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"

#include <chrono>
#include <random>
#include <unistd.h>

namespace ax::rt {

struct FlightRecorder::Kept {
  FlightHeader header;
  std::vector<FlightRecord> records;
};

FlightRecorder::FlightRecorder(std::string folder)
    : folder(std::move(folder)) {}
FlightRecorder::~FlightRecorder() = default;

static std::string fileOf(const std::string &folder, int32_t rank) {
  return folder + "/rank-" + std::to_string(rank) + ".jsonl";
}

llvm::Expected<std::shared_ptr<FlightRecorder>>
FlightRecorder::create(const std::string &folder) {
  if (std::error_code error = makeFolder(folder))
    return makeErrnoError("cannot make '" + folder + "' for flight records",
                          error.value());
  // Of each process its own, whose rank is not known yet.
  if (llvm::Error error = AtomicFile::check(
          folder + "/process-" + std::to_string(::getpid()) + ".jsonl"))
    return addContext(std::move(error), "flight records in '" + folder + "'");
  return std::shared_ptr<FlightRecorder>(new FlightRecorder(folder));
}

llvm::Error FlightRecorder::join(World &world, int64_t ranks) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!run.empty())
      return llvm::Error::success();
  }
  std::random_device random;
  uint64_t drawn = uint64_t(random()) << 32 | random();
  auto shared =
      world.broadcast("name of the flight record", std::to_string(drawn));
  if (!shared)
    return shared.takeError();
  std::lock_guard<std::mutex> lock(mutex);
  run = *shared;
  place = world.getPlace();
  numRanks = ranks;
  return llvm::Error::success();
}

FlightLog &FlightRecorder::openLog(int32_t rank) {
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<FlightLog> &log = logs[rank];
  if (!log)
    log = std::make_unique<FlightLog>(rank, /*keepsTimes=*/true);
  return *log;
}

/// Shorter times may be those of a busy machine.
constexpr int64_t leastStop = 1'000'000'000;

template <typename Clock>
static int64_t readNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             Clock::now().time_since_epoch())
      .count();
}

/// With the mutex held.
void FlightRecorder::noteTick(int64_t now) {
  if (lastTick && now - lastTick >= leastStop) {
    stopped = now - lastTick;
    stoppedUntil = now;
  }
}

void FlightRecorder::tick() {
  std::lock_guard<std::mutex> lock(mutex);
  int64_t now = readNanoseconds<std::chrono::steady_clock>();
  noteTick(now);
  lastTick = now;
}

void FlightRecorder::endTicks() {
  std::lock_guard<std::mutex> lock(mutex);
  // Who was stopped may find the job at its end.
  noteTick(readNanoseconds<std::chrono::steady_clock>());
  lastTick = 0;
}

/// With the mutex held.
FlightRecorder::Kept FlightRecorder::take(std::string reason, bool isFailure) {
  Kept taken;
  FlightHeader &header = taken.header;
  header.run = run;
  header.host = place.host;
  header.process = place.process;
  header.numRanks = numRanks;
  header.reason = std::move(reason);
  header.isFailure = isFailure;
  header.takenSteady = readNanoseconds<std::chrono::steady_clock>();
  header.takenWall = readNanoseconds<std::chrono::system_clock>();
  // It may have gone on only now.
  noteTick(header.takenSteady);
  header.stopped = stopped;
  header.stoppedUntil = stoppedUntil;
  for (const auto &[rank, log] : logs)
    taken.records.push_back(log->read());
  return taken;
}

bool FlightRecorder::keep(const std::string &reason) {
  std::lock_guard<std::mutex> lock(mutex);
  if (kept)
    return false;
  kept = std::make_unique<Kept>(take(reason, /*isFailure=*/true));
  return true;
}

llvm::Error FlightRecorder::writeFiles(const Kept &what) const {
  for (const FlightRecord &record : what.records) {
    std::string text;
    llvm::raw_string_ostream os(text);
    printRecord(what.header, record, os);
    if (llvm::Error error =
            writeFileAtomically(fileOf(folder, record.rank), os.str()))
      return error;
  }
  return llvm::Error::success();
}

std::string FlightRecorder::write() {
  std::lock_guard<std::mutex> lock(writing);
  const Kept *what;
  {
    // It is not changed any more.
    std::lock_guard<std::mutex> keeping(mutex);
    what = kept.get();
  }
  if (!what || !written.empty())
    return written;
  if (what->records.empty())
    written = "; no rank had begun, so that there is no flight record";
  else if (llvm::Error error = writeFiles(*what))
    written = "; and the flight record could not be written: " +
              describeError(std::move(error)).message;
  else
    written = "; what ranks did last is in '" + folder +
              "': ax-analyze-flight reads it";
  return written;
}

llvm::Error FlightRecorder::writeNow(const std::string &reason) {
  std::lock_guard<std::mutex> lock(writing);
  Kept taken;
  {
    std::lock_guard<std::mutex> keeping(mutex);
    if (kept)
      return llvm::Error::success();
    taken = take(reason, /*isFailure=*/false);
  }
  return writeFiles(taken);
}

} // namespace ax::rt
