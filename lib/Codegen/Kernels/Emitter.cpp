//===- Emitter.cpp - The frame of a kernel: loops, results, attempts ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Emitter.h"
#include "ElementOps.h"
#include "ax/Codegen/Kernel.h"
#include "ax/Support/Error.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace ax::codegen {

/// Each attempt refines something; sizes have few divisors, so few suffice.
static constexpr int maxAttempts = 64;
static constexpr int64_t cacheLine = 64;
/// Of the last loop: so many cache lines stay even with an unlucky stride.
static constexpr int64_t tilePoints = 16;

SmallVector<AxesAttr, 2> collectScalars(FusionOp fusion) {
  SmallVector<AxesAttr, 2> axes;
  fusion.getBody().walk([&](AxisIndexOp op) {
    if (!llvm::is_contained(axes, op.getAxes()))
      axes.push_back(op.getAxes());
  });
  return axes;
}

llvm::Expected<EmittedKernel> emitKernel(FusionOp fusion, StringRef symbol,
                                         ModuleOp module) {
  return Emitter(fusion, symbol, module).run();
}

Emitter::Emitter(FusionOp fusion, StringRef symbol, ModuleOp module)
    : fusion(fusion), symbol(symbol), module(module),
      yield(fusion.getBody().front().getTerminator()),
      numOperands(fusion.getBody().getNumArguments()), kept(chooseKept(fusion)),
      b(fusion.getContext()), loc(b.getUnknownLoc()),
      scalars(collectScalars(fusion)) {
  hasRows = llvm::any_of(fusion.getBody().front(),
                         [](Operation &op) { return isRowOp(&op); });
  if (hasRows) {
    // As many iterations as there are elements; rows make it fewer.
    outerChosen = true;
    outerTotal = tensorType(yield->getOperand(0)).getNumElements();
    while (outerTotal > 1 &&
           llvm::any_of(yield->getOperands(), [&](Value result) {
             return tensorType(result).getNumElements() % outerTotal != 0;
           }))
      shrinkOuter();
  }
  outerTotal = std::max<int64_t>(outerTotal, 1);
}

llvm::Expected<EmittedKernel> Emitter::run() {
  for (int i = 0; i != maxAttempts; ++i)
    if (yield->getNumOperands() == 0 || attempt())
      return EmittedKernel{outerTotal, scratchBytes};
  return makeErrorf(ExitCode::Internal, "the loops of kernel {0} do not settle",
                    symbol);
}

/// The next shorter prefix of the first result's dimensions.
bool Emitter::shrinkOuter() {
  if (outerTotal <= 1)
    return false;
  int64_t product = 1, best = 1;
  for (int64_t size : tensorType(yield->getOperand(0)).getShape()) {
    product *= size;
    if (product >= outerTotal)
      break;
    best = product;
  }
  outerTotal = best;
  return true;
}

/// Without rows: the first loop of the results becomes the outer one when it
/// leaves inner loops long enough.
bool Emitter::chooseFlatOuter() {
  outerChosen = true;
  ArrayRef<int64_t> shape = tensorType(yield->getOperand(0)).getShape();
  int64_t total = tensorType(yield->getOperand(0)).getNumElements();
  if (total <= 1 || llvm::any_of(yield->getOperands(), [&](Value result) {
        return tensorType(result).getNumElements() != total;
      }))
    return false;
  LoopPlan &plan = getPlan(yield, 0, shape);
  auto groups = plan.groups();
  auto sizeOf = [&](std::pair<int, int> group) {
    int64_t size = 1;
    for (int k = group.first; k != group.second; ++k)
      size *= plan.atoms[k].size;
    return size;
  };
  llvm::erase_if(groups, [&](auto &group) { return sizeOf(group) == 1; });
  int64_t product = 1;
  for (auto [i, group] : llvm::enumerate(groups)) {
    bool isCut = llvm::any_of(
        ArrayRef(plan.atoms).slice(group.first, group.second - group.first),
        [](const LoopPlan::Atom &atom) { return !atom.cuts.empty(); });
    int64_t inner = total / (product * sizeOf(group));
    // One loop in all: its elements are the iterations. Otherwise dividing up
    // the iteration's number is to be rare.
    if (isCut || !(groups.size() == 1 || inner >= (i == 0 ? 64 : 1024)))
      break;
    product *= sizeOf(group);
  }
  outerTotal = product;
  return product > 1;
}

