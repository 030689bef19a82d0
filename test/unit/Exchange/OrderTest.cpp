//===- OrderTest.cpp - What ranks exchange, one at a time -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Exchange/Order.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ax::exchange {

using Kind = Operation::Kind;

static Operation send(int32_t transfer, int32_t microBatch) {
  return {Kind::Send, transfer, microBatch};
}
static Operation receive(int32_t transfer, int32_t microBatch) {
  return {Kind::Receive, transfer, microBatch};
}
static Operation together(int32_t collective, int32_t microBatch = 0) {
  return {Kind::Collective, collective, microBatch};
}

/// `>0.1 <2.0`: sends micro-batch 1 of transfer 0, receives 0 of 2.
static std::string text(const Group &group) {
  std::string result;
  for (const Operation &operation : group)
    result += (result.empty() ? "" : " ") +
              std::string(operation.kind == Kind::Send      ? ">"
                          : operation.kind == Kind::Receive ? "<"
                                                            : "=") +
              std::to_string(operation.number) + "." +
              std::to_string(operation.microBatch);
  return result;
}
static std::vector<std::string> text(const Order &order) {
  std::vector<std::string> result;
  for (const Group &group : order)
    result.push_back(text(group));
  return result;
}
/// Of groupMessages: what stands before each action, both groups.
static std::vector<std::string> textByActions(const Order &order) {
  std::vector<std::string> result;
  for (size_t i = 0; i < order.size(); i += 2)
    result.push_back(text(order[i]) +
                     (order[i + 1].empty() ? "" : " / " + text(order[i + 1])));
  return result;
}

static std::string describe(const std::optional<Deadlock> &deadlock,
                            const Network &network) {
  if (!deadlock)
    return "";
  return describe(
      *deadlock, network,
      [](int32_t rank) { return "rank " + std::to_string(rank); },
      [](int32_t, size_t) { return std::string(); });
}

static std::string play(const Network &network,
                        const std::vector<Order> &orders) {
  return describe(findDeadlock(network, orders), network);
}

using Texts = std::vector<std::string>;

/// F of micro-batches 0, 1, ... is sent to rank 1, and B back: 1F1B of the
/// header's example.
static const std::vector<Transfer> thereAndBack = {{"x", 0, 1, 2},
                                                   {"g", 1, 0, 2}};
static const std::vector<std::vector<Action>> oneForwardOneBackward = {
    {{0, {}, {0}},
     {1, {}, {0}},
     {0, {1}, {}},
     {2, {}, {0}},
     {1, {1}, {}},
     {2, {1}, {}}},
    {{0, {0}, {}},
     {0, {}, {1}},
     {1, {0}, {}},
     {1, {}, {1}},
     {2, {0}, {}},
     {2, {}, {1}}}};

TEST(Order, NeighboursMakeAGroup) {
  Grouping grouping = groupMessages(thereAndBack, oneForwardOneBackward);
  EXPECT_FALSE(grouping.deadlock);
  EXPECT_EQ(textByActions(grouping.orders[0]),
            Texts({"", ">0.0", ">0.1 <1.0", "", "<1.1 >0.2", "<1.2", ""}));
  EXPECT_EQ(textByActions(grouping.orders[1]),
            Texts({"<0.0", "", "<0.1 >1.0", "", ">1.1 <0.2", "", ">1.2"}));
  EXPECT_EQ(play({{}, thereAndBack}, grouping.orders), "");
}

/// What is sent behind an action, and then what is received for the next one.
static Order oneByOne(const Order &order) {
  Order result = ungroup(order);
  auto begin = result.begin();
  for (const Group &group : order) {
    auto end = begin + static_cast<std::ptrdiff_t>(group.size());
    std::stable_partition(begin, end, [](const Group &single) {
      return single.front().kind == Kind::Send;
    });
    begin = end;
  }
  return result;
}

