//===- FitLinkTest.cpp - Latency and bandwidth of measured exchanges ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Cost/FitLink.h"

#include "ax/Cost/OpCost.h"

#include "gtest/gtest.h"

using namespace ax;
using namespace ax::cost;
using sharding::StepKind;

namespace {

/// What a machine with such a link takes, as plans are priced.
std::vector<LinkSample> samplesOf(const Link &link, int64_t ranks) {
  MachineRates machine;
  machine.link = link;
  std::vector<LinkSample> samples;
  for (StepKind kind :
       {StepKind::AllReduce, StepKind::AllGather, StepKind::ReduceScatter})
    for (double bytes = 1024; bytes <= 64 << 20; bytes *= 4)
      samples.push_back({kind, ranks, bytes,
                         exchangeSeconds(kind, {ranks, 1}, bytes, machine)});
  return samples;
}

TEST(FitLinkTest, WhatTimesWereMadeOfComesBack) {
  for (const Link &link : {Link{5e-6, 5e9}, Link{2e-7, 3e10}, Link{1e-5, 4e11},
                           Link{3e-2, 1e6}, Link{1e-3, 1e10}})
    for (int64_t ranks : {2, 3, 8, 64}) {
      LinkFit fit = fitLink(samplesOf(link, ranks));
      EXPECT_NEAR(fit.link.latency / link.latency, 1, 1e-5);
      EXPECT_NEAR(fit.link.bytesPerSecond / link.bytesPerSecond, 1, 1e-5);
      EXPECT_NEAR(fit.error, 1, 1e-5);
    }
}

TEST(FitLinkTest, WithoutLatency) {
  LinkFit fit = fitLink(samplesOf({0, 1e9}, 4));
  EXPECT_LT(fit.link.latency, 1e-8);
  EXPECT_NEAR(fit.link.bytesPerSecond / 1e9, 1, 1e-2);
}

/// Of times that are off by a factor both ways, it is in the middle.
TEST(FitLinkTest, BetweenSlowAndFastOnes) {
  std::vector<LinkSample> samples = samplesOf({1e-5, 1e9}, 4);
  std::vector<LinkSample> both;
  for (const LinkSample &sample : samples)
    for (double factor : {0.5, 2.0}) {
      both.push_back(sample);
      both.back().seconds *= factor;
    }
  LinkFit fit = fitLink(both);
  EXPECT_NEAR(fit.link.latency / 1e-5, 1, 1e-4);
  EXPECT_NEAR(fit.link.bytesPerSecond / 1e9, 1, 1e-4);
  EXPECT_NEAR(fit.error, 2, 1e-4);
}

/// One that was disturbed changes little.
TEST(FitLinkTest, OneOfManyIsSlow) {
  std::vector<LinkSample> samples = samplesOf({1e-5, 1e9}, 2);
  samples[1].seconds *= 50;
  LinkFit fit = fitLink(samples);
  EXPECT_GT(fit.link.latency, 0.9e-5);
  EXPECT_LT(fit.link.latency, 2e-5);
  EXPECT_GT(fit.link.bytesPerSecond, 0.7e9);
  EXPECT_LT(fit.link.bytesPerSecond, 1.4e9);
}

} // namespace
