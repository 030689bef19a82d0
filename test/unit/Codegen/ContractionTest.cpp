//===- ContractionTest.cpp - Contractions and views as matrices -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../../../lib/Codegen/Contraction.h"
#include "../../../lib/Codegen/StridedView.h"

#include <gtest/gtest.h>

using namespace ax;
using namespace ax::codegen;
using Ints = std::vector<int64_t>;

TEST(Contraction, LeadingDimensionsOfALinearAreOneLoop) {
  // x [2, 3, 8] w [8, 5]
  Contraction linear;
  linear.m = {{2, 24, -1, 15}, {3, 8, -1, 5}};
  linear.n = {{5, -1, 1, 1}};
  linear.k = {{8, 1, 5}};
  ContractionFault fault;
  auto matmul = toMatmul(linear, fault);
  ASSERT_TRUE(matmul);
  EXPECT_EQ(matmul->a.sizes, Ints({6, 8}));
  EXPECT_EQ(matmul->b.strides, Ints({5, 1}));
  EXPECT_EQ(matmul->c.sizes, Ints({6, 5}));
}

TEST(Contraction, HeadsInsideRowsAreABatch) {
  // q [b=2, s=3, h=4, d=8] and k alike, by heads.
  Contraction scores;
  scores.batch = {{2, 96, 96, 36}, {4, 8, 8, 9}};
  scores.m = {{3, 32, -1, 3}};
  scores.n = {{3, -1, 32, 1}};
  scores.k = {{8, 1, 1}};
  ContractionFault fault;
  auto matmul = toMatmul(scores, fault);
  ASSERT_TRUE(matmul);
  EXPECT_EQ(matmul->a.sizes, Ints({2, 4, 3, 8}));
  EXPECT_EQ(matmul->b.sizes, Ints({2, 4, 8, 3}));
  EXPECT_EQ(matmul->b.strides, Ints({96, 8, 1, 32}));
}

TEST(Contraction, OperandThatIsNoMatrixIsNamed) {
  // k is two loops in a that are not one.
  Contraction split;
  split.m = {{3, 100, -1, 5}};
  split.n = {{5, -1, 1, 1}};
  split.k = {{2, 7, 20}, {4, 1, 5}};
  ContractionFault fault;
  EXPECT_FALSE(toMatmul(split, fault));
  EXPECT_TRUE(fault.a);
  EXPECT_FALSE(fault.b);
}

TEST(Contraction, FactorsOfEightBitsLieInRowsOfTheSum) {
  auto faultOf = [](std::pair<int64_t, int64_t> a,
                    std::pair<int64_t, int64_t> b, int64_t columns = 32,
                    int64_t rows = 48, bool ofIntegers = false) {
    Contraction product;
    product.aType = ofIntegers ? DType::I8 : DType::F8E5M2;
    product.bType = ofIntegers ? DType::I8 : DType::F8E4M3FN;
    product.needsMatrices = product.isOfEightBits = true;
    product.m = {{rows, a.first, -1, columns}};
    product.n = {{columns, -1, b.second, 1}};
    product.k = {{48, a.second, b.first}};
    ContractionFault fault;
    auto matmul = toMatmul(product, fault);
    EXPECT_EQ(matmul.has_value(), !fault.a && !fault.b);
    if (matmul) {
      EXPECT_EQ(matmul->a.dtype, product.aType);
      EXPECT_EQ(matmul->b.dtype, product.bType);
    }
    return std::pair(fault.a, fault.b);
  };
  std::pair none(false, false), ofA(true, false), ofB(false, true);
  EXPECT_EQ(faultOf({48, 1}, {1, 48}), none);
  EXPECT_EQ(faultOf({64, 1}, {1, 112}), none);
  EXPECT_EQ(faultOf({1, 48}, {1, 48}), ofA);
  EXPECT_EQ(faultOf({56, 1}, {1, 48}), ofA);
  EXPECT_EQ(faultOf({48, 1}, {32, 1}), ofB);
  EXPECT_EQ(faultOf({48, 1}, {1, 56}), ofB);
  EXPECT_EQ(faultOf({48, 1}, {1, 48}, /*columns=*/24), ofB);
  EXPECT_EQ(faultOf({48, 1}, {1, 48}, /*columns=*/32, /*rows=*/24), ofA);
  EXPECT_EQ(faultOf({48, 1}, {1, 48}, 32, /*rows=*/3, /*ofIntegers=*/true),
            none);
  EXPECT_EQ(faultOf({56, 1}, {1, 48}, 32, /*rows=*/3, /*ofIntegers=*/true),
            ofA);
  EXPECT_EQ(faultOf({48, 1}, {1, 48}, 24, /*rows=*/3, /*ofIntegers=*/true),
            ofB);
}

TEST(StridedView, ReshapeKeepsStridesWhereItCan) {
  auto split = reshapeStrides({2, 12}, {100, 1}, {2, 3, 4});
  ASSERT_TRUE(split);
  EXPECT_EQ(Ints(split->begin(), split->end()), Ints({100, 4, 1}));
  auto merged = reshapeStrides({2, 3, 4}, {12, 4, 1}, {6, 4});
  ASSERT_TRUE(merged);
  EXPECT_EQ(Ints(merged->begin(), merged->end()), Ints({4, 1}));
  EXPECT_FALSE(reshapeStrides({3, 4}, {1, 3}, {12}));
  EXPECT_FALSE(reshapeStrides({2, 12}, {100, 1}, {24}));
  auto ones = reshapeStrides({1, 6}, {6, 1}, {3, 1, 2, 1});
  ASSERT_TRUE(ones);
  EXPECT_EQ((*ones)[0], 2);
  EXPECT_EQ((*ones)[2], 1);
}
