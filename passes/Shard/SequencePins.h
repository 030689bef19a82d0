//===- SequencePins.h - Pins of what counts tokens --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_SHARD_SEQUENCEPINS_H
#define AX_PASSES_SHARD_SEQUENCEPINS_H

#include "Recipe.h"

#include "llvm/ADT/DenseSet.h"

namespace ax {

/// Tensors, and in each a dimension.
using TensorDims = llvm::DenseSet<std::pair<int, int>>;

/// Adds to a recipe where sequences are split. `batched`: the dimensions that
/// the batch comes first in.
class SequencePins {
public:
  SequencePins(const ShardGraph &graph, const sharding::Mesh &mesh,
               llvm::ArrayRef<WeightOp> weightOps, Roles &roles,
               const TensorDims &batched, Recipe &recipe);

  /// Splits the tokens that layers multiply, and that sums and norms see, over
  /// `context`. Where it does not divide them, that is a warning, and an error
  /// of a program that trains if there are no others.
  void pinContext();

  /// Asks for what lies between tensor-parallel pairs to be split over `col`,
  /// too, weakly: as what these leave has it, whose own splits spread first.
  void pinBetweenPairs();

private:
  sharding::SubAxes axes(std::initializer_list<const char *> names) const;
  llvm::ArrayRef<int64_t> shapeOf(int tensor) const;
  /// The dimension that counts tokens in a tensor of features, of three
  /// dimensions or more.
  int dimOfSequence(int tensor) const;
  /// Whether it adds or normalises what tensor-parallel pairs leave, with such
  /// a dimension.
  bool isBetweenPairs(int op) const;
  /// Whether the layer's input has one.
  bool multipliesTokens(const WeightOp &weight) const;
  /// Caches that grow by new rows are where these come from all ranks.
  void keepCachesWhole(const std::string &flag);

  const ShardGraph &graph;
  const sharding::Mesh &mesh;
  llvm::ArrayRef<WeightOp> weightOps;
  Roles &roles;
  const TensorDims &batched;
  Recipe &recipe;
  /// How wide the features are that residual branches leave and join, by their
  /// segments.
  llvm::DenseMap<int, int64_t> residual;
};

} // namespace ax

#endif // AX_PASSES_SHARD_SEQUENCEPINS_H
