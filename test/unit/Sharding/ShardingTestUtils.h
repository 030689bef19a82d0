//===- ShardingTestUtils.h - Random layouts, simulated ranks ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SHARDING_SHARDINGTESTUTILS_H
#define AX_TEST_SHARDING_SHARDINGTESTUTILS_H

#include "ax/Sharding/Reshard.h"

#include <random>

namespace ax::sharding::test {

using Random = std::mt19937;

inline int64_t pick(Random &random, int64_t below) {
  return std::uniform_int_distribution<int64_t>(0, below - 1)(random);
}

/// One to three axes of sizes 2 to 4, at most 24 ranks.
Mesh randomMesh(Random &random);

/// A legal, canonical layout: axes, some of them cut into digits, thrown into
/// dimensions (also inside compound ones), the partial set, or nowhere.
Layout randomLayout(Random &random, const std::vector<int64_t> &shape,
                    const Mesh &mesh);

/// What every rank holds: a block each, in local row-major order. Padding is 0.
using Blocks = std::vector<std::vector<int64_t>>;

/// Deals `values` (row-major) to the ranks; partial sums get random addends,
/// for max and min some rank holds the value and the others something worse.
Blocks deal(Random &random, const std::vector<int64_t> &values,
            const Layout &layout, const Mesh &mesh);

/// What the collective does, from its definition. Fails the test when a rank
/// would need an element that nobody in its group has.
Blocks simulate(const Step &step, const Layout &from, const Blocks &blocks,
                const Mesh &mesh);

/// Fails the test unless `blocks` hold `values` as `layout` says.
void expectHolds(const Blocks &blocks, const std::vector<int64_t> &values,
                 const Layout &layout, const Mesh &mesh);

} // namespace ax::sharding::test

#endif // AX_TEST_SHARDING_SHARDINGTESTUTILS_H
