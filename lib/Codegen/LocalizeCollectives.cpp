//===- LocalizeCollectives.cpp - Collectives without layouts --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A dimension is a string of digits (see Digits.h). A collective makes digits
// that ranks tell local ones, or the reverse. Neighbouring digits move
// together, as one exchange along one dimension of a suitably reshaped part;
// so no elements are moved before or after it.
//
//===----------------------------------------------------------------------===//
#include "Localizer.h"

#include "ax/Dialect/Actions.h"
#include "ax/Local/Local.h"

using namespace mlir;

namespace ax::codegen {

using sharding::Digit;
using sharding::Digits;
using sharding::DimLayout;
using sharding::StepKind;
using sharding::SubAxes;

/// The runs of digits that `axes` tell. `wholeSize`: local extent of the
/// dimension where `axes` do not split it.
llvm::Expected<SmallVector<Localizer::Run>>
Localizer::runsOf(Operation *op, const DimLayout &layout, const SubAxes &axes,
                  int64_t wholeSize) {
  auto even = sharding::digitsOf(layout);
  Digits digits;
  if (even) {
    digits = *even;
  } else {
    const sharding::Factor &factor = layout.factors.front();
    for (const sharding::SubAxis &axis : factor.axes)
      digits.push_back({axis.size, axis});
    digits.push_back({factor.localSize(), {"", 1, 1}});
  }

  int64_t numMoved = 1;
  SmallVector<Run> runs;
  bool inRun = false;
  int64_t local = 1;
  for (const Digit &digit : digits) {
    if (!digit.isSplit()) {
      for (Run &run : runs)
        run.minor *= digit.size;
      local *= digit.size;
      inRun = false;
      continue;
    }
    auto pieces = sharding::cutAxes({digit.axis}, axes);
    if (!pieces)
      return fault(op, "its axes do not nest in those of the layout");
    for (const sharding::SubAxis &piece : *pieces) {
      if (!sharding::overlap(axes, {piece})) {
        inRun = false;
        continue;
      }
      if (!inRun)
        runs.push_back({{}, local, 1, 1});
      inRun = true;
      for (Run &earlier : MutableArrayRef(runs).drop_back())
        earlier.minor *= piece.size;
      runs.back().axes.push_back(piece);
      numMoved *= piece.size;
    }
  }
  if (numMoved != sharding::numParts(axes))
    return fault(op, "its axes do not split the dimension");
  for (Run &run : runs)
    run.whole = run.minor * sharding::numParts(run.axes);
  if (!even) {
    // Parts of ceil(n / p): the last ones are cut short.
    Run &run = runs.front();
    bool nested = numMoved == sharding::numParts(layout.axes())
                      ? run.whole >= wholeSize
                      : run.whole == wholeSize;
    if (!nested)
      return fault(op, "parts of an uneven split do not nest");
    run.whole = wholeSize;
  }
  return runs;
}

/// `value` with dimension `dim` read as [major, minor]; `dim` becomes the
/// number of the second.
static SmallVector<int64_t> divided(Value value, int64_t &dim, int64_t major) {
  SmallVector<int64_t> shape(tensorType(value).getShape());
  if (major == 1)
    return shape;
  shape[dim] /= major;
  shape.insert(shape.begin() + dim, major);
  ++dim;
  return shape;
}

SmallVector<Value> Localizer::exchange(CollectiveOpInterface op, StepKind kind,
                                       ArrayRef<Part> parts,
                                       const SubAxes &subAxes,
                                       ArrayRef<int64_t> sources) {
  SmallVector<Value> operands, results;
  SmallVector<Type> types;
  SmallVector<int64_t> dims;
  for (const Part &part : parts) {
    operands.push_back(part.operand);
    types.push_back(tensorType(part.operand).clone(part.shape));
    dims.push_back(std::max(part.gatherDim, part.scatterDim));
  }
  auto axes = AxesAttr::get(builder.getContext(), subAxes, mesh);
  StringAttr because = op.getCause();
  auto reduction = [&] {
    return *symbolizeReduceOpKind(
        sharding::toString(layoutOf(op->getOperand(0)).partialKind));
  };
  Operation *made = nullptr;
  switch (kind) {
  case StepKind::AllReduce:
    made = LocalAllReduceOp::create(builder, types, reduction(), operands, axes,
                                    because, /*start=*/false);
    break;
  case StepKind::ReduceScatter:
    made =
        LocalReduceScatterOp::create(builder, types, reduction(), dims,
                                     operands, axes, because, /*start=*/false);
    break;
  case StepKind::AllGather:
    made = LocalAllGatherOp::create(builder, types, dims, operands, axes,
                                    because, /*start=*/false);
    break;
  case StepKind::AllToAll:
    made = LocalAllToAllOp::create(builder, types, parts[0].gatherDim,
                                   parts[0].scatterDim, operands, axes, because,
                                   /*start=*/false);
    break;
  case StepKind::CollectivePermute:
    made = LocalPermuteOp::create(builder, types, sources, operands, axes,
                                  because, /*start=*/false);
    break;
  case StepKind::AllSlice:
  case StepKind::ToPartial:
    llvm_unreachable("nothing is exchanged");
  }
  for (NamedAttribute attribute : op->getDiscardableAttrs())
    if (attribute.getName() != kNode)
      made->setDiscardableAttr(attribute.getName(), attribute.getValue());
  for (auto [part, result] : llvm::zip_equal(parts, made->getResults()))
    results.push_back(reshape(result, part.result));
  return results;
}

Localizer::Part Localizer::wholePart(Value value) {
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  return {value, llvm::to_vector(shape), llvm::to_vector(shape)};
}

/// Returns what an exchange does that gathers the run's parts, or scatters
/// them.
Localizer::Part Localizer::runPart(Value value, int64_t dim, const Run &run,
                                   bool gathers) {
  Part part = wholePart(value);
  int64_t extent = gathers ? run.whole : run.minor;
  part.result[dim] = run.major * extent;
  part.shape = divided(value, dim, run.major);
  part.operand = reshape(value, part.shape);
  part.shape[dim] = extent;
  (gathers ? part.gatherDim : part.scatterDim) = dim;
  return part;
}

/// The operand's `gatherDim` becomes whole while `scatterDim` is split.
Localizer::Part Localizer::swapRuns(Value value, int64_t gatherDim,
                                    const Run &gather, int64_t scatterDim,
                                    const Run &scatter) {
  SmallVector<int64_t> result(tensorType(value).getShape());
  result[gatherDim] = gather.major * gather.whole;
  result[scatterDim] = scatter.major * scatter.minor;
  int64_t moved = gatherDim, split = scatterDim;
  bool gatherLater = gatherDim > scatterDim;
  SmallVector<int64_t> shape = gatherLater
                                   ? divided(value, moved, gather.major)
                                   : divided(value, split, scatter.major);
  Value operand = reshape(value, shape);
  // Dividing the earlier dimension shifts the later one.
  int64_t &later = gatherLater ? moved : split;
  size_t before = shape.size();
  shape = gatherLater ? divided(operand, split, scatter.major)
                      : divided(operand, moved, gather.major);
  later += shape.size() - before;
  operand = reshape(operand, shape);
  shape[moved] = gather.whole;
  shape[split] = scatter.minor;
  return {operand, shape, result, moved, split};
}

Value Localizer::sliceRun(Value value, int64_t dim, const Run &run) {
  SmallVector<int64_t> result(tensorType(value).getShape());
  result[dim] = run.major * run.minor;
  SmallVector<int64_t> shape = divided(value, dim, run.major);
  Value whole = reshape(value, shape);
  SmallVector<Value> starts(shape.size(), constantInt(0));
  starts[dim] =
      binary(BinaryKind::mul, axisIndex(run.axes), constantInt(run.minor));
  shape[dim] = run.minor;
  return reshape(dynamicSlice(whole, starts, shape), result);
}

llvm::Expected<Value> Localizer::slicePart(Operation *op, Value value,
                                           int64_t dim, const DimLayout &layout,
                                           const SubAxes &axes) {
  auto runs = runsOf(op, layout, axes, tensorType(value).getDimSize(dim));
  if (!runs)
    return runs.takeError();
  for (const Run &run : *runs)
    value = sliceRun(value, dim, run);
  return value;
}

/// Those of `axes` that split `dim`, in its order.
static SubAxes axesWithin(const DimLayout &dim, const SubAxes &axes) {
  SubAxes within;
  if (auto pieces = sharding::cutAxes(dim.axes(), axes))
    llvm::copy_if(*pieces, std::back_inserter(within),
                  [&](const sharding::SubAxis &piece) {
                    return sharding::overlap(axes, {piece});
                  });
  return within;
}

/// The dimensions that `axes` split before and after; -1: none.
static std::pair<int64_t, int64_t> movedDims(const sharding::Layout &from,
                                             const sharding::Layout &to,
                                             const SubAxes &axes) {
  int64_t source = -1, target = -1;
  for (int64_t dim = 0, e = from.dims.size(); dim < e; ++dim) {
    if (from.dims[dim] == to.dims[dim])
      continue;
    if (sharding::overlap(from.dims[dim].axes(), axes))
      source = dim;
    if (sharding::overlap(to.dims[dim].axes(), axes))
      target = dim;
  }
  return {source, target};
}

llvm::Expected<Value> Localizer::moveParts(CollectiveOpInterface op,
                                           Value value,
                                           const sharding::Layout &from,
                                           const sharding::Layout &to,
                                           const SubAxes &axes) {
  auto [source, target] = movedDims(from, to, axes);
  bool gathers = isa<AllGatherOp, AllToAllOp>(op);
  if ((gathers && source < 0) || (!isa<AllGatherOp>(op) && target < 0))
    return fault(op, "its layouts do not differ as it says");
  if (isa<AllSliceOp>(op)) {
    for (int64_t dim = 0, e = from.dims.size(); dim < e; ++dim) {
      if (from.dims[dim] == to.dims[dim])
        continue;
      auto sliced = slicePart(op, value, dim, to.dims[dim],
                              axesWithin(to.dims[dim], axes));
      if (!sliced)
        return sliced.takeError();
      value = *sliced;
    }
    return value;
  }

  // Between two places of one dimension it is whole.
  std::optional<DimLayout> between;
  if (source == target)
    between = sharding::unsplit(from.dims[source], axes);
  SmallVector<Run> gathered, scattered;
  if (gathers) {
    auto runs =
        runsOf(op, from.dims[source], axes, to.dims[source].localSize());
    if (!runs)
      return runs.takeError();
    gathered = *runs;
  }
  if (target >= 0) {
    auto runs =
        runsOf(op, to.dims[target], axes, from.dims[target].localSize());
    if (!runs)
      return runs.takeError();
    scattered = *runs;
  }
  if (isa<AllToAllOp>(op)) {
    if (source != target && gathered.size() == 1 && scattered.size() == 1 &&
        gathered[0].axes == scattered[0].axes)
      return exchange(
          op, StepKind::AllToAll,
          swapRuns(value, source, gathered[0], target, scattered[0]),
          gathered[0].axes)[0];
    // Digits in another order than they were: no single exchange.
    for (const Run &run : llvm::reverse(gathered))
      value =
          exchange(op, StepKind::AllGather,
                   runPart(value, source, run, /*gathers=*/true), run.axes)[0];
    for (const Run &run : scattered)
      value = sliceRun(value, target, run);
    return value;
  }
  for (const Run &run : llvm::reverse(gathered))
    value =
        exchange(op, StepKind::AllGather,
                 runPart(value, source, run, /*gathers=*/true), run.axes)[0];
  for (const Run &run : scattered)
    value =
        exchange(op, StepKind::ReduceScatter,
                 runPart(value, target, run, /*gathers=*/false), run.axes)[0];
  return value;
}

/// Returns the part that each tensor has in a shared collective; none where one
/// needs several exchanges, or one of other ranks than the rest.
llvm::Expected<SmallVector<Localizer::Part>>
Localizer::sharedParts(Operation *op, SubAxes &axes) {
  SmallVector<Part> parts;
  std::optional<SubAxes> moved;
  for (auto [operand, result] :
       llvm::zip_equal(op->getOperands(), op->getResults())) {
    Value local = mapping.lookup(operand);
    if (isa<AllReduceOp>(op)) {
      parts.push_back(wholePart(local));
      continue;
    }
    sharding::Layout from = layoutOf(operand), to = layoutOf(result);
    bool gathers = isa<AllGatherOp>(op);
    auto [source, target] = movedDims(from, to, axes);
    int64_t dim = gathers ? source : target;
    if (dim < 0)
      return fault(op, "its layouts do not differ as it says");
    auto runs = runsOf(op, (gathers ? from : to).dims[dim], axes,
                       (gathers ? to : from).dims[dim].localSize());
    if (!runs)
      return runs.takeError();
    if (runs->size() != 1 || (moved && *moved != runs->front().axes))
      return SmallVector<Part>();
    moved = runs->front().axes;
    parts.push_back(runPart(local, dim, runs->front(), gathers));
  }
  axes = moved.value_or(axes);
  return parts;
}

llvm::Error Localizer::localizeCollective(CollectiveOpInterface collective) {
  Operation *op = collective;
  SubAxes axes = collective.getMovedAxes().resolve(mesh);
  SmallVector<Value> locals;
  if (op->getNumOperands() > 1 && inTime(axes, mesh).size() < axes.size()) {
    auto parts = sharedParts(op, axes);
    if (!parts)
      return parts.takeError();
    if (!parts->empty())
      locals = exchange(collective, collective.getStepKind(), *parts, axes);
  }
  if (locals.empty())
    for (auto [operand, result] :
         llvm::zip_equal(op->getOperands(), op->getResults())) {
      auto local = localizeStep(collective, operand, result);
      if (!local)
        return local.takeError();
      locals.push_back(*local);
    }
  for (auto [result, local] : llvm::zip_equal(op->getResults(), locals)) {
    RankedTensorType type = localType(result.getType());
    local = castTo(local, type.getElementType());
    if (tensorType(local) != type)
      return fault(op, "its layouts do not differ as it says");
    mapping.map(result, local);
  }
  return llvm::Error::success();
}

llvm::Expected<Value> Localizer::localizeStep(CollectiveOpInterface collective,
                                              Value operand, Value changed) {
  Operation *op = collective;
  Value local = mapping.lookup(operand), result;
  sharding::Layout from = layoutOf(operand), to = layoutOf(changed);
  SubAxes axes = collective.getMovedAxes().resolve(mesh);

  if (isa<ToPartialOp>(op) && to.partialKind != sharding::ReduceKind::Sum) {
    result = local;
  } else if (isa<ToPartialOp>(op)) {
    Type element = tensorType(local).getElementType();
    Value isFirst = compare(CompareKind::eq, axisIndex(axes), constantInt(0));
    Value zero = constant(builder.getZeroAttr(element));
    result = select(isFirst, local, zero);
  } else if (isReducedWhereKept(op, mesh)) {
    result = local;
  } else if (isa<AllReduceOp>(op)) {
    result =
        exchange(collective, StepKind::AllReduce, wholePart(local), axes)[0];
  } else if (isa<CollectivePermuteOp>(op)) {
    std::vector<int64_t> sources = sharding::permuteSources(from, to, mesh);
    result = exchange(collective, StepKind::CollectivePermute, wholePart(local),
                      axes, sources)[0];
  } else {
    auto moved = moveParts(collective, local, from, to, axes);
    if (!moved)
      return moved.takeError();
    result = *moved;
  }
  return result;
}

llvm::Error Localizer::startCollective(CollectiveOpInterface collective) {
  Block *block = builder.getInsertionBlock();
  Operation *before = block->empty() ? nullptr : &block->back();
  if (llvm::Error error = localizeCollective(collective))
    return error;
  Operation *last = nullptr;
  for (Operation *op = before ? before->getNextNode() : &block->front(); op;
       op = op->getNextNode())
    if (isa<LocalCollectiveOpInterface>(op))
      last = op;
  if (!last)
    return llvm::Error::success();
  last->setAttr("start", builder.getUnitAttr());
  SmallVector<Operation *> &ending = endings[collective->getResult(0)];
  for (Operation *op = last->getNextNode(); op; op = op->getNextNode())
    ending.push_back(op);
  Value started = last->getResult(0);
  auto await = AwaitOp::create(builder, started, last->getOperand(0));
  started.replaceAllUsesExcept(await, await);
  ending.insert(ending.begin(), await);
  if (mapping.lookup(collective->getResult(0)) == started)
    mapping.map(collective->getResult(0), await.getResult());
  return llvm::Error::success();
}

void Localizer::localizeWait(WaitOp op) {
  for (Operation *ending : endings.lookup(op.getStarted()))
    ending->moveBefore(builder.getInsertionBlock(),
                       builder.getInsertionPoint());
  mapping.map(op.getResult(), mapping.lookup(op.getStarted()));
}

} // namespace ax::codegen
