//===- AttentionSuite.cpp - What attention on cuda must give --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AttentionSuite.h"

#include "CpuLibrary.h"

#include <algorithm>

namespace ax::rt {

namespace {

AttentionDesc inF32(AttentionDesc desc) {
  for (TensorDesc *tensor : {&desc.q, &desc.k, &desc.v, &desc.out})
    tensor->dtype = DType::F32;
  return desc;
}

AttentionGradientDesc inF32(AttentionGradientDesc desc) {
  desc.forward = inF32(desc.forward);
  for (TensorDesc *tensor : {&desc.gradient, &desc.dq, &desc.dk, &desc.dv})
    tensor->dtype = DType::F32;
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
  compare(runner, desc, data, plain,
          data.size() - static_cast<size_t>(numResults(desc)));
}

void checkGradient(ProductRunner &runner, const AttentionGradientDesc &desc,
                   uint32_t seed) {
  ASSERT_EQ(findFault(desc), "") << toString(desc);
  AttentionGradientDesc wide = inF32(desc);
  std::vector<ViewData> data, plain;
  fill(desc, wide, seed, data, plain);
  // What attention gave.
  std::vector<ViewData> forward(plain.begin(), plain.begin() + 4);
  bool hasSums = desc.forward.givesLogSums;
  if (hasSums)
    forward.push_back(plain[5]);
  runOnCpu(wide.forward, forward);
  for (auto *given : {&plain, &data}) {
    copy(forward[3].memory, (*given)[3].memory);
    if (hasSums)
      copy(forward[4].memory, (*given)[5].memory);
  }
  runOnCpu(wide, plain);
  compare(runner, desc, data, plain, data.size() - 3);
}

namespace {

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
  for (const auto &[desc, layout] : everyTypeLayoutAndGroup()) {
    checkAttention(runner, desc);
    checkGradient(runner, makeGradientDesc(desc, layout));
  }
}

TEST_P(AttentionSuite, SizesOfOne) {
  ProductRunner runner;
  for (const auto &[desc, layout] : sizesOfOne()) {
    checkAttention(runner, desc);
    checkGradient(runner, makeGradientDesc(desc, layout));
  }
}

} // namespace

} // namespace ax::rt
