//===- AttentionDescriptions.cpp - Attention that tests ask for -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AttentionDescriptions.h"

#include <cmath>

namespace ax::rt {

AttentionDesc makeAttentionDesc(DType dtype, const AttentionShape &shape,
                                HeadLayout layout, bool causal) {
  int64_t size = shape.size;
  auto place = [&](int64_t heads, int64_t rows, bool isResult) {
    TensorDesc made =
        TensorDesc::dense(dtype, {shape.batch, heads, rows, size});
    int64_t together = layout == HeadLayout::Fused && !isResult
                           ? shape.heads + 2 * shape.keyHeads
                           : heads;
    if (layout != HeadLayout::Heads)
      made.strides = {rows * together * size, size, together * size, 1};
    return made;
  };
  AttentionDesc desc;
  desc.q = place(shape.heads, shape.queries, false);
  desc.k = desc.v = place(shape.keyHeads, shape.keys, false);
  desc.out = place(shape.heads, shape.queries, true);
  desc.scale = 1 / std::sqrt(static_cast<double>(size));
  desc.causal = causal;
  return desc;
}

void addMask(AttentionDesc &desc, DType type,
             const std::vector<int64_t> &shape) {
  desc.hasMask = true;
  desc.mask = TensorDesc::dense(type, shape);
  const std::vector<int64_t> scores{desc.q.sizes[0], desc.q.sizes[1],
                                    desc.q.sizes[2], desc.k.sizes[2]};
  for (size_t d = 0; d < scores.size(); ++d)
    if (shape[d] != scores[d])
      desc.mask.strides[d] = 0;
  desc.mask.sizes = scores;
}

AttentionGradientDesc makeGradientDesc(const AttentionDesc &desc,
                                       HeadLayout layout) {
  AttentionGradientDesc made;
  made.forward = desc;
  made.dq = desc.q, made.dk = desc.k, made.dv = desc.v;
  if (layout != HeadLayout::Fused)
    for (TensorDesc *view : {&made.dq, &made.dk, &made.dv})
      *view = TensorDesc::dense(view->dtype, view->sizes);
  made.gradient = TensorDesc::dense(desc.out.dtype, desc.out.sizes);
  int64_t heads = desc.out.sizes[1], size = desc.out.sizes[3];
  if (layout != HeadLayout::Heads)
    made.gradient.strides = {heads * size * desc.out.sizes[2], size,
                             heads * size, 1};
  return made;
}

std::vector<LaidAttention> everyTypeLayoutAndGroup() {
  std::vector<LaidAttention> all;
  for (DType type : {DType::F16, DType::BF16})
    for (HeadLayout layout :
         {HeadLayout::Heads, HeadLayout::Rows, HeadLayout::Fused})
      for (int64_t heads : {2, 6})
        for (bool causal : {false, true}) {
          AttentionShape shape{2, heads, 2, 19, 19, 16};
          AttentionDesc desc = makeAttentionDesc(type, shape, layout, causal);
          all.push_back({desc, layout});
          desc.givesLogSums = true;
          all.push_back({desc, layout});
          if (!causal)
            continue;
          desc.window = 5;
          all.push_back({desc, layout});
        }
  return all;
}

std::vector<LaidAttention> sizesOfOne() {
  std::vector<LaidAttention> all;
  for (int64_t queries : {1, 9})
    for (int64_t keys : {1, 9})
      for (HeadLayout layout : {HeadLayout::Heads, HeadLayout::Fused})
        all.push_back(
            {makeAttentionDesc(DType::F16, {1, 1, 1, queries, keys, 8}, layout,
                               queries == keys),
             layout});
  return all;
}

std::vector<AttentionDesc> everyShapeAndTypeOfMasks() {
  constexpr AttentionShape shape{2, 4, 2, 9, 9, 16};
  constexpr unsigned numShapes = 16;
  std::vector<AttentionDesc> all;
  for (DType type : {DType::F16, DType::BF16})
    for (DType maskType : {DType::F32, type})
      for (unsigned which = 0; which < numShapes; ++which) {
        std::vector<int64_t> sizes{shape.batch, shape.heads, shape.queries,
                                   shape.keys};
        for (unsigned d = 0; d < sizes.size(); ++d)
          if ((which >> d) & 1U)
            sizes[d] = 1;
        AttentionDesc desc = makeAttentionDesc(type, shape, HeadLayout::Heads,
                                               /*causal=*/which % 3 == 0);
        addMask(desc, maskType, sizes);
        all.push_back(std::move(desc));
      }
  return all;
}

AttentionDesc RandomAttention::next() {
  AttentionShape shape;
  shape.batch = 1 + number(3);
  shape.keyHeads = 1 + number(3);
  shape.heads = shape.keyHeads * (number(2) ? 1 : 1 + number(3));
  bool causal = number(2);
  shape.queries = rows();
  shape.keys = causal || number(2) ? shape.queries : rows();
  shape.size = 8 * (1 + number(number(4) ? 4 : 16));
  AttentionDesc desc = makeAttentionDesc(number(2) ? DType::F16 : DType::BF16,
                                         shape, layout(), causal);
  if (number(3) == 0)
    desc.scale = 0.3;
  if (causal && number(2))
    desc.window = 1 + number(shape.queries);
  desc.givesLogSums = number(2);
  if (number(2))
    mask(desc);
  return desc;
}

void RandomAttention::mask(AttentionDesc &desc) {
  std::vector<int64_t> shape{desc.q.sizes[0], desc.q.sizes[1], desc.q.sizes[2],
                             desc.k.sizes[2]};
  for (int64_t &size : shape)
    if (number(3) == 0)
      size = 1;
  addMask(desc, number(2) ? DType::F32 : desc.q.dtype, shape);
}

} // namespace ax::rt
