//===- CommandRecorder.cpp - When a rank's device does commands -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CommandRecorder.h"

#include <algorithm>

namespace ax::rt {

llvm::Error CommandRecorder::create(std::unique_ptr<Event> &event) {
  if (event)
    return llvm::Error::success();
  llvm::Expected<std::unique_ptr<Event>> made =
      device.createEvent(/*isTimed=*/true);
  if (!made)
    return made.takeError();
  event = std::move(*made);
  return llvm::Error::success();
}

llvm::Error CommandRecorder::setOrigin(Stream &stream) {
  Run &run = runs[current], &last = runs[1 - current];
  if (llvm::Error error = create(run.origin))
    return error;
  // The stream has nothing else to do: the event is reached between these.
  Clock::time_point asked = Clock::now();
  if (llvm::Error error = stream.record(*run.origin))
    return error;
  if (llvm::Error error = run.origin->synchronize())
    return error;
  Clock::time_point seen = Clock::now();
  // The host may see it much later, so runs are placed by the device's clock,
  // as what one command after another does must not overlap; the host's holds
  // that one on course.
  run.originTime = asked;
  if (last.origin) {
    llvm::Expected<std::chrono::nanoseconds> since =
        run.origin->since(*last.origin);
    if (!since)
      return since.takeError();
    run.originTime = std::clamp(last.originTime + *since, asked, seen);
  }
  return llvm::Error::success();
}

llvm::Error CommandRecorder::beginRun(Stream &stream) {
  current = 1 - current;
  runs[current].count = 0;
  isInRun = true;
  return setOrigin(stream);
}

llvm::Error CommandRecorder::begin(StreamKind kind, Stream &stream,
                                   int32_t command, int32_t microBatch) {
  Run &run = runs[current];
  // Inputs may go up before there is any run.
  if (!run.origin)
    if (llvm::Error error = setOrigin(stream))
      return error;
  open[static_cast<size_t>(kind)] = run.count;
  if (run.count == run.recorded.size())
    run.recorded.emplace_back();
  Recorded &next = run.recorded[run.count++];
  next.command = command;
  next.microBatch = microBatch;
  next.kind = kind;
  next.isAhead = !isInRun;
  if (llvm::Error error = create(next.begin))
    return error;
  return stream.record(*next.begin);
}

llvm::Error CommandRecorder::end(StreamKind kind, Stream &stream) {
  Recorded &last = runs[current].recorded[open[static_cast<size_t>(kind)]];
  if (llvm::Error error = create(last.end))
    return error;
  return stream.record(*last.end);
}

llvm::Error
CommandRecorder::recordBeside(StreamKind kind, Stream &stream, int32_t command,
                              int32_t microBatch,
                              llvm::function_ref<llvm::Error()> put) {
  if (!hasStreams())
    return put();
  if (llvm::Error error = begin(kind, stream, command, microBatch))
    return error;
  if (llvm::Error error = put())
    return error;
  return end(kind, stream);
}

llvm::Error CommandRecorder::add(const Run &run, bool ahead, RankTrace &trace) {
  for (size_t i = 0; i < run.count; ++i) {
    const Recorded &of = run.recorded[i];
    if (of.isAhead != ahead)
      continue;
    llvm::Expected<std::chrono::nanoseconds> begin =
        of.begin->since(*run.origin);
    if (!begin)
      return begin.takeError();
    llvm::Expected<std::chrono::nanoseconds> end = of.end->since(*run.origin);
    if (!end)
      return end.takeError();
    trace.events.push_back({of.command, of.microBatch, run.originTime + *begin,
                            run.originTime + *end, of.kind});
  }
  return llvm::Error::success();
}

llvm::Error CommandRecorder::finishRun(RankTrace &trace) {
  if (llvm::Error error = add(runs[1 - current], /*ahead=*/true, trace))
    return error;
  return add(runs[current], /*ahead=*/false, trace);
}

} // namespace ax::rt
