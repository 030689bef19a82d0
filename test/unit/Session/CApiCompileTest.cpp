//===- CApiCompileTest.cpp - Making plans from C --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax-c/axrun.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace {

/// The numbers at the end of an ONNX tensor's file.
std::vector<float> readTensor(const std::string &path, size_t count) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  size_t bytes = count * sizeof(float);
  std::vector<float> values(count);
  file.seekg(static_cast<std::streamoff>(file.tellg()) -
             static_cast<std::streamoff>(bytes));
  file.read(reinterpret_cast<char *>(values.data()),
            static_cast<std::streamsize>(bytes));
  EXPECT_TRUE(file.good()) << path;
  return values;
}

class CApiCompileTest : public ::testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> made;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("capi", made));
    folder = made.str();
    options.warn = [](const char *message, void *context) {
      *static_cast<std::string *>(context) += message;
    };
    options.warnContext = &warnings;
  }
  void TearDown() override {
    axFreePlan(plan);
    std::filesystem::remove_all(folder);
  }
  int compile(std::vector<const char *> flags, const std::string &path = {}) {
    flags.push_back(nullptr);
    options.flags = flags.data();
    axFreePlan(plan);
    return axCompile(path.empty() ? model.c_str() : path.c_str(), &options,
                     &plan);
  }
  /// Runs on the model's test case, and frees the session.
  std::vector<float> run(AxSession *session) {
    EXPECT_EQ(axInput(session, 0)->bytes, 4 * 64 * sizeof(float));
    EXPECT_EQ(axOutput(session, 0)->bytes, 4 * 10 * sizeof(float));
    std::vector<float> x = readTensor(cases + "/input_0.pb", 4 * 64), y(4 * 10);
    const void *inputs[] = {x.data()};
    void *outputs[] = {y.data()};
    EXPECT_EQ(axRun(session, inputs, outputs), 0) << axLastError();
    axFree(session);
    return y;
  }
  void expectFailure(int code, int wanted, const char *text) {
    EXPECT_EQ(code, wanted);
    EXPECT_NE(std::string(axLastError()).find(text), std::string::npos)
        << axLastError();
  }

  std::string models = std::string(getenv("AX_TEST_DIR")) + "/models/";
  std::string training = std::string(getenv("AX_TEST_DIR")) + "/data/training/";
  std::string model = models + "mlp_eager_ts13_dyn/model.onnx";
  std::string cases = models + "mlp_eager_ts13_dyn/test_data_set_0";
  std::string folder, warnings;
  AxCompileOptions options = AX_COMPILE_OPTIONS_INIT;
  AxPlan *plan = nullptr;
  AxSession *session = nullptr;
};

TEST_F(CApiCompileTest, APlanRunsAtOnceAndSaved) {
  ASSERT_EQ(compile({"--tp=2", "--dim", "batch=4"}), 0) << axLastError();
  ASSERT_EQ(axLoadPlan(plan, nullptr, &session), 0) << axLastError();
  std::vector<float> atOnce = run(session);
  std::vector<float> wanted = readTensor(cases + "/output_0.pb", 4 * 10);
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(atOnce[i], wanted[i], 1e-5) << i;
  for (const char *name : {"/plan.mlir", "/plan.axc"}) {
    std::string path = folder + name;
    ASSERT_EQ(axSavePlan(plan, path.c_str()), 0) << axLastError();
    ASSERT_EQ(axLoad(path.c_str(), nullptr, &session), 0) << axLastError();
    EXPECT_EQ(run(session), atOnce) << name;
  }
  // It is two ranks.
  AxOptions many = AX_OPTIONS_INIT;
  many.threadsPerRank = 4096;
  expectFailure(axLoadPlan(plan, &many, &session), 2, "2 ranks");
  EXPECT_EQ(warnings, "");
}

TEST_F(CApiCompileTest, ASessionOutlivesItsPlan) {
  ASSERT_EQ(compile({"--dim=batch=4"}), 0) << axLastError();
  ASSERT_EQ(axLoadPlan(plan, nullptr, &session), 0) << axLastError();
  axFreePlan(std::exchange(plan, nullptr));
  EXPECT_EQ(run(session).size(), 40u);
}

