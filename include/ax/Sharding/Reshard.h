//===- Reshard.h - From one layout to another -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step changes a tensor's layout and nothing else. What a step does with the
// data follows from the layouts before and after it; `axes` only names the
// group of ranks that takes part. Layouts are canonical everywhere here.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SHARDING_RESHARD_H
#define AX_SHARDING_RESHARD_H

#include "ax/Sharding/Layout.h"

#include <functional>
#include <memory>

namespace ax::sharding {

namespace detail {
class ReshardPlans;
} // namespace detail

/// What a step over `axes` changes:
///  AllSlice           replicated -> splits one dimension or several; each rank
///                     drops what is not its own; nothing is sent.
///  AllGather          splits one dimension -> replicated.
///  AllToAll           splits one dimension -> splits another, or another
///                     place in the same dimension: AllGather of it there and
///                     AllSlice of it here, exchanging only what is needed.
///  ReduceScatter      partial -> splits one dimension: AllReduce + AllSlice.
///  AllReduce          partial -> replicated.
///  CollectivePermute  the same pieces, dealt to other ranks: every rank
///                     receives the whole block of one rank (permuteSources).
///  ToPartial          replicated -> partial. Sum: zero on all ranks but the
///                     first of the group; max, min: unchanged.
/// A dimension "without" axes is unsplit() of Digits.h: their digits become
/// local ones, wherever they stand. So AllSlice is exactly the inverse of
/// AllGather. An uneven split is only gathered as a whole, or by its minor
/// axes where the smaller parts are exact pieces of the larger.
enum class StepKind {
  AllSlice,
  AllGather,
  AllToAll,
  ReduceScatter,
  AllReduce,
  CollectivePermute,
  ToPartial
};
/// `all_slice`, `all_gather`, ...
const char *toString(StepKind kind);
/// False for AllSlice and ToPartial.
bool communicates(StepKind kind);

/// One collective. Meaning of `dim` and `toDim`, -1 where not used:
/// AllGather: dim; AllToAll: dim -> toDim; ReduceScatter: toDim; AllSlice:
/// toDim (the first, when several).
struct Step {
  StepKind kind = StepKind::AllReduce;
  /// Sorted set: the axes that move.
  SubAxes axes;
  int dim = -1;
  int toDim = -1;
  Layout result;
};

/// Layout after the step; nothing when it is not possible. New splits are put
/// at the minor end of what splits the dimension already.
std::optional<Layout> allSlice(const Layout &from, int dim,
                               const SubAxes &axes);
std::optional<Layout> reduceScatter(const Layout &from, int toDim,
                                    const SubAxes &axes);
std::optional<Layout> allReduce(const Layout &from, const SubAxes &axes);

/// The one step from one layout to the other, if there is one. Where two kinds
/// would do, the first of: AllSlice, AllGather, AllReduce, ReduceScatter,
/// ToPartial, CollectivePermute, AllToAll.
std::optional<Step> identifyStep(const Layout &from, const Layout &to);

/// Why no step of this kind over these axes leads from one layout to the other
/// (both legal on `mesh`). Nothing when one does. This is what --verify asks of
/// every collective.
std::optional<std::string> findStepFault(StepKind kind, const SubAxes &axes,
                                         const Layout &from, const Layout &to,
                                         const Mesh &mesh);

/// Returns for each rank the rank whose block it receives in the
/// CollectivePermute that leads from one layout to the other: a permutation of
/// the ranks.
std::vector<int64_t> permuteSources(const Layout &from, const Layout &to,
                                    const Mesh &mesh);

/// Bytes of a tensor's element, and of an addend of it: sums of narrow floats
/// are made in wider ones.
struct ElementBytes {
  int64_t whole, addend;

  ElementBytes(int64_t bytes) : whole(bytes), addend(bytes) {}
  ElementBytes(int64_t whole, int64_t addend) : whole(whole), addend(addend) {}
  int64_t in(const Layout &layout) const {
    bool isAddend =
        !layout.partial.empty() && layout.partialKind == ReduceKind::Sum;
    return isAddend ? addend : whole;
  }
};

/// Bytes of a rank's block. Padding counts.
int64_t localBytes(const Layout &layout, ElementBytes elementBytes);
/// Payload of a step per rank, the larger of input and output block; of a
/// ring, AllReduce moves 2(p-1)/p of it, CollectivePermute all, the others
/// (p-1)/p. 0 for steps that send nothing.
int64_t payloadBytes(StepKind kind, const Layout &from, const Layout &to,
                     ElementBytes elementBytes);

/// Seconds of a step of this kind over these axes with this payload; asked only
/// for steps that communicate. Paths are the cheapest when it does not fall
/// with a growing payload, when one collective over several axes is not dearer
/// than several over some of them each (how it is done inside is the
/// communicator's), and when an all-reduce is not cheaper than a
/// reduce-scatter, nor an all-to-all whose parts are padded than an all-gather.
/// Why: docs/rationale/sharding.md.
using CostFn =
    std::function<double(StepKind kind, const SubAxes &axes, int64_t payload)>;
/// Ring payloads; latency times log2 of the ranks.
struct RingCost {
  double latencySeconds, bytesPerSecond;

  double seconds(StepKind kind, int64_t ranks, double payload) const;
};
/// The same for all axes.
CostFn ringCost(double latencySeconds, double bytesPerSecond);

struct ReshardPlan {
  std::vector<Step> steps;
  double seconds = 0;
  /// Number of steps that communicate.
  int numCollectives() const;
};

/// Plans reshardings, remembering every answer. Over axes in time (slices of
/// the batch done one after another at one place) sums cost nothing, and all
/// else more than anything: no slice waits for the next ones.
class Resharder {
public:
  Resharder(const Mesh &mesh, CostFn cost);
  ~Resharder();

  /// A single step where one does (a permute only if nothing is cheaper), else
  /// the cheapest path; of equally dear ones the one with the fewest
  /// collectives, then steps, and one found in a fixed order. Empty when the
  /// layouts are equal. Both layouts are legal, canonical, and of the same
  /// global shape. Never dearer than reducing and gathering everything that
  /// differs, then slicing.
  const ReshardPlan &plan(const Layout &from, const Layout &to,
                          ElementBytes elementBytes);

  /// What it remembers, for propagate().
  detail::ReshardPlans &getPlans() { return *plans; }

private:
  std::unique_ptr<detail::ReshardPlans> plans;
};

} // namespace ax::sharding

#endif // AX_SHARDING_RESHARD_H
