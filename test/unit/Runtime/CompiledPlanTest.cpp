//===- CompiledPlanTest.cpp - Files of compiled plans ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/CompiledPlan.h"

#include "ProgramBuilder.h"
#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

#include <gtest/gtest.h>

#include <fstream>

namespace ax::rt {
namespace {

class CompiledPlanTest : public ::testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> name;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("axopt-test", name));
    folder = name.str().str();
    path = folder + "/plan.axc";
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string bytesOf(const std::string &file) {
    return llvm::toStringRef(llvm::cantFail(MappedFile::open(file))->bytes())
        .str();
  }
  std::string written(const CompiledPlan &plan) {
    llvm::cantFail(writeCompiledPlan(path, plan));
    return bytesOf(path);
  }
  /// What is said of a file with these bytes; empty: it is read.
  std::string refused(llvm::StringRef bytes) {
    // A file that is cut and written again waits for the disk.
    llvm::sys::fs::remove(path);
    std::ofstream(path, std::ios::binary).write(bytes.data(), bytes.size());
    auto plan = readCompiledPlan(path);
    if (plan)
      return "";
    ErrorDescription error = describeError(plan.takeError());
    EXPECT_EQ(error.code, ExitCode::BadPlan);
    return error.message;
  }

  void checkEveryBit(const std::string &whole) {
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string other = whole;
      other[i] = static_cast<char>(other[i] ^ (1 << (i % 8)));
      EXPECT_NE(refused(other), "") << "byte " << i;
    }
    for (size_t size = 0; size < whole.size(); size += 7)
      EXPECT_NE(refused(llvm::StringRef(whole).take_front(size)), "") << size;
  }

  std::string folder, path;
};

/// y = 2 x + 1 on two ranks, summed; with what is not always there.
CompiledPlan makePlan() {
  ProgramBuilder b({{"col", 2, false}, {"micro", 2, true}});
  sharding::Layout layout = b.split({8}, {b.over("micro")});
  b.stages(1);
  int32_t in = b.buffer(0, Space::Input, b.input("x", {8}, layout), 16);
  int32_t sum = b.buffer(0, Space::Arena, 0, 16);
  b.kernel(0, "double", doublePlusOne, {in, sum}, 4);
  b.allReduce(0, b.group(0, "col"), sum, sum, {4}, 0);
  b.add(0, WaitCommand{0}, "wait");
  int32_t w =
      b.buffer(0, Space::State,
               b.state("w", countingTensor({4, 4}), b.split({4, 4}, {})), 64);
  int32_t out = b.buffer(0, Space::Output, b.output("y", {8}, layout), 16);
  LibraryCommand matmul;
  MatmulDesc desc;
  desc.a = desc.c = TensorDesc::dense(DType::F32, {1, 4});
  desc.b = TensorDesc::dense(DType::F32, {4, 4});
  desc.constantB = true;
  matmul.desc = desc;
  matmul.arguments = {{sum, 0}, {w, 0}, {out, 0}};
  b.add(0, matmul, "matmul");
  CompiledPlan plan;
  plan.text = "the plan";
  plan.files = {"/models", {{"model.data", "8 bytes"}}, {{"w", "model.data"}}};
  plan.states = {"w"};
  plan.isTraining = true;
  Program &program = *b.program;
  program.inputs[0].labels = Labels{10, -100, 1};
  program.inputs[0].indexed = 5;
  program.outputs[0].samples = 0;
  program.learningRateSteps = 7;
  program.optimizer = "sgd";
  program.predictedSeconds = 0.125;
  program.predictedFor = "a machine";
  program.folded = {{"scale", "0123"}};
  program.foldedParameters = {"scale"};
  plan.targets = {{{"x86-64-v3", {"avx2", "fma"}}, {b.program}}};
  return plan;
}

/// The same for another target: a program of its own.
CompiledPlan makePlanForTwo() {
  CompiledPlan plan = makePlan();
  auto other = std::make_shared<Program>(*plan.targets[0].programs[0]);
  other->kernels[0].name = "other";
  plan.targets.push_back({{"sm_90", {}}, {other}});
  return plan;
}

