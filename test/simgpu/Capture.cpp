//===- Capture.cpp - What captured streams are given ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Capture.h"

#include <algorithm>

namespace simgpu {

size_t Graph::countItems() const {
  size_t count = 0;
  for (const Chain &chain : chains)
    count += chain.items.size();
  return count;
}

void Capture::join(Stream &stream) {
  stream.capture = shared_from_this();
  stream.chain = chains.size();
  streams.push_back(&stream);
  chains.push_back({stream.numberInThread, {}});
  known.emplace_back();
}

void Capture::add(Stream &stream, Item item) {
  // A wait or a record is nothing that could be left behind.
  if (item.run || item.renew || item.recorded)
    ++known[stream.chain][stream.chain];
  chains[stream.chain].items.push_back(std::move(item));
}

std::shared_ptr<Point> Capture::record(const Stream &stream) {
  auto point = std::make_shared<Point>();
  point->capture = shared_from_this();
  point->known = known[stream.chain];
  Item item;
  item.what = "recording an event";
  item.reached = point;
  chains[stream.chain].items.push_back(std::move(item));
  return point;
}

void Capture::wait(Stream &stream, const std::shared_ptr<Point> &point) {
  if (!stream.capture)
    join(stream);
  for (const auto &[chain, count] : point->known)
    known[stream.chain][chain] = std::max(known[stream.chain][chain], count);
  Item item;
  item.what = "a wait for an event";
  item.awaited = point;
  chains[stream.chain].items.push_back(std::move(item));
}

bool Capture::isJoined() const {
  for (size_t i = 1; i < known.size(); ++i) {
    auto own = known[i].find(i);
    if (own == known[i].end())
      continue;
    auto seen = known.front().find(i);
    if (seen == known.front().end() || seen->second < own->second)
      return false;
  }
  return true;
}

Graph Capture::end() {
  for (Stream *stream : streams)
    stream->capture.reset();
  streams.clear();
  known.clear();
  return {context, std::move(chains)};
}

void Capture::leave(Stream &stream) {
  isInvalid = true;
  if (isOrigin(stream)) {
    end();
    return;
  }
  streams.erase(std::find(streams.begin(), streams.end(), &stream));
  stream.capture.reset();
}

} // namespace simgpu
