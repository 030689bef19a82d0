//===- PackedMatmulTest.cpp - Our packed kernels against oneDNN -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which of the two a device uses depends on the processor; this calls ours.
//
//===----------------------------------------------------------------------===//

#include "CpuLibrary.h"
#include "LibraryRunner.h"
#include "Threads.h"
#include "ax/Runtime/HostMemory.h"
#include "ax/Runtime/VectorKernels.h"

using namespace ax;
using namespace ax::rt;

namespace {

void run(CpuOp &op, std::vector<ViewData> &data) {
  std::vector<void *> addresses;
  for (ViewData &d : data)
    addresses.push_back(d.memory.mutableData());
  addresses[1] = nullptr;
  auto workspace = llvm::cantFail(HostMemory::allocate(op.getWorkspaceBytes()));
  llvm::cantFail(op.execute(addresses.data(), workspace.getData()));
}

void check(const MatmulDesc &desc) {
  std::vector<ViewData> data;
  std::mt19937 random(11);
  for (int i = 0; i < numArguments(desc); ++i) {
    data.emplace_back(argumentDesc(desc, i));
    data.back().fillRandom(random);
  }
  std::vector<ViewData> reference = data;
  PackedWeights packed;
  CpuConstant constant{data[1].memory.data()};
  auto ours = llvm::cantFail(preparePackedMatmul(desc, constant, packed));
  ASSERT_TRUE(ours) << toString(desc);
  EXPECT_FALSE(ours->readsConstant());
  run(*ours, data);
  MatmulDesc plain = desc;
  plain.constantB = false;
  runLibrary(plain, reference);
  double largest = 0;
  forEachIndex(desc.c.sizes, [&](const std::vector<int64_t> &index) {
    largest = std::max(
        largest, distance(data.back().get(index), reference.back().get(index)));
  });
  EXPECT_LE(largest, 2e-6 * std::sqrt(double(desc.a.sizes.back())))
      << toString(desc);
}

MatmulDesc makeDesc(int64_t m, int64_t k, int64_t n) {
  MatmulDesc desc;
  desc.a = TensorDesc::dense(DType::F32, {m, k});
  desc.b = TensorDesc::dense(DType::F32, {k, n});
  desc.c = desc.residual = TensorDesc::dense(DType::F32, {m, n});
  desc.constantB = true;
  return desc;
}

class PackedMatmulTest : public ::testing::Test {
protected:
  void SetUp() override {
    if (!vectorKernels().packedTile)
      GTEST_SKIP() << "this processor has no AVX2";
  }
  void TearDown() override { setNumThreads(1); }
};

// Every tile height, partial panels, several blocks of k and of rows.
TEST_F(PackedMatmulTest, Sizes) {
  for (int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 25, 128, 200})
    for (auto [k, n] : {std::pair<int64_t, int64_t>{1, 1},
                        {15, 31},
                        {16, 32},
                        {70, 100},
                        {1100, 40}}) {
      MatmulDesc desc = makeDesc(m, k, n);
      desc.hasBias = desc.hasResidual = true;
      check(desc);
    }
}

TEST_F(PackedMatmulTest, Epilogues) {
  for (Activation activation : allActivations)
    for (int flags = 0; flags < 4; ++flags)
      for (int64_t k : {33, 600}) {
        MatmulDesc desc = makeDesc(30, k, 70);
        desc.activation = activation;
        desc.hasBias = flags & 1;
        desc.hasResidual = flags & 2;
        check(desc);
      }
}

// Small numbers keep their digits.
TEST_F(PackedMatmulTest, TanhNearZero) {
  MatmulDesc desc = makeDesc(8, 1, 64);
  desc.activation = Activation::Tanh;
  PackedWeights packed;
  std::vector<float> a, b(64), c(8 * 64);
  for (int i = 0; i < 8; ++i)
    a.push_back(std::pow(10.0f, float(-i)));
  for (int j = 0; j < 64; ++j)
    b[static_cast<size_t>(j)] = float(j - 32) / 32;
  auto op = llvm::cantFail(preparePackedMatmul(desc, {b.data()}, packed));
  auto workspace =
      llvm::cantFail(HostMemory::allocate(op->getWorkspaceBytes()));
  void *addresses[] = {a.data(), nullptr, c.data()};
  llvm::cantFail(op->execute(addresses, workspace.getData()));
  for (size_t i = 0; i < 8; ++i)
    for (size_t j = 0; j < 64; ++j) {
      double wanted = std::tanh(double(a[i]) * b[j]);
      EXPECT_NEAR(c[i * 64 + j], wanted, 5e-7 * std::abs(wanted));
    }
}

