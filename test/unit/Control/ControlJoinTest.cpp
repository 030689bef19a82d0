//===- ControlJoinTest.cpp - Who may join, and when -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../NoThreads.h"
#include "Jobs.h"

#include "ax/Runtime/Listener.h"
#include "ax/Support/Error.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <arpa/inet.h>
#include <atomic>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace ax::rt {
namespace {

using testing::AllOf;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string sayYes(World &) { return "yes"; }

/// A port of this host that is in use.
class TakenPort {
public:
  TakenPort() : file(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto *place = reinterpret_cast<sockaddr *>(&address);
    socklen_t size = sizeof(address);
    if (bind(file, place, size) || getsockname(file, place, &size))
      std::abort();
    port = ntohs(address.sin_port);
  }
  ~TakenPort() { close(file); }
  void listen() const { ::listen(file, 1); }

  uint16_t port;

private:
  int file;
};

TEST(ControlJoinTest, SaysWhoHasSomethingElse) {
  auto results = runThreads(4, sayYes, [](ControlOptions &options) {
    int32_t process = options.place.process;
    options.agreed = {{"plan", process == 2 ? "beef" : "cafe"},
                      {"version", "1"}};
    if (process == 3)
      options.agreed.pop_back();
  });
  EXPECT_THAT(results,
              Each("process 2 on host host2 has another plan than process 0 on "
                   "host host0: beef instead of cafe; process 3 on host host3 "
                   "has another version than process 0 on host host0: nothing "
                   "instead of 1"));
}

TEST(ControlJoinTest, SaysItOfSomeWhereItIsMany) {
  auto results = runThreads(12, sayYes, [](ControlOptions &options) {
    options.agreed = {{"plan", options.place.process ? "beef" : "cafe"}};
  });
  EXPECT_THAT(results,
              Each(AllOf(HasSubstr("process 8 on host host8"),
                         Not(HasSubstr("process 9")), EndsWith("; 3 more"))));
}

TEST(ControlJoinTest, EqualValuesAreFine) {
  auto results = runThreads(3, sayYes, [](ControlOptions &options) {
    options.agreed = {{"plan", "cafe"}, {"version", "1"}};
    if (options.place.process)
      std::swap(options.agreed[0], options.agreed[1]);
  });
  EXPECT_THAT(results, Each("yes"));
}

TEST(ControlJoinTest, WaitsForWhoIsLate) {
  auto results = runThreads(3, sayYes, [](ControlOptions &options) {
    options.timeout = std::chrono::milliseconds(800);
    if (options.place.process == 1)
      std::this_thread::sleep_for(std::chrono::seconds(2));
  });
  EXPECT_THAT(results, Each("yes"));
}

TEST(ControlJoinTest, SaysWhoIsMissing) {
  auto results = runThreads(4, sayYes, [](ControlOptions &options) {
    options.joinTimeout = std::chrono::seconds(1);
    // It looks for a process 0 that is not there.
    if (options.place.process >= 2)
      options.broadcast = [](std::string) {
        return "a" + ControlAddress{{"127.0.0.1"}, 1, "key"}.encode();
      };
  });
  for (int i : {0, 1})
    EXPECT_EQ(results[static_cast<size_t>(i)],
              "processes 2, 3 of 4 did not join within 1 s");
  EXPECT_EQ(results[3],
            "process 0 does not answer at 127.0.0.1, port 1, within "
            "1 s, to process 3 on host host3");
}

TEST(ControlJoinTest, WhoLacksTheKeyIsKeptOut) {
  auto results = runThreads(3, sayYes, [](ControlOptions &options) {
    options.joinTimeout = std::chrono::seconds(2);
    if (options.place.process != 2)
      return;
    auto broadcast = options.broadcast;
    options.broadcast =
        [broadcast](std::string value) -> llvm::Expected<std::string> {
      ControlAddress address = cantFail(
          ControlAddress::decode(cantFail(broadcast(value)).substr(1)));
      address.key[5] ^= 1;
      return "a" + address.encode();
    };
  });
  EXPECT_EQ(results[0], "process 2 of 3 did not join within 2 s");
  EXPECT_THAT(results[2],
              AllOf(StartsWith("process 0 does not answer"),
                    HasSubstr("to process 2 on host host2; who listened at "),
                    EndsWith(" has another key")));
}

// Each time takes sockets of ZeroMQ, which go a while after they are closed.
TEST(ControlJoinTest, WhoIsTurnedAwayComesBackAWhileLater) {
  control::Listener listener = cantFail(control::listenAt("127.0.0.1"));
  std::atomic<int> numCome{0};
  std::thread other([&] {
    for (int file; (file = accept(listener.socket, nullptr, nullptr)) >= 0;) {
      ++numCome;
      close(file);
    }
  });
  ControlOptions options = makeOptions(1, 2);
  options.joinTimeout = std::chrono::seconds(2);
  options.broadcast = [&](std::string) {
    return "a" + listener.address.encode();
  };
  EXPECT_THAT(textOf(joinControl(std::move(options)).takeError()),
              StartsWith("process 0 does not answer"));
  shutdown(listener.socket, SHUT_RDWR);
  other.join();
  close(listener.socket);
  EXPECT_GT(numCome, 2);
  // It also looks whether anybody is there.
  EXPECT_LE(numCome, 2 * 11);
}

TEST(ControlJoinTest, NumbersHaveToFit) {
  auto results = runThreads(3, sayYes, [](ControlOptions &options) {
    if (options.place.process == 2)
      options.place.process = 1;
  });
  EXPECT_THAT(results[0], AllOf(HasSubstr("two processes, on hosts host"),
                                HasSubstr("say that they are number 1")));
  EXPECT_THAT(results, Each(results[0]));
  results = runThreads(3, sayYes, [](ControlOptions &options) {
    if (options.place.process == 2)
      options.place.numProcesses = 2;
  });
  EXPECT_EQ(results[0],
            "a process on host host2 says that it is number 2 of 2, "
            "and process 0 is one of 3");
}

TEST(ControlJoinTest, WhoComesWhenItIsOverIsToldAtOnce) {
  auto begin = std::chrono::steady_clock::now();
  auto results = runThreads(4, sayYes, [](ControlOptions &options) {
    if (options.place.process == 2)
      options.place.numProcesses = 2;
    if (options.place.process == 3)
      std::this_thread::sleep_for(std::chrono::milliseconds(800));
  });
  EXPECT_THAT(results, Each("a process on host host2 says that it is number 2 "
                            "of 2, and process 0 is one of 4"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(ControlJoinTest, WhoComesLongAfterTheEndIsToldOfIt) {
  auto begin = std::chrono::steady_clock::now();
  auto results = runThreads(4, sayYes, [](ControlOptions &options) {
    if (options.place.process == 2)
      options.place.numProcesses = 2;
    if (options.place.process != 3)
      return;
    auto broadcast = options.broadcast;
    options.broadcast = [broadcast](std::string value) {
      auto told = broadcast(std::move(value));
      std::this_thread::sleep_for(std::chrono::seconds(4));
      return told;
    };
  });
  EXPECT_THAT(results[0], StartsWith("a process on host host2 says"));
  EXPECT_THAT(results[3],
              AllOf(StartsWith("process 0 is not there any more (nobody "
                               "listens at 127.0.0.1, port "),
                    EndsWith("the job has ended before this process joined it. "
                             "What process 0 has said tells why; then start "
                             "all processes again")));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

// Nobody else tells people.
TEST(ControlJoinTest, WhoFindsNobodyIsAlone) {
  ControlOptions options = makeOptions(1, 2);
  options.broadcast = [](std::string) {
    return "a" + ControlAddress{{"127.0.0.1"}, 1, "key"}.encode();
  };
  auto world = joinControl(std::move(options));
  ASSERT_FALSE(bool(world));
  llvm::Error error = world.takeError();
  EXPECT_TRUE(error.isA<AloneError>());
  ErrorDescription why = describeError(std::move(error));
  EXPECT_EQ(why.code, ExitCode::RunFailed);
  EXPECT_THAT(why.message, StartsWith("process 0 is not there any more"));
}

TEST(ControlJoinTest, AFirstThatHasNotComeIsWaitedFor) {
  uint16_t port = TakenPort().port;
  auto results = runThreads(2, sayYes, [port](ControlOptions &options) {
    options.meeting = {{"127.0.0.1"}, port, std::string(32, '0')};
    options.address = "127.0.0.1:" + std::to_string(port);
    if (options.place.process == 0)
      std::this_thread::sleep_for(std::chrono::seconds(8));
  });
  EXPECT_THAT(results, Each("yes"));
}

TEST(ControlJoinTest, WhoHasNoThreadIsToldOfIt) {
  for (int32_t lacking : {0, 1}) {
    Processes processes(2, sayYes, [=](ControlOptions &options) {
      options.joinTimeout = std::chrono::seconds(1);
      if (options.place.process != lacking)
        return;
      // It is there until the process ends.
      static NoThreads here;
    });
    EXPECT_EQ(processes.wait(lacking, std::chrono::seconds(10)),
              "no thread for the control channel: Resource temporarily "
              "unavailable: allow more threads (ulimit -u, pids.max of the "
              "container) or memory (ulimit -v)");
    EXPECT_THAT(processes.wait(1 - lacking, std::chrono::seconds(10)),
                StartsWith(lacking ? "process 1 of 2 did not join within 1 s"
                                   : "no thread for the control channel: "));
  }
}

TEST(ControlJoinTest, ABroadcastThatFailsIsAnError) {
  auto results = runThreads(2, sayYes, [](ControlOptions &options) {
    options.broadcast = [](std::string) -> llvm::Expected<std::string> {
      return makeError(ExitCode::RunFailed, "the launcher is gone");
    };
  });
  EXPECT_THAT(results, Each("the launcher is gone"));
}

TEST(ControlJoinTest, AnAddressMayBeGiven) {
  for (const char *address :
       {"127.0.0.1", "127.0.0.1:0", "localhost:", ":0", "", "[127.0.0.1]:0"})
    EXPECT_THAT(
        runThreads(2, sayYes,
                   [&](ControlOptions &options) { options.address = address; }),
        Each("yes"))
        << address;
  uint16_t port = TakenPort().port;
  EXPECT_THAT(
      runThreads(
          2, sayYes,
          [&](ControlOptions &options) {
            options.address = "127.0.0.1:" + std::to_string(port);
            auto broadcast = options.broadcast;
            options.broadcast = [=](std::string value) {
              llvm::Expected<std::string> told = broadcast(std::move(value));
              EXPECT_EQ(cantFail(ControlAddress::decode(told->substr(1))).port,
                        port);
              return told;
            };
          }),
      Each("yes"));
}

TEST(ControlJoinTest, AnAddressThatCannotBeIsOneError) {
  auto refuse = [&](const std::string &address) {
    auto results = runThreads(
        2, sayYes, [&](ControlOptions &options) { options.address = address; });
    EXPECT_THAT(results, Each(results.front()));
    return results.front();
  };
  TakenPort taken;
  taken.listen();
  std::string address = "127.0.0.1:" + std::to_string(taken.port);
  EXPECT_EQ(refuse(address), "the control channel cannot listen at " + address +
                                 ": Address already in use");
  EXPECT_THAT(refuse("192.0.2.1:0"),
              HasSubstr("cannot listen at 192.0.2.1:0: Cannot assign"));
  EXPECT_THAT(refuse("127.0.0.1:70000"),
              HasSubstr("a port is a number below 65536"));
  EXPECT_THAT(refuse("no host.invalid:1"), HasSubstr("cannot listen at"));
}

} // namespace
} // namespace ax::rt
