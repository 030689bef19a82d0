//===- SamplerTest.cpp - Which token is next ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../../../lib/Session/Sampler.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace ax;

namespace {

/// How often each token is chosen of so many times.
std::vector<int> countChoices(const SamplingOptions &options,
                              const std::vector<double> &scores,
                              int times = 20000) {
  Sampler sampler(options);
  std::vector<int> counts(scores.size(), 0);
  for (int i = 0; i < times; ++i)
    ++counts[static_cast<size_t>(*sampler.choose(scores))];
  return counts;
}

TEST(SamplerTest, TheFirstOfTheLargest) {
  Sampler sampler({});
  EXPECT_EQ(sampler.choose({1, 3, 2, 3}), 1);
  EXPECT_EQ(sampler.choose({-INFINITY, NAN, -5}), 2);
  EXPECT_EQ(sampler.choose({NAN, -INFINITY}), 1);
  EXPECT_EQ(sampler.choose({NAN, NAN}), std::nullopt);
  EXPECT_EQ(sampler.choose({}), std::nullopt);
}

TEST(SamplerTest, AtRandomByProbability) {
  SamplingOptions options;
  options.temperature = 1;
  std::vector<double> parts{0.5, 0.125, 0.25, 0.125}, scores;
  for (double part : parts)
    scores.push_back(std::log(part) + 7);
  std::vector<int> counts = countChoices(options, scores);
  for (size_t i = 0; i < parts.size(); ++i)
    EXPECT_NEAR(counts[i] / 20000.0, parts[i], 0.015);
  // Hotter ones are nearer to each other: square roots of the parts.
  options.temperature = 2;
  counts = countChoices(options, scores);
  EXPECT_NEAR(counts[0] / 20000.0, std::sqrt(0.5) / 1.9142, 0.015);
  // NaN never, and infinite scores alone.
  counts = countChoices(options, {NAN, INFINITY, 3, INFINITY});
  EXPECT_EQ(counts[0] + counts[2], 0);
  EXPECT_NEAR(counts[1] / 20000.0, 0.5, 0.015);
}

TEST(SamplerTest, OfTheLikeliest) {
  SamplingOptions options;
  options.temperature = 1;
  options.topK = 2;
  std::vector<double> scores{0, 2, 1, 2};
  std::vector<int> counts = countChoices(options, scores);
  EXPECT_EQ(counts[0] + counts[2], 0);
  EXPECT_NEAR(counts[1] / 20000.0, 0.5, 0.015);
  options.topK = 9;
  EXPECT_GT(countChoices(options, scores)[0], 0);

  // 0.5 and 0.25 are no less than 0.7 together, 0.5 alone is.
  options.topK = 0;
  options.topP = 0.7;
  scores = {std::log(0.25), std::log(0.5), std::log(0.125), std::log(0.125)};
  counts = countChoices(options, scores);
  EXPECT_EQ(counts[2] + counts[3], 0);
  EXPECT_NEAR(counts[1] / 20000.0, 2.0 / 3, 0.015);
  // The likeliest one is always there.
  options.topP = 1e-9;
  EXPECT_EQ(countChoices(options, scores)[1], 20000);
}

TEST(SamplerTest, EqualSeedsChooseEqually) {
  SamplingOptions options;
  options.temperature = 1;
  options.seed = 3;
  std::vector<double> scores(100, 0.0);
  Sampler a(options), b(options);
  options.seed = 4;
  Sampler c(options);
  int others = 0;
  for (int i = 0; i < 50; ++i) {
    auto chosen = a.choose(scores);
    EXPECT_EQ(chosen, b.choose(scores));
    others += chosen != c.choose(scores);
  }
  EXPECT_GT(others, 40);
}

} // namespace
