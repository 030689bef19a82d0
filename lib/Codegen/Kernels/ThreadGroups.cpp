//===- ThreadGroups.cpp - How many threads do an iteration ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ThreadGroups.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace ax::codegen {

/// As many threads as a block should have where it is free to choose.
static constexpr int64_t usualBlock = 256;

ThreadGroup chooseGroup(int64_t iterations, int64_t points, int64_t bytes,
                        int64_t columnLanes, int64_t scratchBytes) {
  // Fewer points leave most threads of a warp without one.
  constexpr int64_t fewPoints = 16;
  if (points < fewPoints)
    return {};
  auto powerOf2 = [](int64_t n) {
    return static_cast<int64_t>(llvm::PowerOf2Ceil(n));
  };
  if (columnLanes > 0 && iterations >= fewNeighbours * columnLanes &&
      scratchBytes == 0) {
    // Fewer columns are more blocks, down to what memory reads at a time.
    constexpr int64_t enoughTiles = 128;
    int64_t columns = warpThreads, neighbours = iterations / columnLanes;
    while (columns > fewNeighbours && neighbours / columns < enoughTiles)
      columns /= 2;
    // With lanes, half as many threads have as many bytes on their way, and
    // twice the registers for what they sum.
    int64_t fewer = columnLanes > 1 ? 2 : 1;
    int64_t wanted = std::min(manyThreads / fewer / neighbours, points / 4);
    int64_t warp = warpThreads / columns;
    return {std::clamp<int64_t>(powerOf2(wanted), 4 * warp,
                                largestBlock / fewer / columns),
            columns};
  }
  // Points of a thread of a block, warps that fill a card, and blocks.
  constexpr int64_t pointsEach = 4, enoughWarps = 1024, enoughBlocks = 256;
  constexpr int64_t shortRow = 128, longRow = 1024;
  if (points <= shortRow || (points <= longRow && iterations >= enoughWarps))
    return {warpThreads};
  // Half of the largest block leaves a thread twice the registers.
  constexpr int64_t manyBytes = 128 << 10;
  int64_t most = iterations < enoughBlocks || points * bytes > manyBytes
                     ? largestBlock
                     : largestBlock / 2;
  return {std::clamp<int64_t>(powerOf2(points / pointsEach), 64, most),
          /*columns=*/1};
}

ThreadGroup chooseGroupOfLanes(int64_t iterations, int64_t accesses) {
  // Accesses of a thread, so that a warp need not wait for others, and rows
  // that fill a card.
  constexpr int64_t together = 8, enoughRows = 1024, mostThreads = 256;
  int64_t each = iterations >= enoughRows ? together : 1;
  int64_t wanted = llvm::divideCeilSigned(accesses, each);
  return {std::clamp(static_cast<int64_t>(llvm::PowerOf2Ceil(wanted)),
                     warpThreads, mostThreads),
          /*columns=*/1};
}

static rt::LaunchShape shapeOf(const KernelNests &nests, int64_t cardBytes) {
  constexpr int64_t mostBlocks = 4096, mostScratch = 64 << 20;
  int64_t group = nests.group.threads;
  int64_t groups = std::max<int64_t>(nests.numDealt(), 1);
  if (cardBytes > 0)
    groups = std::min(groups, std::max<int64_t>(mostScratch / cardBytes, 1));
  int64_t threads = groups * group, block = usualBlock;
  if (nests.group.isColumn())
    block = nests.group.columns * group;
  else if (group > warpThreads)
    block = group;
  else if (threads < usualBlock * warpThreads)
    // Of few iterations, each multiprocessor is to have some.
    block = warpThreads;
  rt::LaunchShape shape;
  shape.groupThreads = group;
  shape.threadsPerBlock =
      nests.group.isMany() ? block : std::min(threads, block);
  shape.blocks = std::min<int64_t>(
      llvm::divideCeil(threads, shape.threadsPerBlock), mostBlocks);
  return shape;
}

GroupLaunch launchOf(const KernelNests &nests) {
  if (nests.group.isMany() && nests.scratchBytes > 0) {
    rt::LaunchShape shape = shapeOf(nests, 0);
    int64_t ofBlock = shape.threadsPerBlock / shape.groupThreads;
    if (nests.scratchBytes * ofBlock <= mostShared)
      return {shape, nests.scratchBytes};
  }
  return {shapeOf(nests, nests.scratchBytes), 0};
}

} // namespace ax::codegen
