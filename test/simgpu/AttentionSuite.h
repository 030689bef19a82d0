//===- AttentionSuite.h - What attention on cuda must give ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A test program links AttentionSuite.cpp, and instantiates AttentionSuite with
// drivers, simulated or real, and seeds.
//
//===----------------------------------------------------------------------===//
#ifndef AX_TEST_ATTENTIONSUITE_H
#define AX_TEST_ATTENTIONSUITE_H

#include "DeviceSuite.h"
#include "ProductRunner.h"

namespace ax::rt {

/// How the heads of a tensor lie.
enum class HeadLayout {
  Heads, ///< [batch, heads, rows, size]
  Rows,  ///< [batch, rows, heads, size]
  Fused, ///< [batch, rows, heads of q, k and v, size]; results are as in Rows
};

struct AttentionShape {
  int64_t batch = 1, heads = 1, keyHeads = 1, queries = 1, keys = 1, size = 8;
};

AttentionDesc makeAttentionDesc(DType dtype, const AttentionShape &shape,
                                HeadLayout layout = HeadLayout::Heads,
                                bool causal = false);
/// Its gradient, where that of what it gave lies as said.
AttentionGradientDesc makeGradientDesc(const AttentionDesc &desc,
                                       HeadLayout layout = HeadLayout::Heads);

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
