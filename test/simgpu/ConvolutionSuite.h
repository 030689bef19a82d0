//===- ConvolutionSuite.h - What convolutions on cuda must give -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A test program links ConvolutionSuite.cpp, and instantiates ConvolutionSuite
// with drivers, simulated or real, and seeds.
//
//===----------------------------------------------------------------------===//
#ifndef AX_TEST_CONVOLUTIONSUITE_H
#define AX_TEST_CONVOLUTIONSUITE_H

#include "ConvolutionDescriptions.h"
#include "DeviceSuite.h"
#include "ProductRunner.h"

namespace ax::rt {

/// Does it on the GPU, and in f32 on the CPU, and expects equal results within
/// rounding; what lies between a result's elements is compared, too.
void checkConvolution(ProductRunner &runner, const ConvDesc &desc,
                      uint32_t seed = 7);

struct ConvolutionParam {
  DeviceBackend *backend;
  uint32_t seed;
  /// How many random ones: cuDNN may take half a second to make a plan.
  uint32_t numRandom = 300;
};

class ConvolutionSuite : public ::testing::TestWithParam<ConvolutionParam> {
protected:
  ConvolutionSuite() { GetParam().backend->begin(); }
};

} // namespace ax::rt

#endif // AX_TEST_CONVOLUTIONSUITE_H
