//===- RankStreams.cpp - The streams of one rank --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RankStreams.h"

namespace ax::rt {

llvm::Error SideStream::create(Device &device, StreamPriority priority) {
  auto newStream = device.createStream(priority);
  if (!newStream)
    return newStream.takeError();
  stream = std::move(*newStream);
  for (std::unique_ptr<Event> *event : {&entered, &left}) {
    auto made = device.createEvent();
    if (!made)
      return made.takeError();
    *event = std::move(*made);
  }
  return llvm::Error::success();
}

llvm::Error SideStream::enter(Stream &compute) {
  if (llvm::Error error = compute.record(*entered))
    return error;
  return stream->wait(*entered);
}

llvm::Error SideStream::leave(Stream &compute) {
  if (llvm::Error error = stream->record(*left))
    return error;
  return compute.wait(*left);
}

llvm::Expected<RankStreams> RankStreams::create(Device &device) {
  RankStreams streams;
  auto compute = device.createStream();
  if (!compute)
    return compute.takeError();
  streams.compute = std::move(*compute);
  for (SideStream *side : {&streams.exchange, &streams.send, &streams.receive})
    if (llvm::Error error = side->create(device, StreamPriority::High))
      return error;
  if (llvm::Error error = streams.copy.create(device, StreamPriority::Normal))
    return error;
  return streams;
}

} // namespace ax::rt
