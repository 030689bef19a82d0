//===- CudaAttentionTest.cpp - Attention on the simulated GPU -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AttentionSuite.h"
#include "CudaDnn.h"
#include "RefusalTest.h"
#include "SimulatedBackend.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sys/stat.h>

using namespace ax;
using namespace ax::rt;

namespace {

SimulatedBackend eager("Eager", "eager"), lazy("Lazy", "lazy"),
    shuffled("Random1", "random:1");

INSTANTIATE_TEST_SUITE_P(Cuda, AttentionSuite,
                         ::testing::Values(AttentionParam{&eager, 1},
                                           AttentionParam{&lazy, 2},
                                           AttentionParam{&shuffled, 3}),
                         [](const auto &info) {
                           return info.param.backend->getName();
                         });

const AttentionShape small{2, 4, 2, 5, 5, 16};

class AttentionRefusals : public RefusalTest {
protected:
  /// Of attention, and of its gradient.
  void expectBoth(const AttentionDesc &desc, const std::string &why) {
    expect(desc, why);
    expect(makeGradientDesc(desc), why);
  }
};

TEST_F(AttentionRefusals, SaysWhatIsNotLeftToCudnn) {
  const AttentionDesc plain = makeAttentionDesc(DType::F16, small);
  expectBoth(makeAttentionDesc(DType::F32, small),
             "cuDNN has attention of f16 and bf16 only");
  AttentionDesc desc = plain;
  desc.hasMask = true;
  desc.mask = TensorDesc::dense(DType::Bool, {2, 4, 5, 5});
  expectBoth(desc, "cuDNN adds masks of f32, or of the type of queries, and "
                   "selects by none");
  desc = plain;
  desc.softcap = 30;
  expectBoth(desc, "attention with a cap is not left to cuDNN");
  AttentionShape shape = small;
  shape.keys = 7;
  expectBoth(
      makeAttentionDesc(DType::F16, shape, HeadLayout::Heads, /*causal=*/true),
      "causal attention is left to cuDNN with as many keys as queries");
  desc = plain;
  desc.window = 3;
  expectBoth(desc, "a window is left to cuDNN in causal attention");
  shape.keys = 0;
  expectBoth(makeAttentionDesc(DType::F16, shape),
             "cuDNN has no attention to nothing");
  desc = plain;
  desc.k.strides[0] = 0;
  const char *repeated = "cuDNN's attention repeats no operand";
  expectBoth(desc, repeated);
  // As that of a sum is.
  AttentionGradientDesc gradient = makeGradientDesc(plain);
  gradient.gradient.strides = {0, 0, 0, 0};
  expect(gradient, repeated);
}

TEST_F(AttentionRefusals, SaysThatCudnnKnowsNoKernel) {
  for (int64_t size : {12, 264}) {
    AttentionShape shape = small;
    shape.size = size;
    expectBoth(makeAttentionDesc(DType::BF16, shape),
               "cuDNN: it knows no kernel for it");
  }
  AttentionDesc desc = makeAttentionDesc(DType::BF16, small);
  desc.q.strides[2] = 20;
  desc.q.strides[1] = 100;
  expectBoth(desc, "cuDNN: it knows no kernel for it");
}

// Layers are alike: what one of them was refused for, others are, too.
TEST_F(AttentionRefusals, AreRemembered) {
  ProductRunner runner;
  AttentionShape shape = small;
  shape.size = 12;
  AttentionDesc desc = makeAttentionDesc(DType::BF16, shape);
  std::string why = runner.refusal(desc).message;
  uint64_t numCalls = simgpuCounted("cudnn*");
  EXPECT_GT(numCalls, 0U);
  EXPECT_EQ(runner.refusal(desc).message, why);
  EXPECT_EQ(simgpuCounted("cudnn*"), numCalls);
}

/// Tells what attention is refused for where the folder has no cuDNN.
[[noreturn]] void refuseWithoutCudnn() {
  // The stand-in of the driver is in the process, whatever the folders are.
  ProductRunner runner;
  setenv("AXRUN_CUDA_PATH", "/there/is/none", 1);
  std::cerr << runner.refusal(makeAttentionDesc(DType::F16, small)).message;
  std::exit(0);
}

TEST_F(AttentionRefusals, SaysWhereItLookedForCudnn) {
  // In a process of its own: what another test has loaded is found by its name.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // On a machine that has one it does not know this driver.
  EXPECT_EXIT(refuseWithoutCudnn(), testing::ExitedWithCode(0),
              "^device cuda does not compute .*: there is no cuDNN in the "
              "folders of AXRUN_CUDA_PATH, or where the system has libraries: "
              "/there/is/none/libcudnn_graph.so.9: |CUDNN_STATUS_");
}

TEST_F(AttentionRefusals, SaysWhichFunctionIsMissing) {
  ProductRunner runner;
  AttentionDesc desc = makeAttentionDesc(DType::F16, small);
  setenv("AXRUN_CUDA_PATH", driverFolder("poor-simgpu").c_str(), 1);
  ErrorDescription error = runner.refusal(desc);
  EXPECT_EQ(error.code, ExitCode::Unsupported);
  EXPECT_EQ(error.message, "device cuda does not compute " + toString(desc) +
                               ": the cuDNN that is there has no function "
                               "cudnnBackendCreateDescriptor");
  // Ranks of the card are told the same, whatever is there meanwhile; other
  // devices look for it again.
  setenv("AXRUN_CUDA_PATH", driverFolder().c_str(), 1);
  EXPECT_EQ(runner.refusal(desc).message, error.message);
  ProductRunner other;
  checkAttention(other, desc);
}

TEST_F(AttentionRefusals, SaysThatSomethingIsTooOld) {
  startSimgpu({{"CUDNN_VERSION", "90902"}});
  AttentionDesc desc = makeAttentionDesc(DType::F16, small);
  expectBoth(desc, "the cuDNN that is there is of version 9.9, and 9.16 is "
                   "needed");
  startSimgpu({{"DRIVER", "12080"}});
  expectBoth(desc, "the cuDNN that is there is for CUDA 13, and the driver is "
                   "of version 12.8");
  startSimgpu({{"CUDNN_VERSION", "91600"}});
  ProductRunner runner;
  checkAttention(runner, desc);
}

/// What is in files of the folder, by name, and which files these are.
std::map<std::string, std::pair<uint64_t, std::string>>
filesIn(const std::string &folder) {
  std::map<std::string, std::pair<uint64_t, std::string>> files;
  for (const auto &file : std::filesystem::directory_iterator(folder)) {
    struct stat info = {};
    EXPECT_EQ(stat(file.path().c_str(), &info), 0);
    std::ifstream in(file.path());
    files[file.path()] = {info.st_ino,
                          std::string(std::istreambuf_iterator<char>(in), {})};
  }
  return files;
}

// Of attention and of its gradient. What is damaged, of another's, or no plan
// to cuDNN, is made anew.
TEST(AttentionPlans, AreKept) {
  std::string cache = ::testing::TempDir() + "attention-plans";
  std::filesystem::remove_all(cache);
  setenv("AXOPT_CACHE", cache.c_str(), 1);
  AttentionDesc desc = makeAttentionDesc(DType::BF16, small);
  AttentionGradientDesc gradient = makeGradientDesc(desc);
  auto run = [&] {
    startSimgpu();
    ProductRunner runner;
    checkAttention(runner, desc);
    checkGradient(runner, gradient);
    return filesIn(cache + "/cudnn");
  };
  auto made = run();
  EXPECT_EQ(made.size(), 2U);
  EXPECT_EQ(run(), made);
  for (const auto &[path, file] : made) {
    const std::string &text = file.second;
    std::string damaged = text, other = text;
    damaged[text.size() - 3] ^= 1;
    other[text.find("cuDNN")] = 'C';
    for (const std::string &bad :
         {damaged, other, std::string(), text.substr(0, text.size() / 2)}) {
      std::ofstream(path) << bad;
      auto again = run();
      EXPECT_EQ(again.at(path).second, text);
    }
    // Whoever may write there could say what is run.
    chmod(path.c_str(), 0666);
    uint64_t written = filesIn(cache + "/cudnn").at(path).first;
    EXPECT_NE(run().at(path).first, written);
  }
  unsetenv("AXOPT_CACHE");
}

/// All of cuDNN that attention, or its gradient, takes, and the first error.
ErrorDescription runOne(bool isGradient,
                        const std::map<std::string, std::string> &settings) {
  startSimgpu(settings);
  AttentionDesc desc = makeAttentionDesc(DType::F16, small, HeadLayout::Rows,
                                         /*causal=*/true);
  LibraryDesc given = desc;
  if (isGradient)
    given = makeGradientDesc(desc);
  std::vector<ViewData> data = randomArguments(given);
  ProductRunner runner;
  llvm::Error error = runner.run(given, data);
  if (!error)
    return {ExitCode::Success, ""};
  return describeError(std::move(error));
}

/// Makes each call fail that attention takes. Returns how often it was done all
/// the same.
int failEveryCall(bool isGradient, int status) {
  EXPECT_EQ(runOne(isGradient, {}).message, "");
  uint64_t numCalls = simgpuCounted("cudnn*");
  EXPECT_GT(numCalls, 150U);
  int numDone = 0;
  for (uint64_t number = 1; number <= numCalls; ++number) {
    ErrorDescription error =
        runOne(isGradient, {{"FAIL", "cudnn*:" + std::to_string(number) + ":" +
                                         std::to_string(status)}});
    std::string call = llvm::StringRef(simgpuReported()).split(':').first.str();
    // Nobody gets the errors of destructors.
    if (call == "cudnnDestroy" || call == "cudnnBackendDestroyDescriptor") {
      EXPECT_EQ(error.message, "") << call;
      continue;
    }
    if (error.message.empty()) {
      ++numDone;
      continue;
    }
    EXPECT_NE(error.message.find(call + ": CUDNN_STATUS_"), std::string::npos)
        << "call " << number << ", " << call << ", status " << status << ": '"
        << error.message << "'";
    EXPECT_NE(error.message.find("): made to fail"), std::string::npos)
        << error.message;
    bool isUnsupported = status / 1000 == 3 || call == "cudnnCreate";
    EXPECT_EQ(error.code,
              isUnsupported ? ExitCode::Unsupported : ExitCode::RunFailed)
        << call;
  }
  return numDone;
}

TEST_F(AttentionRefusals, EveryStatusAtEveryCall) {
  // What makes a plan of an engine, of which there is another one, and what
  // asks for its text, which is only kept.
  constexpr int callsOfPlan = 5 + 2;
  for (int status : {1001, 2000, 3000, 4000, 5000})
    EXPECT_EQ(failEveryCall(false, status), callsOfPlan);
  for (int status : {3001, 5000})
    EXPECT_EQ(failEveryCall(true, status), 2 * callsOfPlan);
}

TEST_F(AttentionRefusals, WhatNoEngineMakesAPlanOfIsUnsupported) {
  ErrorDescription error = runOne(false, {{"CUDNN_ENGINES", "0"}});
  EXPECT_EQ(error.code, ExitCode::Unsupported);
  EXPECT_NE(error.message.find("cuDNN: it knows no kernel for it"),
            std::string::npos)
      << error.message;
  EXPECT_EQ(runOne(false, {{"CUDNN_ENGINES", "1"}}).message, "");
  // Behind it comes the pack of the execution.
  uint64_t number = simgpuCounted("cudnnBackendFinalize") - 1;
  for (const char *status : {"1008", "3000", "4001"}) {
    error = runOne(false,
                   {{"CUDNN_ENGINES", "1"},
                    {"FAIL", "cudnnBackendFinalize:" + std::to_string(number) +
                                 ":" + status}});
    EXPECT_EQ(error.code, ExitCode::Unsupported);
    EXPECT_NE(error.message.find("cudnnBackendFinalize: CUDNN_STATUS_"),
              std::string::npos)
        << error.message;
  }
}

TEST_F(AttentionRefusals, SaysThatCudnnDoesNotStart) {
  ErrorDescription error = runOne(false, {{"FAIL", "cudnnCreate:1:1001"}});
  EXPECT_EQ(error.code, ExitCode::Unsupported);
  EXPECT_NE(
      error.message.find("the cuDNN that is there does not start: cudnnCreate: "
                         "CUDNN_STATUS_NOT_INITIALIZED (1001): made to fail"),
      std::string::npos)
      << error.message;
}

// Making a plan takes long.
TEST_F(AttentionRefusals, EqualOnesHaveOnePlan) {
  ProductRunner runner;
  AttentionDesc desc = makeAttentionDesc(DType::F16, small);
  checkAttention(runner, desc);
  uint64_t before = simgpuCounted("cudnnBackendFinalize");
  checkAttention(runner, desc);
  // The pack of the execution.
  EXPECT_EQ(simgpuCounted("cudnnBackendFinalize"), before + 1);
  checkGradient(runner, makeGradientDesc(desc));
  before = simgpuCounted("cudnnBackendFinalize");
  checkGradient(runner, makeGradientDesc(desc));
  EXPECT_EQ(simgpuCounted("cudnnBackendFinalize"), before + 2);
  desc.scale = 3;
  checkAttention(runner, desc);
  EXPECT_GT(simgpuCounted("cudnnBackendFinalize"), before + 3);
}

TEST_F(AttentionRefusals, ErrorsOfTheDriver) {
  EXPECT_EQ(runOne(false, {{"FAIL", "simgpuEnqueue:1:719"}}).message,
            "cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER "
            "(5001): the driver does not take the work");
  // Uploads of four arguments come before.
  std::string message =
      runOne(false, {{"ORDER", "lazy"}, {"FAIL", "work:9:719"}}).message;
  EXPECT_NE(message.find("CUDA_ERROR_LAUNCH_FAILED"), std::string::npos)
      << message;
}

// Behind those that look for cuDNN: it stays in the process.
class CudaAttentionTest : public ::testing::Test {
protected:
  CudaAttentionTest() { startSimgpu(); }
};

TEST_F(CudaAttentionTest, IsThere) { EXPECT_EQ(cuda::whyNoCudnn(), ""); }

TEST_F(CudaAttentionTest, WorkspacesAreKnownBefore) {
  ProductRunner runner;
  AttentionDesc desc = makeAttentionDesc(DType::F16, small);
  // A number for each query at least.
  int64_t rows = small.batch * small.heads * small.queries;
  EXPECT_GE(runner.findWorkspace(desc), rows * 4);
  EXPECT_GE(runner.findWorkspace(makeGradientDesc(desc)), rows * 4);
}

TEST_F(CudaAttentionTest, NothingIsLeftOfIt) {
  {
    ProductRunner runner;
    AttentionDesc desc = makeAttentionDesc(DType::F16, small);
    checkAttention(runner, desc);
    checkGradient(runner, makeGradientDesc(desc));
  }
  EXPECT_GT(simgpuCounted("cudnnBackendCreateDescriptor"), 0U);
  EXPECT_EQ(simgpuCounted("cudnnBackendCreateDescriptor"),
            simgpuCounted("cudnnBackendDestroyDescriptor"));
  EXPECT_EQ(simgpuCounted("cudnnCreate"), 1U);
  EXPECT_EQ(simgpuCounted("cudnnDestroy"), 1U);
}

TEST_F(CudaAttentionTest, HeadsOfValuesMayHaveAnotherSize) {
  ProductRunner runner;
  AttentionDesc desc = makeAttentionDesc(DType::F16, small);
  desc.v = TensorDesc::dense(DType::F16, {2, 2, 5, 24});
  desc.out = TensorDesc::dense(DType::F16, {2, 4, 5, 24});
  checkAttention(runner, desc);
  checkGradient(runner, makeGradientDesc(desc));
}

TEST_F(CudaAttentionTest, OneCallEach) {
  ProductRunner runner;
  AttentionDesc desc = makeAttentionDesc(DType::BF16, small);
  checkAttention(runner, desc);
  EXPECT_EQ(simgpuCounted("cudnnBackendExecute"), 1U);
  // Stats are computed again.
  checkGradient(runner, makeGradientDesc(desc));
  EXPECT_EQ(simgpuCounted("cudnnBackendExecute"), 3U);
}

TEST_F(CudaAttentionTest, GradientsOfScoresHaveRoom) {
  ProductRunner runner;
  auto room = [&](int64_t heads) {
    AttentionShape shape{2, heads, 2, 40, 30, 16};
    AttentionDesc desc = makeAttentionDesc(DType::F16, shape);
    auto op = llvm::cantFail(runner.device.prepare(makeGradientDesc(desc), {}));
    int64_t rows = 2 * heads * 40, scores = rows * 30;
    // Stats, sums, and what attention gave.
    int64_t others = 2 * 4 * rows + 2 * 16 * rows;
    EXPECT_GE(op->getWorkspaceBytes(), 2 * scores + others);
    return op->getWorkspaceBytes() - 2 * scores - others;
  };
  // Alignment.
  EXPECT_LT(room(2), 2048);
  // Gradients of keys and of values, of each query's head.
  int64_t sums = 2 * (2 * 2 * 4 * 30 * 16);
  EXPECT_GE(room(4), sums);
  EXPECT_LT(room(4), sums + 2048);
}

} // namespace
