//===- DeviceRatesTest.cpp - How fast a device is at best -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/DeviceRates.h"
#include "DeviceSuite.h"

namespace ax::rt {

namespace {

MatmulDesc matmul(DType a, DType b, int64_t size) {
  MatmulDesc desc;
  desc.a = TensorDesc::dense(a, {size, size});
  desc.b = TensorDesc::dense(b, {size, size});
  desc.c = TensorDesc::dense(isFloat8(a) ? DType::F32 : a, {size, size});
  return desc;
}

TEST(DeviceRates, OperationsAreJudgedByTheirFactors) {
  EXPECT_EQ(rateType(matmul(DType::BF16, DType::BF16, 4)), DType::BF16);
  EXPECT_EQ(rateType(matmul(DType::F8E5M2, DType::F8E4M3FN, 4)),
            DType::F8E4M3FN);
  EXPECT_EQ(rateType(matmul(DType::I32, DType::I32, 4)), std::nullopt);
  EXPECT_EQ(rateType(matmul(DType::F32, DType::F32, 0)), std::nullopt);
  EXPECT_EQ(rateType(TopKDesc()), std::nullopt);
}

TEST(DeviceRates, TheLongerOfBothCounts) {
  DeviceRates rates;
  EXPECT_EQ(rates.leastSeconds(100, DType::F32, 100), 0);
  rates.flopsPerSecond[DType::F32] = 50;
  rates.bytesPerSecond = 20;
  EXPECT_EQ(rates.leastSeconds(100, DType::F32, 20), 2);
  EXPECT_EQ(rates.leastSeconds(100, DType::F32, 100), 5);
  // Of a type that was not measured, and of what multiplies nothing.
  EXPECT_EQ(rates.leastSeconds(100, DType::F64, 20), 1);
  EXPECT_EQ(rates.leastSeconds(0, std::nullopt, 20), 1);
}

TEST_P(DeviceSuite, SaysHowFastItIs) {
  std::vector<DType> types = {DType::F32, DType::BF16, DType::F8E4M3FN};
  DeviceRates rates = llvm::cantFail(measureRates(device, types));
  EXPECT_GT(rates.bytesPerSecond, 0);
  for (DType type : types) {
    MatmulDesc desc = matmul(type, type, 128);
    std::swap(desc.b.strides[0], desc.b.strides[1]);
    auto op = device.prepare(desc, {});
    EXPECT_EQ(rates.flopsPerSecond.count(type), op ? 1u : 0u) << toString(type);
    if (op)
      EXPECT_GT(rates.flopsPerSecond[type], 0) << toString(type);
    else
      llvm::consumeError(op.takeError());
  }
}

} // namespace

} // namespace ax::rt