TEST(Order, WithoutGroupsBothSendForEver) {
  Grouping grouping = groupMessages(thereAndBack, oneForwardOneBackward);
  std::vector<Order> single = {oneByOne(grouping.orders[0]),
                               oneByOne(grouping.orders[1])};
  EXPECT_EQ(text(single[1]),
            Texts({"<0.0", ">1.0", "<0.1", ">1.1", "<0.2", ">1.2"}));
  EXPECT_EQ(play({{}, thereAndBack}, single),
            "rank 0 waits to send 'x' of micro-batch 1 to rank 1; rank 1 waits "
            "to send 'g' of micro-batch 0 to rank 0");
}

/// In the order of meetings, groups only save time.
TEST(Order, MeetingsAreAnOrder) {
  Grouping grouping = groupMessages(thereAndBack, oneForwardOneBackward);
  EXPECT_EQ(play({{}, thereAndBack},
                 {ungroup(grouping.orders[0]), ungroup(grouping.orders[1])}),
            "");
}

/// Each sends two values before it takes one.
static const std::vector<std::vector<Action>> twoAhead = {
    {{0, {}, {0}}, {1, {}, {0}}, {}, {0, {1}, {}}, {1, {1}, {}}},
    {{0, {}, {1}}, {1, {}, {1}}, {}, {0, {0}, {}}, {1, {0}, {}}}};

static std::vector<Transfer> withSlots(int64_t forth, int64_t back) {
  return {{"x", 0, 1, forth}, {"g", 1, 0, back}};
}

TEST(Order, ReceivesAheadIntoFreeSlots) {
  Grouping grouping = groupMessages(withSlots(2, 1), twoAhead);
  EXPECT_FALSE(grouping.deadlock);
  EXPECT_EQ(textByActions(grouping.orders[0]),
            Texts({"", ">0.0", ">0.1", "<1.0", "<1.1", ""}));
  EXPECT_EQ(textByActions(grouping.orders[1]),
            Texts({"", "<0.0 <0.1 >1.0", ">1.1", "", "", ""}));
  grouping = groupMessages(withSlots(1, 2), twoAhead);
  EXPECT_FALSE(grouping.deadlock);
}

TEST(Order, ASlotIsFreeWhenItsValueWasTaken) {
  std::vector<Transfer> transfers = withSlots(1, 1);
  EXPECT_EQ(
      describe(groupMessages(transfers, twoAhead).deadlock, {{}, transfers}),
      "rank 0 waits to send 'x' of micro-batch 1 to rank 1; rank 1 waits "
      "to send 'g' of micro-batch 1 to rank 0");
  // The first one is taken before the second one is sent back.
  std::vector<std::vector<Action>> ranks = twoAhead;
  std::swap(ranks[1][1], ranks[1][3]);
  EXPECT_FALSE(groupMessages(transfers, ranks).deadlock);
}

/// The first value is there, but not taken, while another one is waited for.
TEST(Order, ASlotIsNotFreeBeforeItsValueIsTaken) {
  std::vector<Transfer> transfers = {{"x", 0, 1, 1}, {"h", 0, 1, 1}};
  std::vector<std::vector<Action>> ranks = {
      {{0, {}, {0}}, {1, {}, {0}}, {0, {}, {1}}},
      {{0, {0, 1}, {}}, {1, {0}, {}}}};
  EXPECT_EQ(describe(groupMessages(transfers, ranks).deadlock, {{}, transfers}),
            "rank 0 waits to send 'x' of micro-batch 1 to rank 1; rank 1 waits "
            "to receive 'h' of micro-batch 0 from rank 0");
  transfers[0].slots = 2;
  EXPECT_FALSE(groupMessages(transfers, ranks).deadlock);
}

TEST(Order, RanksAreNamed) {
  EXPECT_EQ(describeRanks({3}), "rank 3");
  EXPECT_EQ(describeRanks({0, 2, 4, 6}), "ranks 0, 2, 4, 6");
  EXPECT_EQ(describeRanks({0, 1, 2, 3, 4, 5}), "ranks 0, 1, 2, 3 and 2 more");
}

