//===- CApiTest.cpp - Running plans from C --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax-c/axrun.h"

#include "../CountAllocations.h"
#include "ax/Support/AtomicFile.h"

#include "gtest/gtest.h"

#include <filesystem>

namespace {

// y = w - x. (oneDNN allocates in each call: no contraction here.)
constexpr llvm::StringLiteral plan = R"(
ax.plan @m version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.program @main(%x: tensor<2x3xf32> {ax.name = "x"},
                   %w: tensor<2x3xf32> {ax.name = "w"})
      -> (tensor<2x3xf32> {ax.name = "y"}) {
    %0 = ax.stage @stage0 on 0 (%a = %x : tensor<2x3xf32>,
                                %b = %w : tensor<2x3xf32>)
        -> (tensor<2x3xf32>) {
      %1 = ax.binary sub %b, %a
        : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
      ax.yield %1 : tensor<2x3xf32>
    }
    ax.schedule "forward" {
      stage 0: "F0"
    }
    ax.return %0 : tensor<2x3xf32>
  }
}
)";

// y = w, of a file.
constexpr llvm::StringLiteral planOfWeight = R"(
ax.plan @m version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 1] in time [micro = 1]
  ax.state @w : tensor<2xf32> stages [0] from "w.bin" offset 0 length 8
  ax.program @main() -> (tensor<2xf32> {ax.name = "y"}) {
    %0 = ax.stage @stage0 on 0 () -> (tensor<2xf32>) {
      %1 = ax.load @w : tensor<2xf32>
      %2 = ax.unary neg %1 : tensor<2xf32> -> tensor<2xf32>
      ax.yield %2 : tensor<2xf32>
    }
    ax.schedule "forward" {
      stage 0: "F0"
    }
    ax.return %0 : tensor<2xf32>
  }
}
)";

// Sums of all x so far.
constexpr llvm::StringLiteral planOfSums = R"(
#rows = #ax.layout<[{col}, {}]>
ax.plan @m version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.state @sum : tensor<2x3xf32, #rows> stages [0]
  ax.program @main(%x: tensor<2x3xf32, #rows> {ax.name = "x"})
      -> (tensor<2x3xf32, #rows> {ax.name = "y"}) {
    %0 = ax.stage @stage0 on 0 (%a = %x : tensor<2x3xf32, #rows>)
        -> (tensor<2x3xf32, #rows>) {
      %1 = ax.load @sum : tensor<2x3xf32, #rows>
      %2 = ax.binary add %1, %a : tensor<2x3xf32, #rows>,
        tensor<2x3xf32, #rows> -> tensor<2x3xf32, #rows>
      ax.store @sum, %2 : tensor<2x3xf32, #rows>
      ax.yield %2 : tensor<2x3xf32, #rows>
    }
    ax.schedule "forward" {
      stage 0: "F0"
    }
    ax.return %0 : tensor<2x3xf32, #rows>
  }
}
)";

// What the sum of all x before is, rounded to bf16.
constexpr llvm::StringLiteral planOfRounded = R"(
ax.plan @m version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 1] in time [micro = 1]
  ax.state @sum : tensor<2x64xf32> stages [0]
  ax.program @main(%x: tensor<2x64xf32> {ax.name = "x"},
                   %w: tensor<64x3xbf16> {ax.name = "w"})
      -> (tensor<2x3xbf16> {ax.name = "y"}) {
    %0 = ax.stage @stage0 on 0 (%a = %x : tensor<2x64xf32>,
                                %b = %w : tensor<64x3xbf16>)
        -> (tensor<2x3xbf16>) {
      %1 = ax.load @sum : tensor<2x64xf32>
      %2 = ax.cast %1 : tensor<2x64xf32> -> tensor<2x64xbf16>
      %3 = ax.linear %2, %b : tensor<2x64xbf16>, tensor<64x3xbf16>
        -> tensor<2x3xbf16>
      %4 = ax.binary add %1, %a : tensor<2x64xf32>, tensor<2x64xf32>
        -> tensor<2x64xf32>
      ax.store @sum, %4 : tensor<2x64xf32>
      ax.yield %3 : tensor<2x3xbf16>
    }
    ax.schedule "forward" {
      stage 0: "F0"
    }
    ax.return %0 : tensor<2x3xbf16>
  }
}
)";

