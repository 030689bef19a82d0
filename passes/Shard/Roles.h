//===- Roles.h - Which dimensions go over row, which over col ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The 3-D algorithm (AxoNN, arXiv 2305.13525) splits a Linear's k over one of
// (row, col) and its n over the other; consecutive Linears swap the two, so
// that one's output layout is the next one's input layout. Which is which is a
// two-colouring: dimensions that an op relates have one colour, a weight
// contraction flips it. Where a cycle is odd (three convolutions against an
// identity) something must be exchanged beside the sums: there the colouring is
// improved, one segment at a time, as long as fewer elements are exchanged.
//
//===----------------------------------------------------------------------===//
#ifndef AX_PASSES_SHARD_ROLES_H
#define AX_PASSES_SHARD_ROLES_H

#include "ShardGraph.h"
#include "llvm/ADT/DenseSet.h"

namespace ax {

enum class Role { Row, Col };
inline Role opposite(Role role) {
  return role == Role::Row ? Role::Col : Role::Row;
}

/// How a weight contraction is split: its k over one role, its n over the
/// other.
struct WeightSides {
  Role k, n;
  /// What a rank exchanges then, with what its input and output ask for.
  double elements;
};

class Roles {
public:
  Roles(const ShardGraph &graph, llvm::ArrayRef<WeightOp> weightOps,
        const sharding::Mesh &mesh);

  /// Role of dimension `dim` of `tensor`.
  Role role(int tensor, int dim);
  /// Dimensions related without crossing a weight contraction share a number.
  int segment(int tensor, int dim);
  /// The cheapest for the roles of its input's and output's features.
  WeightSides sides(const WeightOp &weight);

private:
  int node(int tensor, int dim) const { return firstNode[tensor] + dim; }
  /// Root of the colour component; `flips` is toggled along the way.
  int findColour(int n, bool &flips);
  int findSegment(int n);
  /// False when it contradicts what is known.
  bool relate(int a, int b, bool flipped);
  void setRole(int n, Role role);
  Role roleOfNode(int n);
  void joinDims(int op, const WeightOp *weight);
  void improve(llvm::ArrayRef<WeightOp> weightOps,
               const llvm::DenseSet<int> &odd,
               const llvm::DenseSet<int> &fixed);
  void turn(int segment);
  int64_t parts(Role role) const {
    return role == Role::Row ? rowParts : colParts;
  }
  static double exchange(double parts, double elements);
  double elements(int tensor) const;
  int inputNode(const WeightOp &weight) const;
  int outputNode(const WeightOp &weight) const;

  const ShardGraph &graph;
  /// Parts that a role splits in.
  int64_t rowParts, colParts;
  std::vector<int> firstNode;
  std::vector<int> colourParent, segmentParent;
  std::vector<char> flipsToParent;
  /// The role of the root of each component, once an anchor gave it.
  llvm::DenseMap<int, Role> rootRole;
  /// By segment what convolutions in groups cost, in elements exchanged, when
  /// nothing splits them.
  llvm::DenseMap<int, double> groupElements;
  /// Segments whose role is the opposite of their colour.
  llvm::DenseSet<int> turned;
};

} // namespace ax

#endif // AX_PASSES_SHARD_ROLES_H
