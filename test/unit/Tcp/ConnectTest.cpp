//===- ConnectTest.cpp - How processes get their connections --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Connect.h"
#include "../NoThreads.h"
#include "Jobs.h"

#include "ax/Runtime/Control.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <arpa/inet.h>
#include <atomic>
#include <fstream>
#include <netinet/in.h>
#include <optional>
#include <random>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace ax::rt {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using tcp::connectAll;
using tcp::Peer;
using tcp::Socket;
using testing::Each;
using testing::HasSubstr;

/// A world whose exchanges a test may hear, or change.
class Listening : public World {
public:
  Listening(World &world,
            std::function<void(std::vector<std::string> &)> change)
      : World(world.getPlace()), world(world), change(std::move(change)) {}
  llvm::Expected<std::vector<std::string>>
  allGather(llvm::StringRef what, std::string value) override {
    auto all = world.allGather(what, std::move(value));
    if (all && what == "addresses")
      change(*all);
    return all;
  }
  llvm::Expected<std::vector<std::string>> gather(llvm::StringRef what,
                                                  std::string value) override {
    return world.gather(what, std::move(value));
  }
  llvm::Expected<std::string> broadcast(llvm::StringRef what,
                                        std::string value) override {
    return world.broadcast(what, std::move(value));
  }
  llvm::Error barrier(llvm::StringRef what) override {
    return world.barrier(what);
  }
  void abort(const std::string &reason) override { world.abort(reason); }
  std::string getAbortReason() const override { return world.getAbortReason(); }
  void setAbortHandler(std::function<void(const std::string &)>) override {}
  void setProgress(std::function<std::string()>) override {}

private:
  World &world;
  std::function<void(std::vector<std::string> &)> change;
};

/// The address in what a process has told all: `host\n0 host\naddress`.
ControlAddress addressIn(llvm::StringRef text) {
  return llvm::cantFail(
      ControlAddress::decode(text.split('\n').second.split('\n').second));
}

Socket connectTo(uint16_t port) {
  Socket made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (connect(made.get(), reinterpret_cast<sockaddr *>(&address),
              sizeof(address)))
    made.close();
  return made;
}

std::string describe(llvm::Expected<std::vector<Peer>> peers, int32_t self) {
  if (!peers)
    return textOf(peers.takeError());
  std::string text;
  for (size_t i = 0; i < peers->size(); ++i)
    text += (*peers)[i].host + ((*peers)[i].socket                ? " "
                                : static_cast<int32_t>(i) == self ? "* "
                                                                  : "? ");
  return text;
}

TEST(ConnectTest, AnyTwoAreConnected) {
  auto results = runThreads(3, [](World &world) {
    auto peers = connectAll(world, "127.0.0.1", seconds(20));
    return describe(std::move(peers), world.getPlace().process);
  });
  EXPECT_EQ(results[0], "host0* host1 host2 ");
  EXPECT_EQ(results[1], "host0 host1* host2 ");
  EXPECT_EQ(results[2], "host0 host1 host2* ");
}

// Noise, silence, halves, a wrong key, a right one of nobody: none is taken for
// a process, and none keeps one away.
TEST(ConnectTest, StrangersAreKeptOut) {
  std::atomic<int> numIn{0}, numAnswered{0};
  auto results = runThreads(3, [&](World &world) {
    std::vector<Socket> silent;
    Listening heard(world, [&](std::vector<std::string> &all) {
      if (world.getPlace().process != 2)
        return;
      std::mt19937 random(3);
      for (int i = 0; i < 400; ++i) {
        ControlAddress address = addressIn(all[i % 2]);
        Socket stranger = connectTo(address.port);
        std::string hello = "axtcp001" + std::string(32, '0');
        int32_t process = 2;
        if (i % 5 == 0) {
          // The key, and a number that there is not, or is its own.
          hello = "axtcp001" + address.key;
          process = static_cast<int32_t>(random() % 3) - 1;
          process = process > 0 ? INT32_MAX : process;
        }
        hello.append(reinterpret_cast<char *>(&process), sizeof(process));
        if (i % 5 == 1)
          hello.resize(random() % hello.size());
        if (i % 5 == 2)
          for (char &c : hello)
            c = static_cast<char>(random());
        numIn += send(stranger.get(), hello.data(), hello.size(),
                      MSG_NOSIGNAL) == static_cast<ssize_t>(hello.size());
        char answer;
        numAnswered += recv(stranger.get(), &answer, 1, MSG_DONTWAIT) == 1;
        if (i % 3 == 0)
          silent.push_back(std::move(stranger));
      }
    });
    auto peers = connectAll(heard, "127.0.0.1", seconds(30));
    for (Socket &stranger : silent) {
      char answer;
      numAnswered += recv(stranger.get(), &answer, 1, MSG_DONTWAIT) == 1;
    }
    return describe(std::move(peers), world.getPlace().process);
  });
  EXPECT_EQ(results[0], "host0* host1 host2 ");
  EXPECT_EQ(results[1], "host0 host1* host2 ");
  EXPECT_EQ(results[2], "host0 host1 host2* ");
  EXPECT_GT(numIn, 300);
  EXPECT_EQ(numAnswered, 0);
}

