//===- Collective.h - What a group of ranks does together -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_COLLECTIVE_H
#define AX_RUNTIME_COLLECTIVE_H

#include "ax/Sharding/Layout.h"
#include "ax/Support/DType.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ax::rt {

/// A rank may start so many receives of one tag from one sender before the
/// first of them has ended, with any communicator.
constexpr int32_t mostReceivesAhead = 1024;

enum class CollectiveKind {
  AllReduce,     ///< element-wise over the group; same shape
  ReduceScatter, ///< reduced, then each member keeps its part of scatterDim
  AllGather,     ///< parts of gatherDim one after another, in group order
  AllToAll,      ///< gatherDim becomes whole while scatterDim is split
  Permute,       ///< member i receives what member permutation[i] holds
};

/// Whether elements of several members become one.
inline bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce ||
         kind == CollectiveKind::ReduceScatter;
}

/// A collective without its addresses. Members are numbered in group order;
/// member i holds (or gets) indices [i * part, min((i+1) * part, size)) of a
/// split dimension: its local extent is `part`, valid perhaps less, even none.
/// Source and destination are dense and row-major.
struct CollectiveSpec {
  CollectiveKind kind = CollectiveKind::AllReduce;
  /// AllReduce, ReduceScatter. Narrow floats are summed in f32 and rounded
  /// once. Bool: max is any, min is all; no sum.
  sharding::ReduceKind reduce = sharding::ReduceKind::Sum;
  DType dtype = DType::F32;
  /// The source's local shape. Factors of compound dimensions are dimensions
  /// of their own here; neighbours that stay whole may be merged.
  std::vector<int64_t> shape;
  /// AllGather, AllToAll: shape[gatherDim] is the part; the destination has
  /// extent gatherSize there.
  int32_t gatherDim = -1;
  int64_t gatherSize = 0;
  /// ReduceScatter, AllToAll: shape[scatterDim] is the whole size; the
  /// destination has extent scatterPart there, padding zero.
  int32_t scatterDim = -1;
  int64_t scatterPart = 0;
  /// Permute: for each member; -1: receives zeros.
  std::vector<int32_t> permutation;

  bool operator==(const CollectiveSpec &o) const;
};

/// Ranks wait for one another once for all of them: they have kind, reduction
/// and element type in common.
using CollectiveSpecs = std::vector<CollectiveSpec>;

/// Returns the shape of the destination.
std::vector<int64_t> destinationShape(const CollectiveSpec &spec);
int64_t sourceBytes(const CollectiveSpec &spec);
int64_t destinationBytes(const CollectiveSpec &spec);
/// Returns why the specs make no sense for a group of `members`; empty when
/// they do.
std::string findFault(const CollectiveSpecs &specs, int64_t members);
/// Returns `all_reduce 128x512 f32`; of two `all_reduce 128x512, 512 f32`.
std::string toString(const CollectiveSpecs &specs);

} // namespace ax::rt

#endif // AX_RUNTIME_COLLECTIVE_H
