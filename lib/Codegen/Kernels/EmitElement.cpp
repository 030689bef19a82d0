//===- EmitElement.cpp - The element of a value at some indices -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Decompose.h"
#include "Emitter.h"

#include "ax/Local/Local.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ax::codegen {

static Type elementType(Value value) {
  return tensorType(value).getElementType();
}

Value Emitter::pull(Value value, ArrayRef<IndexExpr> indices) {
  std::pair<void *, Indices> key{value.getAsOpaquePointer(),
                                 Indices(indices.begin(), indices.end())};
  for (const Memo &memo : memos)
    if (auto it = memo.find(key); it != memo.end())
      return it->second;
  Value element;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    element =
        pullArgument(argument.getArgNumber(), tensorType(value),
                     space.linearize(indices, tensorType(value).getShape()));
  } else {
    auto result = cast<OpResult>(value);
    Operation *op = result.getOwner();
    bool isRow = isRowOp(op) || (kept.contains(op) && inKept != op);
    element = isRow ? pullRow(result, indices) : pullOp(result, indices);
  }
  memos.back()[key] = element;
  return element;
}

/// Operand of an op with NumPy broadcasting, at the result's indices.
Value Emitter::pullBroadcast(Value operand, ArrayRef<IndexExpr> indices) {
  ArrayRef<int64_t> shape = tensorType(operand).getShape();
  Indices own(indices.take_back(shape.size()));
  for (auto [d, size] : llvm::enumerate(shape))
    if (size == 1)
      own[d] = IndexExpr();
  return pull(operand, own);
}

Value Emitter::pullOp(OpResult value, ArrayRef<IndexExpr> indices) {
  Operation *op = value.getOwner();
  Type type = elementType(value);
  return TypeSwitch<Operation *, Value>(op)
      .Case<UnaryOp>([&](UnaryOp o) {
        if (o->hasAttr(kFlushed))
          return writer.expFlushed(pull(o.getOperand(), indices));
        return writer.unary(o.getKind(), pull(o.getOperand(), indices),
                            elementType(o.getOperand()));
      })
      .Case<BinaryOp>([&](BinaryOp o) {
        Value x = pullBroadcast(o.getLhs(), indices);
        Value y = pullBroadcast(o.getRhs(), indices);
        return writer.binary(o.getKind(), x, y, type);
      })
      .Case<CompareOp>([&](CompareOp o) {
        Value x = pullBroadcast(o.getLhs(), indices);
        Value y = pullBroadcast(o.getRhs(), indices);
        return writer.compare(o.getKind(), x, y, elementType(o.getLhs()));
      })
      .Case<SelectOp>([&](SelectOp o) -> Value {
        Value c = pullBroadcast(o.getCondition(), indices);
        Value x = pullBroadcast(o.getOnTrue(), indices);
        Value y = pullBroadcast(o.getOnFalse(), indices);
        return writer.select(c, x, y);
      })
      .Case<RandomOp>([&](RandomOp o) {
        return writer.random(pull(o.getIndex(), indices), pull(o.getSeed(), {}),
                             pull(o.getStep(), {}), o.getId());
      })
      .Case<CastOp>([&](CastOp o) {
        return writer.convert(pull(o.getOperand(), indices),
                              elementType(o.getOperand()), type);
      })
      .Case<ConstantOp>([&](ConstantOp o) { return pullConstant(o, indices); })
      .Case<IotaOp>([&](IotaOp o) {
        return writer.convert(
            writer.wide(space.materialize(indices[o.getDim()])), i64, type);
      })
      .Case<AxisIndexOp>([&](AxisIndexOp o) -> Value {
        auto *it = llvm::find(scalars, o.getAxes());
        return writer.convert(writer.scalar(it - scalars.begin()), i64, type);
      })
      .Case<ReshapeOp>([&](ReshapeOp o) {
        RankedTensorType from = tensorType(o.getOperand());
        IndexExpr linear =
            space.linearize(indices, tensorType(value).getShape());
        return pull(o.getOperand(), space.delinearize(linear, from.getShape()));
      })
      .Case<TransposeOp>([&](TransposeOp o) {
        Indices own(indices.size());
        for (auto [i, d] : llvm::enumerate(o.getPermutation()))
          own[d] = indices[i];
        return pull(o.getOperand(), own);
      })
      .Case<BroadcastOp>(
          [&](BroadcastOp o) { return pullBroadcast(o.getOperand(), indices); })
      .Case<SliceOp>([&](SliceOp o) {
        Indices own;
        for (auto [index, start, step] :
             llvm::zip(indices, o.getStarts(), o.getSteps()))
          own.push_back(index * step + IndexExpr(start));
        return pull(o.getOperand(), own);
      })
      .Case<DynamicSliceOp>(
          [&](DynamicSliceOp o) { return pullDynamicSlice(o, indices); })
      .Case<ConcatOp>([&](ConcatOp o) { return pullConcat(o, indices); })
      .Case<PadOp>([&](PadOp o) { return pullPad(o, indices); })
      .Case<GatherOp>([&](GatherOp o) { return pullGather(o, indices); })
      .Case<GatherElementsOp>(
          [&](GatherElementsOp o) { return pullGatherElements(o, indices); })
      .Case<GatherNDOp>([&](GatherNDOp o) { return pullGatherND(o, indices); })
      .Default([](Operation *o) -> Value {
        llvm::report_fatal_error(o->getName().getStringRef() +
                                 " has no emitter of elements");
      });
}