class CApiTest : public ::testing::Test {
protected:
  void SetUp() override {
    char pattern[] = "/tmp/axcapiXXXXXX";
    folder = mkdtemp(pattern);
    path = folder + "/plan.mlir";
    ASSERT_FALSE(bool(ax::writeFileAtomically(path, plan)));
  }
  void TearDown() override {
    axFree(session);
    std::filesystem::remove_all(folder);
  }
  void expectFailure(int code, int wanted, const char *text) {
    EXPECT_EQ(code, wanted);
    EXPECT_NE(std::string(axLastError()).find(text), std::string::npos)
        << axLastError();
  }
  /// Two zeros of f16 that are `w`, and more of the file's header.
  std::string writeWeights(llvm::StringRef others = "") {
    std::string header =
        (R"({"w": {"dtype": "F16", "shape": [2], "data_offsets": [0, 4]})" +
         others + "}")
            .str();
    std::string text(8, '\0');
    text[0] = static_cast<char>(header.size());
    std::string file = folder + "/w.safetensors";
    EXPECT_FALSE(bool(ax::writeFileAtomically(
        file, text + header + std::string(others.empty() ? 4 : 8, '\0'))));
    return file;
  }
  std::string folder, path;
  AxSession *session = nullptr;
};

TEST_F(CApiTest, RunsAllocateNothing) {
  AxOptions options = AX_OPTIONS_INIT;
  ASSERT_EQ(axLoad(path.c_str(), &options, &session), 0) << axLastError();
  ASSERT_EQ(axNumInputs(session), 2);
  ASSERT_EQ(axNumOutputs(session), 1);
  EXPECT_EQ(axInput(session, 2), nullptr);
  EXPECT_EQ(axOutput(session, 0)->bytes, 24u);
  float x[] = {1, 2, 3, 4, 5, 6}, w[] = {1, 0, 0, 1, 1, 1}, y[6];
  const void *inputs[] = {x, w};
  void *outputs[] = {y};
  ASSERT_EQ(axRun(session, inputs, outputs), 0) << axLastError();
#ifdef AX_COUNTS_ALLOCATIONS
  int64_t before = numAllocations;
#endif
  for (int i = 0; i < 20; ++i) {
    x[0] = static_cast<float>(i);
    ASSERT_EQ(axRun(session, inputs, outputs), 0);
    EXPECT_EQ(y[0], 1 - static_cast<float>(i));
    EXPECT_EQ(y[3], -3);
  }
#ifdef AX_COUNTS_ALLOCATIONS
  EXPECT_EQ(numAllocations, before);
#endif
}

TEST_F(CApiTest, WhatIsCarriedBeginsAnew) {
  ASSERT_FALSE(bool(ax::writeFileAtomically(path, planOfSums)));
  ASSERT_EQ(axLoad(path.c_str(), nullptr, &session), 0) << axLastError();
  float x[] = {1, 2, 3, 4, 5, 6}, y[6];
  const void *inputs[] = {x};
  void *outputs[] = {y};
  for (int turn = 0; turn < 2; ++turn) {
    for (int step = 1; step <= 3; ++step) {
      ASSERT_EQ(axRun(session, inputs, outputs), 0) << axLastError();
      for (int i = 0; i < 6; ++i)
        EXPECT_EQ(y[i], static_cast<float>(step) * x[i]);
    }
    ASSERT_EQ(axReset(session), 0) << axLastError();
  }
}

TEST_F(CApiTest, WhatIsMadeOfTheCarriedBeginsAnew) {
  ASSERT_FALSE(bool(ax::writeFileAtomically(path, planOfRounded)));
  ASSERT_EQ(axLoad(path.c_str(), nullptr, &session), 0) << axLastError();
  std::vector<float> x(128, 1);
  // Ones, whose sums of 64 are 64 for each step before.
  std::vector<uint16_t> w(192, 0x3f80), y(6);
  const void *inputs[] = {x.data(), w.data()};
  void *outputs[] = {y.data()};
  for (int turn = 0; turn < 2; ++turn) {
    for (uint16_t wanted : {0x0000, 0x4280, 0x4300}) {
      ASSERT_EQ(axRun(session, inputs, outputs), 0) << axLastError();
      EXPECT_EQ(y, std::vector<uint16_t>(6, wanted)) << turn;
    }
    ASSERT_EQ(axReset(session), 0) << axLastError();
  }
}

