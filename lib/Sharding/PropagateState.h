//===- PropagateState.h - What propagation works on -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared by the parts of propagation, in the order in which they run: Spread
// (pins flow through the graph), PartialSums (which ops pass them on), Refine
// (cheaper assignments where neighbours disagree), ReshardTree (what is
// resharded from what).
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_SHARDING_PROPAGATESTATE_H
#define AX_LIB_SHARDING_PROPAGATESTATE_H

#include "ReshardPlans.h"
#include "RuleTable.h"

#include "ax/Sharding/Propagate.h"

#include <array>

namespace ax::sharding::detail {

/// The strongest first.
constexpr PinLevel pinLevels[] = {PinLevel::User, PinLevel::Recipe,
                                  PinLevel::Weak};

/// How one factor of an op, or one dimension of a tensor, is split, and why. An
/// example with all fields: docs/rationale/sharding.md.
struct Split {
  DimId dim;
  PinLevel level = PinLevel::Recipe;
  /// Index into State::causes; -1 when no pin led here.
  int cause = -1;
  bool pinned = false;
  /// A pin that propagation may not split further.
  bool closed = false;
  /// Whether ops learn of a tensor's pin.
  bool spreads = true;
  /// The axes of a pin whose place neighbours decide, and what splits the
  /// factor if no neighbour does. Nothing: it is not such a pin.
  std::optional<DimId> ifUntold = std::nullopt;
  /// Whether nothing splits the factor if no neighbour says how.
  bool elseWhole = false;

  bool waits() const { return ifUntold.has_value(); }
};

class State {
public:
  State(const Graph &graph, const PropagateOptions &options,
        ReshardPlans &plans, RuleTable &ruleTable);

  const Graph &graph;
  const PropagateOptions &options;
  ReshardPlans &plans;
  LayoutTable &table;
  const Mesh &mesh;
  /// The rule of each op.
  std::vector<RuleEntry *> rules;

  /// Op that makes a tensor and which result it is; op -1: none does.
  std::vector<Use> producers;
  /// The uses of each tensor in canonical order: by number of the using op's
  /// first result; the program's output last.
  std::vector<std::vector<Use>> uses;
  /// Topological; of ops that are ready the one whose result has the lowest
  /// number. Does not depend on the order of Graph::ops.
  std::vector<int> order;
  /// Where each op is in `order`.
  std::vector<int> places;

  /// Whether some pin is of each level.
  std::array<bool, 3> hasPins = {};
  std::vector<std::string> causes;
  std::vector<std::string> warnings;
  /// How the factors of each op and the dimensions of each tensor are split.
  /// Tensors' splits only serve to carry pins from op to op, but for pinned
  /// dimensions.
  std::vector<std::vector<Split>> factors;
  std::vector<std::vector<Split>> dims;
  std::vector<Passing> passing;
  /// What follows from these, see updateLayouts().
  std::vector<const OpLayouts *> layouts;

  /// How tensors come that no op makes, once it is decided.
  std::vector<std::optional<LayoutId>> sources;

  void applyPins(const Pins &pins);
  /// The same, of those of one level that are of tensors.
  void applyTensorPins(const Pins &pins, PinLevel level);
  /// False, and a warning, when it cannot be followed.
  bool applyPin(const FactorPin &pin);
  bool applyPin(const TensorPin &pin);

  /// How all ops are assigned.
  struct Assigned {
    std::vector<std::vector<Split>> factors;
    std::vector<Passing> passing;
    std::vector<const OpLayouts *> layouts;
  };
  Assigned getAssigned() const { return {factors, passing, layouts}; }
  void setAssigned(const Assigned &assigned) {
    factors = assigned.factors;
    passing = assigned.passing;
    layouts = assigned.layouts;
  }
  /// Predicted seconds of all ops and all reshardings.
  double totalSeconds();

  Assignment assignmentOf(int op);
  /// Axes that the factors of an op split over or have reserved, but for one.
  AxesId axesOfOthers(int op, int factor);
  /// True when a factor of the op is split over any of `axes`.
  bool splitsOver(int op, AxesId axes);
  /// What the op makes of its own split sums, if there are any: its result can
  /// be partial in one way only, so sums of another kind are reduced before it.
  std::optional<ReduceKind> ownReduction(int op) const;
  /// Sets `layouts` from factors and passing.
  void updateLayouts(int op);
  LayoutId wanted(const Use &use) const {
    return layouts[use.op]->operands[use.operand];
  }
  LayoutId given(const Use &producer) const {
    return layouts[producer.op]->results[producer.operand];
  }

  bool isPinned(int tensor) const;
  /// `produced` with the pinned dimensions as pinned and nothing partial.
  LayoutId delivered(int tensor, LayoutId produced);
  /// Seconds of an op's own work on one rank.
  double opSeconds(int op) const;
  /// True when `op` can have these factors.
  bool canHave(int op, const std::vector<Split> &factors);

private:
  const std::vector<DimId> &dimsOf(const std::vector<Split> &factors);

  std::vector<DimId> scratch;
};

/// Fills factors and dims to a fixed point (Spread.cpp).
void spread(State &state);
/// Decides `passing` for all ops and updates layouts (PartialSums.cpp).
void passPartialSums(State &state);

/// One resharding of a tensor, shared by all uses that want its result.
struct Branch {
  /// The earlier one from whose result it starts; -1: from the tensor.
  int source = -1;
  LayoutId from, to;
  const PlannedReshard *planned = nullptr;
  std::vector<Use> uses;

  double seconds() const { return planned->plan.seconds; }
};

/// A tensor's layout where it comes from, and its reshardings.
struct Tree {
  LayoutId produced = {};
  std::vector<Branch> branches;
  double seconds = 0;
  int collectives = 0;
};
/// Returns how a tensor gets from its layout to those that its uses want
/// (ReshardTree.cpp).
Tree buildTree(State &state, int tensor);
/// Returns only what that costs, which equal tensors share.
double treeSeconds(State &state, int tensor);

/// Shardings.cpp: what is decided, and the state in which it is, but for what
/// only serves to decide. Why not, where layouts are none of an op's.
Shardings shardingsOf(State &state);
std::optional<std::pair<int, std::string>>
restore(State &state, const Pins &pins, const Shardings &shardings);

/// Says what made a resharding necessary, for the reader (ReshardCause.cpp).
std::string causeOf(State &state, const Reshard &reshard);

struct Refined {
  /// Changes that were tried.
  int64_t numTries = 0;
  /// Some of those that were kept pass a sum on.
  bool passesOn = false;
};
/// Searches for cheaper assignments of unpinned factors (Refine.cpp).
Refined refine(State &state, bool mayPassOn);

} // namespace ax::sharding::detail

#endif // AX_LIB_SHARDING_PROPAGATESTATE_H
