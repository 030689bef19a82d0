//===- AttentionSuite.h - What attention on cuda must give ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A test program links AttentionSuite.cpp, and instantiates AttentionSuite with
// drivers, simulated or real, and seeds.
//
//===----------------------------------------------------------------------===//
#ifndef AX_TEST_ATTENTIONSUITE_H
#define AX_TEST_ATTENTIONSUITE_H

#include "AttentionDescriptions.h"
#include "DeviceSuite.h"
#include "ProductRunner.h"

namespace ax::rt {

/// Does it on the GPU, and in f32 on the CPU, and expects equal results within
/// rounding; what lies between a result's elements is compared, too.
void checkAttention(ProductRunner &runner, const AttentionDesc &desc,
                    uint32_t seed = 7);
void checkGradient(ProductRunner &runner, const AttentionGradientDesc &desc,
                   uint32_t seed = 7);

struct AttentionParam {
  DeviceBackend *backend;
  uint32_t seed;
  /// How many random ones: cuDNN takes half a second to make a plan, or two.
  uint32_t numRandom = 100;
};

class AttentionSuite : public ::testing::TestWithParam<AttentionParam> {
protected:
  AttentionSuite() { GetParam().backend->begin(); }
};

} // namespace ax::rt

#endif // AX_TEST_ATTENTIONSUITE_H
