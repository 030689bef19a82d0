//===- CollectivePieces.cpp - Which elements go where ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/CollectivePieces.h"

#include "ax/Support/HostTensor.h"

#include <algorithm>

namespace ax::rt {

namespace {

int64_t validPart(int64_t part, int64_t size, int64_t index) {
  return std::clamp<int64_t>(size - index * part, 0, part);
}

/// What `me` reads of `peer`'s source. Along the gathered dimension it is all
/// that `peer` has, but for padding, and goes to `peer`'s place; along the
/// scattered one it is `me`'s part of what `peer` has, and goes to the
/// beginning; along all others it is everything. So one box describes all
/// kinds: an all-gather has the first, a reduce-scatter the second, an
/// all-to-all both.
StridedBox makeBox(const CollectiveSpec &spec, int32_t peer, int32_t me) {
  std::vector<int64_t> to = destinationShape(spec);
  std::vector<int64_t> fromStrides = rowMajorStrides(spec.shape);
  std::vector<int64_t> toStrides = rowMajorStrides(to);
  int64_t bytes = byteSize(spec.dtype);
  StridedBox box(bytes);
  for (size_t d = 0; d < spec.shape.size(); ++d) {
    int64_t size = spec.shape[d];
    if (static_cast<int32_t>(d) == spec.gatherDim) {
      box.destinationOffset += peer * size * toStrides[d] * bytes;
      size = validPart(size, spec.gatherSize, peer);
    } else if (static_cast<int32_t>(d) == spec.scatterDim) {
      box.sourceOffset += me * spec.scatterPart * fromStrides[d] * bytes;
      size = validPart(spec.scatterPart, size, me);
    }
    box.addDim(size, fromStrides[d] * bytes, toStrides[d] * bytes);
  }
  box.finish();
  return box;
}

} // namespace

CollectivePlan planCollective(const CollectiveSpec &spec, int32_t members,
                              int32_t me) {
  CollectivePlan plan;
  auto add = [&](int32_t peer) {
    StridedBox box = makeBox(spec, peer, me);
    if (!box.isEmpty())
      plan.pieces.push_back({peer, std::move(box)});
  };
  switch (spec.kind) {
  case CollectiveKind::AllReduce:
    return plan;
  case CollectiveKind::ReduceScatter:
    add(me);
    break;
  case CollectiveKind::AllGather:
  case CollectiveKind::AllToAll:
    // Each member starts with itself, so that not all read the same one.
    for (int32_t i = 0; i < members; ++i)
      add((me + i) % members);
    break;
  case CollectiveKind::Permute:
    if (int32_t from = spec.permutation[static_cast<size_t>(me)]; from >= 0)
      add(from);
    break;
  }
  // Pieces do not overlap, so they cover the destination if they are as large.
  int64_t covered = 0;
  for (const CollectivePiece &piece : plan.pieces)
    covered += piece.box.numBytes();
  plan.zeroFirst = covered < destinationBytes(spec);
  return plan;
}

std::pair<int64_t, int64_t> sliceOf(int64_t numElements, int32_t members,
                                    int32_t index) {
  constexpr int64_t unit = 64;
  int64_t units = (numElements + unit - 1) / unit;
  auto start = [&](int64_t i) {
    return std::min(numElements, units * i / members * unit);
  };
  return {start(index), start(index + 1)};
}

} // namespace ax::rt
