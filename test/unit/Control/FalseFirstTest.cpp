//===- FalseFirstTest.cpp - A process 0 that is wrong ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Gate.h"
#include "Jobs.h"
#include "Message.h"

#include "ax/Runtime/Listener.h"
#include "ax/Support/Error.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <atomic>
#include <thread>

namespace ax::rt {
namespace {

using namespace control;

/// Lets one process join, and answers its first exchange as it was told.
class FalseFirst {
public:
  explicit FalseFirst(Message given)
      : answer(std::move(given)), context(*cantFail(Zmq::load())),
        gate(context, key), router(context, ZMQ_ROUTER),
        listener(cantFail(listenAt("127.0.0.1"))) {
    cantFail(gate.open());
    router.set(ZMQ_PLAIN_SERVER, 1);
    router.set(ZMQ_USE_FD, listener.socket);
    cantFail(router.bind("tcp://127.0.0.1:*"));
    thread = std::thread([this] { serve(); });
  }
  ~FalseFirst() {
    isOver = true;
    thread.join();
  }
  std::string getTold() const {
    return "a" +
           ControlAddress{{"127.0.0.1"}, listener.address.port, key}.encode();
  }

private:
  void serve() {
    Frames got;
    while (!isOver) {
      gate.answer();
      if (!router.receive(got)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        continue;
      }
      auto message = Message::decode(got.frames.at(1));
      if (message && message->kind == MessageKind::Hello)
        send(got.frames[0], {MessageKind::Welcome, 0, 0, "host0"});
      else if (message && message->kind == MessageKind::Exchange)
        send(got.frames[0], answer);
      else if (message && message->kind == MessageKind::Goodbye)
        send(got.frames[0], {MessageKind::Goodbye});
    }
  }
  void send(const std::string &route, const Message &message) {
    router.send({route, message.encode()});
  }

  const std::string key = std::string(32, '0');
  const Message answer;
  ZmqContext context;
  Gate gate;
  ZmqSocket router;
  const Listener listener;
  std::atomic<bool> isOver{false};
  std::thread thread;
};

/// What an exchange of process 1 fails with.
std::string failWith(Message answer, bool gathers = true) {
  FalseFirst first(std::move(answer));
  ControlOptions options = makeOptions(1, 2);
  options.broadcast = [&](std::string) { return first.getTold(); };
  auto world = cantFail(joinControl(std::move(options)));
  llvm::Error error = gathers ? world->allGather("one", "mine").takeError()
                              : world->broadcast("one", "").takeError();
  return textOf(std::move(error));
}

Message resultOf(uint64_t number, std::vector<std::string> list) {
  Message result;
  result.kind = MessageKind::Result;
  result.number = number;
  result.list = std::move(list);
  return result;
}

TEST(FalseFirstTest, OneThatIsRightIsHeard) {
  EXPECT_EQ(failWith(resultOf(1, packRuns({"its", "mine"}))), "");
  EXPECT_EQ(failWith(resultOf(1, {"its"}), /*gathers=*/false), "");
}

TEST(FalseFirstTest, WhatIsNoResultIsSaid) {
  const char *text = "one: process 0 on host host0 sends what is no result";
  // Of another exchange; of fewer processes, or more; of another kind.
  EXPECT_EQ(failWith(resultOf(2, packRuns({"its", "mine"}))), text);
  EXPECT_EQ(failWith(resultOf(1, packRuns({"its"}))), text);
  EXPECT_EQ(failWith(resultOf(1, packRuns({"its", "mine", "more"}))), text);
  EXPECT_EQ(failWith(resultOf(1, {"no run"})), text);
  EXPECT_EQ(failWith(resultOf(1, {}), /*gathers=*/false), text);
  EXPECT_EQ(failWith(resultOf(1, {"two", "texts"}), /*gathers=*/false), text);
}

TEST(FalseFirstTest, WhatOnlyOthersSayIsSaid) {
  EXPECT_EQ(failWith({MessageKind::Hello, 1, 2, "host0"}),
            "one: process 0 on host host0 sends what only others do");
}

} // namespace
} // namespace ax::rt
