//===- ShardGraph.h - A program as the sharding engine sees it --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_SHARD_SHARDGRAPH_H
#define AX_PASSES_SHARD_SHARDGRAPH_H

#include "ax/Dialect/Ax.h"
#include "ax/Sharding/Propagate.h"
#include "llvm/ADT/DenseMap.h"

namespace ax {

/// One program's operations with rules, and its values, numbered in program
/// order. Loads and constants are no ops here: their results are tensors of
/// role State and Constant, program arguments of role Input.
struct ShardGraph {
  sharding::Graph graph;
  /// The operations of graph.ops.
  std::vector<mlir::Operation *> ops;
  /// The values of graph.tensors.
  std::vector<mlir::Value> values;
  llvm::DenseMap<mlir::Value, int> tensorOf;

  /// Fails with an error at an op that has no rule.
  static mlir::FailureOr<ShardGraph> build(ProgramOp program);

  const sharding::Rule &rule(int op) const { return graph.ops[op].rule; }
};

/// A contraction of activations with a weight: what tensor parallelism splits.
struct WeightOp {
  int op = 0;
  /// Operand numbers. `x` is -1 for an embedding, whose indices carry no
  /// features.
  int x = 0;
  int weight = 1;
  /// The rule's factors that are summed over, and given to the result.
  int k = -1;
  int n = -1;
};

/// The weight contractions among the ops: layers (in one group), a dot of
/// integers with a weight, a dot with matrices that are looked up among a
/// weight's (experts), a gather of whole rows of a state.
std::vector<WeightOp> findWeightOps(const ShardGraph &graph);

/// Whether the operand's dimension is not in parts of its own that would be
/// cut: of integers in blocks with a scale each, which 90 of 4 ranks have not.
/// True where it has no such dimension (-1).
bool comesApart(mlir::Value operand, int64_t dim, int64_t parts);

/// A convolution of the forward pass in groups that are products themselves,
/// not a depthwise one, which is mostly reading and writing.
bool contractsInGroups(mlir::Operation *op);

/// The dimension of operand 0 that has the heads of attention, which may also
/// be products of activations; -1 of other operations, and where heads are not
/// told from samples.
int dimOfHeads(mlir::Operation *op);

/// The factors that tensor parallelism splits of layers that findWeightOps does
/// not find: the heads of attention, and of a convolution in groups the
/// channels that it gives. None of other operations.
std::vector<int> findHeadsOrGroups(const ShardGraph &graph, int op);

/// The dimension of a tensor map that holds `factor`; -1 when none does.
int dimOfFactor(const sharding::TensorMap &map, int factor);

} // namespace ax

#endif // AX_PASSES_SHARD_SHARDGRAPH_H
