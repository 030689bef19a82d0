//===- MatmulTest.cpp - Matrix products on the CPU ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LibraryRunner.h"

using namespace ax;
using namespace ax::rt;

namespace {

TensorDesc transposed(TensorDesc view) {
  // The same sizes, stored with the last two dimensions swapped.
  std::swap(view.sizes[view.sizes.size() - 1],
            view.sizes[view.sizes.size() - 2]);
  view = TensorDesc::dense(view.dtype, view.sizes);
  std::swap(view.sizes[view.sizes.size() - 1],
            view.sizes[view.sizes.size() - 2]);
  std::swap(view.strides[view.sizes.size() - 1],
            view.strides[view.sizes.size() - 2]);
  return view;
}

/// Of `activate`, by differences.
double derivative(Activation activation, double x) {
  constexpr double step = 1e-5;
  return (activate(activation, x + step) - activate(activation, x - step)) /
         (2 * step);
}

void check(const MatmulDesc &desc, int32_t threads = 1, bool constants = true,
           int poisoned = -1, double poison = NAN) {
  // In-place residuals are overwritten.
  std::vector<ViewData> inputs = randomArguments(desc, poisoned, poison),
                        data = inputs;
  runLibrary(desc, data, threads, constants);
  if (testing::Test::HasFatalFailure())
    return;
  size_t rank = desc.c.sizes.size();
  int64_t k = desc.a.sizes[rank - 1];
  size_t last = data.size() - 1;
  bool isKept = desc.form == ActivationForm::ValueAndInput;
  bool isGradient = desc.form == ActivationForm::Gradient;
  const ViewData &c = data[isKept ? last - 1 : last];
  double largest = 0;
  forEachIndex(desc.c.sizes, [&](std::vector<int64_t> index) {
    std::vector<int64_t> ia = index, ib = index;
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      ia[rank - 1] = i;
      ib[rank - 2] = i;
      sum += inputs[0].get(ia) * inputs[1].get(ib);
    }
    if (desc.hasBias)
      sum += inputs[2].get({index[rank - 1]});
    if (isKept)
      largest = std::max(largest, distance(data[last].get(index), sum));
    sum = isGradient ? sum * derivative(desc.activation, inputs[2].get(index))
                     : activate(desc.activation, sum);
    if (desc.hasResidual)
      sum += inputs[desc.hasBias ? 3 : 2].get(index);
    largest = std::max(largest, distance(c.get(index), sum));
  });
  double most = tolerance(desc.c.dtype) * std::sqrt(double(k) + 1);
  // Of differences some ten digits are right.
  if (isGradient)
    most = std::max(most, 1e-9);
  EXPECT_LE(largest, most) << toString(desc);
}

MatmulDesc makeDesc(DType dtype, std::vector<int64_t> batch, int64_t m,
                    int64_t k, int64_t n) {
  auto sizes = [&](int64_t rows, int64_t columns) {
    std::vector<int64_t> result = batch;
    result.push_back(rows);
    result.push_back(columns);
    return result;
  };
  MatmulDesc desc;
  desc.a = TensorDesc::dense(dtype, sizes(m, k));
  desc.b = TensorDesc::dense(dtype, sizes(k, n));
  desc.c = TensorDesc::dense(dtype, sizes(m, n));
  return desc;
}

const DType types[] = {DType::F32,  DType::F64, DType::F16,
                       DType::BF16, DType::I8,  DType::I32,
                       DType::I64,  DType::U8,  DType::U32};

TEST(MatmulTest, EveryTypeAndEpilogue) {
  for (DType type : types)
    for (Activation activation : allActivations)
      for (int flags = 0; flags < 8; ++flags) {
        if (!isFloat(type) && (activation != Activation::None))
          continue;
        MatmulDesc desc = makeDesc(type, {}, 5, 19, 35);
        desc.activation = activation;
        desc.hasBias = flags & 1;
        desc.hasResidual = flags & 2;
        desc.residual = desc.c;
        desc.constantB = flags & 4;
        check(desc);
      }
}

