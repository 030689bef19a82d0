//===- ConvolutionSuite.cpp - What convolutions on cuda must give ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ConvolutionSuite.h"

#include "CpuComparison.h"

namespace ax::rt {

static ExpectedCpuOp prepareOnCpu(const ConvDesc &desc) {
  switch (desc.kind) {
  case ConvKind::Forward:
    return preparePlainConv(desc);
  case ConvKind::Transposed:
    return preparePlainConvTransposed(desc);
  case ConvKind::WeightGradient:
    return preparePlainConvWeightGradient(desc);
  }
  return nullptr;
}

void checkConvolution(ProductRunner &runner, const ConvDesc &desc,
                      uint32_t seed) {
  ASSERT_EQ(findFault(desc), "") << toString(desc);
  ConvDesc wide = desc;
  for (TensorDesc *tensor : {&wide.x, &wide.w, &wide.y})
    tensor->dtype = DType::F32;
  std::vector<ViewData> data, plain;
  fillBoth(desc, wide, seed, data, plain);
  runOnCpu(prepareOnCpu(wide), plain);
  compareWithCpu(runner, desc, data, plain, data.size() - 1);
}

namespace {

TEST_P(ConvolutionSuite, RandomDescriptions) {
  ProductRunner runner;
  RandomConvolution convolution(GetParam().seed);
  for (uint32_t i = 0; i < GetParam().numRandom && !HasFatalFailure(); ++i)
    checkConvolution(runner, convolution.next(), i);
}

TEST_P(ConvolutionSuite, EveryKindTypeAndLayout) {
  ProductRunner runner;
  const ConvShape shapes[] = {
      squareShape(2, 16, 8, 9, 3), squareShape(1, 8, 16, 8, 1, 2),
      squareShape(2, 3, 8, 11, 7, 2), squareShape(1, 8, 8, 7, 3, 1, 8),
      squareShape(2, 8, 12, 6, 3, 2, 4)};
  for (const ConvShape &shape : shapes)
    for (ConvKind kind : allConvKinds)
      for (DType dtype : {DType::F32, DType::F16, DType::BF16})
        for (ConvLayout layout : allConvLayouts)
          checkConvolution(runner, makeConvDesc(kind, dtype, shape, layout));
}

// Along a dimension of one there is no step: any layout is any other.
TEST_P(ConvolutionSuite, SizesOfOne) {
  ProductRunner runner;
  const ConvShape shapes[] = {
      squareShape(1, 1, 1, 1, 1),
      squareShape(1, 8, 1, 1, 1),
      squareShape(1, 1, 8, 1, 1),
      squareShape(2, 1, 4, 5, 3),
      {1, 8, 8, 1, {1}, {1}, {2}, {1}, {0}, {0}},
      {2, 1, 8, 1, {6}, {3}, {1}, {1}, {1}, {1}},
      {2, 8, 1, 1, {1, 6}, {1, 3}, {1, 1}, {1, 1}, {0, 1}, {0, 1}},
      {1,
       2,
       2,
       1,
       {1, 4, 1},
       {1, 3, 1},
       {1, 2, 1},
       {1, 1, 1},
       {0, 0, 0},
       {0, 2, 0}}};
  for (const ConvShape &shape : shapes)
    for (ConvKind kind : allConvKinds)
      for (ConvLayout layout : allConvLayouts)
        checkConvolution(runner, makeConvDesc(kind, DType::F16, shape, layout));
}

} // namespace

} // namespace ax::rt
