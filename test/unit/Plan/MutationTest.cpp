//===- MutationTest.cpp - Every edit, or two, is found or harmless --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Mutations.h"
#include "PlanRunner.h"
#include "SamplePlans.h"

#include "../Layouts/PlanOnRanks.h"
#include "ax/Cost/Schedule.h"
#include "ax/Import/Import.h"
#include "ax/Plan/Plan.h"
#include "ax/Support/Error.h"

#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/FileSystem.h"

#include <limits>
#include <map>
#include <random>

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

namespace {
struct Tally {
  int caught = 0, harmless = 0;
};

/// Which mutations are tried, and how many of those that pass are run.
struct Effort {
  size_t first = 0, step = 1;
  int runs = std::numeric_limits<int>::max();
  /// As a user would, by the file.
  bool byText = true;
  /// Two at a time, taken at random.
  int pairs = 0;
};

/// Mutations of a plan: each is refused, or gives the same results.
class Trial {
public:
  Trial(ModuleOp plan, ArrayRef<HostTensor> inputs, const Effort &effort)
      : plan(plan), inputs(inputs), effort(effort) {}
  Tally run();

private:
  void attempt(ArrayRef<Mutation> edits);
  void tryPairs(ArrayRef<Mutation> mutations);

  ModuleOp plan;
  ArrayRef<HostTensor> inputs;
  const Effort &effort;
  std::vector<HostTensor> expected;
  Tally tally;
};
} // namespace

void Trial::attempt(ArrayRef<Mutation> edits) {
  OwningOpRef<ModuleOp> mutant(plan.clone());
  if (!apply(*mutant, edits))
    return;
  if (effort.byText) {
    auto read = parsePlan(textOf(*mutant), "mutant.mlir", *plan.getContext());
    if (!read) {
      llvm::consumeError(read.takeError());
      ++tally.caught;
      return;
    }
    mutant = std::move(*read);
  }
  if (llvm::Error error = verifyPlan(*mutant)) {
    llvm::consumeError(std::move(error));
    ++tally.caught;
    return;
  }
  if (++tally.harmless > effort.runs)
    return;
  std::string name;
  for (const Mutation &edit : edits)
    name += (name.empty() ? "" : " and ") + edit.name;
  auto outputs = runPlan(*mutant, inputs);
  if (outputs)
    EXPECT_LT(difference(expected, *outputs), 1e-5) << name;
  else
    ADD_FAILURE() << name << " passes, but cannot be run: "
                  << describeError(outputs.takeError()).message;
}

Tally Trial::run() {
  ScopedDiagnosticHandler quiet(plan.getContext(),
                                [](Diagnostic &) { return success(); });
  llvm::Error fault = verifyPlan(plan);
  EXPECT_FALSE(bool(fault)) << describeError(std::move(fault)).message;
  auto unchanged = runPlan(plan, inputs);
  if (!unchanged) {
    ADD_FAILURE() << describeError(unchanged.takeError()).message;
    return {};
  }
  expected = std::move(*unchanged);
  std::vector<Mutation> mutations = allMutations(plan);
  if (effort.pairs == 0)
    for (size_t i = effort.first; i < mutations.size(); i += effort.step)
      attempt(mutations[i]);
  tryPairs(mutations);
  return tally;
}

/// Any two, two that are near each other, and two of states.
void Trial::tryPairs(ArrayRef<Mutation> mutations) {
  std::vector<size_t> ofStates;
  for (size_t i = 0; i < mutations.size(); ++i)
    if (llvm::any_of(ArrayRef({"ax.state", "ax.load", "ax.store"}),
                     [&](StringRef op) {
                       return StringRef(mutations[i].name).contains(op);
                     }))
      ofStates.push_back(i);
  std::mt19937 random(1);
  auto below = [&](size_t limit) {
    return static_cast<size_t>(random() % limit);
  };
  for (int i = 0; i < effort.pairs; ++i) {
    size_t one = below(mutations.size()), other = below(mutations.size());
    if (i % 3 == 1) {
      constexpr size_t near = 100;
      other = std::min(one + below(near), mutations.size() - 1);
    } else if (i % 3 == 2) {
      one = ofStates[below(ofStates.size())];
      other = ofStates[below(ofStates.size())];
    }
    if (mutations[one].number != mutations[other].number)
      attempt({mutations[one], mutations[other]});
  }
}

static Tally tryMutations(ModuleOp plan, ArrayRef<HostTensor> inputs,
                          const Effort &effort) {
  return Trial(plan, inputs, effort).run();
}

static Tally tryAll(const char *text, const Effort &effort = {}) {
  auto plan = parsePlan(text, "p.mlir", testContext());
  if (!plan) {
    ADD_FAILURE() << describeError(plan.takeError()).message;
    return {};
  }
  return tryMutations(**plan, {}, effort);
}

