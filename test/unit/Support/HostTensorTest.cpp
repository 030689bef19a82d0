//===- HostTensorTest.cpp - Tensors of this process -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/HostTensor.h"

#include "ax/Support/Error.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>

using namespace ax;

namespace {

const DType allTypes[] = {
    DType::F32, DType::F64, DType::F16,  DType::BF16,     DType::I8,
    DType::I16, DType::I32, DType::I64,  DType::U8,       DType::U16,
    DType::U32, DType::U64, DType::Bool, DType::F8E4M3FN, DType::F8E5M2};

TEST(DTypeTest, NamesRoundTrip) {
  for (DType type : allTypes)
    EXPECT_EQ(parseDType(toString(type)), type);
  EXPECT_FALSE(parseDType("F32"));
  EXPECT_FALSE(parseDType(""));
}

TEST(DTypeTest, Sizes) {
  EXPECT_EQ(byteSize(DType::BF16), 2);
  EXPECT_EQ(byteSize(DType::Bool), 1);
  EXPECT_EQ(byteSize(DType::U64), 8);
}

TEST(Float16Test, EveryHalfSurvives) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    float value = f16BitsToFloat(half);
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(f16BitsToFloat(floatToF16Bits(value))));
    else
      EXPECT_EQ(floatToF16Bits(value), half);
    float brain = bf16BitsToFloat(half);
    if (std::isnan(brain))
      EXPECT_TRUE(std::isnan(bf16BitsToFloat(floatToBF16Bits(brain))));
    else
      EXPECT_EQ(floatToBF16Bits(brain), half);
  }
}

// Halfway between each pair of neighbours, and a hair on either side.
TEST(Float16Test, TiesGoToEven) {
  for (uint16_t bits = 0; bits < 0x7bff; ++bits) {
    double low = f16BitsToFloat(bits);
    double high = f16BitsToFloat(static_cast<uint16_t>(bits + 1));
    double middle = (low + high) / 2;
    uint16_t even = bits % 2 ? bits + 1 : bits;
    EXPECT_EQ(Float16(middle).bits, even);
    EXPECT_EQ(floatToF16Bits(static_cast<float>(middle)), even);
    EXPECT_EQ(Float16(std::nextafter(middle, 0.0)).bits, bits);
    EXPECT_EQ(Float16(std::nextafter(middle, 1e9)).bits, bits + 1);
    EXPECT_EQ(Float16(-middle).bits, even | 0x8000);
  }
}