TEST(ConnectTest, WhoCannotBeReachedIsNamedEverywhere) {
  auto results = runThreads(3, [](World &world) {
    Listening heard(world, [&](std::vector<std::string> &all) {
      if (world.getPlace().process == 2)
        all[1] =
            "host1\n0 host1\n" +
            ControlAddress{{"127.0.0.1"}, 1, std::string(32, 'a')}.encode();
    });
    return describe(connectAll(heard, "127.0.0.1", milliseconds(500)),
                    world.getPlace().process);
  });
  EXPECT_THAT(results[0],
              testing::AnyOf(HasSubstr("process 1 on host 'host1' cannot be "
                                       "reached at 127.0.0.1, port 1: "),
                             HasSubstr("process 2 on host 'host2' has not "
                                       "connected")));
  EXPECT_THAT(results, Each(results[0]));
}

TEST(ConnectTest, WhoDoesNotAnswerAsAProcessIsNone) {
  auto results = runThreads(2, [](World &world) {
    Listening heard(world, [&](std::vector<std::string> &all) {
      if (world.getPlace().process == 0)
        return;
      ControlAddress address = addressIn(all[0]);
      address.key = std::string(32, 'a');
      all[0] = "host0\n0 host0\n" + address.encode();
    });
    return describe(connectAll(heard, "127.0.0.1", milliseconds(500)),
                    world.getPlace().process);
  });
  EXPECT_THAT(results[1], HasSubstr("process 1 on host 'host1' has not "
                                    "connected"));
  EXPECT_THAT(results, Each(results[0]));
}

TEST(ConnectTest, WhoCannotListenIsAnErrorOfAll) {
  auto results = runThreads(2, [](World &world) {
    bool isFirst = world.isFirst();
    return describe(
        connectAll(world, isFirst ? "127.0.0.1" : "192.0.2.1", seconds(20)),
        world.getPlace().process);
  });
  EXPECT_THAT(results, Each(HasSubstr("cannot listen at 192.0.2.1: ")));
}

TEST(ConnectTest, NobodyWaitsWhenTheJobEnds) {
  auto results = runThreads(2, [](World &world) {
    Listening heard(world, [&](std::vector<std::string> &) {
      if (world.getPlace().process == 1) {
        world.abort("enough");
        std::this_thread::sleep_for(milliseconds(100));
      }
    });
    return describe(connectAll(heard, "127.0.0.1", seconds(100)),
                    world.getPlace().process);
  });
  EXPECT_THAT(results, Each("connections: enough"));
}

TEST(ConnectTest, WhoHasNoThreadIsToldOfIt) {
  std::optional<NoThreads> here;
  auto results = runThreads(2, [&](World &world) -> std::string {
    if (world.isFirst())
      here.emplace();
    llvm::cantFail(world.barrier("no threads"));
    std::string text = describe(connectAll(world, "127.0.0.1", seconds(20)),
                                world.getPlace().process);
    if (world.isFirst())
      here.reset();
    llvm::cantFail(world.barrier("end"));
    return text;
  });
  EXPECT_THAT(results, Each("no thread for connections of other processes: "
                            "Resource temporarily unavailable: allow more "
                            "threads (ulimit -u, pids.max of the container) or "
                            "memory (ulimit -v)"));
}

} // namespace
} // namespace ax::rt
