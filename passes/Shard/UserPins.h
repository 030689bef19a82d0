//===- UserPins.h - Pins that the user wrote --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_SHARD_USERPINS_H
#define AX_PASSES_SHARD_USERPINS_H

#include "ShardGraph.h"
#include "ax/Passes/Strategy.h"
#include "llvm/ADT/BitVector.h"

namespace ax {

/// Pins of `--shard PATTERN=LAYOUT`, stronger than the recipe's. PATTERN is a
/// glob over the names of layers (ONNX node and exporter scope), which are what
/// the recipe splits, and of states, inputs and outputs. `colwise` splits what
/// a contraction with a weight gives over row and col, `rowwise` what it sums,
/// `replicate` neither, and no heads and groups either; a layout's text is for
/// states, inputs and outputs. Returns which of `asked` name something; fails
/// when a pattern is malformed, or when a layout does not fit.
llvm::Expected<llvm::BitVector> addUserPins(const ShardGraph &graph,
                                            ProgramOp program,
                                            llvm::ArrayRef<ShardPin> asked,
                                            const sharding::Mesh &mesh,
                                            sharding::Pins &pins);

/// What `asked` names: layers by their nodes, states, inputs and outputs. A
/// Usage error where the pattern is malformed or names nothing.
llvm::Expected<std::vector<std::string>>
namesOfPin(const ShardGraph &graph, ProgramOp program, const ShardPin &asked);

} // namespace ax

#endif // AX_PASSES_SHARD_USERPINS_H
