//===- FlightRecorderTest.cpp - What ranks did last, kept and written -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExecutorTestSupport.h"
#include "FlightRing.h"
#include "ThreadWorlds.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <atomic>
#include <thread>

using namespace ax;
using namespace ax::rt;

namespace {

TEST(FlightRing, KeepsTheNewest) {
  auto ring = std::make_unique<FlightRing>();
  EXPECT_TRUE(ring->read().empty());
  constexpr uint64_t count = 2500;
  for (uint64_t i = 0; i < count; ++i)
    EXPECT_EQ(ring->add(static_cast<int32_t>(i % 7), 1, i / 2, 5), i);
  // One that is gone, and one that is there.
  ring->setFinished(3, 9, 4);
  ring->setWaited(3, 9);
  ring->setWaited(count - 1, 8);
  ring->setFinished(count - 1, 9, 4);
  std::vector<FlightEvent> events = ring->read();
  ASSERT_EQ(events.size(), FlightRing::capacity);
  for (size_t i = 0; i < events.size(); ++i) {
    uint64_t number = count - FlightRing::capacity + i;
    EXPECT_EQ(events[i].number, number);
    EXPECT_EQ(events[i].operation, static_cast<int32_t>(number % 7));
    EXPECT_EQ(events[i].sequence, number / 2);
    EXPECT_EQ(events[i].finished, number == count - 1 ? 9 : 0);
    EXPECT_EQ(events[i].waited, number == count - 1 ? 8 : 0);
  }
}

// What is read is one event, however fast they come.
TEST(FlightRing, CanBeReadMeanwhile) {
  auto ring = std::make_unique<FlightRing>();
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint64_t i = 0; !stop.load(); ++i) {
      uint64_t number = ring->add(static_cast<int32_t>(i % 1009),
                                  static_cast<int32_t>(i % 13), 3 * i,
                                  static_cast<int64_t>(i + 1));
      ring->setWaited(number, static_cast<int64_t>(i + 2));
      ring->setFinished(number, static_cast<int64_t>(i + 3), i);
    }
  });
  uint64_t newest = 0;
  while (newest < 100 * FlightRing::capacity && !HasFailure()) {
    uint64_t before = 0;
    for (const FlightEvent &event : ring->read()) {
      uint64_t i = event.number;
      auto time = static_cast<int64_t>(i);
      EXPECT_EQ(event.operation, static_cast<int32_t>(i % 1009));
      EXPECT_EQ(event.microBatch, static_cast<int32_t>(i % 13));
      EXPECT_EQ(event.sequence, 3 * i);
      EXPECT_EQ(event.started, time + 1);
      EXPECT_TRUE(event.waited == 0 || event.waited == time + 2);
      EXPECT_TRUE(event.finished == 0 || event.finished == time + 3);
      EXPECT_TRUE(event.finished == 0 || event.finishedBy == i);
      EXPECT_TRUE(before == 0 || i > before);
      before = i;
    }
    newest = std::max(newest, before);
  }
  stop = true;
  writer.join();
}

class FlightRecords : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("ax-flight", folder));
    recorder = llvm::cantFail(FlightRecorder::create(folder.str().str()));
    options.recorder = recorder;
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  /// The lines of a rank's record.
  std::vector<llvm::json::Object> read(int32_t rank) const {
    std::vector<llvm::json::Object> lines;
    auto file = llvm::MemoryBuffer::getFile(folder.str() + "/rank-" +
                                            std::to_string(rank) + ".jsonl");
    if (!file) {
      ADD_FAILURE() << "no record of rank " << rank;
      return {{}};
    }
    llvm::SmallVector<llvm::StringRef> texts;
    (*file)->getBuffer().split(texts, '\n', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef text : texts)
      lines.push_back(*llvm::cantFail(llvm::json::parse(text)).getAsObject());
    return lines;
  }
  static bool isNull(const llvm::json::Object &line, llvm::StringRef field) {
    const llvm::json::Value *value = line.get(field);
    return value && value->kind() == llvm::json::Value::Null;
  }

  llvm::SmallString<128> folder;
  std::shared_ptr<FlightRecorder> recorder;
  ExecutorOptions options;
};

std::atomic<bool> stayAsleep{false};