TEST(Float16Test, OverflowAndInfinity) {
  EXPECT_EQ(floatToF16Bits(65519.996f), 0x7bff);
  EXPECT_EQ(floatToF16Bits(65520.0f), 0x7c00);
  EXPECT_EQ(floatToF16Bits(-std::numeric_limits<float>::infinity()), 0xfc00);
  EXPECT_EQ(Float16(1e300).bits, 0x7c00);
  EXPECT_EQ(floatToBF16Bits(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(Float16(std::nan("")).bits & 0x7c00, 0x7c00);
}

template <typename T>
void everyFloat8Survives() {
  for (uint32_t bits = 0; bits < 0x100; ++bits) {
    float value = T::fromBits(static_cast<uint8_t>(bits));
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(static_cast<float>(T(value))));
    else if (std::isinf(value))
      EXPECT_EQ(T(value).bits, bits - 1);
    else
      EXPECT_EQ(T(value).bits, bits);
  }
}

TEST(Float8Test, EveryNumberSurvives) {
  everyFloat8Survives<Float8E4M3FN>();
  everyFloat8Survives<Float8E5M2>();
  EXPECT_EQ(Float8E4M3FN::fromBits(0x7e), 448.0f);
  EXPECT_EQ(Float8E4M3FN::fromBits(0x01), 0x1p-9f);
  EXPECT_TRUE(std::isnan(Float8E4M3FN::fromBits(0xff)));
  EXPECT_EQ(Float8E5M2::fromBits(0x7b), 57344.0f);
  EXPECT_EQ(Float8E5M2::fromBits(0x81), -0x1p-16f);
  EXPECT_EQ(Float8E5M2::fromBits(0xfc),
            -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(Float8E5M2::fromBits(0x7d)));
}

/// Between neighbours, the nearer one; in the middle the even one.
template <typename T>
void float8RoundsToNearest(uint8_t largest) {
  for (uint32_t i = 0; i < largest; ++i) {
    auto bits = static_cast<uint8_t>(i);
    auto even = static_cast<uint8_t>(i + (i & 1));
    double low = T::fromBits(bits), high = T::fromBits(bits + 1);
    double middle = (low + high) / 2;
    EXPECT_EQ(T(middle).bits, even);
    EXPECT_EQ(T(-middle).bits, even | 0x80);
    EXPECT_EQ(T(std::nextafter(middle, 0.0)).bits, bits);
    EXPECT_EQ(T(std::nextafter(middle, 1e9)).bits, bits + 1);
    EXPECT_EQ(T(std::nextafter(static_cast<float>(middle), 0.0f)).bits, bits);
    EXPECT_EQ(T(std::nextafter(static_cast<float>(middle), 1e9f)).bits,
              bits + 1);
  }
  float infinity = std::numeric_limits<float>::infinity();
  for (float large : {1e5f, 1e30f, infinity}) {
    EXPECT_EQ(T(large).bits, largest);
    EXPECT_EQ(T(-large).bits, largest | 0x80);
  }
  EXPECT_EQ(T(0x1p-149f).bits, 0);
  EXPECT_EQ(T(-0.0f).bits, 0x80);
  EXPECT_TRUE(std::isnan(T(std::nanf(""))));
}

TEST(Float8Test, RoundsToNearestAndSaturates) {
  float8RoundsToNearest<Float8E4M3FN>(0x7e);
  float8RoundsToNearest<Float8E5M2>(0x7b);
}

TEST(HostTensorTest, ShapesAreChecked) {
  EXPECT_EQ(checkedNumElements({}), 1);
  EXPECT_EQ(checkedNumElements({3, 0, 5}), 0);
  EXPECT_FALSE(checkedNumElements({-1, 2}));
  EXPECT_FALSE(checkedNumElements({int64_t(1) << 40, int64_t(1) << 40}));
  EXPECT_FALSE(checkedNumElements({int64_t(1) << 61}, 8));
  EXPECT_EQ(shapeToString({2, 3}), "2x3");
  EXPECT_EQ(rowMajorStrides({2, 3, 4}), (std::vector<int64_t>{12, 4, 1}));
}

TEST(HostTensorTest, CopiesShareUntilWritten) {
  HostTensor a = HostTensor::fromValues<float>({2}, {1, 2});
  HostTensor b = a;
  EXPECT_EQ(a.data(), b.data());
  b.setDouble(0, 7);
  EXPECT_NE(a.data(), b.data());
  EXPECT_EQ(a.getDouble(0), 1);
  EXPECT_EQ(b.getDouble(0), 7);
  EXPECT_EQ(b.getDouble(1), 2);
}

TEST(HostTensorTest, BorrowedBytesAreNeverWritten) {
  int32_t values[2] = {4, 5};
  HostTensor a = HostTensor::borrow(DType::I32, {2}, values, nullptr);
  EXPECT_EQ(a.getInt(1), 5);
  a.setInt(1, 6);
  EXPECT_EQ(a.getInt(1), 6);
  EXPECT_EQ(values[1], 5);
}

TEST(HostTensorTest, ElementsOfEveryType) {
  for (DType type : allTypes) {
    HostTensor a(type, {3});
    EXPECT_EQ(a.getDouble(2), 0);
    a.setDouble(1, 1.0);
    a.setInt(2, 1);
    EXPECT_EQ(a.getDouble(1), 1);
    EXPECT_EQ(a.getInt(2), 1);
    for (DType other : allTypes) {
      HostTensor b = a.cast(other).cast(type);
      EXPECT_TRUE(a.isIdentical(b)) << toString(type) << toString(other);
    }
  }
}

TEST(HostTensorTest, IntegersFromFloats) {
  HostTensor a = HostTensor::scalar<float>(-2.9f);
  EXPECT_EQ(a.getInt(0), -2);
  EXPECT_EQ(HostTensor::scalar<float>(1e30f).getInt(0),
            std::numeric_limits<int64_t>::max());
  EXPECT_EQ(HostTensor::scalar<double>(std::nan("")).getInt(0), 0);
  EXPECT_EQ(HostTensor::scalar<double>(1.8e19).cast(DType::U64).getInt(0),
            static_cast<int64_t>(uint64_t(18000000000000000000u)));
}

TEST(HostTensorTest, RawBytesMustFit) {
  uint8_t bytes[] = {0, 2, 1};
  auto good = HostTensor::fromBytes(DType::Bool, {3}, bytes);
  ASSERT_TRUE(bool(good));
  EXPECT_EQ(good->rawBytes()[1], 1);
  auto bad = HostTensor::fromBytes(DType::F32, {3}, bytes);
  ASSERT_FALSE(bool(bad));
  EXPECT_EQ(describeError(bad.takeError()).code, ExitCode::BadInput);
  auto huge = HostTensor::allocate(DType::F32, {int64_t(1) << 50, 1 << 20});
  EXPECT_EQ(describeError(huge.takeError()).code, ExitCode::BadInput);
  auto large = HostTensor::allocate(DType::F32, {int64_t(1) << 45, 1 << 10});
  EXPECT_EQ(describeError(large.takeError()).code, ExitCode::RunFailed);
}

} // namespace
