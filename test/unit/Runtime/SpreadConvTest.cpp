//===- SpreadConvTest.cpp - Transposed convolutions to few channels -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PlainReference.h"
#include "Threads.h"

using namespace ax;
using namespace ax::rt;

namespace {

ConvCase sideBySide(const std::vector<int64_t> &x, int64_t outputs,
                    const std::vector<int64_t> &window) {
  std::vector<int64_t> ones(window.size(), 1), zeros(window.size(), 0);
  ConvCase c{x, {x[1], outputs}, window, ones, zeros, zeros};
  c.w.insert(c.w.end(), window.begin(), window.end());
  c.kind = ConvKind::Transposed;
  return c;
}

void checkSpread(ConvDesc desc) {
  for (bool isFirst : {false, true})
    for (bool hasBias : {false, true}) {
      if (isFirst)
        desc.x = TensorDesc::dense(DType::F32, desc.x.sizes);
      desc.hasBias = hasBias;
      SCOPED_TRACE(toString(desc));
      std::vector<ViewData> data = randomArguments(desc);
      std::vector<ViewData> reference = runPlain(desc, data);
      auto ours = llvm::cantFail(prepareSpreadConvTransposed(desc));
      ASSERT_TRUE(ours);
      run(*ours, data);
      expectNear(data.back(), reference.back(), desc.x.sizes[1]);
    }
}

// Of lines of one block, of a part of one, and of several.
TEST(SpreadConvTest, WindowsSideBySide) {
  for (int32_t threads : {1, 3}) {
    setNumThreads(threads);
    for (int64_t outputs : {1, 2, 3, 6})
      for (int64_t width : {5, 64, 150}) {
        checkSpread(makeDesc(sideBySide({2, 16, 3, width}, outputs, {3, 2})));
        checkSpread(makeDesc(sideBySide({2, 5, width}, outputs, {4})));
        checkSpread(
            makeDesc(sideBySide({1, 3, 2, 3, width}, outputs, {2, 1, 3})));
      }
    checkSpread(makeDesc(sideBySide({1, 7, 3, 70}, 1, {2, 1})));
    ConvDesc desc = makeDesc(sideBySide({2, 9, 3, 70}, 2, {2, 2}));
    desc.y.strides[2] += 3;
    desc.y.strides[0] += 40;
    checkSpread(desc);
  }
  setNumThreads(1);
}

TEST(SpreadConvTest, OthersAreRefused) {
  const ConvDesc good = makeDesc(sideBySide({1, 4, 5, 6}, 3, {2, 2}));
  auto refused = [](const ConvDesc &desc) {
    return !llvm::cantFail(prepareSpreadConvTransposed(desc));
  };
  EXPECT_FALSE(refused(good));
  ConvDesc desc = good;
  desc.padsLow[0] = 1;
  EXPECT_TRUE(refused(desc));
  desc = good;
  desc.strides[0] = 1;
  EXPECT_TRUE(refused(desc));
  desc = good;
  ++desc.y.sizes[3];
  EXPECT_TRUE(refused(desc));
  desc = good;
  desc.y = TensorDesc::dense(DType::F32, desc.y.sizes);
  EXPECT_TRUE(refused(desc));
  desc = good;
  desc.activation = Activation::Relu;
  EXPECT_TRUE(refused(desc));
  EXPECT_TRUE(refused(makeDesc(sideBySide({1, 4, 5, 6}, 30, {2, 2}))));
}

} // namespace