/// scalars[0]: the rank that hangs is the one with 1.
void hang(void *const *, const int64_t *scalars, int64_t, int64_t) {
  while (scalars[0] && stayAsleep)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// One exchange that all do, and one that a rank does not come to.
TEST_F(FlightRecords, SayWhoHangs) {
  ProgramBuilder b({{"col", 2, false}});
  b.stages(1);
  int32_t buffer = b.buffer(0, Space::Arena, 0, 64);
  int32_t group = b.group(0, "col");
  b.allReduce(0, group, buffer, buffer, {16});
  b.kernel(0, "slow.softmax", hang, {buffer}, 1, {Scalar{0, 1, b.over("col")}});
  b.allReduce(0, group, buffer, buffer, {8});
  options.timeout = std::chrono::milliseconds(100);
  auto executor = create(b, options);
  ASSERT_TRUE(executor);
  llvm::cantFail(executor->run({}));
  stayAsleep = true;
  auto outputs = executor->run({});
  ASSERT_FALSE(bool(outputs));
  std::string message = failureOf(outputs.takeError(), ExitCode::RunFailed);
  EXPECT_NE(message.find("; what ranks did last is in '" + folder.str().str() +
                         "': ax-analyze-flight reads it"),
            std::string::npos)
      << message;
  for (int32_t rank : {0, 1}) {
    auto lines = read(rank);
    // The header, the group, and what was begun.
    ASSERT_EQ(lines.size(), rank == 0 ? 6u : 5u);
    EXPECT_EQ(lines[0].getInteger("num_ranks"), 2);
    EXPECT_EQ(lines[0].getBoolean("is_failure"), true);
    EXPECT_NE(message.find(lines[0].getString("reason")->str()),
              std::string::npos);
    EXPECT_TRUE(lines[0].getString("doing")->contains(
        rank == 0 ? "'sum0' (all_reduce" : "'slow.softmax'"));
    EXPECT_EQ(lines[1].getInteger("started"), rank == 0 ? 4 : 3);
    EXPECT_EQ(lines[1].getInteger("finished"), 3);
    EXPECT_EQ(lines[1].getArray("ranks")->size(), 2u);
    for (size_t i = 2; i < lines.size(); ++i) {
      EXPECT_EQ(lines[i].getInteger("sequence"), static_cast<int64_t>(i - 2));
      EXPECT_EQ(lines[i].getInteger("bytes"), i % 2 == 0 ? 64 : 32);
      EXPECT_EQ(lines[i].getString("kind"), "all_reduce");
      EXPECT_FALSE(isNull(lines[i], "waited"));
      EXPECT_EQ(isNull(lines[i], "finished"), i == 5);
    }
  }
  // A record of the failure is not written over.
  stayAsleep = false;
  EXPECT_FALSE(recorder->keep("later"));
  llvm::cantFail(recorder->writeNow("later"));
  EXPECT_NE(read(0)[0].getString("reason"), "later");
}

// Also where it goes on only when the record is taken.
TEST_F(FlightRecords, SayWhenTheProcessWasStopped) {
  llvm::cantFail(recorder->join(*makeLoneWorld(), 1));
  recorder->openLog(0);
  auto write = [&] {
    llvm::cantFail(recorder->writeNow("test"));
    return read(0)[0];
  };
  auto wait = [](int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  };
  recorder->tick();
  wait(100);
  recorder->tick();
  llvm::json::Object header = write();
  EXPECT_EQ(header.getInteger("stopped"), 0);
  EXPECT_TRUE(isNull(header, "stopped_until"));
  wait(1100);
  header = write();
  EXPECT_GE(*header.getInteger("stopped"), 1'100'000);
  EXPECT_EQ(header.getInteger("stopped_until"), header.getInteger("taken"));
  recorder->tick();
  // Times are told in microseconds.
  wait(2);
  header = write();
  EXPECT_LT(*header.getInteger("stopped_until"), *header.getInteger("taken"));
  // Where nobody says so, nobody knows.
  recorder->endTicks();
  std::optional<int64_t> until = header.getInteger("stopped_until");
  wait(1100);
  recorder->tick();
  EXPECT_LE(std::abs(*write().getInteger("stopped_until") - *until), 1000);
  // It may have gone on when the last thing that is done is to say no more.
  wait(1200);
  recorder->endTicks();
  wait(2);
  header = write();
  EXPECT_GE(*header.getInteger("stopped"), 1'200'000);
  EXPECT_GT(*header.getInteger("stopped_until"), *until);
}

// The record of one that another process ends is of the same run.
TEST_F(FlightRecords, AreWrittenByEachProcess) {
  ProgramBuilder b({{"col", 2, false}});
  b.stages(1);
  int32_t buffer = b.buffer(0, Space::Arena, 0, 64);
  b.kernel(0, "slow.softmax", hang, {buffer}, 1, {Scalar{0, 1, b.over("col")}});
  b.allReduce(0, b.group(0, "col"), buffer, buffer, {16});
  options.timeout = std::chrono::milliseconds(100);
  ThreadWorlds job(2);
  auto other = llvm::cantFail(FlightRecorder::create(folder.str().str()));
  auto executors =
      takeAll(job.create({b.program, b.program}, options, {recorder, other}));
  stayAsleep = true;
  job.run([&](size_t process) {
    auto outputs = executors[process]->run({});
    ASSERT_FALSE(bool(outputs));
    std::string message = llvm::toString(outputs.takeError());
    EXPECT_NE(message.find("; what ranks did last is in '"), std::string::npos)
        << message;
  });
  stayAsleep = false;
  auto first = read(0), second = read(1);
  EXPECT_EQ(first[0].getString("run"), second[0].getString("run"));
  EXPECT_EQ(first[0].getString("host"), "host0");
  EXPECT_EQ(second[0].getInteger("process"), 1);
  EXPECT_EQ(first.back().getString("name"), "sum0");
  EXPECT_TRUE(isNull(first.back(), "finished"));
  // It has not come there.
  EXPECT_EQ(second[1].getInteger("started"), 0);
  EXPECT_EQ(second.size(), 2u);
}

// Two stages, exchanges that are waited for later, and two executors.
TEST_F(FlightRecords, CountWhatGroupsDo) {
  ProgramBuilder b({{"pipe", 2, false}, {"col", 2, false}, {"micro", 2, true}});
  b.stages(2);
  b.transfer(0, 64, 2);
  int32_t from = b.buffer(0, Space::Arena, 0, 64);
  int32_t to = b.buffer(0, Space::Arena, 0, 64);
  b.allReduce(0, b.group(0, "col"), from, to, {16}, 0);
  b.add(0, WaitCommand{0}, "wait");
  b.add(0, SendCommand{0, {to, 0}}, "send");
  b.buffer(1, Space::Received, 0, 64);
  b.add(1, RecvCommand{0}, "recv");
  for (int executors = 1; executors <= 2; ++executors) {
    auto executor = create(b, options);
    ASSERT_TRUE(executor);
    llvm::cantFail(executor->run({}));
    llvm::cantFail(recorder->writeNow("asked"));
    // Two micro-batches of each.
    int64_t count = 2 * executors;
    for (int32_t rank = 0; rank < 4; ++rank) {
      auto lines = read(rank);
      bool isSender = rank < 2;
      size_t groups = isSender ? 2 : 1;
      ASSERT_EQ(lines.size(), 1 + groups + groups * count);
      EXPECT_EQ(lines[0].getBoolean("is_failure"), false);
      EXPECT_EQ(lines[0].getString("doing"), "");
      for (size_t i = 1; i <= groups; ++i) {
        EXPECT_EQ(lines[i].getInteger("started"), count);
        EXPECT_EQ(lines[i].getInteger("finished"), count);
      }
      llvm::json::Object &transfer = lines[groups];
      EXPECT_EQ(transfer.getBoolean("is_transfer"), true);
      EXPECT_EQ(transfer.getArray("ranks")->front().getAsInteger(), rank % 2);
      EXPECT_EQ(transfer.getArray("ranks")->back().getAsInteger(),
                2 + rank % 2);
      llvm::json::Object &last = lines.back();
      EXPECT_EQ(last.getString("kind"), isSender ? "send" : "receive");
      EXPECT_EQ(last.getInteger("sequence"), count - 1);
      EXPECT_EQ(last.getInteger("micro_batch"), 1);
      EXPECT_FALSE(isNull(last, "finished"));
    }
  }
}

TEST_F(FlightRecords, SayThatTheyCannotBeWritten) {
  ProgramBuilder b({{"col", 2, false}});
  b.stages(1);
  int32_t buffer = b.buffer(0, Space::Arena, 0, 64);
  b.allReduce(0, b.group(0, "col"), buffer, buffer, {16});
  auto executor = create(b, options);
  ASSERT_TRUE(executor);
  llvm::sys::fs::remove_directories(folder);
  failureOf(recorder->writeNow("asked"), ExitCode::InputOutput);
  EXPECT_EQ(recorder->write(), "");
  EXPECT_TRUE(recorder->keep("why"));
  std::string text = recorder->write();
  EXPECT_NE(text.find("; and the flight record could not be written: cannot "
                      "write '" +
                      folder.str().str() + "/rank-0.jsonl'"),
            std::string::npos)
      << text;
  auto file = llvm::cantFail(llvm::sys::fs::openNativeFileForWrite(
      folder, llvm::sys::fs::CD_CreateAlways, llvm::sys::fs::OF_None));
  llvm::sys::fs::closeFile(file);
  failureOf(FlightRecorder::create(folder.str().str() + "/x").takeError(),
            ExitCode::InputOutput);
  llvm::sys::fs::remove(folder);
}

} // namespace
