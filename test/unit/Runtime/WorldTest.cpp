//===- WorldTest.cpp - Which ranks a process runs -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/World.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ax::rt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// One of several, whose exchanges nobody makes.
class Process : public World {
public:
  Process(int32_t process, int32_t numProcesses)
      : World({process, numProcesses, "host"}) {}
  llvm::Expected<std::vector<std::string>> allGather(llvm::StringRef,
                                                     std::string) override {
    return std::vector<std::string>();
  }
  llvm::Expected<std::vector<std::string>> gather(llvm::StringRef,
                                                  std::string) override {
    return std::vector<std::string>();
  }
  llvm::Expected<std::string> broadcast(llvm::StringRef, std::string) override {
    return std::string();
  }
  llvm::Error barrier(llvm::StringRef) override {
    return llvm::Error::success();
  }
  void abort(const std::string &) override {}
  std::string getAbortReason() const override { return ""; }
  void setAbortHandler(std::function<void(const std::string &)>) override {}
  void setProgress(std::function<std::string()>) override {}
};

TEST(WorldTest, ALoneProcessRunsAllRanks) {
  std::unique_ptr<World> world = makeLoneWorld();
  EXPECT_TRUE(world->isAlone());
  EXPECT_TRUE(world->isFirst());
  EXPECT_THAT(cantFail(world->getRanks(3)), ElementsAre(0, 1, 2));
  EXPECT_EQ(world->processOf(2), 0);
}

TEST(WorldTest, OneOfSeveralRunsItsOwn) {
  Process world(2, 4);
  EXPECT_FALSE(world.isAlone());
  EXPECT_FALSE(world.isFirst());
  EXPECT_THAT(cantFail(world.getRanks(4)), ElementsAre(2));
  EXPECT_EQ(world.processOf(3), 3);
}

TEST(WorldTest, RefusesAnotherNumberOfRanks) {
  Process world(2, 4);
  EXPECT_THAT(toString(world.getRanks(8).takeError()),
              HasSubstr("the plan has 8 ranks, and the job has 4 processes; "
                        "start one process for each rank"));
  EXPECT_THAT(toString(world.getRanks(1).takeError()),
              HasSubstr("the plan has 1 rank, and the job has 4 processes"));
}

TEST(WorldTest, ALoneProcessExchangesWithItself) {
  std::unique_ptr<World> world = makeLoneWorld();
  EXPECT_THAT(cantFail(world->allGather("names", "a")), ElementsAre("a"));
  EXPECT_THAT(cantFail(world->gather("names", "b")), ElementsAre("b"));
  EXPECT_EQ(cantFail(world->broadcast("name", "c")), "c");
  cantFail(world->barrier("start"));
}

TEST(WorldTest, NothingIsExchangedAfterAnAbort) {
  std::unique_ptr<World> world = makeLoneWorld();
  world->abort("no more");
  world->abort("later");
  EXPECT_EQ(world->getAbortReason(), "no more");
  EXPECT_EQ(toString(world->barrier("start")), "start: no more");
  EXPECT_EQ(toString(world->broadcast("name", "c").takeError()),
            "name: no more");
}

} // namespace
} // namespace ax::rt