TEST_F(CompiledPlanTest, RoundTrip) {
  std::string first = written(makePlan());
  auto plan = readCompiledPlan(path);
  ASSERT_TRUE(bool(plan)) << llvm::toString(plan.takeError());
  EXPECT_EQ(plan->files.folder, "/models");
  EXPECT_TRUE(plan->isTraining);
  ASSERT_EQ(plan->targets.size(), 1U);
  const TargetPrograms &programs = plan->targets[0];
  EXPECT_EQ(programs.target.name, "x86-64-v3");
  EXPECT_EQ(programs.target.features,
            std::vector<std::string>({"avx2", "fma"}));
  std::shared_ptr<Program> program = programs.find("test");
  ASSERT_TRUE(program);
  EXPECT_FALSE(programs.find("other"));
  EXPECT_EQ(program->folded.at("scale"), "0123");
  EXPECT_EQ(program->foldedParameters, std::vector<std::string>{"scale"});
  EXPECT_EQ(program->optimizer, "sgd");
  EXPECT_EQ(program->predictedSeconds, 0.125);
  EXPECT_EQ(program->predictedFor, "a machine");
  EXPECT_EQ(program->inputs[0].labels->ignored, -100);
  EXPECT_EQ(*program->inputs[0].indexed, 5);
  EXPECT_FALSE(program->inputs[0].samples);
  EXPECT_EQ(*program->outputs[0].samples, 0);
  EXPECT_TRUE(program->states[0].value.isIdentical(countingTensor({4, 4})));
  EXPECT_EQ(program->stages[0].allCommands().size(), 4u);
  EXPECT_EQ(written(*plan), first);
  EXPECT_TRUE(isCompiledPlan(path));
  EXPECT_FALSE(isCompiledPlan(folder + "/none"));
}

TEST_F(CompiledPlanTest, SeveralTargets) {
  std::string first = written(makePlanForTwo());
  auto plan = readCompiledPlan(path);
  ASSERT_TRUE(bool(plan)) << llvm::toString(plan.takeError());
  ASSERT_EQ(plan->targets.size(), 2U);
  EXPECT_EQ(plan->targets[1].target.name, "sm_90");
  EXPECT_EQ(plan->targets[1].programs[0]->kernels[0].name, "other");
  EXPECT_NE(plan->targets[0].programs[0]->kernels[0].name, "other");
  EXPECT_EQ(written(*plan), first);
}

TEST_F(CompiledPlanTest, Embedded) {
  std::string model(100, 'm');
  for (size_t i = 0; i < 64; ++i)
    model[36 + i] = static_cast<char>(i);
  llvm::cantFail(writeFileAtomically(
      folder + "/model.bin", llvm::arrayRefFromStringRef<uint8_t>(model)));
  CompiledPlan plan = makePlan();
  std::vector<std::shared_ptr<Program>> &programs = plan.targets[0].programs;
  State &state = programs[0]->states[0];
  state.value = {};
  state.file = "model.bin";
  state.offset = 36;
  // In other programs, and for other targets, they are the same bytes.
  programs.push_back(std::make_shared<Program>(*programs[0]));
  programs[1]->name = "other";
  auto same = std::make_shared<Program>(*programs[0]);
  plan.targets.push_back({{"sm_90", {}}, {same}});
  llvm::cantFail(writeCompiledPlan(path, plan, folder));
  EXPECT_EQ(same->states[0].file, "model.bin");
  std::string whole = bytesOf(path);
  auto read = readCompiledPlan(path);
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(read->embedded.size(), 1u);
  ASSERT_EQ(read->targets.size(), 2U);
  ASSERT_EQ(read->targets[0].programs.size(), 2U);
  for (const auto &program :
       {read->targets[0].programs[0], read->targets[0].programs[1],
        read->targets[1].programs[0]}) {
    const State &own = program->states[0];
    EXPECT_EQ(own.file, "plan.axc");
    ASSERT_TRUE(own.openFile);
    EXPECT_EQ(own.openFile->getSize(), static_cast<int64_t>(whole.size()));
    EXPECT_EQ(own.offset % 64, 0);
    EXPECT_EQ(whole.substr(static_cast<size_t>(own.offset), 64),
              model.substr(36));
  }
  std::string damaged = "compiled plan '" + path +
                        "' is damaged: its weights are not those that it had";
  EXPECT_EQ(refused(whole + '\0'), damaged);
  EXPECT_EQ(refused(llvm::StringRef(whole).drop_back(64)), damaged);
  checkEveryBit(whole);
  // The model is another one, or gone.
  state.fingerprint = "other";
  llvm::Error error = writeCompiledPlan(path, plan, folder);
  EXPECT_EQ(llvm::toString(std::move(error)),
            "'" + folder +
                "/model.bin' is not the file that this plan was "
                "compiled from: compile it again");
  state.file = "../model.bin";
  error = writeCompiledPlan(path, plan, folder);
  EXPECT_NE(llvm::toString(std::move(error))
                .find("it must be a file inside the model's folder"),
            std::string::npos);
}

