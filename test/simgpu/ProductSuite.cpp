//===- ProductSuite.cpp - What products on cuda must give -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProductSuite.h"

#include "CpuComparison.h"

#include <algorithm>
#include <numeric>

namespace ax::rt {

MatmulDesc makeFloat8Product(DType a, DType b, int64_t m, int64_t k,
                             int64_t n) {
  MatmulDesc desc;
  desc.a = TensorDesc::dense(a, {m, k});
  desc.b = {b, {k, n}, {1, k}};
  desc.c = TensorDesc::dense(DType::F32, {m, n});
  return desc;
}

bool ProductParam::lacksFloat8(ProductRunner &runner) const {
  constexpr int64_t size = 16;
  ErrorDescription refusal = runner.refusal(
      makeFloat8Product(DType::F8E4M3FN, DType::F8E4M3FN, size, size, size));
  return llvm::StringRef(refusal.message).contains("NOT_SUPPORTED");
}

void checkProduct(ProductRunner &runner, const MatmulDesc &desc, int64_t shift,
                  uint32_t seed, int poisoned) {
  ASSERT_EQ(findFault(desc), "") << toString(desc);
  std::mt19937 random(seed);
  std::vector<ViewData> data;
  for (int i = 0; i < numArguments(desc); ++i) {
    data.emplace_back(argumentDesc(desc, i));
    data.back().fillRandom(random);
    if (i == poisoned)
      data.back().memory.setDouble(0, NAN);
  }
  std::vector<ViewData> plain = data;
  runOnCpu(preparePlainMatmul(desc), plain);
  std::string error = llvm::toString(runner.run(desc, data, shift));
  ASSERT_EQ(error, "") << toString(desc);
  double largest = 0;
  for (size_t result = data.size() - static_cast<size_t>(numResults(desc));
       result < data.size(); ++result) {
    const HostTensor &got = data[result].memory, &wanted = plain[result].memory;
    for (int64_t i = 0; i < got.numElements(); ++i)
      largest =
          std::max(largest, distance(got.getDouble(i), wanted.getDouble(i)));
  }
  double k = static_cast<double>(desc.a.sizes.back());
  double most = tolerance(desc.c.dtype) * std::sqrt(k + 1);
  // Seen on an H100: 5.1e-6.
  if (desc.activation == Activation::GeluTanh)
    most = std::max(most, 2e-5);
  // Tensor cores keep 14 bits of a sum of such (1.4e-3 on an H200); a factor's
  // last bit is more than ten times as much.
  if (isFloat8(desc.a.dtype))
    most = std::max(most, 5e-3);
  if (!isFloat(desc.c.dtype))
    most = 0;
  ASSERT_LE(largest, most) << toString(desc);
}

namespace {

/// Descriptions of all kinds that cuBLASLt does.
class RandomProducts {
public:
  explicit RandomProducts(uint32_t seed) : random(seed) {}

