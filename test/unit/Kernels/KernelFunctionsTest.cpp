//===- KernelFunctionsTest.cpp - Accuracy of functions of numbers ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every function over all exponents, beside the interpreter's in f64: within 4
// units of the last place (8 on a GPU, whose units are off by one or two in the
// simulation), special values exactly, signs of zeros too. Of f32 a million bit
// patterns each, with AX_TEST_ALL all of them; of f16 and bf16 all.
//
//===----------------------------------------------------------------------===//

#include "KernelTestSupport.h"

#include "ax/Dialect/FunctionFacts.h"
#include "ax/Interpreter/Functions.h"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>

namespace ax::codegen {
namespace {

/// Those of floats that give floats.
std::vector<UnaryKind> functions() {
  std::vector<UnaryKind> found;
  for (uint32_t i = 0; i <= getMaxEnumValForUnaryKind(); ++i)
    if (factsOf(static_cast<UnaryKind>(i)).isOfFloats())
      found.push_back(static_cast<UnaryKind>(i));
  return found;
}

/// Of floats with `bits` bits of significand, the least exponent `least`, and
/// `largest` as the largest number.
struct Format {
  int bits, least;
  double largest;
};
Format formatOf(DType type) {
  switch (type) {
  case DType::F16:
    return {11, -14, 65504};
  case DType::BF16:
    return {8, -126, 3.3895313892515355e38};
  default:
    return {24, -126, std::numeric_limits<float>::max()};
  }
}

/// In units of the last place of `exact`.
double errorOf(double result, double exact, const Format &f) {
  constexpr double wrong = std::numeric_limits<double>::infinity();
  if (std::isnan(exact))
    return std::isnan(result) ? 0 : wrong;
  if (exact == 0 || std::isinf(exact))
    return result == exact && std::signbit(result) == std::signbit(exact)
               ? 0
               : wrong;
  // Where the next number after the largest would be is infinity.
  double infinity = std::ldexp(1.0, std::ilogb(f.largest) + 1);
  auto finite = [&](double x) {
    return std::fabs(x) < infinity ? x : std::copysign(infinity, x);
  };
  double size = std::fabs(finite(exact));
  int exponent = size == 0 ? f.least : std::max(std::ilogb(size), f.least);
  double unit = std::ldexp(1.0, exponent - (f.bits - 1));
  return std::isnan(result) ? wrong
                            : std::fabs(finite(result) - finite(exact)) / unit;
}

constexpr int64_t block = 1 << 16;

double unitsAllowed() { return testTarget().getGpu() ? 8 : 4; }

class UnaryKernel {
public:
  UnaryKernel(UnaryKind kind, const std::string &type) {
    std::string t = std::to_string(block) + "x" + type;
    module = parse({{t},
                    "%r = ax.unary " + stringifyUnaryKind(kind).str() +
                        " %a : tensor<" + t + "> -> tensor<" + t + ">",
                    {{"%r", t}}});
    fusion = fusionOf(*module);
    kernel = llvm::cantFail(testCompiler().compile(fusion));
  }
  HostTensor operator()(const HostTensor &x) {
    return runKernel(kernel, fusion, {x}).front();
  }

private:
  mlir::OwningOpRef<mlir::ModuleOp> module;
  FusionOp fusion;
  CompiledKernel kernel;
};

void checkBlock(UnaryKind function, UnaryKernel &kernel, const HostTensor &x,
                double limit, double &worst, double &at) {
  HostTensor y = kernel(x);
  Format format = formatOf(x.getType());
  interpreter::UnaryFn exact = interpreter::unaryFunction(function);
  for (int64_t i = 0; i != block; ++i) {
    double in = x.getDouble(i);
    double error = errorOf(y.getDouble(i), exact(in), format);
    if (error > worst) {
      worst = error;
      at = in;
    }
  }
  ASSERT_LE(worst, limit) << stringifyUnaryKind(function).str() << " of "
                          << toString(x.getType()) << " at " << at << " ("
                          << std::hexfloat << at << ")";
}

class EveryFunction : public testing::TestWithParam<UnaryKind> {};

TEST_P(EveryFunction, OfF32) {
  UnaryKernel kernel(GetParam(), "f32");
  // An odd step meets every residue of the low bits.
  uint64_t step = std::getenv("AX_TEST_ALL") ? 1 : 4295;
  HostTensor x(DType::F32, {block});
  double worst = 0, at = 0;
  for (uint64_t first = 0; first < (uint64_t(1) << 32); first += step * block) {
    auto *bits = reinterpret_cast<uint32_t *>(x.mutableData());
    for (int64_t i = 0; i != block; ++i)
      bits[i] = static_cast<uint32_t>(first + i * step);
    checkBlock(GetParam(), kernel, x, unitsAllowed(), worst, at);
    if (HasFatalFailure())
      return;
  }
}

/// Computed in f32, then rounded.
TEST_P(EveryFunction, OfNarrowFloats) {
  for (DType type : {DType::F16, DType::BF16}) {
    UnaryKernel kernel(GetParam(), toString(type));
    HostTensor x(type, {block});
    auto *bits = reinterpret_cast<uint16_t *>(x.mutableData());
    for (int64_t i = 0; i != block; ++i)
      bits[i] = static_cast<uint16_t>(i);
    double worst = 0, at = 0;
    checkBlock(GetParam(), kernel, x, 1, worst, at);
  }
}

TEST_P(EveryFunction, OfSpecialValues) {
  UnaryKernel kernel(GetParam(), "f32");
  const float inf = INFINITY, tiny = 1e-45f, least = 1.17549435e-38f;
  std::vector<float> values;
  for (float value :
       {0.0f,     inf,          NAN,     tiny,
        3 * tiny, 1e-42f,       least,   least - tiny,
        1e-30f,   0.5f,         1.0f,    std::nextafter(1.0f, 0.0f),
        1.5f,     2.5f,         9.0f,    86.9f,
        87.3f,    88.0f,        88.8f,   90.0f,
        103.0f,   103.9f,       105.0f,  108.0f,
        176.5f,   1e4f,         1.5e16f, 1e30f,
        1e38f,    3.4028235e38f})
    values.insert(values.end(), {value, -value});
  HostTensor x(DType::F32, {block});
  for (int64_t i = 0; i != block; ++i)
    x.setDouble(i, values[static_cast<size_t>(i) % values.size()]);
  double worst = 0, at = 0;
  checkBlock(GetParam(), kernel, x, unitsAllowed(), worst, at);
}

INSTANTIATE_TEST_SUITE_P(Kernel, EveryFunction, testing::ValuesIn(functions()),
                         [](const auto &info) {
                           return stringifyUnaryKind(info.param).str();
                         });

/// Random bits, for the whole range; both of moderate size; small whole
/// exponents, of which some are multiplications.
TEST(KernelBinary, PowersAndRemainders) {
  struct Case {
    const char *kind;
    double (*exact)(double, double);
  };
  const Case cases[] = {
      {"pow", std::pow},
      {"trunc_mod", std::fmod},
      {"floor_mod",
       [](double x, double y) {
         double r = std::fmod(x, y);
         if (r != 0 && (r < 0) != (y < 0))
           r += y;
         return r == 0 ? std::copysign(0.0, y) : r;
       }},
      {"div", [](double x, double y) { return x / y; }},
  };
  std::string t = std::to_string(block) + "xf32";
  for (const Case &c : cases) {
    auto module =
        parse({{t, t},
               std::string("%r = ax.binary ") + c.kind + " %a, %b : tensor<" +
                   t + ">, tensor<" + t + "> -> tensor<" + t + ">",
               {{"%r", t}}});
    FusionOp fusion = fusionOf(*module);
    CompiledKernel kernel = llvm::cantFail(testCompiler().compile(fusion));
    std::mt19937 random(1);
    HostTensor x(DType::F32, {block}), y(DType::F32, {block});
    double worst = 0, atX = 0, atY = 0;
    for (int round = 0; round < 15; ++round) {
      auto fill = [&](HostTensor &to, bool isWhole) {
        auto *bits = reinterpret_cast<uint32_t *>(to.mutableData());
        for (int64_t i = 0; i != block; ++i) {
          bits[i] = random();
          if (isWhole)
            to.setDouble(i, static_cast<double>(bits[i] % 21) - 10);
          else if (round % 3)
            bits[i] = (bits[i] & 0x83ffffff) | 0x3c000000;
        }
      };
      fill(x, false);
      fill(y, round % 3 == 2);
      HostTensor r = runKernel(kernel, fusion, {x, y}).front();
      for (int64_t i = 0; i != block; ++i) {
        double a = x.getDouble(i), b = y.getDouble(i);
        double error =
            errorOf(r.getDouble(i), c.exact(a, b), formatOf(DType::F32));
        if (error > worst) {
          worst = error;
          atX = a;
          atY = b;
        }
      }
    }
    EXPECT_LE(worst, 4) << c.kind << " at " << atX << ", " << atY;
  }
}

TEST(KernelBinary, PowersOfConstants) {
  std::string t = std::to_string(block) + "xf32";
  for (double exponent : {-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0}) {
    auto module =
        parse({{t},
               "%c = ax.constant dense<" + std::to_string(exponent) +
                   "> : tensor<f32> -> tensor<f32>\n%r = ax.binary pow %a, %c "
                   ": tensor<" +
                   t + ">, tensor<f32> -> tensor<" + t + ">",
               {{"%r", t}}});
    FusionOp fusion = fusionOf(*module);
    CompiledKernel kernel = llvm::cantFail(testCompiler().compile(fusion));
    HostTensor x(DType::F32, {block});
    auto *bits = reinterpret_cast<uint32_t *>(x.mutableData());
    for (int64_t i = 0; i != block; ++i)
      bits[i] = static_cast<uint32_t>(i << 16 | (i & 0xff));
    HostTensor y = runKernel(kernel, fusion, {x}).front();
    for (int64_t i = 0; i != block; ++i)
      ASSERT_LE(errorOf(y.getDouble(i), std::pow(x.getDouble(i), exponent),
                        formatOf(DType::F32)),
                4)
          << x.getDouble(i) << " to the power " << exponent;
  }
}

} // namespace
} // namespace ax::codegen
