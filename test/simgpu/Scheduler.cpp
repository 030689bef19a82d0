//===- Scheduler.cpp - Streams of the simulated GPU -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Scheduler.h"

#include "Capture.h"
#include "Simulator.h"

#include <algorithm>
#include <thread>

namespace simgpu {

Stream &Scheduler::create(Context &context) {
  auto stream = std::make_unique<Stream>();
  stream->number = ++numStreams;
  stream->context = &context;
  stream->speed = uint64_t(1) << random() % 4 * 2;
  return *streams.emplace_back(std::move(stream));
}

bool Scheduler::canRun(const Stream &stream) {
  if (stream.items.empty())
    return false;
  const Item &head = stream.items.front();
  return (!head.awaited || head.awaited->isDone) &&
         (!head.isReady || head.isReady());
}

void Scheduler::runHead(Stream &stream) {
  Item item = std::move(stream.items.front());
  stream.items.pop_front();
  Context &context = *stream.context;
  CUresult result = countWork();
  if (result == CUDA_SUCCESS && item.run)
    result = item.run();
  item.reach();
  if (result != CUDA_SUCCESS) {
    context.fault = result;
    dropWork(context);
  }
}

Stream &Scheduler::choose(const std::vector<Stream *> &able) {
  if (settings.order != Order::Random)
    return *able.front();
  uint64_t all = 0;
  for (const Stream *stream : able)
    all += stream->speed;
  uint64_t chosen = random() % all;
  size_t i = 0;
  for (; chosen >= able[i]->speed; ++i)
    chosen -= able[i]->speed;
  return *able[i];
}

void Scheduler::starve(const std::shared_ptr<Point> &point) {
  if (settings.order == Order::Unfair && !point->isDone)
    missed.push_back(point);
}

bool Scheduler::isStarved(const Stream &stream) const {
  return std::any_of(missed.begin(), missed.end(), [&](const auto &point) {
    return !point->isDone && point->stream == &stream;
  });
}

bool Scheduler::isAnyStarved() const {
  return std::any_of(missed.begin(), missed.end(),
                     [](const auto &point) { return !point->isDone; });
}

bool Scheduler::doAny() {
  std::vector<Stream *> able;
  for (const std::unique_ptr<Stream> &stream : streams)
    if (!isStarved(*stream) && canRun(*stream))
      able.push_back(stream.get());
  if (able.empty())
    return false;
  runHead(choose(able));
  return true;
}

bool Scheduler::doNeeded(Stream &stream) {
  if (canRun(stream)) {
    runHead(stream);
    return true;
  }
  if (!stream.items.empty()) {
    const Item &head = stream.items.front();
    if (head.awaited && !head.awaited->isDone)
      return doNeeded(*head.awaited->stream);
  }
  return doAny();
}

bool Scheduler::doWorkFor(Stream &stream, bool feeds) {
  bool isStarving = isAnyStarved();
  if (settings.order == Order::Random || isStarving)
    if (doAny())
      return true;
  return settings.order != Order::Random && (feeds || !isStarving) &&
         doNeeded(stream);
}

void Scheduler::push(Stream &stream, Item item) {
  if (stream.capture) {
    stream.capture->add(stream, std::move(item));
    return;
  }
  if (item.renew)
    item.renew(item);
  stream.items.push_back(std::move(item));
  if (settings.order == Order::Eager || isAnyStarved())
    while (doAny())
      continue;
  // Mostly less than comes, so that streams get far apart.
  if (settings.order == Order::Random)
    while (random() % 3 == 0 && doAny())
      continue;
  streams.erase(std::remove_if(streams.begin(), streams.end(),
                               [&](const std::unique_ptr<Stream> &s) {
                                 return s->isDestroyed && s->items.empty();
                               }),
                streams.end());
}

void Scheduler::poll(Stream &stream) { doWorkFor(stream, true); }

void Scheduler::dropWork(const Context &context) {
  for (const std::unique_ptr<Stream> &stream : streams)
    if (stream->context == &context) {
      for (Item &item : stream->items)
        item.reach();
      stream->items.clear();
    }
}

void Scheduler::dropStreams(const Context &context) {
  dropWork(context);
  streams.erase(std::remove_if(streams.begin(), streams.end(),
                               [&](const std::unique_ptr<Stream> &stream) {
                                 return stream->context == &context;
                               }),
                streams.end());
}

const Item *Scheduler::findUser(Range memory) const {
  for (const std::unique_ptr<Stream> &stream : streams)
    for (const Item &item : stream->items)
      for (Range used : item.uses)
        if (used.meets(memory))
          return &item;
  return nullptr;
}

std::string Scheduler::describeHeads() const {
  std::string text = "deadlock";
  for (const std::unique_ptr<Stream> &stream : streams)
    if (!stream->items.empty())
      text += "; stream " + std::to_string(stream->number) +
              " is at: " + stream->items.front().what;
  return text;
}

void Scheduler::letOthersRun() {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

} // namespace simgpu
