//===- NcclPlanTest.cpp - Collectives as calls of NCCL --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What plans do to bytes CommunicatorSuite looks at; here, that they copy no
// more than they have to.
//
//===----------------------------------------------------------------------===//

#include "NcclPlan.h"

#include "gtest/gtest.h"

using namespace ax;
using namespace ax::rt;
using namespace ax::rt::nccl;

namespace {

CollectiveSpec gather(std::vector<int64_t> shape, int32_t dim, int64_t size) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::AllGather;
  spec.shape = std::move(shape);
  spec.gatherDim = dim;
  spec.gatherSize = size;
  return spec;
}

CollectiveSpec scatter(std::vector<int64_t> shape, int32_t dim, int64_t part) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::ReduceScatter;
  spec.shape = std::move(shape);
  spec.scatterDim = dim;
  spec.scatterPart = part;
  return spec;
}

bool isPlain(const NcclPlan &plan) {
  return plan.calls.size() == 1 && plan.clearings.empty() &&
         plan.copiesBefore.empty() && plan.copiesBehind.empty() &&
         plan.scratchBytes == 0;
}

TEST(NcclPlanTest, OuterPartsAreNotCopied) {
  NcclPlan plan = planNccl(gather({1, 4, 3}, 1, 8), 2, 1);
  EXPECT_TRUE(isPlain(plan));
  EXPECT_EQ(plan.calls[0].kind, CallKind::AllGather);
  EXPECT_EQ(plan.calls[0].count, 4 * 3 * 4);
  plan = planNccl(scatter({8, 3}, 0, 4), 2, 1);
  EXPECT_TRUE(isPlain(plan));
  EXPECT_EQ(plan.calls[0].kind, CallKind::ReduceScatter);
  EXPECT_EQ(plan.calls[0].count, 4 * 3);
}

TEST(NcclPlanTest, PaddingBehindIsOneCopy) {
  NcclPlan plan = planNccl(gather({4, 3}, 0, 7), 2, 0);
  ASSERT_EQ(plan.copiesBehind.size(), 1u);
  EXPECT_EQ(plan.copiesBehind[0].box.sizes, std::vector<int64_t>{7 * 3 * 4});
  EXPECT_TRUE(plan.clearings.empty());
  EXPECT_EQ(plan.calls[0].to, (Place{Where::Scratch, 0}));
}

TEST(NcclPlanTest, InnerPartsAreCopied) {
  NcclPlan plan = planNccl(gather({4, 3}, 1, 5), 2, 0);
  EXPECT_EQ(plan.copiesBehind.size(), 2u);
  plan = planNccl(scatter({4, 5}, 1, 3), 2, 0);
  ASSERT_EQ(plan.copiesBefore.size(), 2u);
  // One of the parts has padding, which all members add up.
  EXPECT_EQ(plan.clearings.size(), 1u);
  EXPECT_EQ(plan.calls[0].from, (Place{Where::Scratch, 0}));
}

// ... but for those that are large: each is a call.
TEST(NcclPlanTest, LargeSlicesAreNotCopied) {
  constexpr int64_t rows = largeSlice / 16;
  NcclPlan plan = planNccl(gather({3, rows / 2, 4}, 1, rows), 2, 1);
  EXPECT_EQ(plan.scratchBytes, 0);
  ASSERT_EQ(plan.calls.size(), 3u);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(plan.calls[i].from, (Place{Where::Source, i * largeSlice / 2}));
    EXPECT_EQ(plan.calls[i].to, (Place{Where::Destination, i * largeSlice}));
    EXPECT_EQ(plan.calls[i].count, largeSlice / 2);
  }
  plan = planNccl(scatter({3, rows, 4}, 1, rows / 2), 2, 1);
  EXPECT_EQ(plan.scratchBytes, 0);
  ASSERT_EQ(plan.calls.size(), 3u);
  EXPECT_EQ(plan.calls[2].from, (Place{Where::Source, 2 * largeSlice}));
  EXPECT_EQ(plan.calls[2].to, (Place{Where::Destination, largeSlice}));
  EXPECT_EQ(plan.calls[2].count, largeSlice / 8);
  // Of padding NCCL knows nothing, and of less a copy is sooner done.
  EXPECT_GT(planNccl(gather({3, rows / 2, 4}, 1, rows - 1), 2, 1).scratchBytes,
            0);
  EXPECT_GT(
      planNccl(gather({3, rows / 2 - 2, 4}, 1, rows - 4), 2, 1).scratchBytes,
      0);
}

// Of an all-to-all of rows to columns, what goes out lies strided, and what
// comes in is in one piece.
TEST(NcclPlanTest, MessagesAreCopiedWhereTheyLieStrided) {
  CollectiveSpec spec = gather({4, 6}, 0, 8);
  spec.kind = CollectiveKind::AllToAll;
  spec.scatterDim = 1;
  spec.scatterPart = 3;
  NcclPlan plan = planNccl(spec, 2, 0);
  ASSERT_EQ(plan.calls.size(), 2u);
  EXPECT_EQ(plan.calls[0].kind, CallKind::Receive);
  EXPECT_EQ(plan.calls[0].to, (Place{Where::Destination, 4 * 3 * 4}));
  EXPECT_EQ(plan.calls[1].kind, CallKind::Send);
  EXPECT_EQ(plan.calls[1].from.where, Where::Scratch);
  // Its own part, and the message.
  EXPECT_EQ(plan.copiesBefore.size(), 2u);
  EXPECT_TRUE(plan.copiesBehind.empty());
}

// Several tensors of one operation have scratch of their own.
TEST(NcclPlanTest, ScratchBeginsWhereItIsTold) {
  NcclPlan plan = planNccl(gather({4, 3}, 1, 6), 2, 0, 256);
  EXPECT_EQ(plan.calls[0].to, (Place{Where::Scratch, 256}));
  EXPECT_EQ(plan.scratchBytes, 128);
}

TEST(NcclPlanTest, NothingIsNotExchanged) {
  EXPECT_TRUE(planNccl(gather({0, 3}, 1, 6), 2, 0).calls.empty());
}

} // namespace
