//===- Apply.h - Layouts and collectives into the program -------*- C++ -*-===//
#ifndef AX_PASSES_SHARD_APPLY_H
#define AX_PASSES_SHARD_APPLY_H

#include "ShardGraph.h"

namespace ax {

/// Gives every value of the program, and every state it loads, the layout that
/// propagation found, and inserts its reshardings before their first use, and
/// those, planned by `resharder`, of what is stored. Fails with an error where
/// a resharding would have to move data in time.
mlir::LogicalResult applyLayouts(ProgramOp program, const ShardGraph &graph,
                                 const sharding::Propagation &found,
                                 const sharding::Mesh &mesh,
                                 sharding::Resharder &resharder, int64_t zero);

} // namespace ax

#endif // AX_PASSES_SHARD_APPLY_H
