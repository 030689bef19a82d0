//===- ConvolutionDescriptions.h - Convolutions that tests want -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_CONVOLUTIONDESCRIPTIONS_H
#define AX_TEST_CONVOLUTIONDESCRIPTIONS_H

#include "ax/Runtime/LibraryOps.h"

#include <random>

namespace ax::rt {

/// That of a convolution; each list has a number for each spatial dimension.
struct ConvShape {
  /// Channels of each group.
  int64_t batch = 1, in = 1, out = 1, groups = 1;
  std::vector<int64_t> image, kernel, strides, dilations, padsLow, padsHigh;
};

/// A square image, padded so that with a stride of 1 it keeps its size.
ConvShape squareShape(int64_t batch, int64_t in, int64_t out, int64_t size,
                      int64_t kernel, int64_t stride = 1, int64_t groups = 1);

/// Where channels are innermost.
struct ConvLayout {
  bool images = true, weights = true;
};

/// Of a transposed convolution, that of which it is the gradient has the shape.
ConvDesc makeConvDesc(ConvKind kind, DType dtype, const ConvShape &shape,
                      ConvLayout layout = {});

constexpr ConvKind allConvKinds[] = {ConvKind::Forward, ConvKind::Transposed,
                                     ConvKind::WeightGradient};
constexpr ConvLayout allConvLayouts[] = {
    {true, true}, {true, false}, {false, false}};

/// Descriptions of all kinds that are left to cuDNN.
class RandomConvolution {
public:
  explicit RandomConvolution(uint32_t seed) : random(seed) {}

  ConvDesc next();

private:
  int64_t number(int64_t below) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(below));
  }

  std::mt19937 random;
};

} // namespace ax::rt

#endif // AX_TEST_CONVOLUTIONDESCRIPTIONS_H
