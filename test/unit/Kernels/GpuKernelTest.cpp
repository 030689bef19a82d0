//===- GpuKernelTest.cpp - What only kernels for GPUs have ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelTestSupport.h"
#include "PtxText.h"
#include "SimulatedGrid.h"
#include "ThreadFibers.h"

#include "ax/Interpreter/Functions.h"
#include "ax/Support/Error.h"

#include <array>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <set>

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

FusionText softmax(const std::string &type) {
  return {{type},
          "%r = ax.softmax %a dim 1 : tensor<" + type + "> -> tensor<" + type +
              ">",
          {{"%r", type}}};
}

FusionText sum(const std::string &type, const std::string &dims,
               const std::string &result) {
  return {{type},
          "%r = ax.reduce sum %a dims " + dims + " : tensor<" + type +
              "> -> tensor<" + result + ">",
          {{"%r", result}}};
}

/// Four elements that are next to each other are iterations; with rows, rows
/// are.
TEST(GpuKernel, Launches) {
  rt::Kernel elements = compile(unary("neg", "1000x1000xf32"), "sm_90");
  EXPECT_EQ(elements.iterations, 250000);
  EXPECT_EQ(elements.launch.threadsPerBlock, 256);
  EXPECT_EQ(elements.launch.blocks, 977);
  EXPECT_EQ(elements.scratchBytes, 0);
  // One, where the last dimension does not divide.
  rt::Kernel odd = compile(unary("neg", "999x1001xf32"), "sm_90");
  EXPECT_EQ(odd.iterations, 999 * 1001);
  EXPECT_EQ(odd.launch.blocks, 3907);
  rt::Kernel few = compile(unary("neg", "160xf32"), "sm_90");
  EXPECT_EQ(few.launch.threadsPerBlock, 32);
  EXPECT_EQ(few.launch.blocks, 2);
  // What is more goes round.
  rt::Kernel many = compile(unary("neg", "4096x4096xf32"), "sm_90");
  EXPECT_EQ(many.launch.blocks, 4096);
  // Scratch of all groups has to fit.
  rt::Kernel rows = compile(softmax("4096x32768xf64"), "sm_90");
  EXPECT_EQ(rows.iterations, 4096);
  EXPECT_EQ(rows.scratchBytes, 8 * 32768);
  EXPECT_EQ(rows.launch.groupThreads, 1024);
  EXPECT_EQ(rows.launch.numGroups(), 256);
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

/// How many threads do a row, and where it lies.
TEST(GpuKernel, Groups) {
  auto launchOf = [](const FusionText &text) {
    rt::Kernel kernel = compile(text, "sm_90");
    return std::array<int64_t, 4>{
        kernel.launch.blocks, kernel.launch.threadsPerBlock,
        kernel.launch.groupThreads, kernel.scratchBytes};
  };
  using Launch = std::array<int64_t, 4>;
  // A row of a few elements is a thread's.
  EXPECT_EQ(launchOf(softmax("10000x8xf32")), (Launch{40, 256, 1, 64}));
  // Of a warp's and a block's, a copy lies in shared memory.
  EXPECT_EQ(launchOf(softmax("10000x512xf32")), (Launch{1250, 256, 32, 0}));
  EXPECT_EQ(launchOf(softmax("20x100xf32")), (Launch{20, 32, 32, 0}));
  EXPECT_EQ(launchOf(softmax("10000x4096xf32")), (Launch{4096, 512, 512, 0}));
  // Of f32 they are read again, where the largest blocks do one each: of all
  // that are done at a time, the card's cache has room for those.
  EXPECT_EQ(launchOf(softmax("4096x65536xf32")), (Launch{4096, 1024, 1024, 0}));
  EXPECT_EQ(launchOf(softmax("4096x65536xbf16")), (Launch{4096, 512, 512, 0}));
  // Of few rows, each has as many threads as there can be.
  EXPECT_EQ(launchOf(softmax("8x8192xf32")), (Launch{8, 1024, 1024, 0}));
  EXPECT_EQ(launchOf(sum("1000x1000xf32", "[0, 1]", "f32")),
            (Launch{1, 1024, 1024, 0}));
  // Columns: 32 threads' at a time, and of few fewer, so that there are more
  // blocks. A thread has four, if they divide so.
  EXPECT_EQ(launchOf(sum("4096x1000xf32", "[0]", "1000xf32")),
            (Launch{32, 512, 64, 0}));
  EXPECT_EQ(launchOf(sum("100x100000xf32", "[0]", "100000xf32")),
            (Launch{782, 256, 8, 0}));
  EXPECT_EQ(launchOf(sum("4096x1001xf32", "[0]", "1001xf32")),
            (Launch{126, 1024, 128, 0}));
  EXPECT_EQ(launchOf(sum("8x1000xf32", "[0]", "1000xf32")),
            (Launch{32, 32, 1, 0}));
}

FusionText scatter(const std::string &rows, const std::string &columns,
                   const std::string &count) {
  std::string result = rows + "x" + columns + "xf32";
  std::string indices = count + "x1xi64";
  std::string updates = count + "x" + columns + "xf32";
  return {{result, indices, updates},
          "%r = ax.scatter_nd add %a[%b], %c : tensor<" + result +
              ">, tensor<" + indices + ">, tensor<" + updates + "> -> tensor<" +
              result + ">",
          {{"%r", result}}};
}

/// A block has a part of the result: any number of them, up to some for each
/// multiprocessor, that leaves its threads elements.
TEST(GpuKernel, ScattersAreInParts) {
  auto partsOf = [](const FusionText &text) {
    rt::Kernel kernel = compile(text, "sm_90");
    EXPECT_EQ(kernel.launch.blocks, kernel.iterations);
    EXPECT_EQ(kernel.scratchBytes, 0);
    return std::pair(kernel.iterations, kernel.launch.threadsPerBlock);
  };
  using Parts = std::pair<int64_t, int64_t>;
  EXPECT_EQ(partsOf(scatter("50257", "768", "16384")), (Parts{512, 512}));
  EXPECT_EQ(partsOf(scatter("50257", "768", "1000000")), (Parts{512, 512}));
  EXPECT_EQ(partsOf(scatter("251", "257", "64")), (Parts{62, 512}));
  // Parts are not cut too small.
  EXPECT_EQ(partsOf(scatter("64", "64", "64")).first, 4);
}

/// Sums have the order of positions, whatever the order of threads: that of a
/// loop over them, to the last bit.
TEST(GpuKernel, ScattersSumInOrder) {
  constexpr int64_t rows = 192, columns = 40, count = 300;
  rt::Kernel kernel = compile(scatter("192", "40", "300"), "sm_90+sim");
  ASSERT_GT(kernel.launch.blocks, 1);
  std::mt19937 random(3);
  std::vector<float> operand(rows * columns), updates(count * columns);
  std::vector<int64_t> indices(count);
  for (std::vector<float> *values : {&operand, &updates})
    for (float &value : *values)
      value = std::ldexp(float(random() % 4096) - 2048, int(random() % 24));
  for (int64_t &index : indices)
    index = int64_t(random() % 5) * 40 - 7;
  std::vector<float> expected = operand;
  for (int64_t p = 0; p != count; ++p)
    for (int64_t c = 0; c != columns; ++c) {
      // From the end on if below 0, and no further than the last.
      int64_t row = indices[p] < 0 ? indices[p] + rows : indices[p];
      expected[std::min(row, rows - 1) * columns + c] +=
          updates[p * columns + c];
    }
  for (uint64_t seed = 0; seed != 8; ++seed) {
    std::vector<float> result(rows * columns);
    llvm::cantFail(
        runGrid(kernel, kernel.launch,
                {operand.data(), indices.data(), updates.data(), result.data()},
                {}, nullptr, {seed}));
    EXPECT_EQ(std::memcmp(result.data(), expected.data(),
                          result.size() * sizeof(float)),
              0)
        << "in order " << seed;
  }
}

/// Between what threads find and what they do of it they meet: in each of two
/// rounds, when numbers are counted, when they are written, and when all of
/// them have been read. What there was before is in memory by then.
TEST(GpuKernel, ScattersMeet) {
  constexpr int64_t columns = 40, count = 9000;
  rt::Kernel kernel = compile(scatter("64", "40", "9000"), "sm_90+sim");
  ASSERT_EQ(kernel.launch.blocks, 2);
  std::mt19937 random(4);
  std::vector<float> operand(64 * columns), updates(count * columns);
  std::vector<int64_t> indices(count);
  for (int64_t &index : indices)
    index = int64_t(random() % 64);
  for (float &value : updates)
    value = static_cast<float>(random() % 64);
  // A number that was not there yet may be no update's: nothing is left then.
  auto run = [&](GridOrder order) {
    std::vector<float> result(operand.size());
    if (llvm::errorToBool(runGrid(
            kernel, kernel.launch,
            {operand.data(), indices.data(), updates.data(), result.data()}, {},
            nullptr, order)))
      result.clear();
    return result;
  };
  std::vector<float> all = run({});
  ASSERT_FALSE(all.empty());
  std::set<int64_t> missed;
  for (int64_t barrier = 0; barrier != 10; ++barrier)
    for (uint64_t seed = 0; seed != 4; ++seed)
      if (std::vector<float> some = run({seed, barrier});
          some.empty() ||
          std::memcmp(some.data(), all.data(), all.size() * sizeof(float)) != 0)
        missed.insert(barrier);
  EXPECT_EQ(missed, (std::set<int64_t>{1, 2, 3, 4}));
}

/// What runs a kernel twice: with all of its barriers, and without one.
class Barriers : public testing::Test {
protected:
  void compileSum(const std::string &rows, const std::string &columns) {
    std::string type = rows + "x" + columns + "xf32";
    kernel = compile({{type},
                      "%m = ax.reduce max %a dims [1] keep_dims : tensor<" +
                          type + "> -> tensor<" + rows +
                          "x1xf32>\n%d = ax.binary sub %a, %m : tensor<" +
                          type + ">, tensor<" + rows + "x1xf32> -> tensor<" +
                          type + ">\n%r = ax.reduce sum %d dims [1] : tensor<" +
                          type + "> -> tensor<" + rows + "xf32>",
                      {{"%r", rows + "xf32"}}},
                     "sm_90+sim");
    x.resize(std::stol(rows) * std::stol(columns));
    y.resize(std::stol(rows));
    std::mt19937 random(1);
    for (float &value : x)
      value = static_cast<float>(random() % 1000) - 500;
  }
  std::vector<float> run(GridOrder order) {
    llvm::cantFail(runGrid(kernel, kernel.launch, {x.data(), y.data()}, {},
                           nullptr, order));
    return y;
  }
  /// Some order without this barrier gives something else.
  bool isMissed(int64_t barrier) {
    std::vector<float> all = run({});
    for (uint64_t seed = 0; seed != 20; ++seed)
      if (std::vector<float> some = run({seed, barrier});
          std::memcmp(some.data(), all.data(), all.size() * sizeof(float)) != 0)
        return true;
    return false;
  }

  rt::Kernel kernel;
  std::vector<float> x, y;
};

TEST_F(Barriers, EachIsMissed) {
  compileSum("2", "8192");
  ASSERT_EQ(kernel.launch.groupThreads, 1024);
  // Before the first, there is nothing to wait for.
  EXPECT_FALSE(isMissed(0));
  // Parts of the maximum are written, and read; then those of the sum.
  EXPECT_TRUE(isMissed(1));
  EXPECT_TRUE(isMissed(2));
  EXPECT_TRUE(isMissed(3));
  EXPECT_FALSE(isMissed(4));
}

TEST_F(Barriers, WhoDoesNotComeIsAnError) {
  compileSum("3", "100");
  ASSERT_EQ(kernel.launch.groupThreads, 32);
  rt::LaunchShape shape = kernel.launch;
  // A warp with 8 threads.
  shape.threadsPerBlock = 40;
  llvm::Error error = runGrid(kernel, shape, {x.data(), y.data()}, {}, nullptr);
  ASSERT_TRUE(bool(error));
  std::string message = describeError(std::move(error)).message;
  EXPECT_NE(message.find("kernel " + kernel.entry), std::string::npos);
  EXPECT_NE(message.find("8 of 40 threads of a block wait for others that "
                         "never come"),
            std::string::npos)
      << message;
}

TEST(ThreadFibers, WaitForAll) {
  ThreadFibers fibers(100, /*seed=*/1, /*dropped=*/-1);
  int before = 0, behind = 0;
  llvm::cantFail(fibers.run([&] {
    ++before;
    fibers.meetBlock();
    EXPECT_EQ(before, 100);
    ++behind;
  }));
  EXPECT_EQ(behind, 100);
  // One that is done does not come.
  llvm::Error error = fibers.run([&] {
    if (fibers.current() != 5)
      fibers.meetBlock();
  });
  EXPECT_EQ(describeError(std::move(error)).message,
            "99 of 100 threads of a block wait for others that never come");
}

/// In another order for each seed.
TEST(ThreadFibers, Orders) {
  auto order = [](uint64_t seed) {
    ThreadFibers fibers(8, seed, /*dropped=*/-1);
    std::vector<int32_t> seen;
    llvm::cantFail(fibers.run([&] {
      seen.push_back(fibers.current());
      fibers.meetWarp(0xff);
      seen.push_back(fibers.current());
    }));
    return seen;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
}

TEST(ThreadFibers, Exchange) {
  ThreadFibers fibers(64, /*seed=*/3, /*dropped=*/-1);
  llvm::cantFail(fibers.run([&] {
    uint32_t own = fibers.current();
    EXPECT_EQ(fibers.exchange(~0u, own, (own + 1) % 32),
              own / 32 * 32 + (own + 1) % 32);
  }));
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
  EXPECT_NE(error.message.find(" touches 0x"), std::string::npos)
      << error.message;
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