  MatmulDesc next() {
    MatmulDesc desc;
    const DType types[] = {DType::F32, DType::F64, DType::F16, DType::BF16};
    desc.a.dtype = desc.b.dtype = desc.c.dtype = types[number(4)];
    if (byteSize(desc.a.dtype) == 2 && number(2))
      desc.c.dtype = DType::F32;
    desc.residual.dtype = desc.c.dtype;
    int64_t m = size(), n = size(), k = 1 + number(9);
    for (int64_t i = number(4); i > 0; --i) {
      int64_t extent = 1 + number(3);
      for (TensorDesc *view : {&desc.a, &desc.b, &desc.c, &desc.residual})
        view->sizes.push_back(extent);
      for (TensorDesc *view : {&desc.a, &desc.b})
        if (number(4) == 0)
          view->sizes.back() = 1;
    }
    extend(desc.a, m, k);
    extend(desc.b, k, n);
    extend(desc.c, m, n);
    desc.hasBias = number(2);
    desc.hasResidual = number(3) == 0;
    if (desc.hasResidual)
      extend(desc.residual, m, n);
    else
      desc.residual = {};
    const Activation activations[] = {Activation::None, Activation::Relu,
                                      Activation::GeluTanh};
    if (!desc.hasResidual)
      desc.activation = activations[number(desc.c.dtype == DType::F64 ? 2 : 3)];
    place(desc.a, number(2), true);
    place(desc.b, number(2), true);
    place(desc.c, false, false);
    if (desc.hasResidual) {
      place(desc.residual, false, true);
      // One row for all.
      if (number(4) == 0)
        desc.residual.strides[desc.residual.sizes.size() - 2] = 0;
    }
    return desc;
  }
  int64_t number(int64_t below) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(below));
  }

private:
  int64_t size() { return number(20) ? 1 + number(12) : 0; }
  static void extend(TensorDesc &view, int64_t rows, int64_t columns) {
    view.sizes.push_back(rows);
    view.sizes.push_back(columns);
  }
  /// Chooses strides: the batch and the longer of the matrix' steps in any
  /// order, with and without room between them.
  void place(TensorDesc &view, bool isTransposed, bool mayRepeat) {
    size_t rank = view.sizes.size(), unit = rank - (isTransposed ? 2 : 1);
    std::vector<size_t> order;
    for (size_t d = 0; d < rank; ++d)
      if (d != unit)
        order.push_back(d);
    // Mostly as they are.
    if (number(2))
      std::shuffle(order.begin(), order.end(), random);
    view.strides.assign(rank, 1);
    int64_t step = std::max<int64_t>(view.sizes[unit], 1);
    for (size_t i = order.size(); i-- > 0;) {
      step += number(3) ? 0 : number(9);
      view.strides[order[i]] = step;
      step *= std::max<int64_t>(view.sizes[order[i]], 1);
    }
    for (size_t d = 0; mayRepeat && d + 2 < rank; ++d)
      if (number(6) == 0)
        view.strides[d] = 0;
  }

  std::mt19937 random;
};

/// Factors of eight bits, as code generation has them: what is summed over lies
/// innermost, and all are multiples of 16, but rows of integers.
class RandomEightBitProducts {
public:
  RandomEightBitProducts(uint32_t seed, bool ofIntegers)
      : random(seed), ofIntegers(ofIntegers) {}

  MatmulDesc next() {
    const DType narrow = DType::F8E4M3FN, wide = DType::F8E5M2;
    const std::pair<DType, DType> types[] = {
        {narrow, narrow}, {narrow, wide}, {wide, narrow}};
    auto [a, b] =
        ofIntegers ? std::pair(DType::I8, DType::I8) : types[number(3)];
    DType sum = ofIntegers ? DType::I32 : number(2) ? DType::F32 : DType::BF16;
    int64_t m = ofIntegers ? 1 + number(40) : multiple();
    int64_t n = multiple(), k = multiple();
    MatmulDesc desc;
    desc.a = rows(a, m, k);
    desc.b = rows(b, n, k);
    desc.c = rows(sum, m, n);
    if (number(3) == 0) {
      int64_t batch = 1 + number(3);
      for (TensorDesc *view : {&desc.a, &desc.b, &desc.c})
        repeat(*view, batch);
      if (number(3) == 0)
        desc.b.sizes[0] = 1;
    }
    size_t rank = desc.b.sizes.size();
    std::swap(desc.b.sizes[rank - 2], desc.b.sizes[rank - 1]);
    std::swap(desc.b.strides[rank - 2], desc.b.strides[rank - 1]);
    desc.hasResidual = !ofIntegers && number(3) == 0;
    if (desc.hasResidual)
      desc.residual = desc.c;
    return desc;
  }

private:
  int64_t number(int64_t below) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(below));
  }
  int64_t multiple() { return 16 * (1 + number(4)); }
  /// With room behind them now and then.
  TensorDesc rows(DType dtype, int64_t count, int64_t size) {
    int64_t step = size + 16 * (number(3) ? 0 : number(3));
    return {dtype, {count, size}, {step, 1}};
  }
  void repeat(TensorDesc &view, int64_t batch) {
    int64_t step = view.sizes[0] * view.strides[0] + 16 * number(2);
    view.sizes.insert(view.sizes.begin(), batch);
    view.strides.insert(view.strides.begin(), step);
  }

  std::mt19937 random;
  bool ofIntegers;
};

