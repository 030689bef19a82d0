//===- LocalizeCollectives.cpp - Collectives without layouts --------------===//
//
// A dimension is a string of digits (see Digits.h). A collective makes digits
// that ranks tell local ones, or the reverse. Neighbouring digits move
// together, as one exchange along one dimension of a suitably reshaped part;
// so no elements are moved before or after it.
//
//===----------------------------------------------------------------------===//
#include "Localizer.h"

#include "ax/Dialect/Actions.h"
#include "ax/Dialect/LocalOps.h"

using namespace mlir;

namespace ax::codegen {

using sharding::Digit;
using sharding::Digits;
using sharding::DimLayout;
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

Value Localizer::exchange(Operation *op, Value value, const SubAxes &axes,
                          ArrayRef<int64_t> shape) {
  Operation *made = builder.clone(*op);
  made->removeAttr("start");
  made->setOperand(0, value);
  made->getResult(0).setType(tensorType(value).clone(shape));
  made->setAttr("axes", AxesAttr::get(builder.getContext(), axes, mesh));
  if (isa<AllReduceOp, ReduceScatterOp>(op))
    made->setAttr(kReduceKind, builder.getStringAttr(sharding::toString(
                                   layoutOf(op->getOperand(0)).partialKind)));
  return made->getResult(0);
}

Value Localizer::gatherRun(Operation *op, Value value, int64_t dim,
                           const Run &run) {
  SmallVector<int64_t> result(tensorType(value).getShape());
  result[dim] = run.major * run.whole;
  SmallVector<int64_t> shape = divided(value, dim, run.major);
  Value part = reshape(value, shape);
  shape[dim] = run.whole;
  Value whole = exchange(op, part, run.axes, shape);
  whole.getDefiningOp()->setAttr(kGatherDim, builder.getI64IntegerAttr(dim));
  return reshape(whole, result);
}

Value Localizer::scatterRun(Operation *op, Value value, int64_t dim,
                            const Run &run) {
  SmallVector<int64_t> result(tensorType(value).getShape());
  result[dim] = run.major * run.minor;
  SmallVector<int64_t> shape = divided(value, dim, run.major);
  Value whole = reshape(value, shape);
  shape[dim] = run.minor;
  Value part = exchange(op, whole, run.axes, shape);
  part.getDefiningOp()->setAttr(kScatterDim, builder.getI64IntegerAttr(dim));
  return reshape(part, result);
}

/// The operand's `gatherDim` becomes whole while `scatterDim` is split.
Value Localizer::swapRuns(Operation *op, Value value, int64_t gatherDim,
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
  Value made = exchange(op, operand, gather.axes, shape);
  made.getDefiningOp()->setAttr(kGatherDim, builder.getI64IntegerAttr(moved));
  made.getDefiningOp()->setAttr(kScatterDim, builder.getI64IntegerAttr(split));
  return reshape(made, result);
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

llvm::Expected<Value> Localizer::moveParts(Operation *op, Value value,
                                           const sharding::Layout &from,
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
      return swapRuns(op, value, source, gathered[0], target, scattered[0]);
    // Digits in another order than they were: no single exchange.
    auto gather =
        AllGatherOp::create(builder, value.getType(), value,
                            cast<CollectiveOpInterface>(op).getMovedAxes(),
                            cast<CollectiveOpInterface>(op).getCause());
    for (const Run &run : llvm::reverse(gathered))
      value = gatherRun(gather, value, source, run);
    gather.erase();
    for (const Run &run : scattered)
      value = sliceRun(value, target, run);
    return value;
  }
  for (const Run &run : llvm::reverse(gathered))
    value = gatherRun(op, value, source, run);
  for (const Run &run : scattered)
    value = scatterRun(op, value, target, run);
  return value;
}

llvm::Error Localizer::localizeCollective(CollectiveOpInterface collective) {
  Operation *op = collective;
  Value local = mapping.lookup(op->getOperand(0)), result;
  sharding::Layout from = layoutOf(op->getOperand(0));
  sharding::Layout to = layoutOf(op->getResult(0));
  SubAxes axes = collective.getMovedAxes().resolve(mesh);
  RankedTensorType type = localType(op->getResult(0).getType());

  if (isa<ToPartialOp>(op) && to.partialKind != sharding::ReduceKind::Sum) {
    result = local;
  } else if (isa<ToPartialOp>(op)) {
    Value isFirst = compare(CompareKind::eq, axisIndex(axes), constantInt(0));
    Value zero = constant(builder.getZeroAttr(type.getElementType()));
    result = select(isFirst, local, zero);
  } else if (isa<AllReduceOp>(op) && inTime(axes, mesh).size() == axes.size()) {
    // Added up where the value was kept.
    result = local;
  } else if (isa<AllReduceOp>(op)) {
    result = exchange(op, local, axes, type.getShape());
  } else if (isa<CollectivePermuteOp>(op)) {
    std::vector<int64_t> sources = sharding::permuteSources(from, to, mesh);
    result = exchange(op, local, axes, type.getShape());
    result.getDefiningOp()->setAttr(kSources,
                                    builder.getDenseI64ArrayAttr(sources));
  } else {
    auto moved = moveParts(op, local, from, to, axes);
    if (!moved)
      return moved.takeError();
    result = *moved;
  }
  if (tensorType(result) != type)
    return fault(op, "its layouts do not differ as it says");
  mapping.map(op->getResult(0), result);
  return llvm::Error::success();
}

llvm::Error Localizer::startCollective(CollectiveOpInterface collective) {
  Block *block = builder.getInsertionBlock();
  Operation *before = block->empty() ? nullptr : &block->back();
  if (llvm::Error error = localizeCollective(collective))
    return error;
  Operation *last = nullptr;
  for (Operation *op = before ? before->getNextNode() : &block->front(); op;
       op = op->getNextNode())
    if (isa<CollectiveOpInterface>(op))
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
