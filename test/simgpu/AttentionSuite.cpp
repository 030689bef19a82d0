//===- AttentionSuite.cpp - What attention on cuda must give --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AttentionSuite.h"

#include "CpuLibrary.h"

#include <algorithm>

namespace ax::rt {

AttentionDesc makeAttentionDesc(DType dtype, const AttentionShape &shape,
                                HeadLayout layout, bool causal) {
  int64_t size = shape.size;
  auto place = [&](int64_t heads, int64_t rows, bool isResult) {
    TensorDesc made =
        TensorDesc::dense(dtype, {shape.batch, heads, rows, size});
    int64_t together = layout == HeadLayout::Fused && !isResult
                           ? shape.heads + 2 * shape.keyHeads
                           : heads;
    if (layout != HeadLayout::Heads)
      made.strides = {rows * together * size, size, together * size, 1};
    return made;
  };
  AttentionDesc desc;
  desc.q = place(shape.heads, shape.queries, false);
  desc.k = desc.v = place(shape.keyHeads, shape.keys, false);
  desc.out = place(shape.heads, shape.queries, true);
  desc.scale = 1 / std::sqrt(static_cast<double>(size));
  desc.causal = causal;
  return desc;
}

AttentionGradientDesc makeGradientDesc(const AttentionDesc &desc,
                                       HeadLayout layout) {
  AttentionGradientDesc made;
  made.forward = desc;
  made.gradient = TensorDesc::dense(desc.out.dtype, desc.out.sizes);
  int64_t heads = desc.out.sizes[1], size = desc.out.sizes[3];
  if (layout != HeadLayout::Heads)
    made.gradient.strides = {heads * size * desc.out.sizes[2], size,
                             heads * size, 1};
  return made;
}

namespace {

AttentionDesc inF32(AttentionDesc desc) {
  for (TensorDesc *tensor : {&desc.q, &desc.k, &desc.v, &desc.out})
    tensor->dtype = DType::F32;
  return desc;
}

AttentionGradientDesc inF32(AttentionGradientDesc desc) {
  desc.forward = inF32(desc.forward);
  desc.gradient.dtype = DType::F32;
  return desc;
}

template <typename Desc>
ExpectedCpuOp prepareOnCpu(const Desc &desc) {
  if constexpr (std::is_same_v<Desc, AttentionDesc>)
    return prepareAttention(desc);
  else
    return prepareAttentionGradient(desc);
}

template <typename Desc>
void runOnCpu(const Desc &desc, std::vector<ViewData> &data) {
  auto op = llvm::cantFail(prepareOnCpu(desc));
  std::vector<char> workspace(static_cast<size_t>(op->getWorkspaceBytes()) +
                              64);
  std::vector<void *> arguments;
  for (ViewData &argument : data)
    arguments.push_back(argument.memory.mutableData());
  llvm::cantFail(op->execute(arguments.data(), workspace.data()));
}

void copy(const HostTensor &from, HostTensor &to) {
  for (int64_t i = 0; i < to.numElements(); ++i)
    to.setDouble(i, from.getDouble(i));
}

/// Random arguments of both descriptions, with the same numbers.
template <typename Desc>
void fill(const Desc &desc, const Desc &wide, uint32_t seed,
          std::vector<ViewData> &data, std::vector<ViewData> &plain) {
  std::mt19937 random(seed);
  for (int i = 0; i < numArguments(desc); ++i) {
    data.emplace_back(argumentDesc(desc, i)).fillRandom(random);
    copy(data.back().memory, plain.emplace_back(argumentDesc(wide, i)).memory);
  }
}

/// From argument `first` on they are results.
template <typename Desc>
void compare(ProductRunner &runner, const Desc &desc,
             std::vector<ViewData> &data, std::vector<ViewData> &plain,
             size_t first) {
  std::string error = llvm::toString(runner.run(desc, data));
  ASSERT_EQ(error, "") << toString(desc);
  for (size_t i = first; i < data.size(); ++i) {
    const HostTensor &got = data[i].memory, &wanted = plain[i].memory;
    double largest = 0, worst = 0;
    for (int64_t j = 0; j < got.numElements(); ++j) {
      largest = std::max(largest, std::abs(wanted.getDouble(j)));
      worst = std::max(worst, distance(got.getDouble(j), wanted.getDouble(j)));
    }
    // Rounding in between is of numbers that are not small.
    constexpr double least = 0.25;
    ASSERT_LE(worst, tolerance(data[i].view.dtype) * std::max(largest, least))
        << toString(desc) << ", argument " << i << ", of up to " << largest;
  }
}

} // namespace

void checkAttention(ProductRunner &runner, const AttentionDesc &desc,
                    uint32_t seed) {
  ASSERT_EQ(findFault(desc), "") << toString(desc);
  AttentionDesc wide = inF32(desc);
  std::vector<ViewData> data, plain;
  fill(desc, wide, seed, data, plain);
  runOnCpu(wide, plain);
  compare(runner, desc, data, plain, data.size() - 1);
}

void checkGradient(ProductRunner &runner, const AttentionGradientDesc &desc,
                   uint32_t seed) {
  ASSERT_EQ(findFault(desc), "") << toString(desc);
  AttentionGradientDesc wide = inF32(desc);
  std::vector<ViewData> data, plain;
  fill(desc, wide, seed, data, plain);
  // What attention gave.
  std::vector<ViewData> forward(plain.begin(), plain.begin() + 4);
  runOnCpu(wide.forward, forward);
  copy(forward[3].memory, plain[3].memory);
  copy(forward[3].memory, data[3].memory);
  runOnCpu(wide, plain);
  compare(runner, desc, data, plain, data.size() - 3);
}

namespace {

/// Descriptions of all kinds that cuDNN does.
class RandomAttention {
public:
  explicit RandomAttention(uint32_t seed) : random(seed) {}

