//===- Shardings.h - What propagation found, as attributes ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_SHARD_SHARDINGS_H
#define AX_PASSES_SHARD_SHARDINGS_H

#include "ShardGraph.h"

namespace ax {

/// Writes `ax.sharding` of all operations and inputs.
void writeShardings(const ShardGraph &graph,
                    const sharding::Shardings &shardings,
                    const sharding::Mesh &mesh);

/// What they say; fails with an error at an operation or input that has none.
mlir::FailureOr<sharding::Shardings> readShardings(const ShardGraph &graph,
                                                   const sharding::Mesh &mesh);

/// The layout before it is cut into slices done one after another: a state is
/// the same for every micro-batch.
sharding::Layout withoutTime(sharding::Layout layout,
                             const sharding::Mesh &mesh);

} // namespace ax

#endif // AX_PASSES_SHARD_SHARDINGS_H
