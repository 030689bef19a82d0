//===- FilterConvTest.cpp - Convolutions of a signal of one channel -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PlainReference.h"
#include "Threads.h"

using namespace ax;
using namespace ax::rt;

namespace {

ConvDesc filter(int64_t length, int64_t taps, int64_t stride, int64_t dilation,
                int64_t pad) {
  return makeDesc({{2, 1, length},
                   {1, 1, taps},
                   {stride},
                   {dilation},
                   {pad},
                   {std::max<int64_t>(0, pad - 1)}});
}

void checkFilter(ConvDesc desc) {
  ASSERT_TRUE(isFilter(desc)) << toString(desc);
  for (bool hasMore : {false, true}) {
    desc.hasBias = desc.hasResidual = hasMore;
    desc.activation = hasMore ? Activation::Relu : Activation::None;
    SCOPED_TRACE(toString(desc));
    std::vector<ViewData> data = randomArguments(desc);
    std::vector<ViewData> reference = runPlain(desc, data);
    run(*llvm::cantFail(preparePlainDepthwiseConv(desc)), data);
    expectNear(data.back(), reference.back(), desc.w.sizes[2]);
  }
}

// Windows of fewer taps than a stride has places and of more, and places that
// are one block, or several of several threads.
TEST(FilterConvTest, Strides) {
  for (int32_t threads : {1, 3}) {
    setNumThreads(threads);
    for (int64_t stride : {1, 2, 6, 16})
      for (int64_t taps : {1, 5, 80})
        for (int64_t pad : {0, 3})
          for (int64_t length : {90, 30000})
            checkFilter(filter(length, taps, stride, 1, pad));
    checkFilter(filter(300, 9, 1, 4, 17));
    checkFilter(filter(4000, 1024, 3, 1, 500));
  }
  setNumThreads(1);
}

TEST(FilterConvTest, Others) {
  EXPECT_FALSE(isFilter(filter(300, 9, 2, 4, 0)));
  EXPECT_FALSE(isFilter(filter(4000, 1025, 3, 1, 500)));
  ConvDesc desc = filter(300, 9, 2, 1, 0);
  desc.x.strides[2] = 2;
  EXPECT_FALSE(isFilter(desc));
}

} // namespace
