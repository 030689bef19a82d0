//===- PlanTest.cpp - Plans from and to text ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PlanRunner.h"
#include "SamplePlans.h"

#include "ax/Plan/Plan.h"
#include "ax/Support/Error.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace ax::plan {

static std::string readText(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

/// The message of the error with which `text` is refused.
static std::string refusal(llvm::StringRef text) {
  auto module = parsePlan(text, "p.mlir", testContext());
  if (module)
    return "";
  ErrorDescription error = describeError(module.takeError());
  EXPECT_EQ(error.code, ExitCode::BadPlan) << error.message;
  return error.message;
}

TEST(PlanFile, WritingWhatWasReadChangesNothing) {
  for (const char *text : {mlpPlan, pipelinePlan}) {
    llvm::SmallString<64> path;
    ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("plan", "mlir", path));
    auto first = parsePlan(text, "p.mlir", testContext());
    ASSERT_TRUE(bool(first)) << describeError(first.takeError()).message;
    ASSERT_FALSE(writePlan(**first, path));
    std::string written = readText(path);
    auto second = readPlan(path, testContext());
    ASSERT_TRUE(bool(second));
    ASSERT_FALSE(writePlan(**second, path));
    EXPECT_EQ(readText(path), written);
    EXPECT_NE(written.find("all"), std::string::npos);
    llvm::sys::fs::remove(path);
  }
}

/// A sum over ranks that starts before a product and ends behind it.
constexpr const char *startedPlan = R"(
#p = #ax.layout<[{}, {}], partial sum {data}>
#r = #ax.layout<[{}, {}]>
ax.plan @p version 1 {
  ax.mesh [data = 2]
  ax.program @main(%x: tensor<16x16xf32, #p>, %y: tensor<512x512xf32, #r>) {
    %0:2 = ax.stage @s on 0 (%a = %x : tensor<16x16xf32, #p>, %b = %y : tensor<512x512xf32, #r>)
        -> (tensor<16x16xf32, #r>, tensor<512x512xf32, #r>) {
      %1 = ax.all_reduce %a over {data} start : tensor<16x16xf32, #p> -> tensor<16x16xf32, #r>
      %2 = ax.linear %b, %b : tensor<512x512xf32, #r>, tensor<512x512xf32, #r> -> tensor<512x512xf32, #r>
      %3 = ax.wait %1 hides 268435456 : tensor<16x16xf32, #r>
      ax.yield %3, %2 : tensor<16x16xf32, #r>, tensor<512x512xf32, #r>
    }
    ax.return
  }
})";

TEST(PlanCost, WhatIsStartedTakesItsTimeWhereNothingOverlaps) {
  auto module = parsePlan(startedPlan, "p.mlir", testContext());
  ASSERT_TRUE(bool(module)) << describeError(module.takeError()).message;
  StageOp stage;
  CollectiveOpInterface collective;
  (**module).walk([&](StageOp op) { stage = op; });
  (**module).walk([&](CollectiveOpInterface op) { collective = op; });
  sharding::Mesh mesh = getMesh(stage);
  cost::Machine machine;
  double alone = cost::collectiveSeconds(collective, mesh, machine);
  double inFull = cost::stageCost(stage, mesh, machine).seconds.front();
  machine.overlapsCollectives = true;
  double hidden = cost::stageCost(stage, mesh, machine).seconds.front();
  EXPECT_GT(alone, 0);
  EXPECT_DOUBLE_EQ(inFull, hidden + alone);
}

TEST(PlanFile, ErrorsNameTheLine) {
  EXPECT_EQ(refusal("ax.plan @p version 1 {\n  ax.mesh [pipe = 0]\n}"),
            "p.mlir:2:3: 'ax.mesh' op axis 'pipe' has size 0; 1 .. 16777216 is "
            "possible");
  EXPECT_NE(refusal("ax.plan @p version 1 {\n  nonsense\n}").find("p.mlir:2"),
            std::string::npos);
  EXPECT_NE(refusal("ax.plan @p version 7 {}").find("this build reads version"),
            std::string::npos);
  EXPECT_NE(refusal("").find("expected one ax.plan"), std::string::npos);
  EXPECT_NE(refusal("\x01\x02").find("p.mlir:1"), std::string::npos);
}

