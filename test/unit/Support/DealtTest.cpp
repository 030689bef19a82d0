//===- DealtTest.cpp - Orders of a dimension ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Support/PiecedTensor.h"

#include "gtest/gtest.h"

using namespace ax;

namespace {

HostTensor counting(const Shape &shape) {
  HostTensor tensor(DType::I32, shape);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.setDouble(i, static_cast<double>(i));
  return tensor;
}

/// `tensor` from one order to another; null: the model's.
HostTensor reordered(const HostTensor &tensor, std::optional<Dealt> given,
                     std::optional<Dealt> wanted) {
  PiecedTensor pieces = PiecedTensor::of(tensor);
  pieces.given = std::move(given);
  pieces.wanted = std::move(wanted);
  return llvm::cantFail(pieces.assemble());
}

TEST(DealtTest, EachHandHasItsShareOfEachPart) {
  HostTensor rows = counting({12});
  HostTensor dealt = reordered(rows, std::nullopt, Dealt{0, {8, 2, 2}, 2});
  const int64_t wanted[] = {0, 1, 2, 3, 8, 10, 4, 5, 6, 7, 9, 11};
  for (int64_t i = 0; i < 12; ++i)
    EXPECT_EQ(dealt.getDouble(i), wanted[i]);
  // Columns, in each row.
  HostTensor columns = counting({2, 6, 2}),
             turned = reordered(columns, std::nullopt, Dealt{1, {4, 2}, 2});
  const int64_t places[] = {0, 1, 4, 2, 3, 5};
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t column = 0; column < 6; ++column)
      for (int64_t i = 0; i < 2; ++i)
        EXPECT_EQ(turned.getDouble(row * 12 + column * 2 + i),
                  row * 12 + places[column] * 2 + i);
}

TEST(DealtTest, OrdersLeadToEachOther) {
  Dealt two{1, {8, 4, 4}, 2}, four{1, {8, 4, 4}, 4}, other{0, {2, 4}, 2};
  HostTensor tensor = counting({6, 16, 3});
  for (const Dealt &one : {two, four, other}) {
    HostTensor dealt = reordered(tensor, std::nullopt, one);
    EXPECT_FALSE(dealt.isIdentical(tensor));
    EXPECT_TRUE(reordered(dealt, one, std::nullopt).isIdentical(tensor));
    EXPECT_TRUE(reordered(dealt, one, one).isIdentical(dealt));
    for (const Dealt &next : {two, four, other})
      EXPECT_TRUE(reordered(dealt, one, next)
                      .isIdentical(reordered(tensor, std::nullopt, next)));
  }
}

// Any run of elements, in pieces that are together all of it.
TEST(DealtTest, RunsGoPieceByPiece) {
  Dealt dealt{1, {4, 2}, 2};
  Shape shape{3, 6, 2};
  DealtOrder order(dealt, shape);
  HostTensor whole = reordered(counting(shape), dealt, std::nullopt);
  for (int64_t at = 0; at < 36; ++at)
    for (int64_t count = 0; at + count <= 36; ++count) {
      int64_t next = 0;
      EXPECT_TRUE(order.deal(at, count, [&](int64_t to, int64_t n, int64_t i) {
        EXPECT_EQ(i, next);
        next += n;
        for (int64_t e = 0; e < n; ++e)
          EXPECT_EQ(whole.getDouble(at + i + e), to + e);
        return true;
      }));
      EXPECT_EQ(next, count);
    }
  int calls = 0;
  EXPECT_FALSE(order.collect(
      0, 36, [&](int64_t, int64_t, int64_t) { return ++calls < 2; }));
  EXPECT_EQ(calls, 2);
}

TEST(DealtTest, FaultsAreTold) {
  auto fault = [](Dealt dealt) { return dealt.findFault({4, 6}).value_or(""); };
  EXPECT_EQ(fault({1, {4, 2}, 2}), "");
  EXPECT_EQ(fault({2, {4, 2}, 2}), "there is no dimension 2");
  EXPECT_EQ(fault({-1, {4, 2}, 2}), "there is no dimension -1");
  EXPECT_EQ(fault({1, {4, 2}, 0}), "there are at least 2 hands");
  EXPECT_EQ(fault({1, {}, 2}), "there are no parts");
  EXPECT_EQ(fault({1, {3, 3}, 2}),
            "a part of 3 is not dealt to 2 hands evenly");
  EXPECT_EQ(fault({1, {2, 0, 4}, 2}),
            "a part of 0 is not dealt to 2 hands evenly");
  EXPECT_EQ(fault({1, {2, 2}, 2}),
            "its parts are 4 of the 6 elements of dimension 1");
  EXPECT_EQ(fault({1, {4, INT64_MAX - 1}, 2}),
            "its parts are more than the 6 elements of dimension 1");
}

} // namespace