LoopPlan &Emitter::getPlan(Operation *op, int which, ArrayRef<int64_t> sizes) {
  // The same operation may be computed over different dimensions.
  PlanKey key{op, which, SmallVector<int64_t, 4>(sizes)};
  return plans.try_emplace(key, sizes).first->second;
}

/// The dimensions that make up the first `total` iterations, and the rest.
static std::pair<SmallVector<int64_t>, SmallVector<int64_t>>
splitShape(ArrayRef<int64_t> shape, int64_t total) {
  SmallVector<int64_t> first, rest;
  int64_t left = total, points = 1;
  for (int64_t size : shape)
    points *= size;
  for (auto [d, size] : llvm::enumerate(shape)) {
    if (left == 1) {
      rest.push_back(size);
    } else if (size != 0 && left % size == 0) {
      first.push_back(size);
      left /= size;
    } else if (size % left == 0) {
      first.push_back(left);
      rest.push_back(size / left);
      left = 1;
    } else {
      return {{total}, {points / total}};
    }
  }
  return {first, rest};
}

bool Emitter::attempt() {
  module.getBody()->clear();
  space = std::make_unique<IndexSpace>(b);
  wantsSmallerOuter = false;
  wantedTiledSize = 0;
  resultNest = nullptr;
  scratchBytes = 0;
  resultDone.assign(yield->getNumOperands(), 0);
  anchors.clear();
  nestDepth = 0;
  memos.assign(1, {});
  rowValues.clear();
  if (outerPlan.atoms.empty())
    outerPlan = LoopPlan(
        splitShape(tensorType(yield->getOperand(0)).getShape(), outerTotal)
            .first);
  beginFunction();
  emitOuterLoop([&] { emitResults(); });
  if (scratchBytes > 0) {
    b.setInsertionPoint(scratchOfEntry);
    Block *entry = scratchOfEntry->getBlock();
    scratchOfEntry->getResult(0).replaceAllUsesWith(
        loadWord(entry->getArgument(0), scratch.getType(), buffers.size()));
  }

  if (space->applyRequests())
    return false;
  if (wantsSmallerOuter ? shrinkOuter() : !outerChosen && chooseFlatOuter()) {
    outerPlan = LoopPlan();
    plans.clear();
    return false;
  }
  if (wantedTiledSize != tiledSize) {
    tiledSize = wantedTiledSize;
    return false;
  }
  return true;
}

Value Emitter::loadWord(Value base, Type type, unsigned index) {
  Value at = LLVM::GEPOp::create(b, loc, base.getType(), type, base,
                                 ArrayRef<LLVM::GEPArg>{int32_t(index)});
  return LLVM::LoadOp::create(b, loc, type, at);
}

