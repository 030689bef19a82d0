//===- ShardAnalysis.h - What the steps of Shard share ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The steps tell each other by attributes what they decide. What they only
// would compute again is here: a step that changes no operation keeps it for
// the next.
//
//===----------------------------------------------------------------------===//
#ifndef AX_PASSES_SHARD_SHARDANALYSIS_H
#define AX_PASSES_SHARD_SHARDANALYSIS_H

#include "ShardGraph.h"

#include <map>
#include <set>

namespace ax {

/// A plan's programs as graphs, and what propagation has learned of layouts,
/// rules and reshardings.
class ShardAnalysis {
public:
  explicit ShardAnalysis(mlir::Operation *plan);

  const sharding::Mesh &getMesh() const { return mesh; }
  sharding::Propagator &getPropagator() { return propagator; }
  /// Null, after an error, where an op has no rule.
  const ShardGraph *graphOf(ProgramOp program);

private:
  sharding::Mesh mesh;
  sharding::Propagator propagator;
  std::map<mlir::Operation *, ShardGraph> graphs;
};

/// Whether `program` has states in common with one before it, or such as have
/// layouts already: warnings have been given then, and patterns are for both.
bool sharesStates(ProgramOp program);

/// Says what cannot be split as asked, once: a recurrent layer is one node, and
/// many ops.
class Complaints {
public:
  explicit Complaints(bool strict) : strict(strict) {}

  /// A warning; with `strict` an error, and failure.
  mlir::LogicalResult add(mlir::Operation *op, llvm::StringRef text);

private:
  bool strict;
  std::set<std::pair<std::string, std::string>> told;
};

} // namespace ax

#endif // AX_PASSES_SHARD_SHARDANALYSIS_H
