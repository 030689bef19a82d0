//===- Recipe.h - Pins from a strategy --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_SHARD_RECIPE_H
#define AX_PASSES_SHARD_RECIPE_H

#include "Roles.h"

#include <map>
#include <optional>

namespace ax {

struct RecipeOptions {
  bool sequenceParallel = false;
};

/// Something that cannot be split as asked: which op, if it is one, and what is
/// done instead.
struct RecipeWarning {
  mlir::Operation *op;
  std::string text;
  /// Ranks would train the same.
  bool isError = false;
};

/// What factors are called (`96 output features`) that are to be split over all
/// axes of their pins, which leave to neighbours how: by number of factor pins.
using AskedParts = std::map<size_t, std::string>;

struct Recipe {
  sharding::Pins pins;
  std::vector<RecipeWarning> warnings;
  AskedParts asked;
  /// Whether something is split over `context`, and what to tell of what is
  /// not: where nothing is, only if no other program is either.
  bool splitsContext = false;
  std::optional<RecipeWarning> contextFault;
};

/// Pins of the 3-D tensor-parallel layout, of batch and sequence, for a mesh
/// with the axes data, context, depth, row, col, micro (those it lacks count as
/// 1). It inserts nothing: propagation finds the rest.
Recipe makeRecipe(const ShardGraph &graph, const sharding::Mesh &mesh,
                  const RecipeOptions &options);

/// What is done where not as many parts can be made as asked for.
std::string insteadOf(int64_t parts);

/// The attribute, from ax-decompose-split and ax-deal-weights to ax-recipe, of
/// ops that must see a dimension of their operand as a whole (the exchanged
/// numbers, heads that each rank takes): its number.
inline constexpr const char *gatheredAttr = "ax.gathered";

/// Axes that the recipe puts on a role, without those of size 1.
sharding::SubAxes axesOf(Role role, const sharding::Mesh &mesh);

/// A split may leave this much of a tensor as padding.
bool splitsWell(int64_t size, const sharding::SubAxes &axes);

} // namespace ax

#endif // AX_PASSES_SHARD_RECIPE_H