/// A splat is a number; anything else lies in memory.
Value Emitter::pullConstant(ConstantOp op, ArrayRef<IndexExpr> indices) {
  RankedTensorType type = tensorType(op.getResult());
  Type element = type.getElementType();
  auto values = cast<DenseElementsAttr>(op.getValue());
  if (values.isSplat())
    return writer.constant(values.getSplatValue<Attribute>(), element);
  return loadElement(writer.table(op),
                     space.linearize(indices, type.getShape()), element);
}

/// `inside` where all bounds hold, `outside` elsewhere; the choice is made at
/// compile time where the ranges of the loops tell.
Value Emitter::guarded(ArrayRef<Bound> bounds, Type type,
                       function_ref<Value()> inside,
                       function_ref<Value()> outside) {
  std::optional<Value> condition;
  auto require = [&](Value c) {
    condition = condition ? writer.both(*condition, c) : c;
  };
  for (const Bound &bound : bounds) {
    std::optional<bool> below =
        space.isLess(bound.index, bound.lo, bound.mostPieces);
    std::optional<bool> belowEnd =
        space.isLess(bound.index, bound.hi, bound.mostPieces);
    if ((below && *below) || (belowEnd && !*belowEnd))
      return outside();
    if (below && belowEnd)
      continue;
    Value index = space.materialize(bound.index);
    if (!below)
      require(writer.isAtLeast(index, writer.number(bound.lo)));
    if (!belowEnd)
      require(writer.isLess(index, writer.number(bound.hi)));
  }
  if (!condition)
    return inside();
  return choose(*condition, type, inside, outside);
}

Value Emitter::choose(Value condition, Type type, function_ref<Value()> inside,
                      function_ref<Value()> outside) {
  auto apart = [&](function_ref<Value()> body) {
    memos.emplace_back();
    ++choiceDepth;
    Value value = body();
    --choiceDepth;
    memos.pop_back();
    return value;
  };
  return writer.choice(
      condition, type, [&] { return apart(inside); },
      [&] { return apart(outside); });
}

IndexExpr Emitter::chooseIndex(const IndexExpr &index, int64_t bound,
                               const IndexExpr &below,
                               const IndexExpr &notBelow) {
  if (std::optional<bool> isLess = space.isLess(index, bound))
    return *isLess ? below : notBelow;
  Value condition =
      writer.isLess(space.materialize(index), writer.number(bound));
  Value chosen = writer.select(condition, space.materialize(below),
                               space.materialize(notBelow));
  auto [lo1, hi1] = space.range(below);
  auto [lo2, hi2] = space.range(notBelow);
  return space.addOpaque(chosen, std::min(lo1, lo2), std::max(hi1, hi2));
}

