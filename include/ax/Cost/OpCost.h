//===- OpCost.h - What one operation costs one rank -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_COST_OPCOST_H
#define AX_COST_OPCOST_H

#include "ax/Cost/Machine.h"

namespace ax::cost {

/// Shape of the part that one rank holds (one micro-batch of it), by the
/// layout in the type; the global shape without one.
std::vector<int64_t> localShape(mlir::RankedTensorType type,
                                const sharding::Mesh &mesh);
/// Bytes of an element in memory: i1 takes one.
int64_t elementBytes(mlir::Type element);
/// Returns the bytes of an element of the tensor, and of an addend of one.
sharding::ElementBytes elementBytesOf(mlir::RankedTensorType type);
/// Whether what has `bytes`, made element by element of `source` bytes, is
/// better made where it is read than read from memory: it has about twice as
/// many, or more.
inline bool isMadeOfFewer(int64_t bytes, int64_t source) {
  return 16 * source <= 9 * bytes;
}
/// Bytes of the part that one rank holds.
int64_t localBytes(mlir::RankedTensorType type, const sharding::Mesh &mesh);

/// Multiplications and additions of a contraction (linear, dot, conv,
/// attention) on one rank for one micro-batch, by the layouts in its types; 0
/// for other ops.
double contractionFlops(mlir::Operation *op, const sharding::Mesh &mesh);
/// The same of the whole tensors, whatever their layouts.
double wholeFlops(mlir::Operation *op);

/// Roofline estimate of one rank's time for one micro-batch. Collectives are
/// not priced here. 0 for ops that only rename (reshape, constant, load).
double seconds(mlir::Operation *op, const sharding::Mesh &mesh,
               const Machine &machine);
/// The same where it is: a product with its epilogue, of which no operation
/// costs anything by itself.
double secondsInPlace(mlir::Operation *op, const sharding::Mesh &mesh,
                      const Machine &machine);

/// On how many hosts a group is, and how many of its ranks are on that which
/// has fewest.
struct Spread {
  int64_t inHost = 1, hosts = 1;
};
Spread spreadOf(llvm::ArrayRef<int64_t> group, int64_t ranksPerHost);
/// Groups wait for the one that takes longest.
Spread worseOf(Spread a, Spread b);
/// Returns how long a collective of such groups takes, of which each rank has
/// so many bytes (sharding::payloadBytes).
double exchangeSeconds(sharding::StepKind kind, Spread spread, double bytes,
                       const MachineRates &machine);
/// Prices of collectives, as rings within hosts, and between hosts of what is
/// left then for each rank.
sharding::CostFn collectiveCost(const sharding::Mesh &mesh,
                                const Machine &machine);

/// Returns the way from ranks of one coordinate on `pipe` to those of another:
/// that between hosts, if one of them has to take it.
const Link &linkBetween(int64_t from, int64_t to, const sharding::Mesh &mesh,
                        const Machine &machine);

} // namespace ax::cost

#endif // AX_COST_OPCOST_H
