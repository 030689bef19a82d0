//===- Roles.h - Which feature dimensions go over row, which over col -*- C++ -*-===//
//
// The 3-D algorithm (AxoNN, arXiv 2305.13525) splits a Linear's k over one of
// (row, col) and its n over the other; consecutive Linears swap the two, so
// that one's output layout is the next one's input layout. Which is which is a
// two-colouring: dimensions that an op relates have one colour, a weight
// contraction flips it. Where a cycle is odd (three convolutions against an
// identity) the later relation is left out, and a resharding stands there.
//
//===----------------------------------------------------------------------===//
#ifndef AX_PASSES_SHARD_ROLES_H
#define AX_PASSES_SHARD_ROLES_H

#include "ShardGraph.h"

namespace ax {

enum class Role { Row, Col };
inline Role opposite(Role role) {
  return role == Role::Row ? Role::Col : Role::Row;
}

class Roles {
public:
  Roles(const ShardGraph &graph, llvm::ArrayRef<WeightOp> weightOps);

  /// Role of dimension `dim` of `tensor`.
  Role role(int tensor, int dim);
  /// Dimensions related without crossing a weight contraction share a number.
  int segment(int tensor, int dim);

private:
  int node(int tensor, int dim) const { return firstNode[tensor] + dim; }
  /// Root of the colour component; `flips` is toggled along the way.
  int findColour(int n, bool &flips);
  int findSegment(int n);
  /// False when it contradicts what is known.
  bool relate(int a, int b, bool flipped);
  void setRole(int n, Role role);

  std::vector<int> firstNode;
  std::vector<int> colourParent, segmentParent;
  std::vector<char> flipsToParent;
  /// Of roots: the role, once an anchor gave it.
  llvm::DenseMap<int, Role> rootRole;
};

} // namespace ax

#endif // AX_PASSES_SHARD_ROLES_H
