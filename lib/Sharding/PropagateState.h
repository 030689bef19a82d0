//===- PropagateState.h - What propagation works on -------------*- C++ -*-===//
//
// Shared by the parts of propagation, in the order in which they run: Spread
// (pins flow through the graph), PartialSums (which ops pass them on), Refine
// (cheaper assignments where neighbours disagree), ReshardTree (what is
// resharded from what).
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_SHARDING_PROPAGATESTATE_H
#define AX_LIB_SHARDING_PROPAGATESTATE_H

#include "ax/Sharding/Digits.h"
#include "ax/Sharding/Propagate.h"

namespace ax::sharding::detail {

/// How one factor of an op, or one dimension of a tensor, is split, and why.
struct Split {
  DimLayout dim;
  PinLevel level = PinLevel::Recipe;
  /// Index into State::causes; -1 when no pin led here.
  int cause = -1;
  bool pinned = false;
  /// A pin that propagation may not split further.
  bool closed = false;
  /// Of a tensor's pin: its ops learn of it.
  bool spreads = true;
  /// Of a pin whose place neighbours decide: its axes, and what splits the
  /// factor if no neighbour does. No factors: not such a pin.
  DimLayout ifUntold = {};
  /// Nothing does.
  bool elseWhole = false;

  bool waits() const { return !ifUntold.factors.empty(); }
};

/// Partial sums that an op passes on.
struct Passing {
  SubAxes axes;
  ReduceKind kind = ReduceKind::Sum;
  int linearSet = -1;
};

class State {
public:
  State(const Graph &graph, const Mesh &mesh, const PropagateOptions &options);

  const Graph &graph;
  const Mesh &mesh;
  const PropagateOptions &options;
  Resharder resharder;

  /// Op that makes a tensor and which result it is; op -1: none does.
  std::vector<Use> producers;
  /// In canonical order: by number of the using op's first result; the
  /// program's output last.
  std::vector<std::vector<Use>> uses;
  /// Topological; of ops that are ready the one whose result has the lowest
  /// number. Does not depend on the order of Graph::ops.
  std::vector<int> order;

  std::vector<std::string> causes;
  std::vector<std::string> warnings;
  /// Of each op, of each tensor. Tensors' splits only serve to carry pins from
  /// op to op, but for pinned dimensions.
  std::vector<std::vector<Split>> factors;
  std::vector<std::vector<Split>> dims;
  std::vector<Passing> passing;

  void applyPins(const Pins &pins);
  /// False, and a warning, when it cannot be followed.
  bool applyPin(const FactorPin &pin);
  bool applyPin(const TensorPin &pin);

  Assignment assignmentOf(int op) const;
  /// Axes that the factors of an op split over or have reserved, but for one.
  SubAxes axesOfOthers(int op, int factor) const;
  /// Sets `layouts` from factors and passing.
  void updateLayouts(int op);
  const Layout &wanted(const Use &use) const {
    return operandLayouts[use.op][use.operand];
  }
  const Layout &given(const Use &producer) const {
    return resultLayouts[producer.op][producer.operand];
  }

  bool isPinned(int tensor) const;
  /// `produced` with the pinned dimensions as pinned and nothing partial.
  Layout delivered(int tensor, const Layout &produced) const;
  /// Seconds of an op's own work on one rank.
  double opSeconds(int op) const;

private:
  std::vector<std::vector<Layout>> operandLayouts, resultLayouts;
};

/// Spread.cpp: fills factors and dims to a fixed point.
void spread(State &state);
/// True when `finer` splits as `coarser` does and further, or is the same.
bool refines(const DimLayout &finer, const DimLayout &coarser);
/// Why `op` cannot have these factors; nothing when it can.
std::optional<std::string> findFactorsFault(const State &state, int op,
                                            const std::vector<Split> &factors);

/// PartialSums.cpp: decides `passing` for all ops and updates layouts.
void passPartialSums(State &state);

/// Of one tensor: its layout where it comes from, and the reshardings.
struct Tree {
  Layout produced;
  std::vector<Reshard> reshards;
  double seconds = 0;
  int collectives = 0;
};
/// ReshardTree.cpp.
Tree buildTree(State &state, int tensor);
/// What made a resharding necessary, for the reader.
std::string causeOf(const State &state, const Reshard &reshard);

/// Refine.cpp: local search over unpinned factors.
void refine(State &state);

} // namespace ax::sharding::detail

#endif // AX_LIB_SHARDING_PROPAGATESTATE_H
