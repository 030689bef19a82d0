//===- DeviceRatesTest.cpp - How fast a device is at best -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/DeviceRates.h"
#include "DeviceSuite.h"

#include "ax/Support/Error.h"

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

// Another rank takes a second for each.
TEST_P(DeviceSuite, IsAsFastAsTheSlowestOfATeam) {
  RateTeam team;
  team.findLargest = [](double own) -> llvm::Expected<double> {
    return own > 0 ? 1 : 0;
  };
  DeviceRates rates = llvm::cantFail(measureRates(device, {DType::F32}, team));
  EXPECT_EQ(rates.bytesPerSecond, 2 << 24);
  std::map<DType, double> all = {{DType::F32, 2 * 128 * 128 * 128}}, none;
  bool multiplies = !rates.flopsPerSecond.empty();
  EXPECT_EQ(rates.flopsPerSecond, multiplies ? all : none);
  EXPECT_EQ(llvm::cantFail(measureCommandLatency(device, team)),
            multiplies ? std::optional(1e-3) : std::nullopt);
}

// What one rank has no memory for, none does.
TEST_P(DeviceSuite, MeasuresWhatAllOfATeamCan) {
  RateTeam team;
  team.findLargest = [](double) -> llvm::Expected<double> { return 1; };
  DeviceRates rates = llvm::cantFail(measureRates(device, {DType::F32}, team));
  EXPECT_EQ(rates.bytesPerSecond, 0);
  EXPECT_TRUE(rates.flopsPerSecond.empty());
  EXPECT_EQ(llvm::cantFail(measureCommandLatency(device, team)), std::nullopt);
}

TEST_P(DeviceSuite, FailsWithItsTeam) {
  RateTeam team;
  team.findLargest = [](double) -> llvm::Expected<double> {
    return makeError(ExitCode::RunFailed, "rank 1 is gone");
  };
  EXPECT_EQ(describeError(measureRates(device, {}, team).takeError()).message,
            "rank 1 is gone");
  EXPECT_EQ(
      describeError(measureCommandLatency(device, team).takeError()).message,
      "rank 1 is gone");
}

TEST_P(DeviceSuite, HasAModel) {
  EXPECT_NE(llvm::cantFail(device.findModel()), "");
}

} // namespace

} // namespace ax::rt
