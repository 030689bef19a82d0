//===- Float8CastTest.cpp - Casts from and to floats of eight bits --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelTestSupport.h"

#include "ax/Support/Error.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace ax::codegen {
namespace {

const std::vector<std::string> float8s = {"f8E4M3FN", "f8E5M2"};

/// A kernel's cast, and the interpreter's, to the same bits.
void expectSameBits(const HostTensor &from, const std::string &to) {
  std::string size = std::to_string(from.numElements()) + "x";
  std::string type = size + toString(from.getType());
  auto module = parse(
      {{type},
       "%r = ax.cast %a : tensor<" + type + "> -> tensor<" + size + to + ">",
       {{"%r", size + to}}});
  ASSERT_TRUE(module);
  FusionOp fusion = fusionOf(*module);
  auto kernel = testCompiler().compile(fusion);
  if (!kernel) {
    ADD_FAILURE() << describeError(kernel.takeError()).message;
    return;
  }
  HostTensor expected = interpretFusion(fusion, {from}).front();
  HostTensor actual = runKernel(*kernel, fusion, {from}, 3).front();
  for (int64_t i = 0; i != from.numElements(); ++i) {
    if (std::isnan(expected.getDouble(i)) && std::isnan(actual.getDouble(i)))
      continue;
    auto bitsOf = [&](const HostTensor &tensor) {
      int64_t bytes = byteSize(tensor.getType());
      return tensor.rawBytes().slice(i * bytes, bytes);
    };
    ASSERT_TRUE(bitsOf(expected) == bitsOf(actual))
        << from.getDouble(i) << " of " << from.typeToString() << " to " << to
        << ": " << actual.getDouble(i) << " instead of "
        << expected.getDouble(i);
  }
}

/// Every number of a type of 8 or 16 bits.
HostTensor all(DType type) {
  int64_t count = int64_t(1) << (8 * byteSize(type));
  HostTensor tensor(type, {count});
  for (int64_t i = 0; i != count; ++i)
    std::memcpy(tensor.mutableData() + i * byteSize(type), &i, byteSize(type));
  return tensor;
}

TEST(Float8Cast, EveryNumberUp) {
  for (DType from : {DType::F8E4M3FN, DType::F8E5M2})
    for (const char *to : {"f32", "f64", "f16", "bf16", "i64", "i1"})
      expectSameBits(all(from), to);
}

TEST(Float8Cast, EveryNumberOf16BitsDown) {
  for (const std::string &to : float8s)
    for (DType from : {DType::F16, DType::BF16, DType::F8E4M3FN, DType::F8E5M2})
      if (toString(from) != to)
        expectSameBits(all(from), to);
}

/// The middles between neighbours, and what is next to them.
TEST(Float8Cast, NumbersThatRoundDown) {
  float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> numbers = {0.0f,     -0.0f,    0x1p-149f,    0x1p-126f,
                                infinity, 1e30f,    449.0f,       464.0f,
                                57345.0f, 61440.0f, std::nanf("")};
  for (DType type : {DType::F8E4M3FN, DType::F8E5M2}) {
    HostTensor known = all(type);
    for (int64_t i = 0; i != 0x7a; ++i) {
      auto middle =
          static_cast<float>((known.getDouble(i) + known.getDouble(i + 1)) / 2);
      for (float number : {middle, std::nextafter(middle, 0.0f),
                           std::nextafter(middle, infinity)})
        numbers.push_back(number);
    }
  }
  for (size_t i = 0, e = numbers.size(); i != e; ++i)
    numbers.push_back(-numbers[i]);
  auto count = static_cast<int64_t>(numbers.size());
  for (const std::string &to : float8s)
    expectSameBits(HostTensor::fromValues<float>({count}, numbers), to);
}

/// What a cast of a scaled tensor is made of, in one kernel.
TEST(Float8Cast, OfAProduct) {
  for (const std::string &to : float8s)
    check({{"64x48xf32", "f32"},
           "%p = ax.binary mul %a, %b : tensor<64x48xf32>, tensor<f32> -> "
           "tensor<64x48xf32>\n"
           "%q = ax.cast %p : tensor<64x48xf32> -> tensor<64x48x" +
               to +
               ">\n"
               "%r = ax.transpose %q [1, 0] : tensor<64x48x" +
               to + "> -> tensor<48x64x" + to + ">",
           {{"%q", "64x48x" + to}, {"%r", "48x64x" + to}}});
}

/// In f32, and rounded.
TEST(Float8Cast, Arithmetic) {
  for (const std::string &type : float8s) {
    std::string t = "tensor<5x16x" + type + ">";
    check({{"5x16x" + type, "5x16x" + type},
           "%s = ax.binary add %a, %b : " + t + ", " + t + " -> " + t +
               "\n%m = ax.compare lt %a, %b : " + t + ", " + t +
               " -> tensor<5x16xi1>\n%c = ax.select %m, %s, %b : "
               "tensor<5x16xi1>, " +
               t + ", " + t + " -> " + t +
               "\n%r = ax.reduce max %c dims [1] : " + t + " -> tensor<5x" +
               type + ">",
           {{"%c", "5x16x" + type}, {"%r", "5x" + type}}});
  }
}

} // namespace
} // namespace ax::codegen