/// More of them with --all.
static Effort inPairs(int count) {
  Effort effort;
  effort.pairs = std::getenv("AX_TEST_ALL") ? 20 * count : count;
  effort.byText = false;
  return effort;
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

TEST(Mutations, PairsOfEdits) {
  EXPECT_GT(tryAll(mlpPlan, inPairs(2000)).caught, 1000);
  EXPECT_GT(tryAll(pipelinePlan, inPairs(2000)).caught, 1000);
}

/// A weight on both stages, and one on each; sums over data and micro-batches.
static const char *trainedProgram = R"(
ax.plan @p version 1 {
  ax.state @first : tensor<4x4xf32> from "w" offset 0 length 64
  ax.state @shared : tensor<4x4xf32> from "w" offset 64 length 64
  ax.state @last : tensor<4x4xf32> from "w" offset 128 length 64
  ax.program @main(%x: tensor<8x4xf32> {ax.name = "x"})
      -> (tensor<8x4xf32> {ax.name = "y"}) {
    %first = ax.load @first : tensor<4x4xf32>
    %shared = ax.load @shared : tensor<4x4xf32>
    %last = ax.load @last : tensor<4x4xf32>
    %0 = ax.linear %x, %first : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32> loc("a")
    %1 = ax.unary tanh %0 : tensor<8x4xf32> -> tensor<8x4xf32> loc("b")
    %2 = ax.linear %1, %shared : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32> loc("c")
    %3 = ax.unary tanh %2 : tensor<8x4xf32> -> tensor<8x4xf32> loc("d")
    %4 = ax.linear %3, %last : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32> loc("e")
    %5 = ax.unary tanh %4 : tensor<8x4xf32> -> tensor<8x4xf32> loc("f")
    %6 = ax.linear %5, %shared : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32> loc("g")
    ax.return %6 : tensor<8x4xf32>
  }
  ax.program @eval(%x: tensor<8x4xf32> {ax.name = "x"})
      -> (tensor<8x4xf32> {ax.name = "y", ax.samples = 0}) {
    %first = ax.load @first : tensor<4x4xf32>
    %shared = ax.load @shared : tensor<4x4xf32>
    %last = ax.load @last : tensor<4x4xf32>
    %0 = ax.linear %x, %first : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32> loc("a")
    %1 = ax.unary tanh %0 : tensor<8x4xf32> -> tensor<8x4xf32> loc("b")
    %2 = ax.linear %1, %shared : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32> loc("c")
    %3 = ax.unary tanh %2 : tensor<8x4xf32> -> tensor<8x4xf32> loc("d")
    %4 = ax.linear %3, %last : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32> loc("e")
    %5 = ax.unary tanh %4 : tensor<8x4xf32> -> tensor<8x4xf32> loc("f")
    %6 = ax.linear %5, %shared : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32> loc("g")
    ax.return %6 : tensor<8x4xf32>
  }
})";

static OwningOpRef<ModuleOp> trainedPlan(const char *schedule, int64_t zero) {
  auto plan = parsePlan(trainedProgram, "p.mlir", testContext());
  if (!plan) {
    ADD_FAILURE() << describeError(plan.takeError()).message;
    return {};
  }
  static Training training;
  training.loss = cantFail(Loss::parse("mse(y,target)"));
  training.optimizer = cantFail(Optimizer::parse("sgd(lr=0.1,momentum=0.9)"));
  training.clipNorm = 1;
  test::NamedStrategy strategy{"trained", "1", 2, 2, 2};
  strategy.training = &training;
  strategy.schedule = schedule;
  strategy.zero = zero;
  if (cantFail(cost::PipelineSchedules::get().parse(schedule))->parts().first ==
      1)
    strategy.cuts = {"d"};
  EXPECT_TRUE(succeeded(test::runPhases(**plan, strategy)));
  return std::move(*plan);
}

TEST(Mutations, TrainedPlansRunAsWithoutAMesh) {
  std::vector<std::pair<std::string, int64_t>> all = {
      {"1f1b", 2}, {"1f1b", 3}, {"zero-bubble", 1}};
  for (StringRef name : cost::PipelineSchedules::get().names())
    all.emplace_back(name, 0);
  for (auto &[schedule, zero] : all) {
    auto plan = trainedPlan(schedule.c_str(), zero);
    ASSERT_TRUE(plan);
    llvm::Error fault = verifyPlan(*plan);
    ASSERT_FALSE(bool(fault)) << describeError(std::move(fault)).message;
    auto ranks = runPlan(*plan), whole = runGlobally(*plan);
    ASSERT_TRUE(bool(ranks)) << describeError(ranks.takeError()).message;
    ASSERT_TRUE(bool(whole)) << describeError(whole.takeError()).message;
    // Loss, norm, rate; three weights and moments, one of them twice, and the
    // number of steps.
    EXPECT_EQ(ranks->size(), 12u);
    EXPECT_LT(difference(*ranks, *whole), 1e-5) << schedule << zero;
  }
}