TEST_P(ProductSuite, FactorsOfEightBits) {
  ProductRunner runner;
  RandomEightBitProducts products(GetParam().seed, /*ofIntegers=*/false);
  if (GetParam().lacksFloat8(runner))
    GTEST_SKIP() << "the card has no products of eight bits";
  for (int i = 0; i < 300 && !HasFatalFailure(); ++i)
    checkProduct(runner, products.next(), 0, static_cast<uint32_t>(i));
}

TEST_P(ProductSuite, Integers) {
  ProductRunner runner;
  RandomEightBitProducts products(GetParam().seed, /*ofIntegers=*/true);
  for (int i = 0; i < 300 && !HasFatalFailure(); ++i)
    checkProduct(runner, products.next(), 0, static_cast<uint32_t>(i));
}

TEST_P(ProductSuite, RandomDescriptions) {
  ProductRunner runner;
  RandomProducts products(GetParam().seed);
  for (int i = 0; i < 1000 && !HasFatalFailure(); ++i) {
    MatmulDesc desc = products.next();
    checkProduct(runner, desc, products.number(3), static_cast<uint32_t>(i));
  }
}

TEST_P(ProductSuite, EveryTypeAndEpilogue) {
  ProductRunner runner;
  for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (Activation activation :
         {Activation::None, Activation::Relu, Activation::GeluTanh}) {
      if (type == DType::F64 && activation == Activation::GeluTanh)
        continue;
      for (int flags = 0; flags < 4; ++flags) {
        MatmulDesc desc = makeProduct(type, {}, 5, 19, 35);
        desc.activation = activation;
        desc.hasBias = flags & 1;
        desc.hasResidual = activation == Activation::None && (flags & 2);
        if (desc.hasResidual)
          desc.residual = desc.c;
        checkProduct(runner, desc);
      }
    }
}

// What GELU is of is kept, or its gradient is taken there; with room between
// rows, in batches, and also where a batch is several calls.
TEST_P(ProductSuite, ActivationsOfTraining) {
  ProductRunner runner;
  const std::vector<int64_t> batches[] = {{}, {3}, {2, 3}};
  for (DType type : {DType::F16, DType::BF16})
    for (const std::vector<int64_t> &batch : batches)
      for (ActivationForm form :
           {ActivationForm::ValueAndInput, ActivationForm::Gradient})
        for (int64_t room : {0, 8}) {
          MatmulDesc desc = makeProduct(type, batch, 5, 24, 40);
          desc.activation = Activation::GeluTanh;
          desc.form = form;
          desc.hasBias = form == ActivationForm::ValueAndInput && room == 0;
          desc.input = desc.c;
          for (size_t d = 0; d + 1 < desc.input.strides.size(); ++d)
            desc.input.strides[d] = desc.input.strides[d] / 40 * (40 + room);
          checkProduct(runner, desc);
        }
}

TEST_P(ProductSuite, ActivationsKeepNaN) {
  ProductRunner runner;
  for (DType type : {DType::F32, DType::BF16})
    for (Activation activation : {Activation::Relu, Activation::GeluTanh})
      for (int argument = 0; argument < 3; ++argument) {
        MatmulDesc desc = makeProduct(type, {}, 3, 19, 35);
        desc.activation = activation;
        desc.hasBias = true;
        checkProduct(runner, desc, 0, 7, argument);
      }
}

// Fast kernels are chosen for operands that are aligned, others for all else.
TEST_P(ProductSuite, OperandsOfAnyAlignment) {
  ProductRunner runner;
  for (DType type : {DType::F32, DType::F64, DType::BF16})
    for (int64_t shift : {0, 1, 3, 8}) {
      MatmulDesc desc = makeProduct(type, {3}, 8, 16, 24);
      desc.hasBias = desc.hasResidual = true;
      desc.residual = desc.c;
      checkProduct(runner, desc, shift);
    }
}

} // namespace

} // namespace ax::rt
