//===- MutationTest.cpp - Every single edit is found, or harmless ---------===//
#include "Mutations.h"
#include "PlanRunner.h"
#include "SamplePlans.h"

#include "ax/Plan/Plan.h"
#include "ax/Support/Error.h"

#include "mlir/IR/OwningOpRef.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace ax::plan {

static std::string textOf(ModuleOp module) {
  std::string text;
  // Broken IR has no names for its values in the pretty form.
  llvm::raw_string_ostream os(text);
  module.print(os, OpPrintingFlags().assumeVerified());
  return text;
}

/// Tries every mutation of a plan; gives how many were found and how many are
/// harmless.
static std::pair<int, int> tryAll(const char *text) {
  MLIRContext &context = testContext();
  ScopedDiagnosticHandler quiet(&context,
                                [](Diagnostic &) { return success(); });
  auto plan = parsePlan(text, "p.mlir", context);
  if (!plan) {
    ADD_FAILURE() << describeError(plan.takeError()).message;
    return {};
  }
  EXPECT_FALSE(errorToBool(verifyPlan(**plan)));
  auto expected = runPlan(**plan);
  if (!expected) {
    ADD_FAILURE() << describeError(expected.takeError()).message;
    return {};
  }
  int caught = 0, harmless = 0;
  for (const Mutation &mutation : allMutations(**plan)) {
    OwningOpRef<ModuleOp> mutant((*plan)->clone());
    if (!mutation.apply(*mutant))
      continue;
    // As a user would: by the file.
    auto read = parsePlan(textOf(*mutant), "mutant.mlir", context);
    if (!read) {
      llvm::consumeError(read.takeError());
      ++caught;
      continue;
    }
    if (llvm::Error error = verifyPlan(**read)) {
      llvm::consumeError(std::move(error));
      ++caught;
      continue;
    }
    auto outputs = runPlan(**read);
    if (!outputs) {
      ADD_FAILURE() << mutation.name << " passes, but cannot be run: "
                    << describeError(outputs.takeError()).message;
      continue;
    }
    EXPECT_LT(difference(*expected, *outputs), 1e-5) << mutation.name;
    ++harmless;
  }
  return {caught, harmless};
}

TEST(Mutations, SamplesRunAsWithoutAMesh) {
  for (const char *text : {mlpPlan, pipelinePlan}) {
    auto plan = parsePlan(text, "p.mlir", testContext());
    ASSERT_TRUE(bool(plan)) << describeError(plan.takeError()).message;
    llvm::Error fault = verifyPlan(**plan);
    ASSERT_FALSE(bool(fault)) << describeError(std::move(fault)).message;
    auto ranks = runPlan(**plan), whole = runGlobally(**plan);
    ASSERT_TRUE(bool(ranks)) << describeError(ranks.takeError()).message;
    ASSERT_TRUE(bool(whole)) << describeError(whole.takeError()).message;
    EXPECT_LT(difference(*ranks, *whole), 1e-6);
  }
}

TEST(Mutations, ColumnAndRowParallel) {
  auto [caught, harmless] = tryAll(mlpPlan);
  EXPECT_GT(caught, 300);
  EXPECT_GT(harmless, 0);
}

TEST(Mutations, PipelineWithUnevenSplit) {
  auto [caught, harmless] = tryAll(pipelinePlan);
  EXPECT_GT(caught, 700);
  EXPECT_GT(harmless, 0);
}

} // namespace ax::plan