TEST(MatmulTest, ActivationsOfTraining) {
  for (DType type : types)
    for (Activation activation : allActivations)
      for (int flags = 0; flags < 8; ++flags) {
        if (!isFloat(type) || activation == Activation::None)
          continue;
        MatmulDesc desc = makeDesc(type, {2}, 5, 19, 35);
        desc.activation = activation;
        desc.form = flags & 1 ? ActivationForm::Gradient
                              : ActivationForm::ValueAndInput;
        desc.hasBias = (flags & 2) && !(flags & 1);
        desc.input = desc.c;
        // Rows apart from each other.
        if (flags & 4)
          desc.input.strides = {5 * 37, 37, 1};
        check(desc);
      }
}

TEST(MatmulTest, ActivationsOfTrainingThatFitNothing) {
  const char *const none = "no activation is kept, or has a gradient, so";
  MatmulDesc good = makeDesc(DType::F32, {}, 5, 19, 35);
  good.activation = Activation::GeluTanh;
  good.form = ActivationForm::ValueAndInput;
  good.input = good.c;
  EXPECT_EQ(findFault(good), "");
  MatmulDesc desc = good;
  desc.activation = Activation::None;
  EXPECT_EQ(findFault(desc), none);
  desc = good;
  desc.hasResidual = true;
  desc.residual = desc.c;
  EXPECT_EQ(findFault(desc), none);
  desc = good;
  desc.form = ActivationForm::Gradient;
  EXPECT_EQ(findFault(desc), "");
  desc.hasBias = true;
  EXPECT_EQ(findFault(desc), none);
  desc = makeDesc(DType::I32, {}, 5, 19, 35);
  desc.activation = Activation::Relu;
  desc.form = ActivationForm::ValueAndInput;
  desc.input = desc.c;
  EXPECT_EQ(findFault(desc), none);
  desc = good;
  desc.input.dtype = DType::BF16;
  EXPECT_EQ(findFault(desc), "its types do not fit each other");
  desc = good;
  desc.input.sizes[0] = 6;
  EXPECT_EQ(findFault(desc), "its sizes do not fit each other");
  desc = good;
  desc.input.strides[0] = 0;
  EXPECT_EQ(findFault(desc), "a result has a stride of 0");
}

TEST(MatmulTest, NarrowFactorsGiveUnroundedSums) {
  for (DType type : {DType::F16, DType::BF16})
    for (int flags = 0; flags < 8; ++flags) {
      MatmulDesc desc = makeDesc(type, {}, 33, 40, 64);
      desc.c.dtype = DType::F32;
      if (flags & 1)
        desc.b = transposed(desc.b);
      desc.hasBias = flags & 2;
      desc.constantB = flags & 4;
      check(desc);
    }
}

TEST(MatmulTest, FactorsOfEightBits) {
  const DType eightBits[] = {DType::F8E4M3FN, DType::F8E5M2};
  for (DType a : eightBits)
    for (DType b : eightBits)
      for (std::vector<int64_t> batch : {std::vector<int64_t>{}, {2, 3}}) {
        MatmulDesc desc = makeDesc(DType::F32, batch, 17, 35, 19);
        desc.a.dtype = a;
        desc.b.dtype = b;
        desc.hasBias = true;
        desc.activation = Activation::Relu;
        check(desc);
        check(desc, 1, true, 1);
        desc.b.dtype = DType::F32;
        EXPECT_EQ(findFault(desc), "its types do not fit each other");
        desc.b.dtype = b;
        desc.c.dtype = a;
        EXPECT_EQ(findFault(desc), "its types do not fit each other");
      }
}

TEST(MatmulTest, IntegersOfEightBits) {
  const DType eightBits[] = {DType::I8, DType::U8};
  for (DType a : eightBits)
    for (DType b : eightBits)
      for (int flags = 0; flags < 8; ++flags) {
        std::vector<int64_t> batch;
        if (flags & 1)
          batch = {2, 3};
        MatmulDesc desc = makeDesc(DType::I32, batch, 17, 35, 19);
        desc.a.dtype = a;
        desc.b.dtype = b;
        if (flags & 2)
          desc.b = transposed(desc.b);
        desc.constantB = flags & 4;
        check(desc);
        desc.c.dtype = DType::F32;
        EXPECT_EQ(findFault(desc), "its types do not fit each other");
      }
}