/// Whether little is made of what `op` gives, so that a piece of a nest for
/// each operand is no more code than the operands are.
static bool isAlmostResult(ConcatOp op) {
  constexpr int mostOps = 2;
  int count = 0;
  SmallVector<Operation *> open(op->getUsers());
  while (!open.empty()) {
    Operation *user = open.pop_back_val();
    if (user->hasTrait<OpTrait::IsTerminator>())
      continue;
    if (!isView(user) && (!isElementwise(user) || ++count > mostOps))
      return false;
    llvm::append_range(open, user->getUsers());
  }
  return true;
}

/// Finds the operand by halves: of many, few comparisons find the one.
Value Emitter::pullConcat(ConcatOp op, ArrayRef<IndexExpr> indices) {
  uint64_t dim = op.getDim();
  SmallVector<int64_t> starts;
  int64_t end = 0;
  for (Value operand : op.getOperands()) {
    starts.push_back(end);
    end += tensorType(operand).getDimSize(dim);
  }
  constexpr int64_t manyPieces = 64;
  int64_t mostPieces =
      isAlmostResult(op)
          ? std::clamp<int64_t>(starts.size(), IndexSpace::usualPieces,
                                manyPieces)
          : IndexSpace::usualPieces;
  // Given that the element is in one of the operands first .. last - 1.
  std::function<Value(size_t, size_t)> from = [&](size_t first, size_t last) {
    if (first + 1 == last) {
      Indices shifted(indices);
      shifted[dim] = shifted[dim] + IndexExpr(-starts[first]);
      return pull(op.getOperands()[first], shifted);
    }
    size_t middle = (first + last) / 2;
    Bound below{indices[dim], std::numeric_limits<int64_t>::min(),
                starts[middle], mostPieces};
    return guarded(
        {below}, elementType(op.getResult()),
        [&] { return from(first, middle); },
        [&] { return from(middle, last); });
  };
  return from(0, starts.size());
}

Value Emitter::pullPad(PadOp op, ArrayRef<IndexExpr> indices) {
  ArrayRef<int64_t> shape = tensorType(op.getOperand()).getShape();
  Indices own;
  SmallVector<Bound> bounds;
  for (auto [d, size] : llvm::enumerate(shape)) {
    int64_t low = op.getLow()[d], high = op.getHigh()[d];
    IndexExpr index = indices[d] + IndexExpr(-low);
    if (low == 0 && high == 0) {
      own.push_back(index);
      continue;
    }
    switch (op.getMode()) {
    case PadMode::constant:
      bounds.push_back({index, 0, size});
      own.push_back(index);
      break;
    case PadMode::edge:
      index = chooseIndex(index, size, index, IndexExpr(size - 1));
      own.push_back(chooseIndex(index, 0, IndexExpr(0), index));
      break;
    case PadMode::wrap:
      // Not negative before the remainder is taken.
      own.push_back(
          space.divMod(index + IndexExpr((low + size - 1) / size * size), size)
              .second);
      break;
    case PadMode::reflect: {
      int64_t period = std::max<int64_t>(2 * (size - 1), 1);
      if (low < size && high < size) {
        IndexExpr mirrored = index * -1 + IndexExpr(2 * (size - 1));
        index = chooseIndex(index, size, index, mirrored);
        own.push_back(chooseIndex(index, 0, index * -1, index));
        break;
      }
      index =
          space
              .divMod(index + IndexExpr((low + period - 1) / period * period),
                      period)
              .second;
      own.push_back(
          chooseIndex(index, size, index, index * -1 + IndexExpr(period)));
      break;
    }
    }
  }
  return guarded(
      bounds, elementType(op.getOperand()),
      [&] { return pull(op.getOperand(), own); },
      [&] { return pull(op.getValue(), {}); });
}

