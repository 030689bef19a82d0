//===- PinLists.h - Pins as attributes and back -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_SHARD_PINLISTS_H
#define AX_PASSES_SHARD_PINLISTS_H

#include "Recipe.h"

namespace ax {

/// Writes pins behind those that operations and inputs have (`ax.pins`).
void addPins(const ShardGraph &graph, const sharding::Pins &pins,
             const sharding::Mesh &mesh, const AskedParts &asked = {});

/// All that are written, in the order of operations and tensors, and of one in
/// that of its list.
sharding::Pins readPins(const ShardGraph &graph, const sharding::Mesh &mesh);

/// The factor that a pin of operation `op` of the graph is of.
int factorOf(FactorPinAttr pin, const sharding::Rule &rule);

/// Returns the attribute `name` that a tensor has: from the operation that
/// makes it, or the input.
mlir::Attribute getShardAttr(mlir::Value value, llvm::StringRef name);
/// Null removes it.
void setShardAttr(mlir::Value value, llvm::StringRef name,
                  mlir::Attribute attr);

} // namespace ax

#endif // AX_PASSES_SHARD_PINLISTS_H
