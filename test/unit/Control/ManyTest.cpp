//===- ManyTest.cpp - Jobs of many processes ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Jobs.h"
#include "Message.h"
#include "Zmq.h"

#include "ax/Runtime/Listener.h"
#include "ax/Support/Error.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace ax::rt {
namespace {

using control::Frames;
using control::Message;
using control::MessageKind;
using control::Zmq;
using control::ZmqContext;
using control::ZmqSocket;
using testing::AllOf;
using testing::HasSubstr;

/// All other processes of a job, of which each is a connection and no more.
class Others {
public:
  Others(ZmqContext &context, llvm::StringRef told, int32_t numProcesses) {
    ControlAddress address = cantFail(ControlAddress::decode(told.substr(1)));
    for (int32_t process = 1; process < numProcesses; ++process) {
      auto &made = sockets.emplace_back(
          std::make_unique<ZmqSocket>(context, ZMQ_DEALER));
      made->set(ZMQ_PLAIN_USERNAME, std::string("ax"));
      made->set(ZMQ_PLAIN_PASSWORD, address.key);
      cantFail(
          made->connect("tcp://127.0.0.1:" + std::to_string(address.port)));
      send(process, {MessageKind::Hello, static_cast<uint64_t>(process),
                     static_cast<uint64_t>(numProcesses),
                     "host" + std::to_string(process)});
      // Those that are there beat while others still connect.
      if (process % 50 == 0)
        sendAll({MessageKind::Heartbeat});
    }
  }

  void send(int32_t process, const Message &message) {
    sockets[static_cast<size_t>(process) - 1]->send({message.encode()});
  }
  void sendAll(const Message &message) {
    for (size_t i = 1; i <= sockets.size(); ++i)
      send(static_cast<int32_t>(i), message);
  }
  /// Returns the next message of a kind to a process; fails where it does not
  /// come in time.
  Message await(int32_t process, MessageKind kind) {
    ZmqSocket &socket = *sockets[static_cast<size_t>(process) - 1];
    Frames got;
    while (std::chrono::steady_clock::now() < deadline) {
      if (!socket.receive(got)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        continue;
      }
      Message message = *Message::decode(got.frames.front());
      if (message.kind == kind)
        return message;
    }
    ADD_FAILURE() << "process " << process << " waits for a message";
    return {kind};
  }
  std::vector<Message> awaitAll(MessageKind kind) {
    std::vector<Message> messages;
    for (size_t i = 1; i <= sockets.size(); ++i)
      messages.push_back(await(static_cast<int32_t>(i), kind));
    return messages;
  }

private:
  std::vector<std::unique_ptr<ZmqSocket>> sockets;
  std::chrono::steady_clock::time_point deadline =
      std::chrono::steady_clock::now() + std::chrono::minutes(2);
};

/// Process 0 of a job, and its world.
class First {
public:
  explicit First(ControlOptions options) {
    options.broadcast = broadcast.at(0);
    thread = std::thread([this, options = std::move(options)] {
      auto joined = joinControl(options);
      if (joined)
        world = std::move(*joined);
      else
        error = textOf(joined.takeError());
    });
  }
  ~First() {
    if (thread.joinable())
      thread.join();
  }
  std::string getTold() { return broadcast.get(); }
  /// Returns null, and fails, where process 0 could not join.
  World *join() {
    thread.join();
    if (!world)
      ADD_FAILURE() << error;
    return world.get();
  }
  void leave() { world.reset(); }

private:
  ThreadBroadcast broadcast;
  std::unique_ptr<World> world;
  std::string error;
  std::thread thread;
};

constexpr int32_t numMany = 1000;

ControlOptions manyOptions() {
  ControlOptions options = makeOptions(0, numMany);
  options.timeout = std::chrono::seconds(60);
  return options;
}

/// A thousand processes, of which each end of a connection is a file here.
class ThousandTest : public testing::Test {
protected:
  void SetUp() override {
    constexpr rlim_t needed = 4 * numMany;
    rlimit limit = {};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    if (limit.rlim_max < needed || setrlimit(RLIMIT_NOFILE, &limit))
      GTEST_SKIP() << "needs " << needed << " open files (ulimit -n)";
  }
};

TEST_F(ThousandTest, JoinMeetAndLeave) {
  ZmqContext context(*cantFail(Zmq::load()));
  First first(manyOptions());
  Others others(context, first.getTold(), numMany);
  World *world = first.join();
  ASSERT_TRUE(world);
  others.awaitAll(MessageKind::Welcome);
  for (uint64_t number = 1; number <= 3; ++number) {
    others.sendAll({MessageKind::Heartbeat, number, 0, "one", "busy"});
    others.sendAll({MessageKind::Exchange, number, 3, "one"});
    cantFail(world->barrier("one"));
    for (const Message &result : others.awaitAll(MessageKind::Result))
      EXPECT_EQ(result.number, number);
  }
  others.sendAll({MessageKind::Goodbye});
  others.awaitAll(MessageKind::Goodbye);
  first.leave();
}

TEST_F(ThousandTest, OneIsMissedByName) {
  ZmqContext context(*cantFail(Zmq::load()));
  ControlOptions options = manyOptions();
  options.timeout = std::chrono::seconds(4);
  First first(std::move(options));
  Others others(context, first.getTold(), numMany);
  others.send(500, {MessageKind::Heartbeat, 7, 0, "step 7", "at number 41"});
  std::atomic<bool> isOver{false};
  std::thread beating([&] {
    while (!isOver.load()) {
      for (int32_t i = 1; i < numMany; ++i)
        if (i != 500)
          others.send(i, {MessageKind::Heartbeat});
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  });
  World *world = first.join();
  std::string text = world ? textOf(world->barrier("never")) : "";
  isOver = true;
  beating.join();
  EXPECT_THAT(text, AllOf(HasSubstr("nothing is heard any more from process "
                                    "500 on host host500 ("),
                          HasSubstr(" s ago it was at number 41)")));
  EXPECT_THAT(text, testing::Not(HasSubstr(", process ")));
  first.leave();
}

TEST(ManyTest, MoreProcessesThanOpenFilesAreRefused) {
  ControlOptions options = makeOptions(0, 1 << 30);
  ThreadBroadcast broadcast;
  options.broadcast = broadcast.at(0);
  auto world = joinControl(std::move(options));
  ASSERT_FALSE(bool(world));
  ErrorDescription error = describeError(world.takeError());
  EXPECT_EQ(error.code, ExitCode::Usage);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("process 0 has a connection of each of "
                              "1073741824 processes, and may have "),
                    HasSubstr(" files open: allow it more (ulimit -n, on its "
                              "host)")));
  EXPECT_THAT(broadcast.get(), HasSubstr(error.message)) << "others are told";
}