TEST(MatmulTest, SumsOfIntegersDoNotSaturate) {
  // In f32 such sums would be rounded.
  constexpr int64_t k = 4097;
  for (auto [type, x] : {std::pair(DType::U8, 255.0), {DType::I8, -128.0}})
    for (double w : {-128.0, 127.0}) {
      MatmulDesc desc = makeDesc(DType::I32, {}, 5, k, 33);
      desc.a.dtype = type;
      desc.b.dtype = DType::I8;
      desc.constantB = true;
      std::vector<ViewData> data = randomArguments(desc);
      data[0].fill(x);
      data[1].fill(w);
      for (int64_t row = 0; row < 5; ++row)
        data[0].memory.setDouble(row * k, x - (x > 0 ? 1 : -1));
      runLibrary(desc, data, 1, /*constants=*/true);
      double sum = (k - 1) * x * w + (x - (x > 0 ? 1 : -1)) * w;
      forEachIndex(desc.c.sizes, [&](std::vector<int64_t> index) {
        EXPECT_EQ(data[2].get(index), sum);
      });
    }
}

TEST(MatmulTest, ActivationsKeepNaN) {
  for (DType type : {DType::F32, DType::BF16, DType::F16})
    for (Activation activation : allActivations)
      for (int64_t rows : {3, 40})
        for (int argument = 0; argument < 4; ++argument)
          for (double poison : {double(NAN), double(INFINITY)}) {
            MatmulDesc desc = makeDesc(type, {}, rows, 19, 35);
            desc.activation = activation;
            desc.hasBias = desc.hasResidual = desc.constantB = true;
            desc.residual = desc.c;
            check(desc, 1, true, argument, poison);
          }
}

TEST(MatmulTest, Transposes) {
  for (DType type : {DType::F32, DType::F64, DType::BF16})
    for (int flags = 0; flags < 8; ++flags) {
      MatmulDesc desc = makeDesc(type, {}, 33, 20, 48);
      if (flags & 1)
        desc.a = transposed(desc.a);
      if (flags & 2)
        desc.b = transposed(desc.b);
      desc.constantB = flags & 4;
      check(desc);
    }
}

TEST(MatmulTest, Batches) {
  for (DType type : {DType::F32, DType::I32}) {
    check(makeDesc(type, {3}, 4, 5, 6));
    check(makeDesc(type, {2, 3}, 4, 5, 6));
    // Weights without a batch: the batch becomes rows.
    MatmulDesc desc = makeDesc(type, {2, 3}, 4, 5, 6);
    desc.b = TensorDesc::dense(type, {1, 1, 5, 6});
    desc.constantB = true;
    desc.hasResidual = true;
    desc.residual = desc.c;
    check(desc);
    // Broadcast by a stride of 0, on either side.
    desc = makeDesc(type, {2, 3}, 4, 5, 6);
    desc.a.strides = {20, 0, 5, 1};
    check(desc);
    desc = makeDesc(type, {2, 3}, 4, 5, 6);
    desc.b.strides = {0, 30, 6, 1};
    check(desc);
    desc.a.strides = {0, 20, 5, 1};
    check(desc);
    // Heads: [batch, rows, head, k] seen as [batch, head, rows, k].
    desc = makeDesc(type, {2, 3}, 4, 5, 6);
    desc.a.strides = {60, 5, 15, 1};
    desc.c.strides = {72, 6, 18, 1};
    check(desc);
    // Rows that are broadcast.
    desc = makeDesc(type, {}, 4, 5, 6);
    desc.a.strides = {0, 1};
    check(desc);
    desc.hasResidual = true;
    desc.residual = desc.c;
    desc.residual.strides = {0, 1};
    check(desc);
  }
}

