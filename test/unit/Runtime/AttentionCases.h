//===- AttentionCases.h - Attention to compare with -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_ATTENTIONCASES_H
#define AX_TEST_ATTENTIONCASES_H

#include "LibraryRunner.h"

#include <algorithm>

namespace ax::rt {

struct AttentionSizes {
  int64_t batch, heads, kvHeads, queries, keys, depth, valueDepth;
};

const AttentionSizes attentionSizes[] = {
    {1, 2, 2, 5, 5, 4, 4},      {1, 4, 2, 33, 33, 8, 3},
    {1, 2, 1, 6, 70, 8, 12},    {1, 1, 1, 1, 100, 16, 64},
    {1, 2, 1, 50, 100, 24, 40}, {1, 1, 1, 77, 65, 36, 80},
    {2, 3, 3, 7, 3, 5, 2},      {1, 4, 2, 3, 41, 32, 24}};

inline AttentionDesc makeAttention(const AttentionSizes &s, DType type,
                                   bool headsInner = false) {
  auto view = [&](int64_t heads, int64_t length, int64_t depth) {
    TensorDesc result =
        TensorDesc::dense(type, {s.batch, heads, length, depth});
    // [batch, length, head, depth] in memory, as projections give it.
    if (headsInner)
      result.strides = {heads * length * depth, depth, heads * depth, 1};
    return result;
  };
  AttentionDesc desc;
  desc.q = view(s.heads, s.queries, s.depth);
  desc.k = view(s.kvHeads, s.keys, s.depth);
  desc.v = view(s.kvHeads, s.keys, s.valueDepth);
  desc.out = view(s.heads, s.queries, s.valueDepth);
  desc.scale = 1 / std::sqrt(static_cast<double>(s.depth));
  return desc;
}

/// How much a query attends to each key, and how that changes with the product
/// of the two. All hidden: nothing.
struct AttentionWeights {
  std::vector<double> p, slopes;
  /// Of the sum of exponentials.
  double logSum = -INFINITY;
};
inline AttentionWeights weigh(const AttentionDesc &desc, const ViewData &q,
                              const ViewData &k, const ViewData *mask,
                              const std::vector<int64_t> &query) {
  int64_t queries = desc.q.sizes[2], keys = desc.k.sizes[2];
  int64_t perKv = desc.q.sizes[1] / desc.k.sizes[1];
  AttentionWeights to;
  for (int64_t t = 0; t < keys; ++t) {
    double score = 0, slope = 1;
    for (int64_t d = 0; d < desc.q.sizes[3]; ++d)
      score += q.get({query[0], query[1], query[2], d}) *
               k.get({query[0], query[1] / perKv, t, d});
    score *= desc.scale;
    if (desc.softcap > 0) {
      double capped = std::tanh(score / desc.softcap);
      score = desc.softcap * capped;
      slope = 1 - capped * capped;
    }
    double last =
        desc.causal ? static_cast<double>(query[2] + keys - queries) : INFINITY;
    if (desc.hasMask) {
      double given = mask->get({query[0], query[1], query[2], t});
      if (desc.mask.dtype == DType::I64)
        last = std::min(last, query[2] + given);
      else if (desc.mask.dtype != DType::Bool)
        score += given;
      else if (given == 0)
        score = -INFINITY;
    }
    if (t > last || (desc.window > 0 && t <= last - desc.window))
      score = -INFINITY;
    to.p.push_back(score);
    to.slopes.push_back(slope);
  }
  double max = *std::max_element(to.p.begin(), to.p.end()), sum = 0;
  if (max == -INFINITY && !desc.emptyRowsMean)
    return {};
  if (max == -INFINITY) {
    std::fill(to.p.begin(), to.p.end(), 0);
    max = 0;
  }
  for (double &score : to.p)
    sum += score = std::exp(score - max);
  for (double &p : to.p)
    p /= sum;
  to.logSum = max + std::log(sum);
  return to;
}

} // namespace ax::rt

#endif // AX_TEST_ATTENTIONCASES_H
