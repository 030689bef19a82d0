//===- RankStreams.cpp - The streams of one rank --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RankStreams.h"

namespace ax::rt {

llvm::Error SideStream::create(Device &device) {
  auto newStream = device.createStream(StreamPriority::High);
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
  for (std::unique_ptr<Stream> *stream :
       {&streams.compute, &streams.upload, &streams.download}) {
    auto made = device.createStream();
    if (!made)
      return made.takeError();
    *stream = std::move(*made);
  }
  for (SideStream *side : {&streams.exchange, &streams.send, &streams.receive})
    if (llvm::Error error = side->create(device))
      return error;
  return streams;
}

} // namespace ax::rt
