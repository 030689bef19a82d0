//===- SearchTest.cpp - Whether the fastest strategy is found ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Search/Search.h"

#include "ax/Dialect/Ax.h"
#include "ax/Import/Import.h"
#include "ax/Support/Error.h"

#include "gtest/gtest.h"

#include <cstdlib>

using namespace ax;

namespace {

class Search : public ::testing::Test {
protected:
  Search() {
    context.loadDialect<AxDialect>();
    const char *tests = std::getenv("AX_TEST_DIR");
    import::ImportOptions options;
    options.training = true;
    llvm::cantFail(import::addDim(options, "batch=8"));
    model = llvm::cantFail(
        import::importModel(std::string(tests ? tests : "test") +
                                "/data/training/gpt2_tied/model.onnx",
                            options, context));
    compileOptions.strategy.training.emplace().loss =
        llvm::cantFail(Loss::parse("cross_entropy(logits,labels)"));
    // Exchanges that are neither free nor all that counts.
    MachineRates &machine = compileOptions.machine.emplace();
    machine.flopsPerSecond = 1e10;
    machine.link = machine.hostLink = {1e-6, 1e9};
  }

  search::Result run(const search::Options &options) {
    auto found = search::search(*model, compileOptions, options);
    if (!found) {
      ADD_FAILURE() << describeError(found.takeError()).message;
      return {};
    }
    return std::move(*found);
  }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> model;
  CompileOptions compileOptions;
};

/// All that there is to choose from: every way to write 4 as a product of five
/// sizes, in one slice or four, and of schedules two.
std::vector<Strategy> allStrategies(const Strategy &from) {
  std::vector<Strategy> all;
  for (int64_t data : {1, 2, 4})
    for (int64_t pipe : {1, 2, 4})
      for (int64_t row : {1, 2, 4})
        for (int64_t col : {1, 2, 4})
          for (int64_t depth : {1, 2, 4})
            for (int64_t micro : {1, 4}) {
              if (data * pipe * row * col * depth != 4 || (row > 1 && col == 1))
                continue;
              Strategy one = from;
              one.data = data;
              one.pipe = pipe;
              one.tensor = {row, col, depth};
              one.micro = micro;
              all.push_back(one);
              if (pipe == 1)
                continue;
              one.schedule = llvm::cantFail(ScheduleChoice::parse("zb-v"));
              all.push_back(one);
            }
  return all;
}

TEST_F(Search, FindsWhatTryingAllFinds) {
  search::Options options;
  options.devices = 4;
  options.timeLimit = 1e9;
  search::Fixed &fixed = options.fixed;
  fixed.zero = fixed.recompute = fixed.sequenceParallel = fixed.context = true;
  MachineRates &machine = *compileOptions.machine;
  for (double bandwidth : {1e8, 1e10}) {
    machine.link.bytesPerSecond = bandwidth;
    machine.hostLink.bytesPerSecond = bandwidth;
    // Between two hosts it is a tenth of the faster way.
    if (bandwidth == 1e10) {
      machine.ranksPerHost = 2;
      machine.hostLink.bytesPerSecond = 1e8;
    }
    search::Result found = run(options);
    ASSERT_FALSE(found.candidates.empty());
    EXPECT_TRUE(found.isWhole);
    double best = found.candidates.front().seconds;

    search::Options one = options;
    one.fixed.data = one.fixed.pipe = one.fixed.tensor = one.fixed.micro = true;
    one.timeLimit = 0;
    double least = 1e9;
    Strategy from = compileOptions.strategy;
    for (const Strategy &strategy : allStrategies(from)) {
      compileOptions.strategy = strategy;
      auto tried = search::search(*model, compileOptions, one);
      if (tried)
        least = std::min(least, tried->candidates.front().seconds);
      else
        llvm::consumeError(tried.takeError());
    }
    compileOptions.strategy = from;
    // Of nearly equal ones it takes the simple one, and another schedule may be
    // faster than the one that was tried here.
    EXPECT_LE(best, 1.05 * least) << bandwidth;
    EXPECT_GT(best, 0.5 * least);
  }
}

TEST_F(Search, MemoryComesFirst) {
  search::Options options;
  options.devices = 4;
  options.fixed.pipe = options.fixed.context = true;
  options.timeLimit = 1e9;
  search::Result all = run(options);
  int64_t needed = all.candidates.front().peakBytes;
  options.memoryBytes = needed * 2 / 3;
  search::Result small = run(options);
  const search::Candidate &best = small.candidates.front();
  EXPECT_TRUE(best.fits);
  EXPECT_LE(best.peakBytes, options.memoryBytes);
  for (const search::Candidate &other : small.candidates)
    EXPECT_EQ(other.fits,
              other.fault.empty() && other.peakBytes <= options.memoryBytes);
  EXPECT_GE(best.seconds, 0.95 * all.candidates.front().seconds);
}

TEST_F(Search, WhatIsFixedStays) {
  search::Options options;
  options.devices = 4;
  compileOptions.strategy.pipe = 2;
  compileOptions.strategy.micro = 4;
  compileOptions.strategy.training->recompute =
      llvm::cantFail(RecomputeMode::parse("full"));
  options.fixed.pipe = options.fixed.micro = options.fixed.recompute = true;
  options.fixed.context = true;
  for (const search::Candidate &one : run(options).candidates) {
    EXPECT_EQ(one.strategy.pipe, 2);
    EXPECT_EQ(one.strategy.micro, 4);
    EXPECT_EQ(one.strategy.training->recompute.toText(), "full");
    EXPECT_EQ(one.strategy.mesh()->numRanks(), 4);
  }
}

} // namespace