/// Of both programs: what one of them stores, the other loads.
TEST(Mutations, PairsOfEditsOfTrainedPlans) {
  for (const char *schedule : {"1f1b", "zero-bubble"}) {
    auto plan = trainedPlan(schedule, 0);
    ASSERT_TRUE(plan);
    Effort effort = inPairs(500);
    effort.runs = 60;
    EXPECT_GT(tryMutations(*plan, {}, effort).caught, 200);
  }
}

TEST(Mutations, TrainedPipeline) {
  for (const char *schedule : {"1f1b", "zero-bubble"}) {
    auto plan = trainedPlan(schedule, 0);
    ASSERT_TRUE(plan);
    Effort effort;
    effort.byText = false;
    if (!std::getenv("AX_TEST_ALL")) {
      effort.step = 3;
      effort.runs = 60;
    }
    auto [caught, harmless] = tryMutations(*plan, {}, effort);
    EXPECT_GT(caught, 500);
    EXPECT_GT(harmless, 0);
  }
}

//===----------------------------------------------------------------------===//
// Shared models
//===----------------------------------------------------------------------===//

namespace {
struct ModelCase {
  const char *model;
  test::NamedStrategy strategy;
};
class ModelMutations : public testing::TestWithParam<ModelCase> {};
} // namespace

/// The model with the shapes of its test data, through all phases.
static OwningOpRef<ModuleOp> compile(const ModelCase &model,
                                     std::vector<HostTensor> &inputs) {
  const char *folder = std::getenv("AX_TEST_DIR");
  std::string path =
      std::string(folder ? folder : "test") + "/models/" + model.model;
  import::ImportOptions options;
  std::map<std::string, HostTensor> given;
  for (int i = 0;; ++i) {
    std::string file =
        path + "/test_data_set_0/input_" + std::to_string(i) + ".pb";
    if (!llvm::sys::fs::exists(file))
      break;
    auto input = import::readTensorProto(file);
    if (!input) {
      ADD_FAILURE() << describeError(input.takeError()).message;
      return {};
    }
    options.shapes.try_emplace(input->name, input->tensor.getShape());
    given.emplace(input->name, input->tensor);
  }
  auto module =
      import::importModel(path + "/model.onnx", options, testContext());
  if (!module) {
    ADD_FAILURE() << describeError(module.takeError()).message;
    return {};
  }
  EXPECT_TRUE(succeeded(test::runPhases(**module, model.strategy)));
  ProgramOp program = test::firstProgram(**module);
  for (unsigned i = 0; i < program.getArgumentTypes().size(); ++i)
    inputs.push_back(given.at(program.getArgName(i).str()));
  return std::move(*module);
}

TEST_P(ModelMutations, AreFoundOrHarmless) {
  std::vector<HostTensor> inputs;
  OwningOpRef<ModuleOp> plan = compile(GetParam(), inputs);
  ASSERT_TRUE(plan);
  // All of them with --all; else a part that depends on the model.
  Effort effort;
  effort.byText = false;
  if (!std::getenv("AX_TEST_ALL")) {
    effort.step = 7;
    effort.first = std::hash<std::string>()(GetParam().model) % effort.step;
    effort.runs = 4;
  }
  Tally tally = tryMutations(*plan, inputs, effort);
  EXPECT_GT(tally.caught, 5);
}

INSTANTIATE_TEST_SUITE_P(
    Models, ModelMutations,
    testing::Values(
        ModelCase{"gpt2_eager_ts17_dyn", {"gpt2_tp4", "4"}},
        ModelCase{"gpt2_sdpa_dynamo18_static",
                  {"gpt2_pipeline", "2", 1, 2, 2, true}},
        ModelCase{"llama_sdpa_ts17_dyn", {"llama_cube", "2x2x2"}},
        ModelCase{"bert_eager_ts14_dyn", {"bert_data", "2", 2, 2}},
        ModelCase{"vit_eager_ts17_dyn", {"vit_sequence", "2", 1, 1, 1, true}},
        ModelCase{"resnet_eager_ts17_dyn", {"resnet_rows", "2x2x1"}},
        ModelCase{"swiglu_eager_dynamo18_dyn", {"swiglu_depth", "1x2x2"}}),
    [](const auto &info) { return std::string(info.param.strategy.name); });

} // namespace ax::plan