TEST(ManyTest, FilesOfAllProcessesAreAnotherLimit) {
  EXPECT_EQ(control::describeFewFiles(4, ENFILE),
            "process 0 has a connection of each of 4 processes, and all "
            "processes of its host together have as many files open as there "
            "may be: allow more (sysctl fs.file-max, on its host)");
  EXPECT_THAT(control::describeFewFiles(4, EMFILE), HasSubstr("(ulimit -n, "));
}

/// Something else has opened all files that there may be.
TEST(ManyTest, WhoCannotBeLetInForLackOfFilesIsSaid) {
  // The other one connects when no file is left.
  int noneLeft[2];
  ASSERT_EQ(pipe(noneLeft), 0);
  Processes processes(
      2, [](World &) { return std::string("yes"); },
      [&](ControlOptions &options) {
        auto broadcast = options.broadcast;
        bool isFirst = options.place.process == 0;
        options.broadcast = [=, &noneLeft](std::string value) {
          auto told = broadcast(std::move(value));
          char byte = 0;
          if (!isFirst) {
            close(noneLeft[1]);
            EXPECT_EQ(read(noneLeft[0], &byte, 1), 1);
            return told;
          }
          rlimit limit = {};
          getrlimit(RLIMIT_NOFILE, &limit);
          limit.rlim_cur = 100;
          if (!setrlimit(RLIMIT_NOFILE, &limit))
            while (open("/dev/null", O_RDONLY) >= 0)
              ;
          EXPECT_EQ(write(noneLeft[1], &byte, 1), 1);
          return told;
        };
      });
  close(noneLeft[0]);
  close(noneLeft[1]);
  EXPECT_THAT(processes.wait(0, std::chrono::seconds(20)),
              HasSubstr("process 0 has a connection of each of 2 processes, "
                        "and may have 100 files open: allow it more"));
  EXPECT_EQ(processes.reap(0), 0);
}

} // namespace
} // namespace ax::rt
