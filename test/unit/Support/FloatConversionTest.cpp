//===- FloatConversionTest.cpp - Floats in other types --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/FloatConversion.h"

#include "ax/Support/Error.h"

#include "gtest/gtest.h"

#include <cstring>
#include <limits>

using namespace ax;

namespace {

float converted(DType wanted, float value) {
  uint8_t narrow[4], back[4];
  copyConverted(wanted, narrow, DType::F32,
                reinterpret_cast<const uint8_t *>(&value), 1);
  copyConverted(DType::F32, back, wanted, narrow, 1);
  float result = 0;
  std::memcpy(&result, back, sizeof(float));
  return result;
}

TEST(FloatConversionTest, RoundsToNearestEven) {
  EXPECT_EQ(converted(DType::BF16, 1 + 0x1p-8f), 1);
  EXPECT_EQ(converted(DType::BF16, 1 + 0x1.8p-7f), 1 + 0x1p-6f);
  EXPECT_EQ(converted(DType::F16, 1 + 0x1p-11f), 1);
  EXPECT_EQ(converted(DType::F16, 0x1p-24f), 0x1p-24f);
}

TEST(FloatConversionTest, LargestStaysFinite) {
  float largest = std::numeric_limits<float>::max(),
        infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(converted(DType::BF16, -largest), -0x1.fep127f);
  EXPECT_EQ(converted(DType::BF16, largest), 0x1.fep127f);
  EXPECT_EQ(converted(DType::BF16, -infinity), -infinity);
}

TEST(FloatConversionTest, NeedsNoAlignment) {
  uint8_t from[5] = {0, 0x80, 0x3f, 0, 0x40}, to[9] = {};
  copyConverted(DType::F32, to + 1, DType::BF16, from + 1, 2);
  float values[2];
  std::memcpy(values, to + 1, sizeof(values));
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], 2);
  copyConverted(DType::F16, to + 1, DType::BF16, from + 1, 2);
  copyConverted(DType::F32, reinterpret_cast<uint8_t *>(values), DType::F16,
                to + 1, 2);
  EXPECT_EQ(values[1], 2);
}

TEST(FloatConversionTest, Types) {
  EXPECT_TRUE(canConvert(DType::F16, DType::BF16));
  EXPECT_TRUE(canConvert(DType::I64, DType::I64));
  EXPECT_FALSE(canConvert(DType::F32, DType::F64));
  EXPECT_FALSE(canConvert(DType::F8E5M2, DType::F32));
}

TEST(FloatConversionTest, BeyondF16) {
  auto tensor = HostTensor::fromValues<float>({3}, {1, -65519, 65504});
  EXPECT_FALSE(isBeyond(DType::F16, tensor));
  tensor = HostTensor::fromValues<float>({2}, {1, -65520});
  EXPECT_TRUE(isBeyond(DType::F16, tensor));
  EXPECT_FALSE(isBeyond(DType::BF16, tensor));
  FloatConversion conversion;
  auto refused = conversion.to(DType::F16, tensor);
  ASSERT_FALSE(bool(refused));
  EXPECT_EQ(describeError(refused.takeError()).message,
            "some of its numbers are larger than f16 has them");
  float infinity = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(
      isBeyond(DType::F16, HostTensor::fromValues<float>({1}, {infinity})));
}

TEST(FloatConversionTest, TellsWhatItDid) {
  FloatConversion conversion;
  std::vector<std::string> told;
  auto warn = [&](const std::string &text) { told.push_back(text); };
  auto narrow = llvm::cantFail(
      conversion.to(DType::BF16, HostTensor::fromValues<float>({2}, {1, 2})));
  llvm::cantFail(conversion.to(DType::F32, narrow));
  llvm::cantFail(conversion.to(DType::BF16, narrow));
  conversion.tell("w", warn);
  EXPECT_EQ(told, (std::vector<std::string>{
                      "weights 'w': 1 tensor is f32, and rounded to bf16",
                      "weights 'w': 1 tensor is bf16, and taken as f32"}));
}

} // namespace