/// What the second rank has received may be what it sends.
TEST(Order, ASlotIsNotReceivedIntoWhileItMayBeSent) {
  std::vector<std::vector<Action>> ranks = {{{0, {}, {0}}, {1, {}, {0}}},
                                            {{0, {0}, {1}}, {1, {0}, {1}}},
                                            {{0, {1}, {}}, {1, {1}, {}}}};
  Grouping grouping = groupMessages({{"x", 0, 1, 2}, {"y", 1, 2, 1}}, ranks);
  EXPECT_EQ(textByActions(grouping.orders[1]),
            Texts({"<0.0", "<0.1 >1.0", ">1.1"}));
  grouping = groupMessages({{"x", 0, 1, 1}, {"y", 1, 2, 1}}, ranks);
  EXPECT_FALSE(grouping.deadlock);
  EXPECT_EQ(textByActions(grouping.orders[1]),
            Texts({"<0.0", ">1.0 / <0.1", ">1.1"}));
}

/// The same of what is received ahead, while another value is waited for.
TEST(Order, AGroupEndsBeforeASlotIsReceivedInto) {
  std::vector<Transfer> transfers = {
      {"x", 0, 1, 1}, {"h", 0, 1, 1}, {"y", 1, 2, 1}};
  Grouping grouping =
      groupMessages(transfers, {{{0, {}, {0}}, {1, {}, {0}}, {0, {}, {1}}},
                                {{0, {0}, {2}}, {0, {1}, {}}, {1, {0}, {}}},
                                {{0, {2}, {}}}});
  EXPECT_FALSE(grouping.deadlock);
  EXPECT_EQ(textByActions(grouping.orders[1]),
            Texts({"<0.0", ">2.0 / <0.1 <1.0", "", ""}));
  EXPECT_EQ(play({{}, transfers}, grouping.orders), "");
}

TEST(Order, ReceivesAheadInASecondGroup) {
  std::vector<Transfer> transfers = {
      {"x", 0, 1, 1}, {"w", 0, 1, 1}, {"y", 1, 2, 1}};
  Grouping grouping =
      groupMessages(transfers, {{{0, {}, {0, 1}}, {1, {}, {1}}, {1, {}, {0}}},
                                {{0, {0, 1}, {2}}, {1, {0}, {}}, {1, {1}, {}}},
                                {{0, {2}, {}}}});
  EXPECT_FALSE(grouping.deadlock);
  EXPECT_EQ(textByActions(grouping.orders[1]),
            Texts({"<0.0 <1.0", ">2.0 / <1.1 <0.1", "", ""}));
}

/// Both wait for what the other one sends later.
TEST(Order, CircleIsReported) {
  std::vector<std::vector<Action>> ranks = {{{0, {1}, {0}}}, {{0, {0}, {1}}}};
  Grouping grouping = groupMessages(thereAndBack, ranks);
  EXPECT_EQ(describe(grouping.deadlock, {{}, thereAndBack}),
            "rank 0 waits to receive 'g' of micro-batch 0 from rank 1; rank 1 "
            "waits to receive 'x' of micro-batch 0 from rank 0");
  ASSERT_EQ(grouping.deadlock->waits.size(), 2u);
  EXPECT_EQ(grouping.deadlock->waits[1].rank, 1);
  EXPECT_EQ(grouping.deadlock->waits[1].group, 0u);
}

TEST(Order, WhatLeadsToACircleIsNoneOfIt) {
  // Rank 0 waits for rank 1, which waits with rank 2.
  std::vector<Transfer> transfers = {{"a", 1, 0}, {"b", 1, 2}, {"c", 2, 1}};
  EXPECT_EQ(play({{}, transfers}, {{{receive(0, 0)}},
                                   {{receive(2, 0)}, {send(1, 0)}},
                                   {{receive(1, 0)}, {send(2, 0)}}}),
            "rank 1 waits to receive 'c' of micro-batch 0 from rank 2; rank 2 "
            "waits to receive 'b' of micro-batch 0 from rank 1");
}

TEST(Order, NobodyIsThereAnyMore) {
  EXPECT_EQ(play({{}, thereAndBack}, {{{send(0, 0)}}, {}}),
            "rank 0 waits to send 'x' of micro-batch 0 to rank 1, which has "
            "ended");
}

