//===- Step.h - The changes of layout there are -----------------*- C++ -*-===//
#ifndef AX_SHARDING_STEP_H
#define AX_SHARDING_STEP_H

#include "ax/Sharding/Layout.h"

namespace ax::sharding {

/// One change of layout; `axes` are those that move.
enum class StepKind {
  /// Replicated over axes -> one dimension split over them. Free.
  AllSlice,
  /// Split over axes (one dimension) -> replicated over them.
  AllGather,
  /// Axes leave one dimension and split another.
  AllToAll,
  /// Partial over axes -> one dimension split over them.
  ReduceScatter,
  /// Partial over axes -> replicated over them.
  AllReduce,
  /// Same local shape, parts dealt anew among the ranks that differ in axes.
  CollectivePermute,
  /// Replicated over axes -> partial sum: zero on all ranks but the first.
  ToPartial,
};

/// `all_gather`, ...
const char *toString(StepKind kind);

/// Why `kind` over `axes` does not lead from `from` to `to` (both canonical,
/// legal, of one shape); nothing when it does.
std::optional<std::string> findStepFault(StepKind kind, const Layout &from,
                                         const Layout &to, const SubAxes &axes,
                                         const Mesh &mesh);

} // namespace ax::sharding

#endif // AX_SHARDING_STEP_H