TEST_F(PackedMatmulTest, Strides) {
  MatmulDesc desc = makeDesc(30, 40, 50);
  desc.a.strides = {1, 30};
  check(desc);
  desc.a.strides = {100, 2};
  desc.b.strides = {1, 40};
  check(desc);
  desc.b.strides = {120, 2};
  desc.c.strides = {77, 1};
  desc.hasResidual = true;
  check(desc);
  desc.residual.strides = {0, 1};
  check(desc);
}

// What is added may lie along columns: it was made behind a transpose.
TEST_F(PackedMatmulTest, StridedResidual) {
  for (Activation activation : {Activation::None, Activation::GeluErf})
    for (int64_t k : {40, 1100}) {
      MatmulDesc desc = makeDesc(30, k, 70);
      desc.hasBias = desc.hasResidual = true;
      desc.activation = activation;
      for (std::vector<int64_t> strides :
           {std::vector<int64_t>{1, 30}, {140, 2}, {1, 0}}) {
        desc.residual.strides = strides;
        check(desc);
      }
    }
}

// Windows of an image: rows of a, that are not all as far apart.
TEST_F(PackedMatmulTest, Windows) {
  MatmulDesc desc;
  desc.a = TensorDesc::dense(DType::F32, {2, 4, 3, 5, 24});
  std::swap(desc.a.sizes[1], desc.a.sizes[2]);
  std::swap(desc.a.strides[1], desc.a.strides[2]);
  desc.b = TensorDesc::dense(DType::F32, {1, 1, 1, 24, 40});
  desc.c = desc.residual = TensorDesc::dense(DType::F32, {2, 3, 4, 5, 40});
  desc.constantB = true;
  check(desc);
  desc.hasBias = desc.hasResidual = true;
  check(desc);
  // All rows of one batch, and a that has none.
  desc.a.strides[2] = 0;
  check(desc);
  std::swap(desc.a.strides[3], desc.a.strides[4]);
  check(desc);
}

TEST_F(PackedMatmulTest, Threads) {
  setNumThreads(3);
  MatmulDesc desc = makeDesc(150, 700, 200);
  desc.hasBias = true;
  check(desc);
  check(makeDesc(8, 20, 10));
}

TEST_F(PackedMatmulTest, ResidualInPlace) {
  MatmulDesc desc = makeDesc(40, 1200, 50);
  desc.hasResidual = true;
  PackedWeights packed;
  std::vector<float> a(40 * 1200, 0.5f), b(1200 * 50, 2.0f), c(40 * 50, 3.0f);
  auto op = llvm::cantFail(preparePackedMatmul(desc, {b.data()}, packed));
  auto workspace =
      llvm::cantFail(HostMemory::allocate(op->getWorkspaceBytes()));
  void *addresses[] = {a.data(), nullptr, c.data(), c.data()};
  llvm::cantFail(op->execute(addresses, workspace.getData()));
  for (float value : c)
    EXPECT_EQ(value, 1203.0f);
}

TEST_F(PackedMatmulTest, OthersAreRefused) {
  PackedWeights packed;
  auto refused = [&](const MatmulDesc &desc, const void *data) {
    return !llvm::cantFail(preparePackedMatmul(desc, {data, 0}, packed));
  };
  std::vector<double> b(64 * 64);
  MatmulDesc desc = makeDesc(16, 16, 16);
  EXPECT_FALSE(refused(desc, b.data()));
  EXPECT_TRUE(refused(desc, nullptr));
  EXPECT_TRUE(refused(makeDesc(0, 16, 16), b.data()));
  desc.c.strides = {40, 2};
  EXPECT_TRUE(refused(desc, b.data()));
  desc = makeDesc(16, 16, 16);
  for (TensorDesc *view : {&desc.a, &desc.b, &desc.c})
    *view = TensorDesc::dense(DType::F32, {2, 16, 16});
  EXPECT_TRUE(refused(desc, b.data()));
  desc = makeDesc(16, 16, 16);
  desc.a.dtype = desc.b.dtype = desc.c.dtype = DType::F64;
  EXPECT_TRUE(refused(desc, b.data()));
}

} // namespace
