//===- AttentionDescriptions.h - Attention that tests ask for ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_ATTENTIONDESCRIPTIONS_H
#define AX_TEST_ATTENTIONDESCRIPTIONS_H

#include "ax/Runtime/LibraryOps.h"

#include <random>

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

/// What is added, of f32 or of the type of the queries, has as many elements as
/// `shape` says: of scores along each dimension, or 1.
void addMask(AttentionDesc &desc, DType type,
             const std::vector<int64_t> &shape);

AttentionDesc makeAttentionDesc(DType dtype, const AttentionShape &shape,
                                HeadLayout layout = HeadLayout::Heads,
                                bool causal = false);
/// Its gradient, where that of what it gave lies as said.
AttentionGradientDesc makeGradientDesc(const AttentionDesc &desc,
                                       HeadLayout layout = HeadLayout::Heads);

struct LaidAttention {
  AttentionDesc desc;
  HeadLayout layout;
};
std::vector<LaidAttention> everyTypeLayoutAndGroup();
std::vector<LaidAttention> sizesOfOne();
/// Of a mask each dimension may be 1.
std::vector<AttentionDesc> everyShapeAndTypeOfMasks();

/// Descriptions of all kinds that cuDNN does.
class RandomAttention {
public:
  explicit RandomAttention(uint32_t seed) : random(seed) {}

  AttentionDesc next();
  HeadLayout layout() { return static_cast<HeadLayout>(number(3)); }

private:
  int64_t number(int64_t below) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(below));
  }
  /// Adds a mask of any shape and type that cuDNN reads.
  void mask(AttentionDesc &desc);
  int64_t rows() { return 1 + number(number(5) ? 40 : 200); }

  std::mt19937 random;
};

} // namespace ax::rt

#endif // AX_TEST_ATTENTIONDESCRIPTIONS_H
