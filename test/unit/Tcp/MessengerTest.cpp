//===- MessengerTest.cpp - Messages over connections ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Messenger.h"

#include "gtest/gtest.h"

#include <random>
#include <sys/socket.h>
#include <thread>

namespace ax::rt::tcp {
namespace {

/// A message to or from process 1, or to this process itself.
struct Posted {
  Posted(bool isSend, int64_t bytes, int32_t tag = 0, int32_t process = 1)
      : data(static_cast<size_t>(bytes)) {
    message.isSend = isSend;
    message.process = process;
    message.label.tag = tag;
    message.data = data.data();
    message.bytes = bytes;
    message.pending = &pending;
  }
  std::vector<char> data;
  std::atomic<int64_t> pending{1};
  Message message;
};

/// Process 0, and the other end of its connection to process 1.
struct Line {
  Line() {
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);
    std::vector<Peer> peers(2);
    peers[0].host = "a";
    peers[1].host = "b";
    peers[1].socket = Socket(ends[0]);
    other = Socket(ends[1]);
    messenger.emplace(0, std::move(peers));
  }
  void start(Posted &posted) { messenger->start(&posted.message); }
  void say(llvm::StringRef bytes) {
    send(other.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  static std::string header(int32_t tag, int64_t bytes, uint32_t group = 0) {
    std::string text(16, '\0');
    std::memcpy(text.data(), &group, 4);
    std::memcpy(text.data() + 4, &tag, 4);
    std::memcpy(text.data() + 8, &bytes, 8);
    return text;
  }

  Socket other;
  std::optional<Messenger> messenger;
};

class MessengerTest : public ::testing::Test, protected Line {};

TEST_F(MessengerTest, FindsMessagesByTheirTag) {
  Posted first(false, 3, 1), second(false, 3, 2);
  start(first);
  start(second);
  say(header(2, 3) + "two" + header(1, 3) + "one" + header(2, 3) + "TWO");
  messenger->progress();
  EXPECT_EQ(first.pending, 0);
  EXPECT_EQ(std::string(first.data.data(), 3), "one");
  EXPECT_EQ(std::string(second.data.data(), 3), "two");
  // It has come before it was asked for.
  Posted third(false, 3, 2);
  start(third);
  EXPECT_EQ(third.pending, 0);
  EXPECT_EQ(std::string(third.data.data(), 3), "TWO");
}

TEST_F(MessengerTest, MessagesComeByBytes) {
  std::string text = header(5, 4) + "abcd" + header(5, 0) + header(5, 2) + "ef";
  Posted whole(false, 4, 5), nothing(false, 0, 5), rest(false, 2, 5);
  for (size_t i = 0; i < text.size(); ++i) {
    say(text.substr(i, 1));
    messenger->progress();
    // Asked for in the middle of it.
    if (i == 18)
      start(whole);
  }
  EXPECT_EQ(whole.pending, 0);
  EXPECT_EQ(std::string(whole.data.data(), 4), "abcd");
  start(nothing);
  start(rest);
  EXPECT_EQ(nothing.pending, 0);
  EXPECT_EQ(rest.pending, 0);
  EXPECT_EQ(std::string(rest.data.data(), 2), "ef");
}

TEST_F(MessengerTest, ASendThatIsTooLargeGoesOnLater) {
  Posted large(true, 8 << 20, 3);
  start(large);
  EXPECT_EQ(large.pending, 1);
  std::string got;
  std::vector<char> buffer(1 << 16);
  while (got.size() < (8u << 20) + 16) {
    ssize_t count = recv(other.get(), buffer.data(), buffer.size(), 0);
    if (count > 0)
      got.append(buffer.data(), static_cast<size_t>(count));
    messenger->progress();
  }
  EXPECT_EQ(large.pending, 0);
  EXPECT_EQ(got.substr(0, 16), header(3, 8 << 20));
}

TEST_F(MessengerTest, AProcessMaySendToItself) {
  for (bool early : {true, false}) {
    Posted sent(true, 5, 1, 0), received(false, 5, 1, 0);
    std::memcpy(sent.data.data(), "hello", 5);
    start(early ? sent : received);
    start(early ? received : sent);
    EXPECT_EQ(sent.pending + received.pending, 0);
    EXPECT_EQ(received.data, sent.data);
  }
}

TEST_F(MessengerTest, HearsWhatIsSaidInItsGroup) {
  say(header(-1, 5, 2) + "no NaN" + header(-1, 3, 1));
  // The text has five bytes: what follows is no header that there can be.
  messenger->progress();
  EXPECT_FALSE(messenger->hear({0, 1}, {0, 1}));
  auto heard = messenger->hear({0, 1}, {0, 2});
  ASSERT_TRUE(heard);
  EXPECT_EQ(*heard, "no Na");
  EXPECT_FALSE(messenger->hear({0, 1}, {0, 2}));
}

TEST_F(MessengerTest, NoBytesCrashIt) {
  std::mt19937 random(11);
  for (int i = 0; i < 300; ++i) {
    Line fresh;
    Posted receive(false, 8);
    fresh.start(receive);
    std::string noise;
    if (i % 2)
      noise = header(static_cast<int32_t>(random()) % 3,
                     static_cast<int64_t>(random() % 40) - 4);
    else
      noise = header(0, i % 4 ? INT64_MAX : INT64_MIN);
    for (size_t size = random() % 200; size; --size)
      noise += static_cast<char>(random());
    fresh.say(noise);
    fresh.messenger->progress();
    fresh.messenger->giveUp(&receive.message);
  }
}

TEST_F(MessengerTest, WhatIsGivenUpTouchesNothing) {
  {
    Posted half(false, 6), never(false, 6);
    start(half);
    start(never);
    say(header(0, 6) + "abc");
    messenger->progress();
    for (Posted *posted : {&half, &never})
      messenger->giveUp(&posted->message);
  }
  say("def" + header(0, 3) + "ghi");
  messenger->progress();
  Posted next(false, 3);
  start(next);
  EXPECT_EQ(next.pending, 0);
  EXPECT_EQ(std::string(next.data.data(), 3), "ghi");
}

TEST_F(MessengerTest, ALostConnectionIsToldLater) {
  Posted receive(false, 6);
  start(receive);
  other.close();
  messenger->progress();
  EXPECT_TRUE(messenger->hasLost());
  EXPECT_EQ(messenger->findFault(&receive.message), NoFault);
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  EXPECT_EQ(messenger->findFault(&receive.message), Lost + 1);
  EXPECT_EQ(messenger->describe(Lost + 1),
            "the connection to process 1 on host 'b' is lost");
  EXPECT_EQ(messenger->describe(NoMemory), "no memory for a message");
  EXPECT_EQ(messenger->describe(Lost + 2), "error 18");
}

} // namespace
} // namespace ax::rt::tcp
