//===- EmitStaying.cpp - Storing what changes, and nothing else -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A result in place that chooses between old elements and new ones is stored
// where a new one is chosen. There is a branch around whatever is chosen alike:
// around the loop over a row of a cache, whose place says whether it is new, or
// around the neighbours that a thread of a GPU does. Within it loops are what
// they would be if there was no choice. E.g. of
//
//   %z = select %isNew, %x, %zero     %new = select %isOld, %old, %z
//
// the first choice decides, and %z is what is stored.
//
//===----------------------------------------------------------------------===//

#include "ElementOps.h"
#include "Emitter.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace ax::codegen {

/// A part reads nothing in place that another one writes (`findStaying`), so
/// that they may go one behind the other. Threads of a GPU that share rows meet
/// outside of branches only.
void Emitter::choosePartsOfResults() {
  bool sharesRows =
      nests.dealing == Dealing::Elements && (hasRows || !kept.empty());
  auto isKept = [&](Operation *op) { return kept.contains(op); };
  for (unsigned i = 0; i != yield->getNumOperands(); ++i) {
    stays.push_back(sharesRows ? std::nullopt : findStaying(fusion, i));
    if (stays[i] && llvm::any_of(stays[i]->choices, isKept))
      stays[i].reset();
    auto *part = llvm::find_if(parts, [&](ArrayRef<unsigned> other) {
      const std::optional<Staying> &first = stays[other.front()];
      return stays[i] && first
                 ? stayAlike(*stays[i], yield->getOperand(i), *first,
                             yield->getOperand(other.front()))
                 : !stays[i] && !first;
    });
    if (part == parts.end())
      part = parts.insert(parts.end(), SmallVector<unsigned>());
    part->push_back(i);
  }
}

/// Stores a part of the results of an iteration, or of its neighbours that are
/// lanes of it.
void Emitter::emitPart(ArrayRef<unsigned> part) {
  // Nests do all lanes of columns.
  if (columnLanes() > 1)
    return emitResults(part);
  auto lanes = [&] {
    emitLanes(outer, {}, [&](ValueRange) -> Values {
      emitResults(part);
      return {};
    });
  };
  int64_t elements =
      tensorType(yield->getOperand(part.front())).getNumElements();
  // What is made once for each row is found again by what is behind.
  bool isAlone = !hasRows && kept.empty();
  if (isAlone && isChosenOnce(part.front(), elements / nests.iterations *
                                                nests.outer.numLanes()))
    emitWhereNew(part, {}, lanes);
  else
    lanes();
}

/// Whether so many points, from a multiple of that on, are chosen alike, and
/// are worth a branch. One that is the same for all of them LLVM takes out of
/// the loop.
bool Emitter::isChosenOnce(unsigned result, int64_t points) const {
  constexpr int64_t cacheLine = 64;
  const std::optional<Staying> &staying = stays[result];
  if (!staying || points == 0 || staying->row % points != 0 ||
      !staying->choosesOld(stored[result]))
    return false;
  RankedTensorType type = tensorType(staying->old);
  return nests.dealing == Dealing::Elements ||
         staying->row == type.getNumElements() ||
         points * storageBytes(type.getElementType()) >= cacheLine;
}

/// Whether that is so of all that is within the loop over `group`, and that
/// one. Of elements that are dealt out, iterations say it.
bool Emitter::isChosenAt(const IndexSpace::Nest &nest, unsigned group) const {
  if (&nest != nestOfResults || choosing.empty() ||
      nests.dealing == Dealing::Elements)
    return false;
  int64_t points = nest.plan->numLanes();
  for (std::pair<int, int> within :
       llvm::drop_begin(nest.plan->groups(), group))
    points *= nest.plan->sizeOf(within);
  return isChosenOnce(choosing.front(), points);
}

/// The first of these points tells for all: loops within have no counters yet.
void Emitter::emitChosen(IndexSpace::Nest &nest, unsigned group,
                         function_ref<void()> body) {
  auto groups = nest.plan->groups();
  size_t first =
      group < groups.size() ? groups[group].first : nest.plan->atoms.size();
  IndexExpr inner = space.linear(nest);
  for (int var : ArrayRef(nest.vars).drop_front(first))
    llvm::erase_if(inner.terms, [&](const IndexExpr::Term &term) {
      return var >= 0 && term.var == var;
    });
  SmallVector<unsigned> part = std::exchange(choosing, {});
  emitWhereNew(part, inner, body);
  choosing = std::move(part);
}

/// Emits `body` where no old element is chosen; `stored` says what is. `inner`
/// is any point within an iteration for which the choice is that of the body.
void Emitter::emitWhereNew(ArrayRef<unsigned> part, const IndexExpr &inner,
                           function_ref<void()> body) {
  unsigned first = part.front();
  const Staying &staying = *stays[first];
  if (stored[first] == staying.old)
    return;
  if (!staying.choosesOld(stored[first]))
    return body();
  auto follow = [&](bool isTrue) {
    llvm::SaveAndRestore chosen(stored);
    for (unsigned i : part) {
      auto select = stored[i].getDefiningOp<SelectOp>();
      stored[i] = isTrue ? select.getOnTrue() : select.getOnFalse();
    }
    memos.emplace_back();
    emitWhereNew(part, inner, body);
    memos.pop_back();
  };
  auto select = stored[first].getDefiningOp<SelectOp>();
  memos.emplace_back();
  Value condition =
      pullBroadcast(select.getCondition(), indicesInResult(first, inner));
  auto inside = [&] { follow(true); };
  auto outside = [&] { follow(false); };
  using Side = function_ref<void()>;
  writer.branch(condition,
                select.getOnTrue() == staying.old ? Side() : Side(inside),
                select.getOnFalse() == staying.old ? Side() : Side(outside));
  memos.pop_back();
}

} // namespace ax::codegen
