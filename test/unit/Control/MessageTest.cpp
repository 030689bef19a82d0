//===- MessageTest.cpp - What goes over the control channel ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Message.h"

#include "ax/Runtime/Control.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <random>

namespace ax::rt {
namespace {

using control::Message;
using control::MessageKind;
using control::packRuns;
using control::unpackRuns;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(MessageTest, IsReadAsItWasWritten) {
  Message message{MessageKind::Exchange,  7,        3, "name",
                  std::string("a\0b", 3), {"", "x"}};
  std::optional<Message> read = Message::decode(message.encode());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, MessageKind::Exchange);
  EXPECT_EQ(read->number, 7u);
  EXPECT_EQ(read->detail, 3u);
  EXPECT_EQ(read->name, "name");
  EXPECT_EQ(read->text, std::string("a\0b", 3));
  EXPECT_THAT(read->list, ElementsAre("", "x"));
}

TEST(MessageTest, WhatIsNoMessageIsNone) {
  EXPECT_FALSE(Message::decode(""));
  EXPECT_FALSE(Message::decode("hello"));
  std::string whole = Message{MessageKind::Hello, 1, 2, "", "tail"}.encode();
  for (size_t missing = 1; missing <= 5; ++missing)
    EXPECT_FALSE(Message::decode(llvm::StringRef(whole).drop_back(missing)))
        << missing;
  std::mt19937 random(1);
  for (int i = 0; i < 10000; ++i) {
    std::string bytes(random() % 40, '\0');
    for (char &byte : bytes)
      byte = static_cast<char>(random());
    (void)Message::decode(bytes);
  }
}

TEST(RunsTest, AreReadAsTheyWereWritten) {
  using Values = std::vector<std::string>;
  for (const Values &values :
       {Values{}, Values{"a"}, Values{"", "", "b", "b", "b", "", "1"}})
    EXPECT_EQ(unpackRuns(packRuns(values), values.size()), values);
  EXPECT_THAT(packRuns(Values(1000, "-c")), ElementsAre("1000", "-c"));
}

TEST(RunsTest, AnythingElseIsNone) {
  EXPECT_FALSE(unpackRuns({"2", "a"}, 3));
  EXPECT_FALSE(unpackRuns({"2", "a", "2", "b"}, 3));
  EXPECT_FALSE(unpackRuns({"2", "a", "1"}, 3));
  EXPECT_FALSE(unpackRuns({"-3", "a"}, 3));
  EXPECT_FALSE(unpackRuns({"", "a", "3", "b"}, 3));
  EXPECT_FALSE(unpackRuns({"18446744073709551615", "a", "4", "b"}, 3));
}

TEST(ControlAddressTest, IsReadAsItWasWritten) {
  ControlAddress address{{"10.0.0.1", "::1"}, 4711, "0123"};
  ControlAddress read = cantFail(ControlAddress::decode(address.encode()));
  EXPECT_EQ(read.hosts, address.hosts);
  EXPECT_EQ(read.port, 4711);
  EXPECT_EQ(read.key, "0123");
}

TEST(ControlAddressTest, AnythingElseIsAnError) {
  for (std::string bytes : {std::string(), std::string("silence"),
                            ControlAddress{{}, 1, "k"}.encode(),
                            ControlAddress{{"h"}, 0, "k"}.encode(),
                            ControlAddress{{"h"}, 1, ""}.encode()})
    EXPECT_THAT(toString(ControlAddress::decode(bytes).takeError()),
                HasSubstr("what the launcher brought from process 0 is no "
                          "address of a control channel"));
}

} // namespace
} // namespace ax::rt