/// A body that knows its buffers do not overlap, and the entry that calls it.
void Emitter::beginFunction() {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type(), none = LLVM::LLVMVoidType::get(b.getContext());
  unsigned numTensors = numOperands + yield->getNumOperands();
  unsigned numBuffers = numTensors + 1;

  SmallVector<Type> types(numBuffers, pointer);
  types.append(scalars.size() + 2, i64);
  b.setInsertionPointToEnd(module.getBody());
  auto body = LLVM::LLVMFuncOp::create(b, loc, symbol + "_body",
                                       LLVM::LLVMFunctionType::get(none, types),
                                       LLVM::Linkage::Internal);
  body.setNoInline(true);
  SmallVector<Type> tensors(fusion.getBody().getArgumentTypes());
  llvm::append_range(tensors, yield->getOperandTypes());
  // At once: a list of them is made anew for each change.
  SmallVector<NamedAttrList> attributes(body.getNumArguments());
  for (auto [i, type] : llvm::enumerate(tensors)) {
    auto tensor = cast<RankedTensorType>(type);
    int64_t bytes =
        tensor.getNumElements() * storageBytes(tensor.getElementType());
    if (bytes > 0)
      attributes[i].set(LLVM::LLVMDialect::getDereferenceableAttrName(),
                        b.getI64IntegerAttr(bytes));
  }
  for (unsigned i = 0; i != numBuffers; ++i) {
    attributes[i].set(LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
    attributes[i].set(LLVM::LLVMDialect::getAlignAttrName(),
                      b.getI64IntegerAttr(64));
  }
  body.setAllArgAttrs(
      llvm::map_to_vector(attributes, [&](const NamedAttrList &of) {
        return of.getDictionary(b.getContext());
      }));
  auto entry = LLVM::LLVMFuncOp::create(
      b, loc, symbol,
      LLVM::LLVMFunctionType::get(none, {pointer, pointer, i64, i64}));
  Block *block = entry.addEntryBlock(b);
  b.setInsertionPointToStart(block);
  SmallVector<Value> operands;
  for (unsigned i = 0; i != numTensors; ++i)
    operands.push_back(loadWord(block->getArgument(0), pointer, i));
  // Becomes a load when there turns out to be scratch.
  Value noScratch = LLVM::ZeroOp::create(b, loc, pointer);
  scratchOfEntry = noScratch.getDefiningOp();
  operands.push_back(noScratch);
  for (unsigned i = 0; i != scalars.size(); ++i)
    operands.push_back(loadWord(block->getArgument(1), i64, i));
  operands.append({block->getArgument(2), block->getArgument(3)});
  LLVM::CallOp::create(b, loc, body, operands);
  LLVM::ReturnOp::create(b, loc, ValueRange());

  Block *start = body.addEntryBlock(b);
  b.setInsertionPointToStart(start);
  buffers.assign(start->args_begin(), start->args_begin() + numTensors);
  // One name for one piece of memory: so none is said not to alias the other.
  if (std::optional<ArrayRef<int64_t>> places = fusion.getInPlace())
    for (auto [result, operand] : llvm::enumerate(*places))
      if (operand >= 0)
        buffers[numOperands + result] = buffers[operand];
  scratch = start->getArgument(numTensors);
  scalarArgs.assign(start->args_begin() + numBuffers, start->args_end());
}

void Emitter::emitOuterLoop(function_ref<void()> body) {
  Value begin = scalarArgs[scalarArgs.size() - 2], end = scalarArgs.back();
  {
    OpBuilder::InsertionGuard guard(b);
    if (tiledSize) {
      auto tiles = scf::ForOp::create(b, loc, number(0), number(tiledSize),
                                      number(tilePoints));
      b.setInsertionPointToStart(tiles.getBody());
      Value first = tiles.getInductionVar();
      Value behind = arith::AddIOp::create(b, loc, first, number(tilePoints));
      tile = {first, arith::MinUIOp::create(b, loc, behind, number(tiledSize))};
    }
    auto loop = scf::ForOp::create(b, loc, begin, end, number(1));
    b.setInsertionPointToStart(loop.getBody());
    outer = space->addNest(outerPlan, false);
    // The digits of the iteration's number, last first.
    Value rest = loop.getInductionVar();
    auto groups = outerPlan.groups();
    for (int g = int(groups.size()) - 1; g >= 0; --g) {
      auto [first, last] = groups[g];
      int64_t size = 1;
      for (int k = first; k != last; ++k)
        size *= outerPlan.atoms[k].size;
      if (size == 1)
        continue;
      bool isFirst = llvm::all_of(
          ArrayRef(outerPlan.atoms).take_front(first),
          [](const LoopPlan::Atom &atom) { return atom.size == 1; });
      Value digit = rest;
      if (!isFirst) {
        digit = arith::RemUIOp::create(b, loc, rest, number(size));
        rest = arith::DivUIOp::create(b, loc, rest, number(size));
      }
      space->bindGroup(outer, first, digit);
    }
    body();
  }
  LLVM::ReturnOp::create(b, loc, ValueRange());
}

void Emitter::emitResults() {
  // Results that share a nest: those with as many elements.
  SmallVector<std::pair<int64_t, SmallVector<unsigned>>> sets;
  IndexExpr row = space->linear(outer);
  auto indicesOf = [&](unsigned i, const IndexExpr &inner) {
    RankedTensorType type = tensorType(yield->getOperand(i));
    int64_t perRow = type.getNumElements() / outerTotal;
    return space->delinearize(row * perRow + inner, type.getShape());
  };
  for (auto [i, value] : llvm::enumerate(yield->getOperands())) {
    int64_t count = tensorType(value).getNumElements();
    if (count == 0)
      continue;
    auto *it = llvm::find_if(sets, [&](auto &s) { return s.first == count; });
    if (it == sets.end())
      it = sets.insert(sets.end(), {count, {}});
    it->second.push_back(i);
  }
  for (auto &set : sets) {
    SmallVector<unsigned> &members = set.second;
    RankedTensorType type = tensorType(yield->getOperand(members.front()));
    SmallVector<int64_t> sizes = splitShape(type.getShape(), outerTotal).second;
    LoopPlan &plan = getPlan(yield, members.front(), sizes);
    // Row values that lie as the result does go there at once.
    IndexSpace::Nest probe = space->addNest(plan, false);
    for (auto [first, last] : plan.groups())
      space->bindGroup(probe, first, number(0));
    for (unsigned i : members) {
      auto value = dyn_cast<OpResult>(yield->getOperand(i));
      if (value &&
          (isRowOp(value.getOwner()) || kept.contains(value.getOwner())))
        getRowValue(value.getOwner(), indicesOf(i, space->linear(probe)));
    }
    llvm::erase_if(members, [&](unsigned i) { return resultDone[i] != 0; });
    if (members.empty())
      continue;
    IndexSpace::Nest nest = space->addNest(plan, true);
    IndexExpr inner = space->linear(nest);
    resultNest = hasRows || sets.size() > 1 ? nullptr : &nest;
    emitLoops(nest, {}, [&](ValueRange) -> SmallVector<Value> {
      for (unsigned i : members) {
        Value value = yield->getOperand(i);
        Type element = tensorType(value).getElementType();
        int64_t perRow = tensorType(value).getNumElements() / outerTotal;
        storeElement(pull(value, indicesOf(i, inner)), buffers[numOperands + i],
                     row * perRow + inner, element);
      }
      return {};
    });
    resultNest = nullptr;
  }
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
  int64_t bytes = storageBytes(type), size = 1, step = 0;
  for (int k = first; k != last; ++k) {
    size *= resultNest->plan->atoms[k].size;
    if (resultNest->vars[k] >= 0)
      step = offset.coefficient(resultNest->vars[k]) * bytes;
  }
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

SmallVector<Value> Emitter::emitLoops(const IndexSpace::Nest &nest,
                                      ValueRange carried, Body body) {
  if (nest.plan->numPoints() == 0)
    return SmallVector<Value>(carried);
  // What the nest needs once per row goes before it.
  Operation *anchor = nullptr;
  if (nestDepth++ == 0) {
    anchor = number(0).getDefiningOp();
    anchors.push_back(anchor);
  }
  SmallVector<Value> results = emitLoops(nest, 0, carried, body);
  if (--nestDepth == 0) {
    anchors.pop_back();
    anchor->erase();
  }
  return results;
}

SmallVector<Value> Emitter::emitLoops(const IndexSpace::Nest &nest,
                                      unsigned group, ValueRange carried,
                                      Body body) {
  auto groups = nest.plan->groups();
  if (group == groups.size()) {
    memos.emplace_back();
    SmallVector<Value> results = body(carried);
    memos.pop_back();
    return results;
  }
  auto [first, last] = groups[group];
  int64_t size = 1;
  for (int k = first; k != last; ++k)
    size *= nest.plan->atoms[k].size;
  if (size == 1)
    return emitLoops(nest, group + 1, carried, body);

  SmallVector<int64_t> ends;
  if (nest.canCut)
    ends.append(nest.plan->atoms[first].cuts.begin(),
                nest.plan->atoms[first].cuts.end());
  ends.push_back(size);
  SmallVector<Value> results(carried);
  int64_t start = 0;
  for (int64_t end : ends) {
    if (last - first == 1)
      space->setRange(nest, first, start, end - 1);
    if (end - start == 1) {
      space->bindGroup(nest, first, number(start));
      results = emitLoops(nest, group + 1, results, body);
    } else {
      bool isTiled = tiledSize && &nest == resultNest &&
                     group + 1 == groups.size() && ends.size() == 1;
      auto loop = scf::ForOp::create(
          b, loc, isTiled ? tile.first : number(start),
          isTiled ? tile.second : number(end), number(1), results);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      space->bindGroup(nest, first, loop.getInductionVar());
      SmallVector<Value> next =
          emitLoops(nest, group + 1, loop.getRegionIterArgs(), body);
      if (!results.empty())
        scf::YieldOp::create(b, loc, next);
      results.assign(loop.result_begin(), loop.result_end());
    }
    start = end;
  }
  if (last - first == 1)
    space->setRange(nest, first, 0, size - 1);
  return results;
}

SmallVector<Value> Emitter::emitNest(
    Operation *op, int which, ArrayRef<int64_t> sizes, ValueRange carried,
    function_ref<SmallVector<Value>(ArrayRef<IndexExpr>, ValueRange)> body) {
  IndexSpace::Nest nest = space->addNest(getPlan(op, which, sizes), true);
  return emitLoops(nest, carried, [&](ValueRange values) {
    // Here, where pieces have their ranges.
    return body(space->delinearize(space->linear(nest), sizes), values);
  });
}

void Emitter::atRowLevel(function_ref<void()> body) {
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Memo> saved(1);
  std::swap(saved, memos);
  int depth = 0;
  std::swap(depth, nestDepth);
  if (depth > 0)
    b.setInsertionPoint(anchors.back());
  body();
  std::swap(depth, nestDepth);
  std::swap(saved, memos);
}

Value Emitter::loadElement(Value base, const IndexExpr &offset, Type type) {
  if (resultNest)
    noteStride(offset, type);
  Type stored = storageType(type);
  Value at =
      LLVM::GEPOp::create(b, loc, base.getType(), stored, base,
                          ArrayRef<LLVM::GEPArg>{space->materialize(offset)},
                          LLVM::GEPNoWrapFlags::inbounds);
  Value value = LLVM::LoadOp::create(b, loc, stored, at, storageBytes(type));
  return fromStorage(b, value, type);
}

void Emitter::storeElement(Value value, Value base, const IndexExpr &offset,
                           Type type) {
  Type stored = storageType(type);
  value = toStorage(b, value, type);
  Value at =
      LLVM::GEPOp::create(b, loc, base.getType(), stored, base,
                          ArrayRef<LLVM::GEPArg>{space->materialize(offset)},
                          LLVM::GEPNoWrapFlags::inbounds);
  LLVM::StoreOp::create(b, loc, value, at, storageBytes(type));
}

Value Emitter::number(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 64);
}

} // namespace ax::codegen
