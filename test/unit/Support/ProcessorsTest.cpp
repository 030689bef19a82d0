//===- ProcessorsTest.cpp - What computes, and how much at once -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/Processors.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <sched.h>
#include <thread>

using namespace ax;

namespace {

TEST(ProcessorsTest, QuotaOfAGroup) {
  EXPECT_EQ(parseQuota("250000 100000\n"), 2.5);
  EXPECT_EQ(parseQuota("50000 100000"), 0.5);
  for (const char *text : {"max 100000\n", "", "100000", "x 100000", "1 x",
                           "100000 0", "-1 100000", "1 2 3"})
    EXPECT_EQ(parseQuota(text), std::nullopt) << text;
}

TEST(ProcessorsTest, ModelAsPeopleCallIt) {
  EXPECT_EQ(parseProcessorModel("processor\t: 0\nmodel\t\t: 17\n"
                                "model name\t: AMD EPYC 9654\n"
                                "model name\t: another\n"),
            "AMD EPYC 9654");
  EXPECT_EQ(parseProcessorModel("processor\t: 0\nCPU part\t: 0xd4f\n"), "");
  EXPECT_EQ(parseProcessorModel(""), "");
  EXPECT_NE(findProcessorModel(), "");
}

/// Of a thread, which the others do not share.
TEST(ProcessorsTest, NoMoreThanItMayRunOn) {
  int32_t all = countProcessors(), one = 0;
  EXPECT_GE(all, 1);
  EXPECT_LE(all, static_cast<int32_t>(std::thread::hardware_concurrency()));
  std::thread([&] {
    cpu_set_t mask;
    ASSERT_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0);
    int first = 0;
    while (!CPU_ISSET(first, &mask))
      ++first;
    CPU_ZERO(&mask);
    CPU_SET(first, &mask);
    ASSERT_EQ(sched_setaffinity(0, sizeof(mask), &mask), 0);
    one = countProcessors();
  }).join();
  EXPECT_EQ(one, 1);
}

TEST(ProcessorsTest, WhatTheEnvironmentAsksFor) {
  const char *before = std::getenv("OMP_NUM_THREADS");
  std::string kept = before ? before : "";
  auto asked = [](const char *text) {
    setenv("OMP_NUM_THREADS", text, 1);
    return askedThreads();
  };
  EXPECT_EQ(asked("3"), 3);
  EXPECT_EQ(asked("8,2"), 8);
  EXPECT_EQ(asked(" 4 "), 4);
  for (const char *text : {"", "0", "-2", "two", "2x"})
    EXPECT_EQ(asked(text), std::nullopt) << text;
  unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(askedThreads(), std::nullopt);
  if (before)
    setenv("OMP_NUM_THREADS", kept.c_str(), 1);
}

} // namespace
