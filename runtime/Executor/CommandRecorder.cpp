//===- CommandRecorder.cpp - When a rank's device does commands -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CommandRecorder.h"

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

llvm::Error CommandRecorder::beginRun(Stream &stream) {
  count = 0;
  if (llvm::Error error = create(origin))
    return error;
  if (llvm::Error error = stream.record(*origin))
    return error;
  if (llvm::Error error = origin->synchronize())
    return error;
  originTime = Clock::now();
  return llvm::Error::success();
}

llvm::Error CommandRecorder::begin(Stream &stream, int32_t command,
                                   int32_t microBatch) {
  if (count == recorded.size())
    recorded.emplace_back();
  Recorded &next = recorded[count++];
  next.command = command;
  next.microBatch = microBatch;
  if (llvm::Error error = create(next.begin))
    return error;
  return stream.record(*next.begin);
}

llvm::Error CommandRecorder::end(Stream &stream) {
  Recorded &last = recorded[count - 1];
  if (llvm::Error error = create(last.end))
    return error;
  return stream.record(*last.end);
}

llvm::Error CommandRecorder::finishRun(RankTrace &trace) {
  for (size_t i = 0; i < count; ++i) {
    const Recorded &of = recorded[i];
    llvm::Expected<std::chrono::nanoseconds> begin = of.begin->since(*origin);
    if (!begin)
      return begin.takeError();
    llvm::Expected<std::chrono::nanoseconds> end = of.end->since(*origin);
    if (!end)
      return end.takeError();
    trace.events.push_back(
        {of.command, of.microBatch, originTime + *begin, originTime + *end});
  }
  return llvm::Error::success();
}

} // namespace ax::rt