TEST_F(CApiCompileTest, ACompiledPlanMayHaveItsWeights) {
  std::filesystem::copy(model, folder + "/model.onnx");
  ASSERT_EQ(compile({"--dim=batch=4", "--target=x86-64", "--embed-weights"},
                    folder + "/model.onnx"),
            0)
      << axLastError();
  std::string path = folder + "/plan.axc";
  ASSERT_EQ(axSavePlan(plan, path.c_str()), 0) << axLastError();
  std::filesystem::remove(folder + "/model.onnx");
  ASSERT_EQ(axLoad(path.c_str(), nullptr, &session), 0) << axLastError();
  EXPECT_EQ(run(session).size(), 40u);
}

TEST_F(CApiCompileTest, ARunOfAPlanThatTrainsIsAStep) {
  ASSERT_EQ(compile({"--shape=input=4x64", "--train", "--optimizer=sgd(lr=0.1)",
                     "--loss=cross_entropy(logits,labels)"},
                    training + "fc_net/model.onnx"),
            0)
      << axLastError();
  ASSERT_EQ(axLoadPlan(plan, nullptr, &session), 0) << axLastError();
  std::vector<float> x(4 * 64, 0.5f);
  std::vector<int64_t> labels{1, 2, 3, 4};
  const void *inputs[] = {x.data(), labels.data()};
  float first = 0, loss = 0, norm = 0, rate = 0;
  void *outputs[] = {&loss, &norm, &rate};
  ASSERT_EQ(axNumOutputs(session), 3);
  expectFailure(axReset(session), 2,
                "axReset is not for a program that trains: load the plan again");
  for (int step = 0; step < 5; ++step) {
    ASSERT_EQ(axRun(session, inputs, outputs), 0) << axLastError();
    if (step == 0)
      first = loss;
  }
  axFree(session);
  EXPECT_FLOAT_EQ(rate, 0.1f);
  EXPECT_LT(loss, first);
}

TEST_F(CApiCompileTest, WarningsAreTold) {
  ASSERT_EQ(compile({"--dim=batch=0"}), 0) << axLastError();
  EXPECT_NE(warnings.find("has no elements"), std::string::npos) << warnings;
}

TEST_F(CApiCompileTest, MistakesAreErrors) {
  expectFailure(compile({"--dimm=b=2"}), 2,
                "there is no flag '--dimm'; did you mean '--dim'?");
  expectFailure(compile({"--tp"}), 2, "--tp needs a value");
  expectFailure(compile({"plan.mlir"}), 2, "'plan.mlir' is no flag");
  for (const char *flag : {"--help", "--version", "--verify", "--explain",
                           "--save-strategy=x", "--mlir-timing", "-o=x"})
    expectFailure(compile({flag}), 2,
                  "is for the program axopt, not for its library");
  expectFailure(compile({"--target=pdp11"}), 2, "pdp11");
  expectFailure(compile({"--loss=mse(y,t)"}), 2, "add --train");
  expectFailure(compile({}, folder + "/plan.axc"), 2,
                "plan.axc' is a plan already: use axLoad");
  expectFailure(compile({}, folder + "/none.onnx"), 7, "none.onnx");
  expectFailure(axCompile(nullptr, nullptr, &plan), 2,
                "the model's path is null");
  AxCompileOptions shorter = {};
  expectFailure(axCompile(model.c_str(), &shorter, &plan), 2,
                "AxCompileOptions of size 0: start with");
  AxCompileOptions longer = AX_COMPILE_OPTIONS_INIT;
  longer.size += 8;
  expectFailure(axCompile(model.c_str(), &longer, &plan), 2,
                "bytes, is older than the header");
  EXPECT_EQ(plan, nullptr);

  std::filesystem::copy(model, folder + "/model.onnx");
  ASSERT_EQ(compile({"--dim=batch=4"}, folder + "/model.onnx"), 0);
  expectFailure(axSavePlan(plan, (folder + "/model.onnx").c_str()), 2,
                "axSavePlan");
  expectFailure(axSavePlan(plan, nullptr), 2, "the plan's path is null");
  expectFailure(axSavePlan(plan, (folder + "/none/plan.mlir").c_str()), 7,
                "none/plan.mlir");
}

} // namespace
