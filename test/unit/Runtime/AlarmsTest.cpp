//===- AlarmsTest.cpp - Who tells others of a failure ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExecutorTestSupport.h"
#include "ThreadWorlds.h"

#include "gmock/gmock.h"

using namespace ax;
using namespace ax::rt;

namespace {

using testing::Each;
using testing::HasSubstr;

/// How often the ranks of a job were told to stop.
struct Alarms {
  std::atomic<int> announced{0}, stopped{0};
};

/// Another one, and a count.
class CountingCommunicator : public Communicator {
public:
  CountingCommunicator(std::unique_ptr<Communicator> inner, Alarms &alarms)
      : inner(std::move(inner)), alarms(alarms) {}

  int32_t getRank() const override { return inner->getRank(); }
  int32_t getSize() const override { return inner->getSize(); }
  llvm::Expected<std::shared_ptr<Group>>
  createGroup(llvm::ArrayRef<int32_t> ranks) override {
    return inner->createGroup(ranks);
  }
  llvm::Expected<std::unique_ptr<Operation>>
  prepare(const CollectiveSpecs &specs, const std::shared_ptr<Group> &group,
          const std::string &name) override {
    return inner->prepare(specs, group, name);
  }
  llvm::Expected<std::unique_ptr<Operation>>
  prepareSend(int32_t peer, int64_t tag, int64_t bytes,
              const std::string &name) override {
    return inner->prepareSend(peer, tag, bytes, name);
  }
  llvm::Expected<std::unique_ptr<Operation>>
  prepareReceive(int32_t peer, int64_t tag, int64_t bytes,
                 const std::string &name) override {
    return inner->prepareReceive(peer, tag, bytes, name);
  }
  llvm::Error barrier(Group &group) override { return inner->barrier(group); }
  void abort(const std::string &reason) override {
    ++alarms.announced;
    inner->abort(reason);
  }
  void stop(const std::string &reason) override {
    ++alarms.stopped;
    inner->stop(reason);
  }
  std::string getAbortReason() const override {
    return inner->getAbortReason();
  }

private:
  std::unique_ptr<Communicator> inner;
  Alarms &alarms;
};

constexpr int32_t numProcesses = 6;

std::atomic<bool> stayAsleep{false};

void hang(void *const *, const int64_t *, int64_t, int64_t) {
  while (stayAsleep)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Has all processes run a program whose ranks wait for each other after a
/// kernel; `run` is called in each with its executor and world. Returns what
/// they have failed with.
std::vector<std::string>
runAndFail(Alarms &alarms, const ExecutorOptions &options,
           llvm::function_ref<llvm::Error(Executor &, World &)> run) {
  ProgramBuilder b({{"col", numProcesses, false}});
  b.stages(1);
  int32_t buffer = b.buffer(0, Space::Arena, 0, 64);
  b.kernel(0, "slow", hang, {buffer}, 1);
  b.allReduce(0, b.group(0, "col"), buffer, buffer, {16});
  ThreadWorlds job(numProcesses);
  job.wrap = [&](std::unique_ptr<Communicator> inner) {
    return std::make_unique<CountingCommunicator>(std::move(inner), alarms);
  };
  auto executors = takeAll(job.create(b.program, options));
  std::vector<std::string> messages(executors.size());
  job.run([&](size_t process) {
    messages[process] =
        llvm::toString(run(*executors[process], *job.worlds[process]));
  });
  stayAsleep = false;
  return messages;
}

TEST(AlarmsTest, WhatIsHeardFromOthersIsNotAnnouncedAgain) {
  Alarms alarms;
  auto messages = runAndFail(
      alarms, {}, [](Executor &executor, World &world) -> llvm::Error {
        if (!world.isFirst())
          return executor.run({}).takeError();
        // The others wait for it.
        world.abort("lost the connection to process 9");
        return makeError(ExitCode::RunFailed, world.getAbortReason());
      });
  EXPECT_THAT(messages, Each(HasSubstr("lost the connection to process 9")));
  EXPECT_EQ(alarms.announced, 0);
  EXPECT_GE(alarms.stopped, numProcesses - 1);
}

TEST(AlarmsTest, OfManyFailuresOneIsAnnounced) {
  Alarms alarms;
  ExecutorOptions options;
  options.timeout = std::chrono::milliseconds(50);
  stayAsleep = true;
  auto messages = runAndFail(alarms, options, [](Executor &executor, World &) {
    return executor.run({}).takeError();
  });
  EXPECT_THAT(messages, Each(HasSubstr("no rank got on for 50 ms")));
  EXPECT_EQ(alarms.announced, 1);
}

} // namespace
