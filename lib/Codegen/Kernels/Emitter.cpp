//===- Emitter.cpp - The frame of a kernel: loops and results -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Emitter.h"
#include "ElementOps.h"
#include "MaxAndSums.h"

#include "llvm/Support/SaveAndRestore.h"

#include <functional>

using namespace mlir;

namespace ax::codegen {

static constexpr int64_t cacheLine = 64;

SmallVector<AxesAttr, 2> collectScalars(FusionOp fusion) {
  SmallVector<AxesAttr, 2> axes;
  fusion.getBody().walk([&](AxisIndexOp op) {
    if (!llvm::is_contained(axes, op.getAxes()))
      axes.push_back(op.getAxes());
  });
  return axes;
}

Emitter::Emitter(FusionOp fusion, KernelNests &nests, KernelWriter &writer)
    : fusion(fusion), nests(nests), writer(writer),
      yield(fusion.getBody().front().getTerminator()),
      numOperands(fusion.getBody().getNumArguments()),
      i64(IntegerType::get(fusion.getContext(), 64)),
      beside(nests.dealing == Dealing::Elements ? findBeside(fusion)
                                                : SmallVector<ReduceOp>()),
      kept(chooseKept(fusion, beside)), scalars(collectScalars(fusion)),
      space(writer) {
  Block &block = fusion.getBody().front();
  if (nests.dealing == Dealing::Elements)
    for (const MaxAndSumOps &both : findMaxAndSums(fusion, kept)) {
      sumsAlong[both.max] = both.sum;
      maximaAlong[both.sum] = both.max;
      kept.erase(both.exp);
    }
  hasRows = llvm::any_of(block, [](Operation &op) { return isRowOp(&op); });
  scattersInParts = hasScattersInParts(fusion);
  for (auto [number, op] : llvm::enumerate(block))
    numbers[&op] = static_cast<int64_t>(number);
  choosePartsOfResults();
}

void Emitter::run() {
  resultDone.assign(yield->getNumOperands(), 0);
  memos.assign(1, {});
  llvm::append_range(stored, yield->getOperands());
  emitIterations();
}

LoopPlan &Emitter::getPlan(Operation *op, int which, ArrayRef<int64_t> sizes) {
  // The same operation may be computed over different dimensions.
  KernelNests::Key key{numbers.lookup(op), which,
                       SmallVector<int64_t, 4>(sizes)};
  return nests.inner.try_emplace(std::move(key), sizes).first->second;
}

void Emitter::emitIterations() {
  writer.iterations(nests.tiledSize,
                    [&](Value iteration, std::pair<Value, Value> tileOf) {
                      tile = tileOf;
                      outer = space.addNest(nests.outer, false);
                      bindPoint(outer, iteration);
                      auto elements = [&] {
                        for (ArrayRef<unsigned> part : parts)
                          emitPart(part);
                      };
                      if (nests.outer.tile())
                        emitTile(elements);
                      else
                        elements();
                      // The next one has the same scratch.
                      if (scratchBytes > 0)
                        writer.meet();
                    });
}

/// Counters are the digits of the point's number, last first.
void Emitter::bindPoint(const IndexSpace::Nest &nest, Value number) {
  Value rest = number;
  auto groups = nest.plan->groups();
  for (int g = int(groups.size()) - 1; g >= 0; --g) {
    int64_t size = nest.plan->sizeOf(groups[g]);
    if (size == 1)
      continue;
    bool isFirst = nest.plan->sizeOf({0, groups[g].first}) == 1;
    Value digit = rest;
    if (!isFirst) {
      digit = writer.remIndex(rest, writer.number(size));
      rest = writer.divIndex(rest, writer.number(size));
    }
    space.bindGroup(nest, groups[g].first, digit);
  }
}

/// Counts reads that neighbouring points, or neighbouring iterations, have next
/// to each other. What neighbouring iterations read alike, as a vector that
/// rows are multiplied by, they find in a cache.
void Emitter::noteOrder(const IndexExpr &offset) {
  auto coefficientOfLast = [&](const IndexSpace::Nest &nest) {
    for (int var : llvm::reverse(nest.vars))
      if (var >= 0)
        return std::abs(offset.coefficient(var));
    return int64_t(0);
  };
  int64_t ofPoint = coefficientOfLast(*wholeNest);
  int64_t ofIteration = coefficientOfLast(outer);
  rowReads += ofPoint == 1 && ofIteration != 0;
  columnReads += ofPoint > 1 && ofIteration == 1;
}

/// Elements that lie next to each other along an outer loop, and far apart
/// along the last one, are wanted in tiles: by the time their neighbours are
/// read, the cache would have lost them.
void Emitter::noteStride(const IndexExpr &offset, Type type) {
  constexpr int64_t fewPoints = 64, neighbours = 4;
  auto groups = resultNest->plan->groups();
  if (groups.empty())
    return;
  auto [first, last] = groups.back();
  int64_t bytes = storageBytes(type), step = 0;
  int64_t size = resultNest->plan->sizeOf({first, last});
  for (int k = first; k != last; ++k)
    if (resultNest->vars[k] >= 0)
      step = offset.coefficient(resultNest->vars[k]) * bytes;
  if (size <= fewPoints || step < cacheLine ||
      !resultNest->plan->atoms[first].cuts.empty())
    return;
  auto isNext = [&](const IndexSpace::Nest &nest, int end) {
    for (int k = 0; k != end; ++k)
      if (nest.vars[k] >= 0 && nest.plan->atoms[k].size >= neighbours) {
        int64_t coef = offset.coefficient(nest.vars[k]) * bytes;
        if (coef > 0 && coef * neighbours <= cacheLine)
          return true;
      }
    return false;
  };
  if (isNext(outer, outer.vars.size()) || isNext(*resultNest, first))
    wantedTiledSize = size;
}

Emitter::Values Emitter::emitLoops(IndexSpace::Nest &nest, ValueRange carried,
                                   Body body, ReduceOp combining) {
  if (nest.plan->numPoints() == 0)
    return Values(carried);
  if (nestDepth++ > 0) {
    neighbours[wholeNest->plan].hasLoops = true;
    Values results = emitLoops(nest, 0, carried, body, combining);
    --nestDepth;
    return results;
  }
  // What the nest needs once per row goes before it.
  anchors.push_back(writer.openPlace());
  wholeNest = &nest;
  mostPoints = std::max(mostPoints, nest.plan->numPoints());
  // Points of a tile have been dealt out.
  Values results = nests.group.isMany() && !nests.outer.tile()
                       ? dealOut(nest, carried, body, combining)
                       : emitLoops(nest, 0, carried, body, combining);
  wholeNest = nullptr;
  --nestDepth;
  writer.closePlace(anchors.pop_back_val());
  return results;
}

/// Results' points may be several at a time, whose loads need not wait for each
/// other: each of them is read by nobody but who writes it.
Emitter::Values Emitter::dealOut(IndexSpace::Nest &nest, ValueRange carried,
                                 Body body, ReduceOp combining) {
  // All know what a single point gives, but one of them stores it.
  if (nest.plan->numPoints() == 1 && combining)
    return emitLoops(nest, 0, carried, body, {});
  SmallVector<Turns, 2> turns = turnsOf(nest);
  if (!combining) {
    for (const Turns &some : turns)
      writer.dealtLoop(some.count, togetherOf(nest, some), [&](ValueRange all) {
        Lanes lanes{some.lanes, nestDepth, {}};
        llvm::SaveAndRestore ofLanes(inLanes,
                                     all.size() > 1 ? &lanes : inLanes);
        for (Value point : all)
          emitTurn(nest, some, point, {}, body);
        emitStores(lanes);
      });
    return {};
  }
  using OfPoint = std::function<Values(Value, ValueRange)>;
  SmallVector<OfPoint, 2> bodies;
  for (const Turns &some : turns)
    bodies.push_back([&](Value point, ValueRange values) {
      return emitTurn(nest, some, point, values, body);
    });
  SmallVector<KernelWriter::DealtPoints, 2> points;
  for (auto [some, ofPoint] : llvm::zip_equal(turns, bodies))
    points.push_back({some.count, some.lanes, ofPoint});
  if (sumsAlong.contains(combining) && carried.empty()) {
    auto [max, sum] = writer.dealtMaxAndSum(points);
    return {max, sum};
  }
  return writer.dealtReduction(
      points, carried,
      {combining.getKind(),
       tensorType(combining.getOperand()).getElementType()});
}

Emitter::Values Emitter::emitLoops(IndexSpace::Nest &nest, unsigned group,
                                   ValueRange carried, Body body,
                                   ReduceOp combining) {
  if (isChosenAt(nest, group)) {
    emitChosen(nest, group, [&] { emitLoops(nest, group, {}, body, {}); });
    return {};
  }
  auto groups = nest.plan->groups();
  if (group == groups.size())
    return emitLanes(nest, carried, body);
  auto [first, last] = groups[group];
  int64_t size = nest.plan->sizeOf(groups[group]);
  if (size == 1)
    return emitLoops(nest, group + 1, carried, body, combining);
  // What a vectorised loop sums up is one number at its end. Were it to begin
  // with the number of the loop before, no two of them would overlap.
  bool isWithin = nest.plan->sizeOf({0, first}) > 1;
  if (combining && isWithin && group + 1 == groups.size() &&
      nests.dealing == Dealing::Pieces) {
    Type type = tensorType(combining.getOperand()).getElementType();
    ReduceOpKind kind = combining.getKind();
    Values part = emitLoops(nest, group, writer.neutral(kind, type), body, {});
    return {writer.combine(kind, carried.front(), part.front(), type)};
  }

  SmallVector<int64_t> ends;
  if (nest.canCut)
    ends.append(nest.plan->atoms[first].cuts.begin(),
                nest.plan->atoms[first].cuts.end());
  ends.push_back(size);
  Values results(carried);
  int64_t start = 0;
  // Structured bindings cannot be captured.
  auto bind = [&, first = first](Value counter) {
    space.bindGroup(nest, first, counter);
  };
  for (int64_t end : ends) {
    if (last - first == 1)
      space.setRange(nest, first, start, end - 1);
    if (end - start == 1) {
      bind(writer.number(start));
      results = emitLoops(nest, group + 1, results, body, combining);
    } else {
      bool isTiled = nests.tiledSize && &nest == resultNest &&
                     group + 1 == groups.size() && ends.size() == 1;
      Value from = isTiled ? tile.first : writer.number(start);
      Value to = isTiled ? tile.second : writer.number(end);
      results =
          writer.loop(from, to, results, [&](Value counter, ValueRange values) {
            bind(counter);
            return emitLoops(nest, group + 1, values, body, combining);
          });
    }
    start = end;
  }
  if (last - first == 1)
    space.setRange(nest, first, 0, size - 1);
  return results;
}

Emitter::Values Emitter::emitNest(Operation *op, NestRole role,
                                  ArrayRef<int64_t> sizes, ValueRange carried,
                                  IndexBody body) {
  bool isWhole = nestDepth == 0;
  IndexSpace::Nest nest =
      space.addNest(getPlan(op, static_cast<int>(role), sizes),
                    !(isWhole && nests.group.isMany()));
  Values results = emitLoops(
      nest, carried,
      [&](ValueRange values) {
        // Here, where pieces have their ranges.
        return body(space.delinearize(space.linear(nest), sizes), values);
      },
      carried.empty() ? ReduceOp() : cast<ReduceOp>(op));
  // What was stored is read again.
  if (isWhole && carried.empty())
    writer.meet();
  return results;
}

void Emitter::emitOrdered(Operation *op, NestRole role, ArrayRef<int64_t> sizes,
                          function_ref<bool(unsigned)> isOrdered,
                          IndexBody body) {
  if (nests.dealing == Dealing::Pieces) {
    emitNest(op, role, sizes, {}, body);
    return;
  }
  SmallVector<int64_t> ordered, others;
  for (auto [d, size] : llvm::enumerate(sizes))
    (isOrdered(d) ? ordered : others).push_back(size);
  emitNest(op, role, others, {},
           [&](ArrayRef<IndexExpr> atOthers, ValueRange) -> Values {
             emitNest(op, NestRole::InOrder, ordered, {},
                      [&](ArrayRef<IndexExpr> atOrdered, ValueRange) {
                        Indices all;
                        const IndexExpr *i = atOrdered.begin(),
                                        *j = atOthers.begin();
                        for (unsigned d = 0; d != sizes.size(); ++d)
                          all.push_back(isOrdered(d) ? *i++ : *j++);
                        return body(all, {});
                      });
             return {};
           });
}

void Emitter::atRowLevel(function_ref<void()> body) {
  bool isWithin = nestDepth > 0;
  llvm::SaveAndRestore ofMemos(memos, SmallVector<Memo>(1));
  llvm::SaveAndRestore ofDepth(nestDepth, 0), ofChoices(choiceDepth, 0);
  llvm::SaveAndRestore ofNest(wholeNest, {});
  llvm::SaveAndRestore ofLanes(inLanes, {});
  llvm::SaveAndRestore ofShifted(inShifted, {});
  if (isWithin)
    writer.at(anchors.back(), body);
  else
    body();
}

void Emitter::atAnchor(function_ref<void()> body) {
  anchors.push_back(writer.openPlace());
  ++nestDepth;
  body();
  --nestDepth;
  writer.closePlace(anchors.pop_back_val());
}

Emitter::Values
Emitter::emitLoop(Operation *op, NestRole role, int64_t size,
                  ValueRange carried,
                  function_ref<Values(const IndexExpr &, ValueRange)> body) {
  IndexSpace::Nest nest =
      space.addNest(getPlan(op, static_cast<int>(role), size), false);
  return emitLoops(
      nest, 0, carried,
      [&](ValueRange values) { return body(space.linear(nest), values); }, {});
}

void Emitter::emitTogether(Operation *op, NestRole role, int64_t size,
                           function_ref<void(const IndexExpr &)> body) {
  IndexSpace::Nest nest =
      space.addNest(getPlan(op, static_cast<int>(role), size), false);
  mostPoints = std::max(mostPoints, size);
  auto point = [&](ValueRange) -> Values {
    body(space.linear(nest));
    return {};
  };
  if (nests.group.isMany())
    dealOut(nest, {}, point, {});
  else
    emitLoops(nest, 0, {}, point, {});
}

Value Emitter::loadElement(Value base, const IndexExpr &offset, Type type) {
  if (resultNest)
    noteStride(offset, type);
  if (wholeNest) {
    noteOrder(offset);
    noteNeighbours(offset, type);
  }
  auto [near, further] = placeOf(base, offset, type);
  return writer.load(near, further, type);
}

void Emitter::storeElement(Value value, Value base, const IndexExpr &offset,
                           Type type) {
  if (wholeNest)
    noteNeighbours(offset, type);
  if (!inLanes || inLanes->depth != nestDepth) {
    writer.store(value, base, space.materialize(offset), type);
    return;
  }
  auto [near, further] = placeOf(base, offset, type);
  inLanes->stores[base].push_back({value, near, further, type});
}

} // namespace ax::codegen
