//===- TargetTest.cpp - What code is made for -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/Target.h"

#include "ax/Support/Error.h"

#include <gtest/gtest.h>

namespace ax {
namespace {

TEST(Target, ProcessorsAsBefore) {
  Target native = llvm::cantFail(Target::parse("native"));
  ASSERT_TRUE(native.getCpu());
  EXPECT_FALSE(native.getGpu());
  EXPECT_EQ(native.toText(), CpuTarget::native().cpu);
  EXPECT_EQ(native.describe(), Target::native().describe());
  EXPECT_EQ(llvm::cantFail(Target::parse("x86-64-v3")).toText(), "x86-64-v3");
}

TEST(Target, Gpus) {
  for (const char *name : {"sm_80", "sm_90", "sm_100", "sm_90+sim",
                           "sm_90+cudnn", "sm_80+cudnn+sim"}) {
    Target target = llvm::cantFail(Target::parse(name));
    ASSERT_TRUE(target.getGpu()) << name;
    EXPECT_FALSE(target.getCpu());
    EXPECT_EQ(target.toText(), name);
    EXPECT_EQ(target.describe(), std::string("nvptx64 ") + name);
  }
  GpuTarget simulated = *GpuTarget::find("sm_100+sim");
  EXPECT_EQ(simulated.capability, 100u);
  EXPECT_TRUE(simulated.isSimulated);
  EXPECT_EQ(simulated.architecture(), "sm_100");
  EXPECT_FALSE(simulated.hasCudnn);
  EXPECT_TRUE(GpuTarget::find("sm_90+cudnn")->hasCudnn);
}

TEST(Target, UnknownOnes) {
  auto error = [](const char *name) {
    auto target = Target::parse(name);
    EXPECT_FALSE(target) << name;
    return target ? ErrorDescription() : describeError(target.takeError());
  };
  EXPECT_EQ(error("x86-64-v9").code, ExitCode::Usage);
  EXPECT_EQ(error("x86-64-v9").message,
            "there is no target 'x86-64-v9', but native, x86-64, x86-64-v2, "
            "x86-64-v3, x86-64-v4, sm_80, sm_90, sm_100 (+cudnn: with cuDNN); "
            "did you mean 'x86-64-v2'?");
  EXPECT_EQ(error("sm_75").code, ExitCode::Usage);
  EXPECT_EQ(error("native+sim").code, ExitCode::Usage);
  EXPECT_EQ(error("sm_").code, ExitCode::Usage);
}

TEST(Target, TheNewestForACard) {
  EXPECT_FALSE(GpuTarget::newestFor(75));
  EXPECT_EQ(GpuTarget::newestFor(80)->toText(), "sm_80");
  EXPECT_EQ(GpuTarget::newestFor(89)->toText(), "sm_80");
  EXPECT_EQ(GpuTarget::newestFor(121)->toText(), "sm_100");
}

TEST(Target, CodeIsForADevice) {
  Target card = llvm::cantFail(Target::parse("sm_90")),
         processor = Target::native();
  auto said = [](llvm::StringRef target, const Target &device) {
    return describeError(
               chooseTarget(CodeTarget{target.str(), {}}, device).takeError())
        .message;
  };
  EXPECT_EQ(said("sm_80", card), "");
  EXPECT_EQ(said("sm_90+sim", card), "");
  EXPECT_EQ(said("x86-64", processor), "");
  EXPECT_EQ(
      said("sm_90+cudnn", card),
      "is for 'sm_90+cudnn', and the device runs code for 'sm_90': compile "
      "it with --target=sm_90");
  EXPECT_EQ(said("sm_100", card),
            "is for 'sm_100', and the device runs code for 'sm_90': compile it "
            "with --target=sm_90");
  EXPECT_EQ(said("x86-64-v3", card),
            "is for 'x86-64-v3', and the device runs code for 'sm_90': compile "
            "it with --target=sm_90");
  EXPECT_EQ(said("sm_90", llvm::cantFail(Target::parse("x86-64-v2"))),
            "is for 'sm_90', and the device runs code for 'x86-64-v2': compile "
            "it with --target=x86-64-v2, or run it with --device=cuda");
  std::string text = said("sm_90", processor);
  EXPECT_NE(text.find("code for '" + processor.toText() +
                      "': compile it with --target=x86-64"),
            std::string::npos)
      << text;
  EXPECT_TRUE(runsOn(llvm::cantFail(Target::parse("sm_80")), card));
  EXPECT_FALSE(runsOn(llvm::cantFail(Target::parse("sm_100")), card));
  EXPECT_TRUE(runsOn(processor, processor));
  EXPECT_FALSE(runsOn(processor, card));
}

TEST(Target, TheBestForADevice) {
  auto code = [](std::initializer_list<llvm::StringRef> names) {
    std::vector<CodeTarget> targets;
    for (llvm::StringRef name : names)
      targets.push_back(llvm::cantFail(Target::parse(name)).toCode());
    return targets;
  };
  auto on = [](llvm::StringRef device, const std::vector<CodeTarget> &targets) {
    return llvm::cantFail(
        chooseTarget(targets, llvm::cantFail(Target::parse(device))));
  };
  std::vector<CodeTarget> all =
      code({"x86-64", "sm_80", "sm_90", "x86-64-v3", "sm_100", "x86-64-v2"});
  EXPECT_EQ(on("sm_80", all), 1U);
  EXPECT_EQ(on("sm_90", all), 2U);
  EXPECT_EQ(on("sm_100", all), 4U);
  EXPECT_EQ(on("x86-64-v2", all), 5U);
  EXPECT_EQ(on("x86-64-v3", all), 3U);
  EXPECT_EQ(on("x86-64-v4", all), 3U);
  EXPECT_EQ(on("native", code({"x86-64", "native"})), 1U);
  EXPECT_EQ(on("sm_90+cudnn", code({"sm_90", "sm_80+cudnn", "sm_100+cudnn"})),
            1U);
  // Of equal ones the first.
  EXPECT_EQ(on("sm_90", code({"sm_80+sim", "sm_80"})), 0U);
}

TEST(Target, AllThatDoNotFitAreListed) {
  std::vector<CodeTarget> targets = {{"sm_90", {}},
                                     {"better", {"avx2", "avx998", "avx999"}}};
  Target processor = llvm::cantFail(Target::parse("x86-64-v3"));
  ErrorDescription error =
      describeError(chooseTarget(targets, processor).takeError());
  EXPECT_EQ(error.code, ExitCode::Unsupported);
  EXPECT_EQ(error.message,
            "is for 'sm_90', 'better' (with avx998, avx999), and the device "
            "runs code for 'x86-64-v3': compile it with --target=x86-64-v3, or "
            "run it with --device=cuda");
}

} // namespace
} // namespace ax