TEST(PlanFile, BytecodeIsRefused) {
  auto plan = parsePlan(mlpPlan, "p.mlir", testContext());
  ASSERT_TRUE(bool(plan)) << describeError(plan.takeError()).message;
  std::string bytes;
  llvm::raw_string_ostream os(bytes);
  ASSERT_TRUE(succeeded(writeBytecodeToFile(**plan, os)));
  EXPECT_EQ(refusal(bytes), "p.mlir: is MLIR bytecode; plans are text");
}

TEST(PlanFile, HostileTextIsRefused) {
  std::string plan = "ax.plan @p version 1 attributes {a = ";
  EXPECT_EQ(refusal(plan + std::string(100000, '[')),
            "p.mlir:1: nested too deeply");
  EXPECT_EQ(refusal(plan + "affine_map<() -> (" + std::string(100000, '-')),
            "p.mlir:1: affine expressions do not belong in a plan");
  auto state = [](llvm::StringRef type) {
    return ("ax.plan @p version 1 { ax.state @s : " + type +
            " from \"f\" offset 0 length 4 }")
        .str();
  };
  EXPECT_NE(refusal(state("tensor<4611686018427387904x4xf32>"))
                .find("is larger than 4 TiB"),
            std::string::npos);
  EXPECT_NE(refusal(state("tensor<1xf32, #ax.layout<[1{a:(9223372036854775807)"
                          "9223372036854775807}]>>"))
                .find("out of range"),
            std::string::npos);
  EXPECT_NE(refusal(state("tensor<1xf32, #ax.layout<[]>>")).find("dimensions"),
            std::string::npos);
  EXPECT_NE(refusal("ax.plan @p version 1 { \"ax.mesh\"() : () -> () }"), "");
  EXPECT_NE(refusal("ax.plan @p version 1 {} ax.plan @q version 1 {}"), "");
  EXPECT_NE(refusal("builtin.module {}"), "");
}

TEST(PlanFile, MissingFilesAndFolders) {
  for (const char *path : {"/nowhere/plan.mlir", "/tmp", "/dev/zero"}) {
    auto module = readPlan(path, testContext());
    ASSERT_FALSE(bool(module));
    EXPECT_EQ(describeError(module.takeError()).code, ExitCode::InputOutput);
  }
}

TEST(Report, CountsWhatRanksDo) {
  auto module = parsePlan(mlpPlan, "p.mlir", testContext());
  ASSERT_TRUE(bool(module));
  auto json = llvm::json::parse(reportJSON(**module));
  ASSERT_TRUE(bool(json));
  const llvm::json::Value *at =
      &(*json->getAsObject()->getArray("programs"))[0];
  const llvm::json::Object &stage =
      *(*at->getAsObject()->getArray("stages"))[0].getAsObject();
  EXPECT_EQ(*stage.getObject("weight_bytes")->getInteger("whole"), 1056);
  EXPECT_EQ(*stage.getObject("weight_bytes")->getInteger("rank"), 544);
  const llvm::json::Object &linear =
      *stage.getObject("flops")->getObject("linear");
  EXPECT_EQ(*linear.getNumber("whole"), 4096);
  EXPECT_EQ(*linear.getNumber("rank"), 1024);
  const llvm::json::Object &collective =
      *(*stage.getArray("collectives"))[0].getAsObject();
  EXPECT_EQ(*collective.getString("kind"), "all_reduce");
  EXPECT_EQ(*collective.getInteger("count"), 1);
  EXPECT_EQ(*collective.getInteger("bytes"), 2 * 8 * 4);
}

TEST(Report, ExplainsLayersAndCollectives) {
  auto module = parsePlan(mlpPlan, "p.mlir", testContext());
  ASSERT_TRUE(bool(module));
  std::string text;
  llvm::raw_string_ostream os(text);
  explain(**module, os);
  EXPECT_NE(text.find("linear 'fc1': n over {col}, rows over {data, micro} "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("all_reduce over {col} at 'fc2', 64 B a rank: k of fc2 "
                      "is split"),
            std::string::npos)
      << text;
  EXPECT_TRUE(bool(llvm::json::parse(explainJSON(**module))));
}

} // namespace ax::plan
