//===- Zero.h - State split over data ---------------------------*- C++ -*-===//
#ifndef AX_PASSES_SHARD_ZERO_H
#define AX_PASSES_SHARD_ZERO_H

#include "ShardGraph.h"

namespace ax {

/// Pins that split over `data`, beside what splits them in `found`: what only
/// the optimizer uses and its new values, so that gradients are
/// reduce-scattered (stages 1 and 2 of Rajbhandari et al., arXiv 1910.02054);
/// with stage 3 every state that is stored. States that `data` does not divide
/// stay as they are.
void pinZero(const ShardGraph &graph, ProgramOp program,
             const sharding::Propagation &found, const sharding::Mesh &mesh,
             int64_t stage, sharding::Pins &pins);

} // namespace ax

#endif // AX_PASSES_SHARD_ZERO_H