TEST_F(CApiTest, OptionsOfOlderCallersAreShorter) {
  AxOptions options = {};
  options.size = offsetof(AxOptions, threadsPerRank);
  EXPECT_EQ(axLoad(path.c_str(), &options, &session), 0) << axLastError();
}

TEST_F(CApiTest, WarningsAndLeftOverWeightsAreTold) {
  ASSERT_FALSE(bool(ax::writeFileAtomically(path, planOfWeight)));
  ASSERT_FALSE(bool(ax::writeFileAtomically(folder + "/w.bin", "12345678")));
  std::string weights = writeWeights(), warnings;
  AxOptions options = AX_OPTIONS_INIT;
  options.weights = weights.c_str();
  options.modelDir = folder.c_str();
  options.warn = [](const char *message, void *context) {
    *static_cast<std::string *>(context) += message;
  };
  options.warnContext = &warnings;
  ASSERT_EQ(axLoad(path.c_str(), &options, &session), 0) << axLastError();
  EXPECT_NE(warnings.find("1 tensor is f16, and taken as f32"),
            std::string::npos)
      << warnings;
  axFree(session);
  // Without anybody to tell.
  options.warn = nullptr;
  testing::internal::CaptureStderr();
  ASSERT_EQ(axLoad(path.c_str(), &options, &session), 0) << axLastError();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "axrun: warning: " + warnings + "\n");
  axFree(session);

  writeWeights(
      R"(, "v": {"dtype": "F16", "shape": [2], "data_offsets": [4, 8]})");
  options.warn = [](const char *, void *) {};
  expectFailure(axLoad(path.c_str(), &options, &session), 6, "'v'");
  const char *leaveOut[] = {"v", nullptr};
  options.leaveOut = leaveOut;
  EXPECT_EQ(axLoad(path.c_str(), &options, &session), 0) << axLastError();
  axFree(session);
  const char *tied[] = {"v", nullptr};
  options.tied = tied;
  expectFailure(axLoad(path.c_str(), &options, &session), 2,
                "expected WEIGHT=WEIGHT");
}

TEST_F(CApiTest, MistakesAreErrors) {
  expectFailure(axLoad(nullptr, nullptr, &session), 2,
                "the plan's path is null");
  AxOptions options = {};
  expectFailure(axLoad(path.c_str(), &options, &session), 2,
                "start with AX_OPTIONS_INIT");
  options = AX_OPTIONS_INIT;
  options.size += 8;
  expectFailure(axLoad(path.c_str(), &options, &session), 2,
                "start with AX_OPTIONS_INIT");
  options = AX_OPTIONS_INIT;
  options.threadsPerRank = -1;
  expectFailure(axLoad(path.c_str(), &options, &session), 2,
                "--threads-per-rank=-1: a rank has 1 thread or more");
  options = AX_OPTIONS_INIT;
  options.devices = "0,-1";
  expectFailure(axLoad(path.c_str(), &options, &session), 2,
                "--devices=0,-1: '-1' is no number of a card");
  options.devices = "0,0,0";
  expectFailure(axLoad(path.c_str(), &options, &session), 2,
                "--devices has 3 cards, and the plan 2 ranks: give one for "
                "each rank");
  options = AX_OPTIONS_INIT;
  options.device = "gpu";
  expectFailure(axLoad(path.c_str(), &options, &session), 2,
                "there is no device 'gpu', but: cpu");
  options.device = "cpu";
  options.communicator = "gossip";
  expectFailure(axLoad(path.c_str(), &options, &session), 2,
                "there is no communicator 'gossip', but: local");
  options = AX_OPTIONS_INIT;
  options.program = "other";
  expectFailure(axLoad(path.c_str(), &options, &session), 2,
                "no program 'other'");
  EXPECT_EQ(session, nullptr);
  ASSERT_EQ(axLoad(path.c_str(), nullptr, &session), 0) << axLastError();
  float data[6] = {};
  const void *inputs[] = {data, nullptr};
  void *outputs[] = {data};
  expectFailure(axRun(session, inputs, outputs), 6,
                "the data of input 'w' is null");
  inputs[1] = data;
  outputs[0] = nullptr;
  expectFailure(axRun(session, inputs, outputs), 6,
                "the memory for output 'y' is null");
}

} // namespace
