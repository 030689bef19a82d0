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
#include "ThreadGroups.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SaveAndRestore.h"

#include <numeric>

using namespace mlir;

namespace ax::codegen {

static constexpr int64_t mostBytes = 16;

/// Of accesses at neighbouring points, and at neighbouring iterations: those of
/// a single point are neighbours of other iterations' accesses.
void Emitter::noteNeighbours(const IndexExpr &offset, Type type) {
  if (nests.dealing == Dealing::Pieces || nestDepth > 1)
    return;
  if (wholeNest->plan->numPoints() == 1)
    return noteAlong(outer, offset, type, neighbours[&nests.outer]);
  Neighbours &ofPoints = neighbours[wholeNest->plan];
  noteAlong(*wholeNest, offset, type, ofPoints);
  // Of several nests with the plan, the last.
  if (ofPoints.vars != wholeNest->vars)
    ofPoints.all.clear();
  ofPoints.vars = wholeNest->vars;
  ofPoints.all.push_back({offset, storageBytes(type)});
  // A column's own numbers, a mean's for one, are read once.
  bool isOfPoint = llvm::any_of(wholeNest->vars, [&](int var) {
    return var >= 0 && offset.coefficient(var) != 0;
  });
  if (isOfPoint)
    noteAlong(outer, offset, type, ofColumns);
}

/// Tensors and rows begin at multiples of what one access has, and an access is
/// aligned if all that is added to the last loop's counter is.
void Emitter::noteAlong(const IndexSpace::Nest &nest, const IndexExpr &offset,
                        Type type, Neighbours &of) {
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
  if (step == 1 && choiceDepth == 0)
    of.beside.push_back({rest, bytes});
  // What is chosen at run time for each point stays apart.
  if (step != 1 || points == 1 || choiceDepth > 0) {
    ++of.apart;
    return;
  }
  ++of.together;
  of.widest = std::max(of.widest, bytes);
  of.points = std::max(of.points, points);
}

/// The expression without what is a multiple of `lanes`.
static IndexExpr modulo(const IndexExpr &expr, int64_t lanes) {
  IndexExpr rest(llvm::mod(expr.constant, lanes));
  for (const IndexExpr::Term &term : expr.terms)
    if (int64_t coef = llvm::mod(term.coef, lanes))
      rest.terms.push_back({term.var, coef});
  return rest;
}

/// Where a plan's point 0 lies, but for a multiple of its lanes.
static IndexExpr placeOfFirst(const LoopPlan::Shift &shift,
                              const IndexExpr &iteration) {
  return iteration * shift.ofIteration + IndexExpr(shift.constant);
}

static int loopOf(const IndexSpace::Nest &nest) {
  return *llvm::find_if(nest.vars, [](int var) { return var >= 0; });
}

/// Whether lanes of the offset's element are next to each other and aligned.
bool Emitter::isShiftedAlong(const IndexExpr &offset) const {
  int var = loopOf(*inShifted->nest);
  if (offset.coefficient(var) != 1)
    return false;
  IndexExpr first = offset;
  llvm::erase_if(first.terms, [&](auto &term) { return term.var == var; });
  const LoopPlan::Shift &shift = *inShifted->nest->plan->shift;
  return modulo(first, shift.lanes) ==
         modulo(placeOfFirst(shift, space.linear(outer)), shift.lanes);
}

/// All lanes of an access are a constant from one address, which is one of the
/// tensor's as they are, for it is a multiple of their number.
std::pair<Value, Value> Emitter::placeOf(Value base, IndexExpr offset,
                                         Type type) {
  if (inShifted && isShiftedAlong(offset)) {
    int var = loopOf(*inShifted->nest);
    llvm::erase_if(offset.terms, [&](auto &term) { return term.var == var; });
    // Nothing is left of the division, which says so.
    Value lanes = writer.number(inShifted->nest->plan->shift->lanes);
    Value first = writer.addIndex(space.materialize(offset), inShifted->head);
    first = writer.mulIndex(writer.divIndex(first, lanes), lanes);
    return {writer.address(writer.address(base, first, type), inShifted->start,
                           type),
            writer.number(inShifted->lane)};
  }
  if (inShifted || !inLanes ||
      llvm::any_of(offset.terms, [&](const IndexExpr::Term &term) {
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

/// Columns are lanes where all that is found of them are numbers.
int64_t Emitter::getColumnLanes() const {
  if (columnReads <= rowReads)
    return 0;
  bool areNumbers = llvm::all_of(
      rowValues, [](const auto &row) { return row.second.isScalar; });
  if (!areNumbers || ofColumns.together < ofColumns.apart)
    return 1;
  int64_t lanes = std::min(mostBytes / ofColumns.widest, ofColumns.points);
  auto suits = [&] {
    LoopPlan plan = nests.outer;
    return nests.iterations / lanes >= fewNeighbours && plan.makeLanes(lanes) &&
           plan.atoms.back().isSplitOff;
  };
  while (lanes > 1 && !suits())
    lanes /= 2;
  return lanes;
}

/// Of another column that a thread has.
IndexExpr Emitter::atLane(const IndexExpr &index, int64_t lane) const {
  int var = *llvm::find_if(llvm::reverse(outer.vars),
                           [](int other) { return other >= 0; });
  int64_t step = index.coefficient(var) / columnLanes();
  return index + IndexExpr(step * (lane - outer.lane));
}

int64_t Emitter::getWidest() const {
  int64_t widest = ofColumns.widest;
  for (const auto &[plan, of] : neighbours)
    if (plan != &nests.outer)
      for (const auto &[first, bytes] : of.beside)
        widest = std::max(widest, bytes);
  return widest;
}

/// Whether each access that differs from row to row has up to 16 bytes next to
/// each other of so many points of the last loops, and all others have theirs
/// next to each other.
bool Emitter::areByteLanes(const LoopPlan &plan, const Neighbours &of,
                           int64_t lanes) const {
  // Variables of the lanes, how many points of each, and whether it has more.
  struct Part {
    int var;
    int64_t points;
    bool hasMore;
  };
  SmallVector<Part, 4> parts;
  int64_t left = lanes;
  for (size_t k = plan.atoms.size(); k-- > 0 && left > 1;) {
    const LoopPlan::Atom &atom = plan.atoms[k];
    if (atom.size == 1)
      continue;
    int64_t points = std::min(left, atom.size);
    if (!atom.cuts.empty() || left % points != 0 || atom.size % points != 0)
      return false;
    parts.push_back({of.vars[k], points, points < atom.size});
    left /= points;
  }
  if (left > 1)
    return false;
  return llvm::all_of(of.all, [&](const auto &access) {
    const auto &[offset, bytes] = access;
    SmallVector<int64_t> places{0};
    int64_t aligned = offset.constant;
    IndexExpr rest = offset;
    for (const Part &part : parts) {
      int64_t step = offset.coefficient(part.var);
      for (size_t i = 0, e = places.size(); i != e; ++i)
        for (int64_t point = 1; point != part.points; ++point)
          places.push_back(places[i] + point * step);
      llvm::erase_if(rest.terms,
                     [&](auto &term) { return term.var == part.var; });
      if (part.hasMore)
        aligned = std::gcd(aligned, step * part.points);
    }
    for (const IndexExpr::Term &term : rest.terms)
      aligned = std::gcd(aligned, term.coef);
    llvm::sort(places);
    places.erase(llvm::unique(places), places.end());
    auto count = static_cast<int64_t>(places.size());
    bool isOwn = space.dependsOn(offset, outer);
    int64_t together = std::min(count, mostBytes / bytes);
    return places.front() == 0 && places.back() == count - 1 &&
           aligned % together == 0 && (!isOwn || together == count);
  });
}

/// A row's own bytes, of which a thread reads 16 at a time, beside what is the
/// same for all rows, however wide that is: it is in the cache. E.g. weights of
/// eight bits and a vector of f32 that they are multiplied with, or of four,
/// two in a byte. More than one access of a row's would be no faster.
int64_t Emitter::byteLanes(const LoopPlan &plan, const Neighbours &of) const {
  constexpr int64_t most = 32;
  auto isOwnByte = [&](const auto &access) {
    return access.second == 1 && space.dependsOn(access.first, outer);
  };
  if (of.hasLoops || plan.numLanes() > 1 || plan.shift ||
      llvm::none_of(of.all, isOwnByte))
    return 1;
  int64_t lanes = most;
  while (lanes > 1 && !areByteLanes(plan, of, lanes))
    lanes /= 2;
  return lanes;
}

int64_t Emitter::getByteLanes() const {
  int64_t lanes = 1;
  for (const auto &[plan, of] : neighbours)
    if (plan != &nests.outer && plan->numPoints() == mostPoints)
      lanes = std::max(lanes, byteLanes(*plan, of));
  return lanes;
}

/// Where sizes do not divide, or rows begin anywhere: most accesses are to
/// begin at the same distance from a multiple of 16 bytes.
bool Emitter::makeShift(LoopPlan &plan, const Neighbours &of) {
  // Fewer turns are not worth the points before and behind.
  constexpr int64_t fewTurns = 4;
  if (!nests.group.isMany() || nests.group.isColumn())
    return false;
  int64_t widest = 1;
  for (const auto &[first, bytes] : of.beside)
    widest = std::max(widest, bytes);
  int64_t lanes = mostBytes / widest;
  if (lanes == 1 || plan.numPoints() < fewTurns * lanes * nests.group.threads)
    return false;
  for (int64_t ofIteration = 0; ofIteration != lanes; ++ofIteration)
    for (int64_t constant = 0; constant != lanes; ++constant) {
      LoopPlan::Shift shift{lanes, ofIteration, constant};
      IndexExpr place = modulo(placeOfFirst(shift, space.linear(outer)), lanes);
      int64_t along = llvm::count_if(of.beside, [&](const auto &access) {
        return modulo(access.first, lanes) == place;
      });
      if (2 * along > of.together + of.apart)
        return plan.makeShift(shift);
    }
  return false;
}

/// As many as the widest elements have in one access: what is narrower is then
/// read and written in whole lines by neighbouring threads, too.
bool Emitter::makeLanes() {
  if (columnLanes() > 1)
    return false;
  if (int64_t lanes = getColumnLanes(); nests.group.isColumn() && lanes > 1)
    return nests.outer.makeLanes(lanes);
  bool isMore = false;
  for (const auto &[plan, of] : neighbours) {
    bool isOuter = plan == &nests.outer;
    if (plan->numLanes() > 1 || plan->shift || plan->tile() || of.hasLoops ||
        (isOuter && !areElements()))
      continue;
    int64_t threads = isOuter ? 1 : nests.group.threads;
    if (int64_t lanes =
            isOuter || nests.group.isColumn() ? 1 : byteLanes(*plan, of);
        lanes > 1 && keepsBusy(plan->numPoints(), lanes, threads) &&
        plan->makeLanes(lanes, /*ofSeveralLoops=*/true)) {
      isMore = true;
      continue;
    }
    int64_t lanes =
        of.together < of.apart ? 1 : std::min(mostBytes / of.widest, of.points);
    while (lanes > 1 && !(keepsBusy(plan->numPoints(), lanes, threads) &&
                          plan->makeLanes(lanes)))
      lanes /= 2;
    isMore |= lanes > 1 || (!isOuter && makeShift(*plan, of));
  }
  return isMore;
}

/// A point, or all lanes of one. These store when all of them have read: a
/// store in between could be to what another one reads, for all that LLVM
/// knows, and would keep their accesses apart. So would one to another tensor.
Emitter::Values Emitter::emitLanes(IndexSpace::Nest &nest, ValueRange carried,
                                   Body body) {
  Values results(carried);
  Lanes lanes{nest.plan->numLanes(), nestDepth, {}};
  llvm::SaveAndRestore ofLanes(inLanes,
                               inLanes || lanes.count == 1 ? inLanes : &lanes);
  memos.emplace_back();
  for (nest.lane = 0; nest.lane != lanes.count; ++nest.lane)
    results = body(results);
  nest.lane = 0;
  memos.pop_back();
  emitStores(lanes);
  return results;
}

void Emitter::emitStores(const Lanes &lanes) {
  for (const auto &[base, stores] : lanes.stores)
    for (const Store &store : stores)
      writer.store(store.value, store.near, store.further, store.type);
}

/// All points of a nest: of one with a shift those that are in no lanes, and
/// then the lanes. How many there are of either is one number for any head.
SmallVector<Emitter::Turns, 2> Emitter::turnsOf(const IndexSpace::Nest &nest) {
  int64_t size = nest.plan->numPoints();
  if (!nest.plan->shift) {
    int64_t lanes = nest.plan->numLanes();
    return {{size / lanes, lanes, {}}};
  }
  int64_t lanes = nest.plan->shift->lanes;
  IndexExpr place = placeOfFirst(*nest.plan->shift, space.linear(outer));
  Value over = writer.remIndex(space.materialize(place), writer.number(lanes));
  Value head = writer.addIndex(writer.number(lanes),
                               writer.mulIndex(over, writer.number(-1)));
  head = writer.remIndex(head, writer.number(lanes));
  int64_t longest =
      place.isConstant() ? llvm::mod(-place.constant, lanes) : lanes - 1;
  int64_t count = (size - longest) / lanes;
  return {{size - count * lanes, 1, head, count * lanes}, {count, lanes, head}};
}

/// One of these.
Emitter::Values Emitter::emitTurn(IndexSpace::Nest &nest, const Turns &turns,
                                  Value point, ValueRange carried, Body body) {
  if (!nest.plan->shift) {
    bindPoint(nest, point);
    // What is carried has a value for each column.
    return columnLanes() > 1 && carried.empty()
               ? emitLanes(outer, carried, body)
               : emitLanes(nest, carried, body);
  }
  Values results(carried);
  // Lanes' expressions do not say which one it is.
  auto emit = [&](Value number) {
    bindPoint(nest, number);
    memos.emplace_back();
    results = body(results);
    memos.pop_back();
  };
  if (turns.lanes == 1) {
    Value behind = writer.addIndex(point, writer.number(turns.between));
    emit(writer.select(writer.isLess(point, turns.head), point, behind));
    return results;
  }
  Lanes lanes{turns.lanes, nestDepth, {}};
  llvm::SaveAndRestore ofLanes(inLanes, inLanes ? inLanes : &lanes);
  Shifted shifted{&nest, turns.head,
                  writer.mulIndex(point, writer.number(turns.lanes))};
  llvm::SaveAndRestore ofShifted(inShifted,
                                 static_cast<const Shifted *>(&shifted));
  Value first = writer.addIndex(shifted.head, shifted.start);
  for (; shifted.lane != turns.lanes; ++shifted.lane)
    emit(writer.addIndex(first, writer.number(shifted.lane)));
  emitStores(lanes);
  return results;
}

/// So many that a thread has some 64 bytes on their way, if it has more points.
/// Arithmetic of f64 takes registers of its own.
int64_t Emitter::togetherOf(const IndexSpace::Nest &nest,
                            const Turns &turns) const {
  constexpr int64_t most = 4;
  auto isF64 = [](Type type) {
    return cast<RankedTensorType>(type).getElementType().isF64();
  };
  if (&nest != nestOfResults || nests.group.isColumn() ||
      llvm::any_of(yield->getOperandTypes(), isF64))
    return 1;
  int64_t points = turns.lanes > 1 ? most / 2 : most;
  return turns.count >= 2 * points * nests.group.threads ? points : 1;
}

} // namespace ax::codegen
