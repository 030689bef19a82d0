//===- Recipe.h - Pins from a strategy --------------------------*- C++ -*-===//
#ifndef AX_PASSES_SHARD_RECIPE_H
#define AX_PASSES_SHARD_RECIPE_H

#include "Roles.h"

namespace ax {

struct RecipeOptions {
  bool sequenceParallel = false;
};

/// Something that cannot be split as asked: which op, if it is one, and what is
/// done instead.
struct RecipeWarning {
  mlir::Operation *op;
  std::string text;
};

/// A factor that is to be split over all of `axes`, where its pin leaves to
/// neighbours how.
struct AskedSplit {
  int op, factor;
  sharding::SubAxes axes;
  /// `96 output features`.
  std::string what;
};

struct Recipe {
  sharding::Pins pins;
  std::vector<RecipeWarning> warnings;
  std::vector<AskedSplit> asked;
};

/// Pins of the 3-D tensor-parallel layout, of batch and sequence, for a mesh
/// with the axes data, depth, row, col, micro (those it lacks count as 1). It
/// inserts nothing: propagation finds the rest.
Recipe makeRecipe(const ShardGraph &graph, const sharding::Mesh &mesh,
                  const RecipeOptions &options);

/// Of what was asked, what `found` splits into fewer parts.
std::vector<RecipeWarning> findUnsplit(const ShardGraph &graph,
                                       const Recipe &recipe,
                                       const sharding::Propagation &found);

/// Softmax and norms over a dimension that the recipe will split, as exchanges
/// of one or two numbers per row (DESIGN_sharding 7). True when it changed the
/// program; the graph must be built anew then.
bool decomposeSplitRows(const ShardGraph &graph, const sharding::Mesh &mesh);

/// Attribute of ops that must see a dimension of their operand as a whole (the
/// exchanged numbers): its number.
inline constexpr const char *gatheredAttr = "ax.gathered";

/// Axes that the recipe puts on a role, without those of size 1.
sharding::SubAxes axesOf(Role role, const sharding::Mesh &mesh);

/// A split may leave this much of a tensor as padding.
bool splitsWell(int64_t size, const sharding::SubAxes &axes);

} // namespace ax

#endif // AX_PASSES_SHARD_RECIPE_H