TEST(MatmulTest, OddSizes) {
  for (DType type : {DType::F32, DType::F64})
    for (auto [m, k, n] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1},
                           {1, 64, 1},
                           {7, 1, 9},
                           {1, 300, 257},
                           {130, 70, 1},
                           {3, 0, 4},
                           {0, 5, 4},
                           {64, 512, 100}}) {
      MatmulDesc desc = makeDesc(type, {}, m, k, n);
      desc.hasBias = true;
      check(desc);
      desc.constantB = k > 0;
      check(desc);
      desc.b = transposed(desc.b);
      check(desc);
    }
}

TEST(MatmulTest, StridedViews) {
  MatmulDesc desc = makeDesc(DType::F32, {}, 6, 7, 8);
  desc.a.strides = {20, 2};
  check(desc);
  desc = makeDesc(DType::F32, {}, 6, 7, 8);
  desc.b.strides = {3, 30};
  check(desc);
  desc = makeDesc(DType::F32, {}, 6, 7, 8);
  desc.c.strides = {40, 3};
  check(desc);
  desc = makeDesc(DType::F32, {}, 6, 7, 8);
  desc.a.strides = {24, 1};
  desc.c.strides = {40, 1};
  check(desc);
}

TEST(MatmulTest, Threads) {
  for (DType type : {DType::F32, DType::F64, DType::F16}) {
    MatmulDesc desc = makeDesc(type, {2}, 67, 65, 43);
    desc.hasBias = true;
    check(desc, 3);
  }
}

TEST(MatmulTest, ResidualInPlace) {
  MatmulDesc desc = makeDesc(DType::F32, {}, 17, 300, 140);
  desc.hasResidual = true;
  desc.residual = desc.c;
  desc.activation = Activation::Relu;
  desc.constantB = true;
  std::vector<ViewData> data, separate;
  runLibrary(desc, separate);
  std::mt19937 random(7);
  for (int i = 0; i < 4; ++i) {
    data.emplace_back(argumentDesc(desc, i));
    data.back().fillRandom(random);
  }
  auto devices = createTestDevices(1);
  devices[0]->attachThread();
  auto stream = llvm::cantFail(devices[0]->createStream());
  HostTransfer transfer(*devices[0], *stream);
  OnDevice a(*devices[0], transfer, data[0]), b(*devices[0], transfer, data[1]),
      c(*devices[0], transfer, data[2]);
  std::vector<DeviceAddress> addresses{a.getAddress(), b.getAddress(),
                                       c.getAddress(), c.getAddress()};
  auto op = llvm::cantFail(devices[0]->prepare(desc, {addresses[1], 0}));
  // Nobody asks for it; products of packed weights can.
  if (op->readsConstant())
    GTEST_SKIP() << "this processor's matmul takes plain weights";
  auto workspace =
      llvm::cantFail(devices[0]->allocate(op->getWorkspaceBytes() + 64));
  llvm::cantFail(
      stream->execute(*op, addresses.data(), workspace->getAddress()));
  c.bringBack();
  EXPECT_TRUE(data[2].memory.isIdentical(separate[3].memory));
}

// Ranks that pack the same weights in the same way share the copy.
TEST(MatmulTest, PackedWeightsAreShared) {
  MatmulDesc desc = makeDesc(DType::F32, {}, 64, 256, 256);
  desc.constantB = true;
  auto devices = createTestDevices(2);
  auto stream = llvm::cantFail(devices[0]->createStream());
  HostTransfer transfer(*devices[0], *stream);
  ViewData weights(argumentDesc(desc, 1));
  OnDevice onDevice(*devices[0], transfer, weights);
  DeviceAddress there = onDevice.getAddress();
  auto first = llvm::cantFail(devices[0]->prepare(desc, {there, 17}));
  if (first->readsConstant())
    GTEST_SKIP() << "this processor's matmul takes plain weights";
  // The same identity: nothing is read, also where nothing could be. (A device
  // with memory of its own looks for what it is given.)
  auto other = llvm::cantFail(devices[1]->allocate(64));
  DeviceAddress nowhere =
      devices[1]->getHostMapping() ? DeviceAddress() + 64 : other->getAddress();
  auto second = llvm::cantFail(devices[1]->prepare(desc, {nowhere, 17}));
  EXPECT_FALSE(second->readsConstant());
}

} // namespace
