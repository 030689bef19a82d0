//===- Sampler.cpp - Which token is next ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Sampler.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>

using namespace ax;

std::optional<int64_t> Sampler::choose(std::vector<double> scores) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < scores.size(); ++i)
    if (!std::isnan(scores[i]))
      order.push_back(static_cast<int64_t>(i));
  if (order.empty())
    return std::nullopt;
  auto scoreOf = [&](int64_t token) {
    return scores[static_cast<size_t>(token)];
  };
  auto isBetter = [&](int64_t a, int64_t b) {
    return scoreOf(a) != scoreOf(b) ? scoreOf(a) > scoreOf(b) : a < b;
  };
  if (options.temperature == 0)
    return *std::min_element(order.begin(), order.end(), isBetter);
  if (options.topK > 0 && options.topK < static_cast<int64_t>(order.size())) {
    std::nth_element(order.begin(), order.begin() + options.topK, order.end(),
                     isBetter);
    order.resize(static_cast<size_t>(options.topK));
  }
  llvm::sort(order, isBetter);
  double largest = scoreOf(order.front()), sum = 0;
  std::vector<double> weights;
  for (int64_t token : order) {
    // Infinite scores are as good as each other.
    double less = scoreOf(token) == largest ? 0 : scoreOf(token) - largest;
    weights.push_back(std::exp(less / options.temperature));
    sum += weights.back();
  }
  // The first of those that are left out is behind so much.
  double kept = 0;
  size_t count = 0;
  while (count < weights.size() && (count == 0 || kept < options.topP * sum))
    kept += weights[count++];
  // std::uniform_real_distribution differs between libraries.
  constexpr int bits = 53;
  double place =
      std::ldexp(static_cast<double>(random() >> (64 - bits)), -bits) * kept;
  for (size_t i = 0; i + 1 < count; ++i) {
    place -= weights[i];
    if (place < 0)
      return order[i];
  }
  return order[count - 1];
}
