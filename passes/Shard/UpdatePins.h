//===- UpdatePins.h - Where the optimizer works -----------------*- C++ -*-===//
#ifndef AX_PASSES_SHARD_UPDATEPINS_H
#define AX_PASSES_SHARD_UPDATEPINS_H

#include "ShardGraph.h"

namespace ax {

/// Pins of a program that trains, given what propagation has `found` without
/// them: a weight's gradient is summed to where the weight is stored, and there
/// it is updated. With `zero` > 0 that is one part over `data` for each rank,
/// as are the moments (stages 1 and 2 of Rajbhandari et al., arXiv 1910.02054);
/// with 3 the weights are stored so, too. What `data` does not divide stays
/// whole. False when there is nothing to pin.
bool pinUpdates(const ShardGraph &graph, ProgramOp program,
                const sharding::Propagation &found, const sharding::Mesh &mesh,
                int64_t zero, sharding::Pins &pins);

} // namespace ax

#endif // AX_PASSES_SHARD_UPDATEPINS_H
