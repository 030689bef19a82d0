//===- DeviceStreams.cpp - What every device must do in which order -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DeviceSuite.h"

#include "ax/Support/Error.h"

#include <atomic>
#include <thread>

namespace ax::rt {

namespace {

TEST_P(DeviceSuite, AStreamKeepsItsOrder) {
  const int64_t size = 1000;
  auto first = rank->pin(randomBytes(size, 1));
  auto second = rank->pin(randomBytes(size, 2));
  auto early = llvm::cantFail(device.allocatePinned(size));
  auto a = llvm::cantFail(device.allocate(size));
  auto b = llvm::cantFail(device.allocate(size));
  Stream &stream = *rank->stream;
  DeviceAddress at = a->getAddress();
  llvm::cantFail(stream.clear(at, size));
  llvm::cantFail(stream.upload(*first, 0, at, size));
  llvm::cantFail(rank->copy(stream, at, b->getAddress(), size));
  llvm::cantFail(stream.download(at, *early, 0, size));
  llvm::cantFail(stream.upload(*second, 0, at, size));
  llvm::cantFail(stream.clear(b->getAddress() + 10, 20));
  llvm::cantFail(stream.synchronize());
  Bytes want = randomBytes(size, 1);
  EXPECT_EQ(std::memcmp(early->getData(), want.data(), want.size()), 0);
  EXPECT_EQ(rank->read(*a), randomBytes(size, 2));
  std::fill_n(want.begin() + 10, 20, 0);
  EXPECT_EQ(rank->read(*b), want);
}

// A value goes from stream to stream; the same two events every time.
TEST_P(DeviceSuite, StreamsWaitForEachOther) {
  const int64_t rounds = 100, size = 64;
  auto there = llvm::cantFail(device.createStream(StreamPriority::High));
  auto sent = llvm::cantFail(device.createEvent());
  auto answered = llvm::cantFail(device.createEvent());
  auto memory = llvm::cantFail(device.allocate((2 * rounds + 1) * size));
  auto begin = rank->pin(randomBytes(size, 1));
  DeviceAddress at = memory->getAddress();
  Stream &here = *rank->stream;
  llvm::cantFail(here.upload(*begin, 0, at, size));
  for (int64_t i = 0; i < rounds; ++i, at = at + 2 * size) {
    llvm::cantFail(here.wait(*answered));
    llvm::cantFail(rank->copy(here, at, at + size, size));
    llvm::cantFail(here.record(*sent));
    llvm::cantFail(there->wait(*sent));
    llvm::cantFail(rank->copy(*there, at + size, at + 2 * size, size));
    llvm::cantFail(there->record(*answered));
  }
  llvm::cantFail(answered->synchronize());
  EXPECT_TRUE(llvm::cantFail(answered->isDone()));
  EXPECT_TRUE(llvm::cantFail(sent->isDone()));
  EXPECT_EQ(rank->read(at, size), randomBytes(size, 1));
}

TEST_P(DeviceSuite, AnEventThatNeverWasHasCome) {
  auto event = llvm::cantFail(device.createEvent());
  EXPECT_TRUE(llvm::cantFail(event->isDone()));
  llvm::cantFail(event->synchronize());
  llvm::cantFail(rank->stream->wait(*event));
  llvm::cantFail(rank->stream->synchronize());
}

// Who waits does so for what was recorded then; the second time could only come
// after him.
TEST_P(DeviceSuite, AnEventIsWhereItWasRecordedLast) {
  const int64_t size = 500;
  auto other = llvm::cantFail(device.createStream());
  auto event = llvm::cantFail(device.createEvent());
  auto copied = llvm::cantFail(device.createEvent());
  auto first = rank->pin(randomBytes(size, 1));
  auto second = rank->pin(randomBytes(size, 2));
  auto a = llvm::cantFail(device.allocate(size));
  auto b = llvm::cantFail(device.allocate(size));
  Stream &stream = *rank->stream;
  llvm::cantFail(stream.upload(*first, 0, a->getAddress(), size));
  llvm::cantFail(stream.record(*event));
  llvm::cantFail(other->wait(*event));
  llvm::cantFail(rank->copy(*other, a->getAddress(), b->getAddress(), size));
  llvm::cantFail(other->record(*copied));
  llvm::cantFail(stream.wait(*copied));
  llvm::cantFail(stream.upload(*second, 0, a->getAddress(), size));
  llvm::cantFail(stream.record(*event));
  llvm::cantFail(event->synchronize());
  EXPECT_TRUE(llvm::cantFail(copied->isDone()));
  EXPECT_EQ(rank->read(*a), randomBytes(size, 2));
  EXPECT_EQ(rank->read(*b), randomBytes(size, 1));
}

TEST_P(DeviceSuite, TimedEventsTellTime) {
  std::vector<std::unique_ptr<Event>> events;
  auto memory = llvm::cantFail(device.allocate(1 << 20));
  for (int i = 0; i < 3; ++i) {
    events.push_back(llvm::cantFail(device.createEvent(true)));
    llvm::cantFail(rank->stream->record(*events.back()));
    llvm::cantFail(rank->stream->clear(memory->getAddress(), 1 << 20));
  }
  llvm::cantFail(rank->stream->synchronize());
  auto between = [&](size_t from, size_t to) {
    return llvm::cantFail(events[to]->since(*events[from]));
  };
  using namespace std::chrono_literals;
  EXPECT_EQ(between(1, 1), 0ns);
  EXPECT_GE(between(0, 1), 0ns);
  EXPECT_GE(between(1, 2), 0ns);
  auto whole = between(0, 1) + between(1, 2);
  EXPECT_LT(std::max(whole, between(0, 2)) - std::min(whole, between(0, 2)),
            10us);
  EXPECT_LT(whole, 60s);
}

// Of both streams, as often as it is launched, and not before.
TEST_P(DeviceSuite, LaunchesDoWhatWasCaptured) {
  Stream &stream = *rank->stream;
  if (!device.canCapture()) {
    ErrorDescription error = describeError(stream.beginCapture());
    EXPECT_EQ(error.code, ExitCode::Unsupported);
    EXPECT_EQ(error.message, "the device does not capture");
    return;
  }
  const int64_t size = 300;
  auto other = llvm::cantFail(device.createStream());
  auto forked = llvm::cantFail(device.createEvent());
  auto joined = llvm::cantFail(device.createEvent());
  auto passed = llvm::cantFail(device.createEvent());
  auto mark = llvm::cantFail(device.createMark());
  auto input = rank->pin(randomBytes(size, 1));
  auto output = rank->pin(randomBytes(size, 2));
  auto a = llvm::cantFail(device.allocate(size));
  auto b = rank->place(randomBytes(size, 3));
  llvm::cantFail(stream.beginCapture());
  llvm::cantFail(stream.upload(*input, 0, a->getAddress(), size));
  llvm::cantFail(stream.record(*forked));
  llvm::cantFail(other->wait(*forked));
  llvm::cantFail(rank->copy(*other, a->getAddress(), b->getAddress(), size));
  llvm::cantFail(other->download(b->getAddress(), *output, 0, size));
  llvm::cantFail(other->recordAtLaunch(*passed));
  llvm::cantFail(other->record(*joined));
  llvm::cantFail(stream.wait(*joined));
  llvm::cantFail(stream.set(*mark, 5));
  auto graph = llvm::cantFail(stream.endCapture());
  EXPECT_EQ(rank->read(*b), randomBytes(size, 3));
  EXPECT_EQ(mark->get(), 0U);
  EXPECT_TRUE(llvm::cantFail(passed->isDone()));
  for (uint32_t round = 4; round < 8; ++round) {
    Bytes wanted = randomBytes(size, round);
    std::memcpy(input->getData(), wanted.data(), wanted.size());
    mark->reset(1);
    llvm::cantFail(graph->launch(stream));
    llvm::cantFail(other->wait(*passed));
    llvm::cantFail(other->clear(b->getAddress(), size));
    llvm::cantFail(other->synchronize());
    llvm::cantFail(stream.synchronize());
    EXPECT_EQ(std::memcmp(output->getData(), wanted.data(), wanted.size()), 0);
    EXPECT_EQ(mark->get(), 5U);
    EXPECT_EQ(rank->read(*b), Bytes(size));
  }
}

// After an error there is no graph, and streams are as they were.
TEST_P(DeviceSuite, CapturesThatFailDoNothing) {
  if (!device.canCapture())
    return;
  Stream &stream = *rank->stream;
  auto event = llvm::cantFail(device.createEvent());
  auto memory = rank->place(randomBytes(100, 1));
  llvm::cantFail(stream.record(*event));
  llvm::cantFail(stream.beginCapture());
  llvm::cantFail(stream.clear(memory->getAddress(), 100));
  llvm::consumeError(stream.wait(*event));
  EXPECT_NE(describeError(stream.endCapture().takeError()).message, "");
  EXPECT_EQ(rank->read(*memory), randomBytes(100, 1));
}

// Whoever looks meanwhile never sees a number after a later one.
TEST_P(DeviceSuite, AMarkSaysHowFarAStreamIs) {
  const uint64_t last = 1000;
  auto mark = llvm::cantFail(device.createMark());
  EXPECT_EQ(mark->get(), 0U);
  std::atomic<bool> isDone{false};
  std::thread watcher([&] {
    for (uint64_t seen = 0; !isDone;) {
      uint64_t now = mark->get();
      EXPECT_GE(now, seen);
      EXPECT_LE(now, last);
      seen = now;
    }
  });
  auto half = llvm::cantFail(device.createEvent());
  for (uint64_t number = 1; number <= last; ++number) {
    llvm::cantFail(rank->stream->set(*mark, number));
    if (number == last / 2)
      llvm::cantFail(rank->stream->record(*half));
  }
  llvm::cantFail(half->synchronize());
  EXPECT_GE(mark->get(), last / 2);
  llvm::cantFail(rank->stream->synchronize());
  EXPECT_EQ(mark->get(), last);
  isDone = true;
  watcher.join();
}

TEST_P(DeviceSuite, EveryStreamHasAMark) {
  const size_t count = 5;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<Mark>> marks;
  for (size_t i = 0; i < count; ++i) {
    streams.push_back(llvm::cantFail(device.createStream()));
    marks.push_back(llvm::cantFail(device.createMark()));
  }
  for (uint64_t round = 1; round <= 20; ++round)
    for (size_t i = 0; i < count; ++i)
      llvm::cantFail(
          streams[i]->set(*marks[i], (uint64_t(1) << 40) * i + round));
  for (size_t i = 0; i < count; ++i) {
    llvm::cantFail(streams[i]->synchronize());
    EXPECT_EQ(marks[i]->get(), (uint64_t(1) << 40) * i + 20);
  }
}

// Asking alone is enough to see the end some time.
TEST_P(DeviceSuite, CanBeAskedWhetherItIsDone) {
  auto memory = llvm::cantFail(device.allocate(1000));
  auto event = llvm::cantFail(device.createEvent());
  EXPECT_TRUE(llvm::cantFail(rank->stream->isDone()));
  for (int i = 0; i < 50; ++i)
    llvm::cantFail(rank->stream->clear(memory->getAddress(), 1000));
  llvm::cantFail(rank->stream->record(*event));
  auto other = llvm::cantFail(device.createStream());
  llvm::cantFail(other->wait(*event));
  while (!llvm::cantFail(other->isDone()))
    std::this_thread::yield();
  EXPECT_TRUE(llvm::cantFail(event->isDone()));
  while (!llvm::cantFail(rank->stream->isDone()))
    std::this_thread::yield();
  llvm::cantFail(rank->stream->synchronize());
}

TEST_P(DeviceSuite, WorkGoesOnWithoutItsStreamAndEvents) {
  auto bytes = rank->pin(randomBytes(100, 1));
  auto memory = llvm::cantFail(device.allocate(100));
  {
    auto stream = llvm::cantFail(device.createStream());
    auto event = llvm::cantFail(device.createEvent());
    llvm::cantFail(stream->upload(*bytes, 0, memory->getAddress(), 100));
    llvm::cantFail(stream->record(*event));
    llvm::cantFail(rank->stream->wait(*event));
  }
  EXPECT_EQ(rank->read(*memory), randomBytes(100, 1));
}

// A byte goes from place to place, streams taking turns now and then.
TEST_P(DeviceSuite, TenThousandCommandsInFlight) {
  const int64_t count = 10000;
  auto first = rank->pin(randomBytes(4, 1));
  auto memory = llvm::cantFail(device.allocate(4 * (count + 1)));
  auto mark = llvm::cantFail(device.createMark());
  auto event = llvm::cantFail(device.createEvent());
  auto other = llvm::cantFail(device.createStream());
  DeviceAddress at = memory->getAddress();
  Stream *now = rank->stream.get(), *next = other.get();
  llvm::cantFail(now->upload(*first, 0, at, 4));
  for (int64_t i = 0; i < count; ++i, at = at + 4) {
    llvm::cantFail(rank->copy(*now, at, at + 4, 4));
    if (i % 1000 == 999) {
      llvm::cantFail(now->record(*event));
      std::swap(now, next);
      llvm::cantFail(now->wait(*event));
    }
  }
  llvm::cantFail(now->set(*mark, count));
  llvm::cantFail(now->synchronize());
  EXPECT_EQ(mark->get(), static_cast<uint64_t>(count));
  EXPECT_EQ(rank->read(at, 4), randomBytes(4, 1));
}

TEST_P(DeviceSuite, RanksWorkAtTheSameTime) {
  const int32_t numRanks = 4;
  auto ranks = GetParam()->create(numRanks);
  ASSERT_EQ(ranks.size(), size_t(numRanks));
  std::vector<std::thread> threads;
  for (int32_t i = 0; i < numRanks; ++i)
    threads.emplace_back([&, i] {
      Device &mine = *ranks[static_cast<size_t>(i)];
      mine.attachThread();
      TestRank here(mine);
      auto seed = static_cast<uint32_t>(i);
      for (int round = 0; round < 20; ++round) {
        auto a = here.place(randomBytes(10000, seed));
        auto b = llvm::cantFail(mine.allocateZeroed(20000));
        llvm::cantFail(here.copy(*here.stream, a->getAddress(),
                                 b->getAddress() + 10000, 10000));
        EXPECT_EQ(here.read(b->getAddress() + 10000, 10000),
                  randomBytes(10000, seed));
        EXPECT_EQ(here.read(b->getAddress(), 10000), Bytes(10000));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace

} // namespace ax::rt
