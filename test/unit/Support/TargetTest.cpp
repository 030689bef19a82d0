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
  for (const char *name : {"sm_80", "sm_90", "sm_100", "sm_90+sim"}) {
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
            "x86-64-v3, x86-64-v4, sm_80, sm_90, sm_100; did you mean "
            "'x86-64-v2'?");
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
    return describeError(checkTarget(target, {}, device)).message;
  };
  EXPECT_EQ(said("sm_80", card), "");
  EXPECT_EQ(said("sm_90+sim", card), "");
  EXPECT_EQ(said("x86-64", processor), "");
  EXPECT_EQ(said("sm_100", card),
            "is for 'sm_100', and the device runs code for 'sm_90': compile it "
            "with --target=sm_90");
  EXPECT_EQ(said("x86-64-v3", card),
            "is for 'x86-64-v3', and the device runs code for 'sm_90': compile "
            "it with --target=sm_90");
  EXPECT_EQ(said("sm_90", processor),
            "is for 'sm_90', and the device runs code for '" +
                processor.toText() + "': compile it with --target=native");
  EXPECT_EQ(describeError(checkTarget("sm_90", {}, processor)).code,
            ExitCode::Unsupported);
  EXPECT_NE(describeError(checkTarget("better", {"avx999"}, processor))
                .message.find("avx999"),
            std::string::npos);
}

} // namespace
} // namespace ax