  AttentionDesc next() {
    AttentionShape shape;
    shape.batch = 1 + number(3);
    shape.keyHeads = 1 + number(3);
    shape.heads = shape.keyHeads * (number(2) ? 1 : 1 + number(3));
    bool causal = number(2);
    shape.queries = rows();
    shape.keys = causal || number(2) ? shape.queries : rows();
    shape.size = 8 * (1 + number(number(4) ? 4 : 16));
    AttentionDesc desc = makeAttentionDesc(number(2) ? DType::F16 : DType::BF16,
                                           shape, layout(), causal);
    if (number(3) == 0)
      desc.scale = 0.3;
    return desc;
  }
  HeadLayout layout() { return static_cast<HeadLayout>(number(3)); }

private:
  int64_t number(int64_t below) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(below));
  }
  int64_t rows() { return 1 + number(number(5) ? 40 : 200); }

  std::mt19937 random;
};

TEST_P(AttentionSuite, RandomDescriptions) {
  ProductRunner runner;
  RandomAttention attention(GetParam().seed);
  for (uint32_t i = 0; i < GetParam().numRandom && !HasFatalFailure(); ++i)
    checkAttention(runner, attention.next(), i);
}

TEST_P(AttentionSuite, RandomGradients) {
  ProductRunner runner;
  RandomAttention attention(GetParam().seed);
  for (uint32_t i = 0; i < GetParam().numRandom && !HasFatalFailure(); ++i) {
    AttentionDesc desc = attention.next();
    checkGradient(runner, makeGradientDesc(desc, attention.layout()), i);
  }
}

TEST_P(AttentionSuite, EveryTypeLayoutAndGroup) {
  ProductRunner runner;
  for (DType type : {DType::F16, DType::BF16})
    for (HeadLayout layout :
         {HeadLayout::Heads, HeadLayout::Rows, HeadLayout::Fused})
      for (int64_t heads : {2, 6})
        for (bool causal : {false, true}) {
          AttentionShape shape{2, heads, 2, 19, 19, 16};
          AttentionDesc desc = makeAttentionDesc(type, shape, layout, causal);
          checkAttention(runner, desc);
          checkGradient(runner, makeGradientDesc(desc, layout));
        }
}

TEST_P(AttentionSuite, SizesOfOne) {
  ProductRunner runner;
  for (int64_t queries : {1, 9})
    for (int64_t keys : {1, 9})
      for (HeadLayout layout : {HeadLayout::Heads, HeadLayout::Fused}) {
        AttentionDesc desc = makeAttentionDesc(
            DType::F16, {1, 1, 1, queries, keys, 8}, layout, queries == keys);
        checkAttention(runner, desc);
        checkGradient(runner, makeGradientDesc(desc, layout));
      }
}

} // namespace

} // namespace ax::rt
