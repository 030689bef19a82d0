//===- ControlTest.cpp - Exchanges, ends and goodbyes ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Jobs.h"

#include "llvm/ADT/StringExtras.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <atomic>
#include <sys/resource.h>
#include <thread>

namespace ax::rt {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

std::string nameOf(const World &world) {
  return std::to_string(world.getPlace().process);
}

std::string join(llvm::Expected<std::vector<std::string>> values) {
  return values ? llvm::join(*values, ",") : textOf(values.takeError());
}

TEST(ControlTest, CarriesAllKindsOfExchanges) {
  for (int32_t numProcesses : {2, 5}) {
    auto results = runThreads(numProcesses, [](World &world) {
      for (int i = 0; i < 50; ++i) {
        std::string own = nameOf(world) + "." + std::to_string(i);
        std::string all = join(world.allGather("all", own));
        for (int32_t p = 0; p < world.getPlace().numProcesses; ++p)
          EXPECT_THAT(all,
                      HasSubstr(std::to_string(p) + "." + std::to_string(i)));
        EXPECT_EQ(join(world.gather("some", own)), world.isFirst() ? all : "");
        EXPECT_EQ(cantFail(world.broadcast("one", own)),
                  "0." + std::to_string(i));
        cantFail(world.barrier("none"));
      }
      return std::string("fine");
    });
    EXPECT_THAT(results, Each("fine"));
  }
}

TEST(ControlTest, CarriesAnyBytesAndSome) {
  std::string large(1 << 20, '\0');
  auto results = runThreads(3, [&](World &world) {
    std::vector<std::string> all = cantFail(world.allGather("bytes", large));
    return std::to_string(all.size()) + (all[2] == large ? " equal" : "");
  });
  EXPECT_THAT(results, Each("3 equal"));
}

/// Behind what is large, heartbeats come as late as the machine is slow.
void waitForLong(ControlOptions &options) {
  options.timeout = std::chrono::minutes(5);
}

TEST(ControlTest, RefusesWhatIsNotLittle) {
  auto results = runThreads(2, [&](World &world) {
    return textOf(world.gather("much", std::string(65 << 20, 'x')).takeError());
  });
  EXPECT_THAT(results, Each(HasSubstr(
                           "much: 68157440 bytes are too many for the control "
                           "channel, which carries 67108864 at most")));
  results = runThreads(
      2,
      [&](World &world) {
        std::string own(40 << 20, world.isFirst() ? 'x' : 'y');
        return join(world.allGather("much", std::move(own)));
      },
      waitForLong);
  EXPECT_THAT(results, Each(HasSubstr("bytes of all processes are too many for "
                                      "the control channel, which carries")));
}

TEST(ControlTest, WhatAllSayGoesOutOnce) {
  auto results = runThreads(
      3,
      [&](World &world) {
        auto all = world.allGather("the same", std::string(40 << 20, 'x'));
        return std::to_string(cantFail(std::move(all)).size());
      },
      waitForLong);
  EXPECT_THAT(results, Each("3"));
}

TEST(ControlTest, SaysWhoIsAtAnotherExchange) {
  auto results = runThreads(3, [](World &world) {
    cantFail(world.barrier("start"));
    if (world.getPlace().process == 2)
      return textOf(world.barrier("save"));
    return join(world.allGather("step", "x"));
  });
  for (const std::string &result : results)
    EXPECT_THAT(result,
                AllOf(HasSubstr("on host host2 at exchange 2, save"),
                      HasSubstr(" is at exchange 2, step, and process 2")));
}

TEST(ControlTest, KindsHaveToBeEqual) {
  auto results = runThreads(2, [](World &world) {
    return world.isFirst() ? textOf(world.barrier("same"))
                           : textOf(world.broadcast("same", "").takeError());
  });
  EXPECT_THAT(results,
              Each(HasSubstr("is at exchange 1, same, and process 1")));
}

TEST(ControlTest, AnAbortReachesAllAndTheirExchanges) {
  for (int32_t who : {0, 1, 2}) {
    std::atomic<int> numTold{0};
    auto results = runThreads(3, [&](World &world) {
      world.setAbortHandler([&](const std::string &reason) {
        EXPECT_EQ(reason, "no more");
        ++numTold;
      });
      cantFail(world.barrier("start"));
      if (world.getPlace().process != who)
        return textOf(world.barrier("never"));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      world.abort("no more");
      EXPECT_EQ(world.getAbortReason(), "no more");
      world.abort("later");
      return textOf(world.barrier("never"));
    });
    EXPECT_THAT(results, Each("never: no more"));
    EXPECT_EQ(numTold, 2) << "it is for the others";
  }
}

TEST(ControlTest, TheFirstAbortDecides) {
  auto results = runThreads(4, [&](World &world) {
    cantFail(world.barrier("start"));
    world.abort("reason of " + nameOf(world));
    return world.getAbortReason();
  });
  EXPECT_THAT(results, Each(results.front()));
  EXPECT_THAT(results.front(), HasSubstr("reason of "));
}

TEST(ControlTest, WhoAsksLateIsTold) {
  auto results = runThreads(2, [&](World &world) {
    cantFail(world.barrier("start"));
    if (world.isFirst()) {
      world.abort("no more");
      return std::string("asked");
    }
    while (world.getAbortReason().empty())
      std::this_thread::yield();
    std::string told = "nothing";
    world.setAbortHandler([&](const std::string &reason) { told = reason; });
    world.setAbortHandler(nullptr);
    return told;
  });
  EXPECT_THAT(results, ElementsAre("asked", "no more"));
}

TEST(ControlTest, WhoIsDoneIsNotLost) {
  for (int32_t early : {0, 1}) {
    auto results = runThreads(
        3,
        [&](World &world) {
          cantFail(world.barrier("last"));
          if (world.getPlace().process != early)
            std::this_thread::sleep_for(std::chrono::milliseconds(1500));
          return "" + world.getAbortReason();
        },
        [](ControlOptions &options) {
          options.timeout = std::chrono::milliseconds(1000);
        });
    EXPECT_THAT(results, Each(""));
  }
}

TEST(ControlTest, ExchangesWithWhoIsDoneFail) {
  for (int32_t early : {0, 1}) {
    auto results = runThreads(3, [&](World &world) {
      cantFail(world.barrier("last"));
      if (world.getPlace().process == early)
        return std::string();
      return textOf(world.barrier("more"));
    });
    std::string gone = "process " + std::to_string(early) + " on host host" +
                       std::to_string(early) + " is done";
    EXPECT_THAT(results[2], AllOf(HasSubstr(gone), HasSubstr("more")));
  }
}

TEST(ControlTest, AJobThatEndsAtOnceEnds) {
  for (int i = 0; i < 20; ++i)
    EXPECT_THAT(runThreads(3, [](World &world) { return nameOf(world); }),
                ElementsAre("0", "1", "2"));
}

TEST(ControlTest, NobodyIsBusyWhileNothingHappens) {
  auto getSeconds = [] {
    rusage used = {};
    getrusage(RUSAGE_SELF, &used);
    auto inSeconds = [](timeval time) {
      return static_cast<double>(time.tv_sec) +
             static_cast<double>(time.tv_usec) * 1e-6;
    };
    return inSeconds(used.ru_utime) + inSeconds(used.ru_stime);
  };
  std::atomic<double> used{0};
  auto results = runThreads(3, [&](World &world) {
    cantFail(world.barrier("start"));
    double before = getSeconds();
    std::this_thread::sleep_for(std::chrono::seconds(2));
    if (world.isFirst())
      used = getSeconds() - before;
    return textOf(world.barrier("end"));
  });
  EXPECT_THAT(results, Each(""));
  EXPECT_LT(used, 0.2) << "seconds of three processes in two";
  // The others stay behind process 0.
  double before = getSeconds();
  results = runThreads(3, [](World &world) {
    cantFail(world.barrier("start"));
    if (!world.isFirst())
      std::this_thread::sleep_for(std::chrono::seconds(2));
    return nameOf(world);
  });
  EXPECT_LT(getSeconds() - before, 0.2);
}

} // namespace
} // namespace ax::rt
