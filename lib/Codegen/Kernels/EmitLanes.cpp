//===- EmitLanes.cpp - Neighbouring points of one thread ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread of a GPU reads and writes 16 bytes at a time as fast as 4. So where
// points next to each other have elements next to each other, it does several:
// the *lanes* of a plan, whose number is a constant in what is written of each.
//
// E.g. y = gelu(x) of 4096 f32: a thread that does iteration i of 1024 loads
// x[4 i], x[4 i + 1], x[4 i + 2] and x[4 i + 3], and then stores y[4 i] up to
// y[4 i + 3]. LLVM's backend makes one instruction of the loads, and one of the
// stores, where it proves that the address of the first is a multiple of 16:
// what is assumed of that here costs time where it is wrong, but no results.
//
//===----------------------------------------------------------------------===//

#include "ElementOps.h"
#include "Emitter.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SaveAndRestore.h"

#include <numeric>

using namespace mlir;

namespace ax::codegen {

static constexpr int64_t mostBytes = 16;

/// Tensors and rows begin at multiples of what one access has, and an access is
/// aligned if all that is added to the last loop's counter is.
void Emitter::noteNeighbours(const IndexExpr &offset, Type type) {
  if (nests.dealing == Dealing::Pieces || nestDepth > 1)
    return;
  // Those of a single point are neighbours of other iterations' accesses.
  const IndexSpace::Nest &nest =
      wholeNest->plan->numPoints() > 1 ? *wholeNest : outer;
  auto groups = nest.plan->groups();
  while (!groups.empty() && nest.plan->sizeOf(groups.back()) == 1)
    groups.pop_back();
  if (groups.empty())
    return;
  IndexExpr rest = offset;
  int64_t step = 0;
  for (int k = groups.back().first; k != groups.back().second; ++k)
    if (int var = nest.vars[k]; var >= 0) {
      step = offset.coefficient(var);
      llvm::erase_if(rest.terms, [&](auto &term) { return term.var == var; });
    }
  // One number for all of them is no matter.
  if (step == 0)
    return;
  int64_t bytes = storageBytes(type);
  int64_t points = std::gcd(mostBytes / bytes, rest.constant);
  for (const IndexExpr::Term &term : rest.terms)
    points = std::gcd(points, term.coef);
  Neighbours &of = neighbours[nest.plan];
  // What is chosen at run time for each point stays apart.
  if (step != 1 || points == 1 || choiceDepth > 0) {
    ++of.apart;
    return;
  }
  ++of.together;
  of.widest = std::max(of.widest, bytes);
  of.points = std::max(of.points, points);
}

/// All lanes of an access are a constant from one address, which is one of the
/// tensor's as they are, for it is a multiple of their number.
std::pair<Value, Value> Emitter::placeOf(Value base, IndexExpr offset,
                                         Type type) {
  if (!inLanes || llvm::any_of(offset.terms, [&](const IndexExpr::Term &term) {
        return term.coef % inLanes->count != 0;
      }))
    return {base, space.materialize(offset)};
  int64_t lane = llvm::mod(offset.constant, inLanes->count);
  offset.constant -= lane;
  return {writer.address(base, space.materialize(offset), type),
          writer.number(lane)};
}

/// Whether a thread does hardly more points with lanes than without them: of
/// short rows, some threads have nothing to do then.
static bool keepsBusy(int64_t points, int64_t lanes, int64_t threads) {
  int64_t without = llvm::divideCeilSigned(points, threads);
  int64_t with = lanes * llvm::divideCeilSigned(points, lanes * threads);
  return 3 * with <= 4 * without;
}

/// As many as the widest elements have in one access: what is narrower is then
/// read and written in whole lines by neighbouring threads, too.
bool Emitter::makeLanes() {
  bool isMore = false;
  for (const auto &[plan, of] : neighbours) {
    bool isOuter = plan == &nests.outer;
    if (plan->numLanes() > 1 || plan->tile() || of.hasLoops ||
        of.together < of.apart || (isOuter && !areElements()))
      continue;
    int64_t threads = isOuter ? 1 : nests.group.threads;
    int64_t lanes = std::min(mostBytes / of.widest, of.points);
    while (lanes > 1 && !(keepsBusy(plan->numPoints(), lanes, threads) &&
                          plan->makeLanes(lanes)))
      lanes /= 2;
    isMore |= lanes > 1;
  }
  return isMore;
}

/// A point, or all lanes of one. These store when all of them have read: a
/// store in between could be to what another one reads, for all that LLVM
/// knows, and would keep their accesses apart. So would one to another tensor.
Emitter::Values Emitter::emitLanes(IndexSpace::Nest &nest, ValueRange carried,
                                   Body body) {
  Values results(carried);
  Lanes lanes{nest.plan->numLanes(), {}};
  llvm::SaveAndRestore ofLanes(inLanes, lanes.count > 1 ? &lanes : inLanes);
  memos.emplace_back();
  for (nest.lane = 0; nest.lane != lanes.count; ++nest.lane)
    results = body(results);
  memos.pop_back();
  for (const auto &[base, stores] : lanes.stores)
    for (const Store &store : stores) {
      auto [near, further] = placeOf(base, store.offset, store.type);
      writer.store(store.value, near, further, store.type);
    }
  return results;
}

} // namespace ax::codegen
