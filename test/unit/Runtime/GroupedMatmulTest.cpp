//===- GroupedMatmulTest.cpp - Rows times their groups' matrices ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LibraryRunner.h"

using namespace ax;
using namespace ax::rt;

namespace {

struct Sizes {
  int64_t rows, groups, k, n;
};

/// `isSwapped`: matrices are [n, k] in memory.
GroupedMatmulDesc grouped(GroupedKind kind, DType type, DType result,
                          Sizes sizes, bool isSwapped,
                          DType indices = DType::I64) {
  bool isGradient = kind == GroupedKind::WeightGradient;
  GroupedMatmulDesc desc;
  desc.kind = kind;
  desc.x = TensorDesc::dense(type, {sizes.rows, sizes.k});
  desc.y = TensorDesc::dense(isGradient ? type : result, {sizes.rows, sizes.n});
  desc.w = TensorDesc::dense(isGradient ? result : type,
                             {sizes.groups, sizes.k, sizes.n});
  if (isSwapped)
    desc.w.strides = {sizes.k * sizes.n, 1, sizes.k};
  desc.groups = TensorDesc::dense(indices, {sizes.rows});
  return desc;
}

/// Sums in f64 of what the arguments hold, by the definition.
void check(const GroupedMatmulDesc &desc, int32_t threads, double tolerance) {
  bool isGradient = desc.kind == GroupedKind::WeightGradient;
  std::vector<ViewData> data = randomArguments(desc);
  std::mt19937 random(5);
  int64_t numGroups = desc.w.sizes[0];
  // The last group has no rows, the first one has most.
  for (int64_t r = 0; r < desc.x.sizes[0]; ++r) {
    auto any = static_cast<int64_t>(random());
    data[2].memory.setDouble(
        r, static_cast<double>(
               any % 3 ? 0 : any % std::max<int64_t>(1, numGroups - 1)));
  }
  runLibrary(desc, data, threads);
  auto groupOf = [&](int64_t row) {
    return static_cast<int64_t>(data[2].get({row}));
  };
  const ViewData &x = data[0], &other = data[1], &result = data[3];
  ViewData sums(TensorDesc::dense(DType::F64, result.view.sizes));
  sums.fill(0);
  forEachIndex({desc.x.sizes[0], desc.w.sizes[1], desc.w.sizes[2]},
               [&](const std::vector<int64_t> &i) {
                 int64_t row = i[0], k = i[1], n = i[2], group = groupOf(row);
                 std::vector<int64_t> ofW{group, k, n}, ofY{row, n};
                 const std::vector<int64_t> &to = isGradient ? ofW : ofY;
                 sums.memory.setDouble(
                     sums.offset(to),
                     sums.get(to) +
                         x.get({row, k}) * other.get(isGradient ? ofY : ofW));
               });
  forEachIndex(result.view.sizes, [&](const std::vector<int64_t> &i) {
    ASSERT_LE(distance(result.get(i), sums.get(i)), tolerance)
        << toString(desc) << " at " << i[0] << " " << i[1];
  });
}

const GroupedKind kinds[] = {GroupedKind::Forward, GroupedKind::WeightGradient};

// Around numbers of rows for which there are products, tiles and vectors.
TEST(GroupedMatmulTest, Sizes) {
  for (GroupedKind kind : kinds)
    for (Sizes sizes :
         {Sizes{1, 1, 1, 1}, Sizes{7, 3, 5, 3}, Sizes{40, 4, 33, 17},
          Sizes{100, 5, 64, 48}, Sizes{333, 3, 24, 40}, Sizes{700, 2, 16, 64}})
      for (bool isSwapped : {false, true})
        for (bool isConstant : {false, true}) {
          GroupedMatmulDesc desc =
              grouped(kind, DType::F32, DType::F32, sizes, isSwapped);
          desc.constantW = isConstant && kind == GroupedKind::Forward;
          check(desc, 1, 1e-3);
          check(desc, 3, 1e-3);
        }
}

TEST(GroupedMatmulTest, Types) {
  Sizes sizes{90, 4, 32, 24};
  for (GroupedKind kind : kinds)
    for (bool isSwapped : {false, true}) {
      check(grouped(kind, DType::F64, DType::F64, sizes, isSwapped), 2, 1e-12);
      check(grouped(kind, DType::BF16, DType::F32, sizes, isSwapped), 2, 1e-3);
      check(grouped(kind, DType::BF16, DType::BF16, sizes, isSwapped), 2, 0.2);
      check(grouped(kind, DType::F16, DType::F16, sizes, isSwapped, DType::I32),
            2, 0.05);
    }
}

// Nothing to multiply, no rows, no columns.
TEST(GroupedMatmulTest, Empty) {
  for (GroupedKind kind : kinds)
    for (Sizes sizes : {Sizes{0, 3, 4, 5}, Sizes{4, 3, 0, 5}, Sizes{4, 3, 5, 0},
                        Sizes{0, 0, 4, 5}})
      check(grouped(kind, DType::F32, DType::F32, sizes, false), 1, 0);
}

// Rows that are parts of others', and columns that lie apart.
TEST(GroupedMatmulTest, StridedRows) {
  for (GroupedKind kind : kinds)
    for (std::vector<int64_t> strides :
         {std::vector<int64_t>{80, 1}, {1, 50}}) {
      GroupedMatmulDesc desc =
          grouped(kind, DType::F32, DType::F32, {50, 3, 40, 20}, true);
      desc.x.strides = strides;
      check(desc, 2, 1e-3);
    }
}

TEST(GroupedMatmulTest, NoSuchGroup) {
  for (GroupedKind kind : kinds) {
    GroupedMatmulDesc desc =
        grouped(kind, DType::F32, DType::F32, {4, 2, 3, 3}, false);
    for (double bad : {-1.0, 2.0}) {
      std::vector<ViewData> data = randomArguments(desc);
      data[2].fill(0);
      data[2].memory.setDouble(3, bad);
      std::vector<std::unique_ptr<Device>> devices =
          createTestDevices(1, DeviceOptions{1});
      Device &device = *devices[0];
      device.attachThread();
      auto stream = llvm::cantFail(device.createStream());
      HostTransfer transfer(device, *stream);
      std::vector<OnDevice> arguments;
      std::vector<DeviceAddress> addresses;
      for (ViewData &each : data)
        addresses.push_back(
            arguments.emplace_back(device, transfer, each).getAddress());
      auto op = llvm::cantFail(device.prepare(desc, {}));
      auto workspace =
          llvm::cantFail(device.allocate(op->getWorkspaceBytes() + 64));
      llvm::Error error =
          stream->execute(*op, addresses.data(), workspace->getAddress());
      std::string text = llvm::toString(std::move(error));
      EXPECT_NE(text.find("row 3 is of group"), std::string::npos) << text;
      EXPECT_NE(text.find(", of which there are 2"), std::string::npos) << text;
    }
  }
}

TEST(GroupedMatmulTest, Faults) {
  Sizes sizes{6, 2, 3, 5};
  for (GroupedKind kind : kinds) {
    GroupedMatmulDesc good =
        grouped(kind, DType::F32, DType::F32, sizes, false);
    EXPECT_EQ(findFault(good), "");
    GroupedMatmulDesc bad = good;
    bad.groups = TensorDesc::dense(DType::I64, {5});
    EXPECT_NE(findFault(bad), "");
    bad = good;
    bad.groups = TensorDesc::dense(DType::F32, {6});
    EXPECT_NE(findFault(bad), "");
    bad = good;
    bad.w.sizes[1] = 4;
    EXPECT_NE(findFault(bad), "");
    bad = good;
    bad.w.strides = {100, 10, 2};
    EXPECT_NE(findFault(bad), "");
    bad = good;
    bad.w = TensorDesc::dense(DType::F32, {0, 3, 5});
    EXPECT_NE(findFault(bad), "");
    EXPECT_NE(findFault(grouped(kind, DType::F32, DType::F64, sizes, false)),
              "");
    EXPECT_NE(findFault(grouped(kind, DType::I32, DType::I32, sizes, false)),
              "");
  }
  GroupedMatmulDesc constant = grouped(GroupedKind::WeightGradient, DType::F32,
                                       DType::F32, sizes, false);
  constant.constantW = true;
  EXPECT_NE(findFault(constant), "");
}

} // namespace
