//===- LocalizeOps.cpp - Ops whose attributes depend on the part ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Localizer.h"
#include "ax/Local/Local.h"

using namespace mlir;

namespace ax::codegen {

using sharding::DimLayout;

llvm::Error Localizer::localize(CastOp op) {
  mapping.map(op.getResult(), castTo(mapping.lookup(op.getOperand()),
                                     localType(op.getType()).getElementType()));
  return llvm::Error::success();
}

/// A rank's groups: its channels over those that one filter sees, of which
/// there may be none.
static int64_t groupsOf(Value channels, Value filters) {
  int64_t seen = tensorType(filters).getDimSize(1);
  return seen ? tensorType(channels).getDimSize(1) / seen : 1;
}

llvm::Error Localizer::localize(ConvOp op) {
  return doOnParts(op, [](Operation *local) {
    auto conv = cast<ConvOp>(local);
    conv.setGroups(groupsOf(conv.getX(), conv.getW()));
  });
}

llvm::Error Localizer::localize(ConvTransposeOp op) {
  return doOnParts(op, [](Operation *local) {
    auto conv = cast<ConvTransposeOp>(local);
    conv.setGroups(groupsOf(conv.getResult(), conv.getW()));
  });
}

llvm::Error Localizer::localize(ConvWeightGradientOp op) {
  return doOnParts(op, [](Operation *local) {
    auto conv = cast<ConvWeightGradientOp>(local);
    conv.setGroups(groupsOf(conv.getX(), conv.getResult()));
  });
}

llvm::Error Localizer::localize(ReshapeOp op) {
  Value operand = mapping.lookup(op.getOperand());
  RankedTensorType type = localType(op.getType());
  if (tensorType(operand).getNumElements() != type.getNumElements())
    return fault(op, "the parts before and after differ in size");
  mapping.map(op.getResult(), reshape(operand, type.getShape()));
  return llvm::Error::success();
}

/// Elements of `dim` that stand behind one step of its leading, unsplit
/// factor: globally and on a rank. The whole dimension when it is split.
static std::pair<int64_t, int64_t> minorSizes(const DimLayout &dim) {
  const sharding::Factor &major = dim.factors.front();
  if (!major.axes.empty())
    return {dim.size(), dim.localSize()};
  return {dim.size() / major.size, dim.localSize() / major.size};
}

llvm::Error Localizer::localize(SliceOp op) {
  sharding::Layout from = layoutOf(op.getOperand());
  sharding::Layout to = layoutOf(op.getResult());
  SmallVector<int64_t> starts(op.getStarts());
  for (size_t dim = 0; dim < from.dims.size(); ++dim) {
    if (from.dims[dim] == to.dims[dim] && starts[dim] == 0 &&
        op.getSteps()[dim] == 1)
      continue;
    if (!from.dims[dim].isSplit() && !to.dims[dim].isSplit())
      continue;
    // A part of the leading factor: whole runs of what is split behind it.
    auto [minor, localMinor] = minorSizes(from.dims[dim]);
    if (op.getSteps()[dim] != 1 || starts[dim] % minor != 0 ||
        to.dims[dim].size() % minor != 0 ||
        to.dims[dim].size() / minor * localMinor != to.dims[dim].localSize())
      return fault(op, "dimension " + llvm::Twine(dim) +
                           " is split and sliced across its parts");
    starts[dim] = starts[dim] / minor * localMinor;
  }
  cast<SliceOp>(cloneLocal(op)).setStarts(starts);
  return llvm::Error::success();
}

llvm::Error Localizer::localize(PadOp op) {
  sharding::Layout layout = layoutOf(op.getOperand());
  for (auto [dim, low, high] :
       llvm::zip_equal(layout.dims, op.getLow(), op.getHigh()))
    if (dim.isSplit() && (low != 0 || high != 0))
      return fault(op, "a split dimension is padded");
  cloneLocal(op);
  return llvm::Error::success();
}

llvm::Error Localizer::localize(ConstantOp op) {
  sharding::Layout layout = layoutOf(op.getResult());
  if (!layout.partial.empty())
    return fault(op, "a constant cannot be a partial sum");
  RankedTensorType type = localType(op.getType());
  if (auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
      dense && dense.isSplat()) {
    mapping.map(op.getResult(),
                ConstantOp::create(builder, dense.resizeSplat(type)));
    return llvm::Error::success();
  }
  auto whole = cast<RankedTensorType>(op.getValue().getType());
  Value part = ConstantOp::create(
      builder, RankedTensorType::get(whole.getShape(), whole.getElementType()),
      op.getValue());
  for (auto [dim, dimLayout] : llvm::enumerate(layout.dims)) {
    if (!dimLayout.isSplit())
      continue;
    auto sliced = slicePart(op, part, dim, dimLayout, dimLayout.axes());
    if (!sliced)
      return sliced.takeError();
    part = *sliced;
  }
  mapping.map(op.getResult(), part);
  return llvm::Error::success();
}

llvm::Error Localizer::localize(IotaOp op) {
  RankedTensorType type = localType(op.getType());
  int64_t dim = op.getDim();
  const DimLayout layout = layoutOf(op.getResult()).dims[dim];
  if (!layout.isSplit()) {
    cloneLocal(op);
    return llvm::Error::success();
  }
  Value index = globalIndex(layout, dim, type.getRank());
  RankedTensorType indexType = tensorType(index);
  if (indexType.getElementType() != type.getElementType())
    index =
        CastOp::create(builder, indexType.clone(type.getElementType()), index);
  if (tensorType(index) != type)
    index = BroadcastOp::create(builder, type, index);
  mapping.map(op.getResult(), index);
  return llvm::Error::success();
}

/// Each digit of the index: inside this rank's part of `dim`, and where in it.
std::pair<Value, Value> Localizer::localIndex(Value indices,
                                              const DimLayout &dim) {
  Type indexElement = tensorType(indices).getElementType();
  if (!indexElement.isInteger(64))
    indices = CastOp::create(
        builder, tensorType(indices).clone(builder.getI64Type()), indices);
  Value zero = constantInt(0), size = constantInt(dim.size());
  Value fromEnd = binary(BinaryKind::add, indices, size);
  indices = select(compare(CompareKind::lt, indices, zero), fromEnd, indices);

  Value valid, local;
  auto require = [&](Value holds) {
    valid = valid ? binary(BinaryKind::logical_and, valid, holds) : holds;
  };
  int64_t weight = dim.size();
  for (const sharding::Factor &factor : dim.factors) {
    weight /= factor.size;
    int64_t localSize = factor.localSize();
    Value digit = indices;
    if (dim.factors.size() > 1)
      digit = binary(BinaryKind::trunc_mod,
                     binary(BinaryKind::div, digit, constantInt(weight)),
                     constantInt(factor.size));
    if (!factor.axes.empty()) {
      // The last parts of an uneven split are cut short.
      if (factor.size % sharding::numParts(factor.axes) != 0)
        require(compare(CompareKind::lt, digit, constantInt(factor.size)));
      Value start = binary(BinaryKind::mul, axisIndex(factor.axes),
                           constantInt(localSize));
      digit = binary(BinaryKind::sub, digit, start);
      require(compare(CompareKind::ge, digit, zero));
      require(compare(CompareKind::lt, digit, constantInt(localSize)));
      digit =
          binary(BinaryKind::max, zero,
                 binary(BinaryKind::min, digit, constantInt(localSize - 1)));
    }
    local = local
                ? binary(BinaryKind::add,
                         binary(BinaryKind::mul, local, constantInt(localSize)),
                         digit)
                : digit;
  }
  return {valid, local};
}

/// Vocabulary-parallel: indices outside this rank's part give zero, so that the
/// sum over ranks is the element.
llvm::Error Localizer::localize(GatherOp op) {
  int64_t axis = op.getAxis();
  DimLayout dim = layoutOf(op.getOperand()).dims[axis];
  auto indices = checkedIndices(op);
  if (!indices)
    return indices.takeError();
  if (!dim.isSplit()) {
    cast<GatherOp>(cloneLocal(op)).getIndicesMutable().assign(*indices);
    return llvm::Error::success();
  }
  auto [valid, local] = localIndex(*indices, dim);
  Value table = mapping.lookup(op.getOperand());
  Type element = localType(op.getType()).getElementType();
  RankedTensorType type =
      localType(op.getType()).clone(tensorType(table).getElementType());
  Value rows = GatherOp::create(builder, type, table, local, axis);

  ArrayRef<int64_t> indexShape = tensorType(valid).getShape();
  SmallVector<int64_t> shape(type.getRank(), 1);
  std::copy(indexShape.begin(), indexShape.end(), shape.begin() + axis);
  Value none = constant(builder.getZeroAttr(type.getElementType()));
  mapping.map(op.getResult(),
              castTo(select(reshape(valid, shape), rows, none), element));
  return llvm::Error::success();
}

/// What is hidden by places counts them from the global start: where queries
/// are split, a rank has the place of its first, of each key if a mask says
/// whether it is seen at all. Beside other masks, or where its own queries are
/// not neighbours, all of it is written out.
template <typename OpTy>
void Localizer::writePlaces(OpTy op, OpTy local) {
  DimLayout queries = layoutOf(op.getQ()).dims[2];
  Value mask = local.getMask();
  auto maskIs = [&](unsigned width) {
    return mask && tensorType(mask).getElementType().isInteger(width);
  };
  bool isPlaces = maskIs(64), causal = op.getCausal();
  if (!queries.isSplit() || !(causal || isPlaces))
    return;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(local);
  int64_t numQueries = queries.size();
  int64_t numKeys = tensorType(op.getK()).getDimSize(2);
  auto add = [&](Value x, Value y) { return binary(BinaryKind::add, x, y); };
  local.setCausal(false);
  int64_t window = op.getWindow().value_or(0);
  // Any number may say all, or none.
  auto clamped = [&](Value places) {
    places = binary(BinaryKind::min, places, constantInt(numKeys + window));
    return binary(BinaryKind::max, places, constantInt(-numKeys - numQueries));
  };

  bool isOfKeys = maskIs(1) && tensorType(mask).getDimSize(2) == 1;
  if ((!mask || isOfKeys || isPlaces) && queries.factors.size() == 1) {
    Value first = reshape(binary(BinaryKind::mul, axisIndex(queries.axes()),
                                 constantInt(queries.localSize())),
                          {1, 1, 1, 1});
    Value place;
    if (causal)
      place = add(first, constantInt(numKeys - numQueries));
    // No query is as far behind.
    if (isOfKeys)
      place = select(mask, place, constantInt(-numKeys - numQueries));
    if (isPlaces) {
      Value given = add(clamped(mask), first);
      place = causal ? binary(BinaryKind::min, given, place) : given;
    }
    local.getMaskMutable().assign(place);
    return;
  }

  Value query = globalIndex(queries, 2, 4);
  Value key = IotaOp::create(builder, i64Type({1, 1, 1, numKeys}), 3);
  Value place;
  if (causal)
    place = add(query, constantInt(numKeys - numQueries));
  if (isPlaces) {
    Value given = add(clamped(mask), query);
    place = causal ? binary(BinaryKind::min, given, place) : given;
  }
  Value attended = compare(CompareKind::le, key, place);
  if (window)
    attended =
        binary(BinaryKind::logical_and, attended,
               compare(CompareKind::gt, key, add(place, constantInt(-window))));
  local.removeWindowAttr();
  if (!mask || isPlaces) {
    mask = attended;
  } else if (maskIs(1)) {
    mask = binary(BinaryKind::logical_and, mask, attended);
  } else {
    Value never =
        constant(FloatAttr::get(tensorType(mask).getElementType(),
                                -std::numeric_limits<double>::infinity()));
    mask = select(attended, mask, never);
  }
  local.getMaskMutable().assign(mask);
}

llvm::Error Localizer::localize(AttentionOp op) {
  writePlaces(op, cast<AttentionOp>(cloneLocal(op)));
  return llvm::Error::success();
}

llvm::Error Localizer::localize(AttentionGradientOp op) {
  return doOnParts(op, [&](Operation *local) {
    writePlaces(op, cast<AttentionGradientOp>(local));
  });
}

template <typename OpTy>
Value Localizer::randomNumbers(OpTy op, const sharding::Layout &layout) {
  Value place;
  int64_t stride = 1, rank = layout.dims.size();
  SmallVector<int64_t> shape(rank);
  for (int64_t dim = rank; dim-- > 0;) {
    Value index = globalIndex(layout.dims[dim], dim, rank);
    if (stride != 1)
      index = binary(BinaryKind::mul, index, constantInt(stride));
    place = place ? binary(BinaryKind::add, index, place) : index;
    stride *= layout.dims[dim].size();
    shape[dim] = layout.dims[dim].localSize();
  }
  if (!place)
    place = constantInt(0);
  return RandomOp::create(
      builder, RankedTensorType::get(shape, builder.getF32Type()), place,
      mapping.lookup(op.getSeed()), mapping.lookup(op.getStep()), op.getId());
}

llvm::Error Localizer::localize(UniformOp op) {
  mapping.map(op.getResult(), randomNumbers(op, layoutOf(op.getResult())));
  return llvm::Error::success();
}

llvm::Error Localizer::localize(DropoutOp op) {
  Value x = mapping.lookup(op.getOperand());
  double rate = op.getRate().convertToDouble();
  Value isKept =
      compare(CompareKind::ge, randomNumbers(op, layoutOf(op.getOperand())),
              constant(builder.getF32FloatAttr(rate)));
  Type element = tensorType(x).getElementType();
  Value scaled = binary(BinaryKind::mul, x,
                        constant(FloatAttr::get(element, 1 / (1 - rate))));
  mapping.map(op.getResult(),
              select(isKept, scaled, constant(FloatAttr::get(element, 0))));
  return llvm::Error::success();
}

} // namespace ax::codegen
