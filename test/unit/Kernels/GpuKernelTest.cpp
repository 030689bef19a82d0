//===- GpuKernelTest.cpp - What only kernels for GPUs have ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelTestSupport.h"
#include "PtxText.h"
#include "SimulatedGrid.h"

#include "ax/Interpreter/Functions.h"
#include "ax/Support/Error.h"

#include <cmath>
#include <gtest/gtest.h>

namespace ax::codegen {
namespace {

CompiledKernel compile(const FusionText &text, const std::string &target,
                       mlir::OwningOpRef<mlir::ModuleOp> &module) {
  KernelOptions options;
  options.target = llvm::cantFail(Target::parse(target));
  module = parse(text);
  return llvm::cantFail(llvm::cantFail(KernelCompiler::create(options))
                            ->compile(fusionOf(*module)));
}
rt::Kernel compile(const FusionText &text, const std::string &target) {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  return *compile(text, target, module).image;
}

FusionText unary(const std::string &kind, const std::string &type) {
  return {{type},
          "%r = ax.unary " + kind + " %a : tensor<" + type + "> -> tensor<" +
              type + ">",
          {{"%r", type}}};
}

std::string textOf(const rt::Kernel &kernel) {
  return reinterpret_cast<const char *>(kernel.image.data());
}

TEST(GpuKernel, ImagesAreText) {
  rt::Kernel kernel = compile(unary("neg", "8x16xf32"), "sm_80");
  EXPECT_EQ(kernel.format, rt::kernelFormat::ptx);
  EXPECT_EQ(kernel.image.size(), textOf(kernel).size() + 1);
  EXPECT_NE(textOf(kernel).find(".target sm_80"), std::string::npos);
  EXPECT_NE(textOf(kernel).find(".entry " + kernel.entry), std::string::npos);
  // The simulated one has the same text, and something behind it.
  rt::Kernel simulated = compile(unary("neg", "8x16xf32"), "sm_80+sim");
  EXPECT_GT(simulated.image.size(), textOf(simulated).size() + 1);
  EXPECT_NE(kernel.key, simulated.key);
  EXPECT_NE(kernel.key, compile(unary("neg", "8x16xf32"), "sm_90").key);
  EXPECT_NE(kernel.key, compile(unary("neg", "8x16xf32"), "native").key);
}

/// Elements are iterations, so that neighbours are next to each other; with
/// rows, rows are.
TEST(GpuKernel, Launches) {
  rt::Kernel elements = compile(unary("neg", "1000x1000xf32"), "sm_90");
  EXPECT_EQ(elements.iterations, 1000000);
  EXPECT_EQ(elements.launch.threadsPerBlock, 256);
  EXPECT_EQ(elements.launch.blocks, 3907);
  EXPECT_EQ(elements.scratchBytes, 0);
  rt::Kernel few = compile(unary("neg", "40xf32"), "sm_90");
  EXPECT_EQ(few.launch.threadsPerBlock, 32);
  EXPECT_EQ(few.launch.blocks, 2);
  // What is more goes round.
  rt::Kernel many = compile(unary("neg", "4096x4096xf32"), "sm_90");
  EXPECT_EQ(many.launch.blocks, 4096);
  // Scratch of all threads has to fit.
  rt::Kernel rows = compile({{"4096x65536xf32"},
                             "%r = ax.softmax %a dim 1 : tensor<4096x65536xf32>"
                             " -> tensor<4096x65536xf32>",
                             {{"%r", "4096x65536xf32"}}},
                            "sm_90");
  EXPECT_EQ(rows.iterations, 4096);
  EXPECT_EQ(rows.scratchBytes, 4 * 65536);
  EXPECT_LE(rows.scratchBytes * rows.launch.numThreads(), 64 << 20);
  EXPECT_GE(rows.launch.numThreads(), 256);
  EXPECT_EQ(compile(unary("neg", "40xf32"), "native").launch.blocks, 0);
}

/// A driver learns from the text what it is to be given.
TEST(GpuKernel, TextsSayWhatParametersAre) {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  CompiledKernel kernel = compile(
      {{"8x16xf32", "4xi64"},
       R"(%n = ax.softmax %a dim 1 : tensor<8x16xf32> -> tensor<8x16xf32>
          %i = axl.axis_index {col} : tensor<i64>
          %r = ax.binary add %b, %i : tensor<4xi64>, tensor<i64> -> tensor<4xi64>)",
       {{"%n", "8x16xf32"}, {"%r", "4xi64"}}},
      "sm_80+sim", module);
  simgpu::PtxText text;
  EXPECT_EQ(text.read(textOf(*kernel.image)), "");
  EXPECT_EQ(text.version, 80U);
  EXPECT_EQ(text.capability, 80U);
  ASSERT_EQ(text.entries.size(), 1U);
  EXPECT_EQ(text.entries[0].name, kernel.image->entry);
  std::string kinds;
  for (const simgpu::PtxParameter &parameter : text.entries[0].parameters) {
    EXPECT_EQ(parameter.bytes, 8U);
    EXPECT_EQ(parameter.alignment, parameter.isPointer ? 64U : 1U);
    kinds += parameter.isPointer ? 'p' : 's';
  }
  ASSERT_EQ(kernel.signature.scalars.size(), 1U);
  EXPECT_EQ(kinds, kernel.signature.scratchBytes ? "ppppsp" : "pppps");
}

TEST(GpuKernel, CallsThatNobodyAnswersAreErrors) {
  rt::Kernel kernel = compile(unary("neg", "4xf32"), "sm_90");
  float x[4] = {}, y[4];
  // Without an object behind the text.
  llvm::Error error = runGrid(kernel, kernel.launch, {x, y}, {}, nullptr);
  ASSERT_TRUE(bool(error));
  EXPECT_EQ(describeError(std::move(error)).code, ExitCode::BadPlan);
}

TEST(GpuKernel, WhatIsNoMemoryIsAnError) {
  rt::Kernel kernel = compile(unary("neg", "4xf32"), "sm_90+sim");
  float y[4];
  ErrorDescription error =
      describeError(runGrid(kernel, kernel.launch, {nullptr, y}, {}, nullptr));
  EXPECT_EQ(error.message.find("the kernel touches 0x"), 0U) << error.message;
}

/// In f64 the C library's functions are written out, to be within 1e-14 of
/// them.
class LibraryFunction : public testing::TestWithParam<UnaryKind> {};

TEST_P(LibraryFunction, OfF64) {
  constexpr int64_t count = 1 << 14;
  std::string type = std::to_string(count) + "xf64";
  mlir::OwningOpRef<mlir::ModuleOp> module;
  CompiledKernel kernel = compile(
      unary(stringifyUnaryKind(GetParam()).str(), type), "sm_90+sim", module);
  std::mt19937_64 random(1);
  HostTensor x(DType::F64, {count});
  const double inf = INFINITY;
  const double special[] = {0.0, -0.0, inf, -inf, NAN, 1.0, -1.0, 5e-324};
  for (int64_t i = 0; i != count; ++i) {
    // Of all sizes that matter, both signs.
    double size = std::ldexp(1 + std::ldexp(double(random() >> 12), -52),
                             int(random() % 80) - 69);
    x.setDouble(i, random() % 2 ? size : -size);
  }
  for (size_t i = 0; i != std::size(special); ++i)
    x.setDouble(static_cast<int64_t>(i), special[i]);
  HostTensor y = runKernel(kernel, fusionOf(*module), {x}).front();
  interpreter::UnaryFn exact = interpreter::unaryFunction(GetParam());
  for (int64_t i = 0; i != count; ++i) {
    double e = exact(x.getDouble(i)), a = y.getDouble(i);
    if (e == 0 || !std::isfinite(e)) {
      ASSERT_TRUE(std::isnan(e) ? std::isnan(a)
                                : a == e && std::signbit(a) == std::signbit(e))
          << a << " instead of " << e << " at " << x.getDouble(i);
      continue;
    }
    double limit = GetParam() == UnaryKind::gelu ? 1e-12 : 1e-14;
    ASSERT_LE(std::fabs(a - e), limit * std::fabs(e) + 1e-320)
        << a << " instead of " << e << " at " << x.getDouble(i);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kernel, LibraryFunction,
    testing::Values(UnaryKind::exp, UnaryKind::expm1, UnaryKind::log,
                    UnaryKind::log1p, UnaryKind::sin, UnaryKind::cos,
                    UnaryKind::tan, UnaryKind::asin, UnaryKind::acos,
                    UnaryKind::atan, UnaryKind::sinh, UnaryKind::cosh,
                    UnaryKind::tanh, UnaryKind::asinh, UnaryKind::acosh,
                    UnaryKind::atanh, UnaryKind::erf, UnaryKind::gelu),
    [](const auto &info) { return stringifyUnaryKind(info.param).str(); });

TEST(GpuKernel, RemaindersOfF64) {
  constexpr int64_t count = 1 << 14;
  std::string t = "tensor<" + std::to_string(count) + "xf64>";
  std::string type = std::to_string(count) + "xf64";
  mlir::OwningOpRef<mlir::ModuleOp> module;
  CompiledKernel kernel =
      compile({{type, type},
               "%r = ax.binary trunc_mod %a, %b : " + t + ", " + t + " -> " + t,
               {{"%r", type}}},
              "sm_90+sim", module);
  // Random bits: of all exponents, NaN and subnormal ones among them.
  std::mt19937_64 random(1);
  HostTensor x(DType::F64, {count}), y(DType::F64, {count});
  for (HostTensor *tensor : {&x, &y})
    for (int64_t i = 0; i != count; ++i)
      reinterpret_cast<uint64_t *>(tensor->mutableData())[i] = random();
  x.setDouble(0, 1.7e308);
  y.setDouble(0, 5e-324);
  x.setDouble(1, 3.0);
  y.setDouble(1, INFINITY);
  x.setDouble(2, -3.0);
  y.setDouble(2, 0.0);
  x.setDouble(3, -6.0);
  y.setDouble(3, 3.0);
  HostTensor r = runKernel(kernel, fusionOf(*module), {x, y}).front();
  for (int64_t i = 0; i != count; ++i) {
    double e = std::fmod(x.getDouble(i), y.getDouble(i)), a = r.getDouble(i);
    ASSERT_TRUE(std::isnan(e) ? std::isnan(a)
                              : a == e && std::signbit(a) == std::signbit(e))
        << a << " instead of " << e << " at " << x.getDouble(i) << ", "
        << y.getDouble(i);
  }
}

} // namespace
} // namespace ax::codegen