/// An i64, to compare numbers from memory with.
Value Emitter::wideNumber(int64_t value) {
  return writer.constant(IntegerAttr::get(i64, value), i64);
}

Value Emitter::indexOf(Value number, Type type) {
  return writer.narrow(writer.convert(number, type, i64));
}

/// A number from memory as an index into `size` elements: negative ones count
/// from the end, and none leaves the tensor.
IndexExpr Emitter::dynamicIndex(Value number, Type type, int64_t size) {
  Value i = writer.convert(number, type, i64);
  Value zero = wideNumber(0);
  Value moved = writer.addWrapped(i, wideNumber(size));
  i = writer.select(writer.isLess(i, zero), moved, i);
  i = writer.maxSigned(i, zero);
  i = writer.minSigned(i, wideNumber(size - 1));
  return space.addOpaque(writer.narrow(i), 0, size - 1);
}

Value Emitter::pullDynamicSlice(DynamicSliceOp op,
                                ArrayRef<IndexExpr> indices) {
  ArrayRef<int64_t> shape = tensorType(op.getOperand()).getShape();
  Indices own;
  SmallVector<Bound> bounds;
  ArrayRef<int64_t> window = tensorType(op.getResult()).getShape();
  for (auto [d, start] : llvm::enumerate(op.getStarts())) {
    // A window beyond either end holds nothing, however far. A tight range:
    // index arithmetic multiplies it by strides, which must not wrap.
    int64_t low = -window[d], high = shape[d];
    Value first = writer.convert(pull(start, {}), elementType(start), i64);
    first = writer.maxSigned(first, wideNumber(low));
    first = writer.minSigned(first, wideNumber(high));
    IndexExpr index =
        indices[d] + space.addOpaque(writer.narrow(first), low, high);
    bounds.push_back({index, 0, shape[d]});
    own.push_back(index);
  }
  return guarded(
      bounds, elementType(op.getOperand()),
      [&] { return pull(op.getOperand(), own); },
      [&] { return writer.zero(elementType(op.getResult())); });
}

Value Emitter::pullGather(GatherOp op, ArrayRef<IndexExpr> indices) {
  ArrayRef<int64_t> shape = tensorType(op.getOperand()).getShape();
  unsigned axis = op.getAxis(), rank = tensorType(op.getIndices()).getRank();
  Value which = pull(op.getIndices(), indices.slice(axis, rank));
  Indices own(indices.take_front(axis));
  own.push_back(dynamicIndex(which, elementType(op.getIndices()), shape[axis]));
  own.append(indices.begin() + axis + rank, indices.end());
  return pull(op.getOperand(), own);
}

Value Emitter::pullGatherElements(GatherElementsOp op,
                                  ArrayRef<IndexExpr> indices) {
  int64_t size = tensorType(op.getOperand()).getDimSize(op.getAxis());
  Value which = pull(op.getIndices(), indices);
  Indices own(indices);
  own[op.getAxis()] = dynamicIndex(which, elementType(op.getIndices()), size);
  return pull(op.getOperand(), own);
}

Value Emitter::pullGatherND(GatherNDOp op, ArrayRef<IndexExpr> indices) {
  ArrayRef<int64_t> shape = tensorType(op.getOperand()).getShape();
  RankedTensorType type = tensorType(op.getIndices());
  unsigned rank = type.getRank() - 1, batch = op.getBatchDims();
  int64_t depth = type.getShape().back();
  Indices own(indices.take_front(batch));
  Indices at(indices.take_front(rank));
  at.push_back(IndexExpr());
  for (int64_t k = 0; k != depth; ++k) {
    at.back() = IndexExpr(k);
    own.push_back(dynamicIndex(pull(op.getIndices(), at), type.getElementType(),
                               shape[batch + k]));
  }
  own.append(indices.begin() + rank, indices.end());
  return pull(op.getOperand(), own);
}

} // namespace ax::codegen
