//===- CpuComparison.h - What the CPU makes of the same ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_CPUCOMPARISON_H
#define AX_TEST_CPUCOMPARISON_H

#include "CpuLibrary.h"
#include "ProductRunner.h"

#include <algorithm>

namespace ax::rt {

/// Does what was prepared, with `data` as its arguments.
inline void runOnCpu(ExpectedCpuOp prepared, std::vector<ViewData> &data) {
  auto op = llvm::cantFail(std::move(prepared));
  std::vector<char> workspace(static_cast<size_t>(op->getWorkspaceBytes()) +
                              64);
  std::vector<void *> arguments;
  for (ViewData &argument : data)
    arguments.push_back(argument.memory.mutableData());
  llvm::cantFail(op->execute(arguments.data(), workspace.data()));
}

inline void copyNumbers(const HostTensor &from, HostTensor &to) {
  for (int64_t i = 0; i < to.numElements(); ++i)
    to.setDouble(i, from.getDouble(i));
}

/// Adds random arguments of both descriptions, with the same numbers.
inline void fillBoth(const LibraryDesc &desc, const LibraryDesc &wide,
                     uint32_t seed, std::vector<ViewData> &data,
                     std::vector<ViewData> &plain) {
  std::mt19937 random(seed);
  for (int i = 0; i < numArguments(desc); ++i) {
    data.emplace_back(argumentDesc(desc, i)).fillRandom(random);
    copyNumbers(data.back().memory,
                plain.emplace_back(argumentDesc(wide, i)).memory);
  }
}

/// Does it on the GPU, and expects what the CPU made, from argument `first` on.
inline void compareWithCpu(ProductRunner &runner, const LibraryDesc &desc,
                           std::vector<ViewData> &data,
                           std::vector<ViewData> &plain, size_t first) {
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

} // namespace ax::rt

#endif // AX_TEST_CPUCOMPARISON_H