TEST_F(CompiledPlanTest, EveryBitCounts) {
  checkEveryBit(written(makePlanForTwo()));
}

TEST_F(CompiledPlanTest, Messages) {
  std::string whole = written(makePlan());
  EXPECT_EQ(refused("plan"),
            "compiled plan '" + path + "' is none: it does not begin like one");
  EXPECT_EQ(refused(llvm::StringRef(whole).drop_back(1)),
            "compiled plan '" + path + "' is damaged: it is cut off");
  std::string other = whole;
  other.back() ^= 1;
  EXPECT_EQ(refused(other),
            "compiled plan '" + path + "' is damaged: its checksum is another");
  other = whole;
  other.replace(other.find(" 12 "), 4, " 9 ");
  EXPECT_EQ(refused(other), "compiled plan '" + path +
                                "' is of version '9', and this program reads "
                                "12: compile it again");
}

// A checksum that is right makes nothing sound.
TEST_F(CompiledPlanTest, Unsound) {
  std::string intro = "compiled plan '" + path + "': ";
  // A target that nobody asks for is looked at, too.
  CompiledPlan plan = makePlanForTwo();
  plan.targets[1].programs[0]->outputs[0].shape = {9};
  EXPECT_EQ(refused(written(plan)).find(intro + "program 'test': output 'y': "),
            0U);
  plan = makePlan();
  plan.targets[0].programs[0]->mesh = sharding::Mesh(
      {{"col", int64_t(1) << 40, false}, {"micro", int64_t(1) << 40, true}});
  EXPECT_NE(refused(written(plan))
                .find("program 'test': mesh: more ranks and slices than there "
                      "can be, or none"),
            std::string::npos);
  plan = makePlan();
  plan.targets[0].programs[0]->states[0].file = "/w.bin";
  EXPECT_EQ(refused(written(plan)),
            intro + "state 'w' is in '/w.bin', which is no path inside the "
                    "model's folder");
  plan = makePlan();
  plan.targets[0].programs[0]->states[0].dealt = Dealt{7, {2, 2}, 2};
  EXPECT_NE(refused(written(plan)).find("there is no dimension 7"),
            std::string::npos);
  plan = makePlanForTwo();
  plan.targets[1].programs[0]->mesh =
      sharding::Mesh({{"col", 4, false}, {"micro", 2, true}});
  EXPECT_EQ(refused(written(plan)),
            intro + "its programs for 'sm_90' have another mesh than those for "
                    "'x86-64-v3'");
  plan = makePlanForTwo();
  plan.targets[1].programs.clear();
  EXPECT_EQ(refused(written(plan)), intro + "it has a target without programs");
  plan.targets.clear();
  EXPECT_EQ(refused(written(plan)), intro + "it is for no target");
  plan = makePlan();
  plan.targets[0].programs[0]->stages[0].buffers[0].index = 3;
  EXPECT_NE(refused(written(plan)), "");
  plan = makePlan();
  plan.targets[0].programs[0]->states[0].dtype = static_cast<DType>(99);
  EXPECT_EQ(refused(written(plan)),
            "compiled plan '" + path + "' is damaged: it cannot be read");
}

} // namespace
} // namespace ax::rt