TEST(Order, WhoWaitsForOneThatWaitsIsNotNamed) {
  std::vector<Transfer> transfers = {{"x", 0, 1}, {"y", 1, 2}};
  EXPECT_EQ(play({{}, transfers},
                 {{{send(0, 0)}}, {{send(1, 0)}, {receive(0, 0)}}, {}}),
            "rank 1 waits to send 'y' of micro-batch 0 to rank 2, which has "
            "ended");
}

/// A rank comes to a collective once, whoever met it before.
TEST(Order, CollectivesWaitForAll) {
  Network network = {{{"sum", {0, 1, 2}}}, {{"y", 1, 2}}};
  EXPECT_EQ(play(network, {{},
                           {{send(0, 0)}, {together(0)}},
                           {{receive(0, 0)}, {together(0)}}}),
            "rank 1 waits to do 'sum' of micro-batch 0 with rank 0, which has "
            "ended");
  EXPECT_EQ(play(network, {{{together(0)}},
                           {{together(0)}, {together(0)}},
                           {{together(0)}, {together(0)}}}),
            "rank 1 waits to do 'sum' of micro-batch 0 with rank 0, which has "
            "ended");
}

TEST(Order, CollectivesMeetAtAllHeads) {
  Network network = {{{"sum", {0, 1, 2}}, {"max", {0, 1}}}, thereAndBack};
  EXPECT_EQ(play(network, {{{together(1)}, {together(0)}},
                           {{together(1)}, {together(0)}},
                           {{together(0)}}}),
            "");
  EXPECT_EQ(play(network, {{{together(0)}, {together(1)}},
                           {{together(1)}, {together(0)}},
                           {{together(0)}}}),
            "rank 0 waits to do 'sum' of micro-batch 0 with rank 1; rank 1 "
            "waits to do 'max' of micro-batch 0 with rank 0");
  EXPECT_EQ(play(network, {{{together(1, 0)}}, {{together(1, 1)}}, {}}),
            "rank 0 waits to do 'max' of micro-batch 0 with rank 1; rank 1 "
            "waits to do 'max' of micro-batch 1 with rank 0");
}

/// A message does not overtake a collective, nor the other way round.
TEST(Order, OneAtATime) {
  Network network = {{{"sum", {0, 1}}}, thereAndBack};
  std::vector<Order> orders = {{{send(0, 0)}, {together(0)}},
                               {{together(0)}, {receive(0, 0)}}};
  EXPECT_EQ(play(network, orders),
            "rank 0 waits to send 'x' of micro-batch 0 to rank 1; rank 1 waits "
            "to do 'sum' of micro-batch 0 with rank 0");
  std::swap(orders[1][0], orders[1][1]);
  EXPECT_EQ(play(network, orders), "");
}

/// Collectives that some have come to while others go on with messages.
TEST(Order, RanksComeOneAfterAnother) {
  std::vector<Transfer> transfers = {{"x", 0, 1}, {"y", 1, 2}};
  Network network = {{{"sum", {0, 1, 2}}}, transfers};
  EXPECT_EQ(
      play(network,
           {{{send(0, 0)}, {together(0, 0)}, {together(0, 1)}},
            {{receive(0, 0), send(1, 0)}, {together(0, 0)}, {together(0, 1)}},
            {{receive(1, 0)}, {together(0, 0)}, {together(0, 1)}}}),
      "");
}

/// Two ranks have what goes from the one to the other in the same order.
TEST(Order, BothEndsHaveOneOrder) {
  // One action sends both, of which the second is taken first.
  std::vector<Transfer> transfers = {{"a", 0, 1}, {"b", 0, 1}};
  Grouping grouping = groupMessages(
      transfers, {{{0, {}, {0, 1}}}, {{0, {1}, {}}, {0, {0}, {}}}});
  EXPECT_FALSE(grouping.deadlock);
  auto names = [](const Order &order) {
    std::vector<int32_t> numbers;
    for (const Group &group : order)
      for (const Operation &operation : group)
        numbers.push_back(operation.number);
    return numbers;
  };
  EXPECT_EQ(names(grouping.orders[0]), names(grouping.orders[1]));
}

} // namespace ax::exchange
