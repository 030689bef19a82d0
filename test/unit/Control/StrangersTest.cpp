//===- StrangersTest.cpp - Who is not of the job --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Jobs.h"
#include "Message.h"
#include "Zmq.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <arpa/inet.h>
#include <atomic>
#include <fcntl.h>
#include <netinet/in.h>
#include <random>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace ax::rt {
namespace {

using control::Message;
using control::MessageKind;
using control::Zmq;
using control::ZmqContext;
using control::ZmqSocket;
using testing::Each;

/// What somebody says who has a socket and no more: noise, or a beginning as
/// ZeroMQ's own, and then noise.
std::string makeNoise(std::mt19937 &random) {
  std::string bytes;
  if (random() % 2) {
    // A greeting of ZMTP 3: signature, version, mechanism PLAIN, no server.
    bytes = std::string("\xff\0\0\0\0\0\0\0\1\x7f\3\1", 12) + "PLAIN";
    bytes.resize(64);
    // A frame of 2^63 bytes, or of any.
    if (random() % 2)
      bytes += std::string("\6\x7f\xff\xff\xff\xff\xff\xff\xff", 9);
  }
  for (size_t size = random() % 200; size; --size)
    bytes.push_back(static_cast<char>(random()));
  return bytes;
}

/// Connects, speaks and goes; returns whether it was let in.
bool speak(uint16_t port, const std::string &bytes) {
  int file = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  connect(file, reinterpret_cast<sockaddr *>(&address), sizeof(address));
  bool isIn = send(file, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
              static_cast<ssize_t>(bytes.size());
  close(file);
  return isIn;
}

void makeNoise(uint16_t port, int numConnections, std::atomic<int> &numIn) {
  std::mt19937 random(7);
  for (int i = 0; i < numConnections; ++i)
    numIn += speak(port, makeNoise(random));
}

/// Somebody who speaks ZeroMQ's protocol, and knows everything but the key: the
/// form of messages, and names that connections have.
void impersonate(uint16_t port, int numConnections) {
  ZmqContext context(*cantFail(Zmq::load()));
  std::mt19937 random(9);
  for (int i = 0; i < numConnections; ++i) {
    ZmqSocket stranger(context, i % 3 ? ZMQ_DEALER : ZMQ_REQ);
    stranger.set(ZMQ_LINGER, 20);
    if (i % 2) {
      stranger.set(ZMQ_PLAIN_USERNAME, std::string("ax"));
      stranger.set(ZMQ_PLAIN_PASSWORD, std::string(32, "0f"[i % 4 / 2]));
    }
    stranger.set(ZMQ_ROUTING_ID, "peer" + std::to_string(i % 5));
    cantFail(stranger.connect("tcp://127.0.0.1:" + std::to_string(port)));
    stranger.send({Message{MessageKind::Hello, 1, 3, "evil"}.encode()});
    stranger.send({Message{MessageKind::Abort, 0, 8, "", "evil"}.encode()});
    stranger.send({std::string(random() % 100, 'x')});
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
}

uint16_t portOf(const std::string &told) {
  return cantFail(ControlAddress::decode(told.substr(1))).port;
}

TEST(StrangersTest, HaveNoPartBeforeARun) {
  ThreadBroadcast broadcast;
  std::atomic<int> numIn{0};
  auto results = runThreads(
      3, [](World &world) { return makeSteps(world, 20); },
      [&](ControlOptions &options) {
        options.broadcast = broadcast.at(options.place.process);
        // Strangers take as long as the machine needs.
        options.joinTimeout = std::chrono::minutes(10);
        if (options.place.process != 2)
          return;
        // This one comes when strangers have been there.
        uint16_t port = portOf(broadcast.get());
        std::thread other([&] { impersonate(port, 100); });
        makeNoise(port, 10000, numIn);
        other.join();
      });
  EXPECT_THAT(results, Each("all steps"));
  EXPECT_GT(numIn, 1000) << "they have said something";
}

TEST(StrangersTest, HaveNoPartInARun) {
  ThreadBroadcast broadcast;
  std::atomic<int> numIn{0};
  auto results = runThreads(
      3,
      [&](World &world) {
        if (world.getPlace().process != 2)
          return makeSteps(world, 2000);
        uint16_t port = portOf(broadcast.get());
        std::thread noise([&] {
          makeNoise(port, 10000, numIn);
          impersonate(port, 100);
        });
        std::string text = makeSteps(world, 2000);
        noise.join();
        return text;
      },
      [&](ControlOptions &options) {
        options.broadcast = broadcast.at(options.place.process);
      });
  EXPECT_THAT(results, Each("all steps"));
  EXPECT_EQ(numIn, 0) << "the kernel lets nobody in any more";
}

} // namespace
} // namespace ax::rt
