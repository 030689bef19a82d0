//===- Layers.h - Linears, convolutions, attention, embeddings --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PLAN_LAYERS_H
#define AX_PLAN_LAYERS_H

#include "ax/Dialect/Ax.h"

#include <optional>

namespace ax::plan {

/// How one named dimension of an op is split: `k`, 2048 over `{col}`.
struct NamedSplit {
  std::string name;
  int64_t size = 1;
  sharding::SubAxes axes;
};

/// A contraction or a lookup in a table of weights.
struct Layer {
  mlir::Operation *op = nullptr;
  std::string node;
  /// `linear`, `convolution`, `attention`, `dot`, `embedding`.
  std::string kind;
  std::vector<NamedSplit> splits;
  /// Axes of the stage, with more than one rank, that split nothing of it.
  sharding::SubAxes replicated;
  /// What one step (all micro-batches) takes: of the whole op, and of one rank.
  double wholeFlops = 0, rankFlops = 0;
};

/// What `op` is, if it is one; of its FLOPs only those of the whole. Before the
/// Shard phase nothing is split.
std::optional<Layer> findLayer(mlir::Operation *op, const sharding::Mesh &mesh);

} // namespace ax::plan

#endif // AX_PLAN_LAYERS_H
