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
  if (!op.readsConstant())
    addresses[1] = nullptr;
  auto workspace = llvm::cantFail(HostMemory::allocate(op.getWorkspaceBytes()));
  llvm::cantFail(op.execute(addresses.data(), workspace.getData()));
}

/// With a b that is packed once and for all, and with one that changes.
void check(const MatmulDesc &original) {
  std::vector<ViewData> data;
  std::mt19937 random(11);
  for (int i = 0; i < numArguments(original); ++i) {
    data.emplace_back(argumentDesc(original, i));
    data.back().fillRandom(random);
  }
  MatmulDesc desc = original;
  desc.constantB = false;
  std::vector<ViewData> reference = data;
  runLibrary(desc, reference);
  for (bool isConstant : {true, false}) {
    desc.constantB = isConstant;
    std::vector<ViewData> results = data;
    PackedWeights packed;
    CpuConstant constant{data[1].memory.data()};
    auto ours = llvm::cantFail(preparePackedMatmul(desc, constant, packed));
    ASSERT_TRUE(ours) << toString(desc);
    EXPECT_EQ(ours->readsConstant(), !isConstant);
    run(*ours, results);
    double largest = 0;
    forEachIndex(desc.c.sizes, [&](const std::vector<int64_t> &index) {
      double apart =
          distance(results.back().get(index), reference.back().get(index));
      largest = apart <= largest ? largest : apart;
    });
    EXPECT_LE(largest, 2e-6 * std::sqrt(double(desc.a.sizes.back())))
        << toString(desc);
  }
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
                        {600, 300},
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

// Rows and columns next to each other are turned in squares.
TEST_F(PackedMatmulTest, Transposed) {
  for (int64_t m : {1, 7, 15, 16, 17, 100})
    for (int64_t k : {1, 16, 31, 700})
      for (int64_t n : {5, 32, 100})
        for (int turned = 1; turned < 4; ++turned) {
          MatmulDesc desc = makeDesc(m, k, n);
          if (turned & 1)
            desc.a.strides = {1, m};
          if (turned & 2)
            desc.b.strides = {1, k};
          check(desc);
        }
}

// More rows than are packed at a time, and what threads share of them.
TEST_F(PackedMatmulTest, Passes) {
  for (int threads : {1, 3, 8}) {
    setNumThreads(threads);
    check(makeDesc(1300, 20, 70));
    check(makeDesc(1300, 600, 170));
    check(makeDesc(1300, 530, 20));
  }
}

TEST_F(PackedMatmulTest, Batches) {
  MatmulDesc desc;
  desc.a = TensorDesc::dense(DType::F32, {3, 2, 30, 40});
  desc.b = TensorDesc::dense(DType::F32, {3, 2, 40, 50});
  desc.c = desc.residual = TensorDesc::dense(DType::F32, {3, 2, 30, 50});
  check(desc);
  desc.hasBias = desc.hasResidual = true;
  check(desc);
  // Each b has several rows' products, or each a several b's.
  desc.b.sizes[1] = 1;
  check(desc);
  desc.a.sizes[0] = 1;
  check(desc);
  std::swap(desc.c.strides[0], desc.c.strides[1]);
  desc.c.strides[0] = 3 * desc.c.strides[1];
  std::swap(desc.residual.strides[0], desc.residual.strides[1]);
  check(desc);
}

TEST_F(PackedMatmulTest, Threads) {
  setNumThreads(3);
  MatmulDesc desc = makeDesc(150, 700, 200);
  desc.hasBias = true;
  check(desc);
  check(makeDesc(8, 20, 10));
}

// More panels than threads: they share these, and one copy of the rows.
TEST_F(PackedMatmulTest, ThreadsSharePanels) {
  constexpr int threads = 12;
  setNumThreads(threads);
  MatmulDesc desc = makeDesc(96, 1024, 16 * vectorKernels().panelWidth);
  check(desc);
  PackedWeights packed;
  std::vector<float> b(static_cast<size_t>(desc.b.numElements()));
  auto op = llvm::cantFail(preparePackedMatmul(desc, {b.data()}, packed));
  EXPECT_LT(op->getWorkspaceBytes(), threads / 2 * desc.a.spanBytes());
}

// Threads that have no rows take no memory.
TEST_F(PackedMatmulTest, ThreadsWithoutRows) {
  setNumThreads(64);
  MatmulDesc desc = makeDesc(300, 1024, vectorKernels().panelWidth);
  check(desc);
  desc.constantB = false;
  PackedWeights packed;
  auto op = llvm::cantFail(preparePackedMatmul(desc, {}, packed));
  EXPECT_LT(op->getWorkspaceBytes(), 4 * desc.a.spanBytes());
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
  EXPECT_TRUE(refused(makeDesc(0, 16, 16), b.data()));
  EXPECT_TRUE(refused(makeDesc(16, 0, 16), b.data()));
  desc.c.strides = {40, 2};
  EXPECT_TRUE(refused(desc, b.data()));
  // Rows of one b that are not evenly apart.
  desc.a = TensorDesc::dense(DType::F32, {2, 16, 16});
  desc.b = TensorDesc::dense(DType::F32, {1, 16, 16});
  desc.c = TensorDesc::dense(DType::F32, {2, 16, 16});
  desc.c.strides[0] = 1000;
  EXPECT_TRUE(refused(desc, b.data()));
  desc = makeDesc(16, 16, 16);
  desc.a.dtype = desc.b.dtype = desc.c.dtype = DType::F64;
  EXPECT_TRUE(refused(desc, b.data()));
}

} // namespace
