//===- LocalizeGradients.cpp - Gradient ops as others ---------------------===//
//
// Operations that only the backward pass has become ones that there are
// kernels for.
//
//===----------------------------------------------------------------------===//
#include "Localizer.h"

#include "ax/Support/Error.h"

#include <limits>

using namespace mlir;

namespace ax::codegen {

using sharding::DimLayout;

/// Scattered into zeros, the indexed dimension in front. What belongs to other
/// ranks becomes 0.
llvm::Error Localizer::localizeGatherGradient(GatherGradientOp op) {
  int64_t axis = op.getAxis();
  sharding::DimLayout dim = layoutOf(op.getResult()).dims[axis];
  auto checked = checkedIndices(op);
  if (!checked)
    return checked.takeError();
  Value indices = *checked;
  Value updates = mapping.lookup(op.getUpdates());
  Type element = tensorType(updates).getElementType();
  if (dim.isSplit()) {
    auto [valid, local] = localIndex(indices, dim);
    SmallVector<int64_t> shape(tensorType(updates).getRank(), 1);
    llvm::copy(tensorType(valid).getShape(), shape.begin() + axis);
    indices = local;
    updates = select(reshape(valid, shape), updates,
                     constant(builder.getZeroAttr(element)));
  }
  SmallVector<int64_t> columns(tensorType(indices).getShape());
  int64_t depth = columns.size(), rank = tensorType(updates).getRank();
  columns.push_back(1);

  auto dims = llvm::to_vector(llvm::seq<int64_t>(axis, axis + depth));
  llvm::append_range(dims, llvm::seq<int64_t>(0, axis));
  llvm::append_range(dims, llvm::seq<int64_t>(axis + depth, rank));
  if (axis > 0)
    updates = TransposeOp::create(builder, updates, dims);
  RankedTensorType type = localType(op.getType());
  SmallVector<int64_t> shape{type.getDimSize(axis)};
  llvm::append_range(shape, tensorType(updates).getShape().drop_front(depth));
  auto scattered = RankedTensorType::get(shape, element);
  Value zeros = ConstantOp::create(
      builder, DenseElementsAttr::get(scattered, builder.getZeroAttr(element)));
  Value sum = ScatterNDOp::create(builder, scattered, ScatterKind::add, zeros,
                                  reshape(indices, columns), updates);
  if (axis > 0) {
    auto back = llvm::to_vector(llvm::seq<int64_t>(1, axis + 1));
    back.push_back(0);
    llvm::append_range(back, llvm::seq<int64_t>(axis + 1, type.getRank()));
    sum = TransposeOp::create(builder, sum, back);
  }
  mapping.map(op.getResult(), sum);
  return llvm::Error::success();
}

/// [outer, groups x inner, rest...] as [inner, groups x outer, rest...], or
/// with `groupsFirst` as [groups x inner, outer, rest...].
static Value regroup(ImplicitLocOpBuilder &builder, Value value, int64_t groups,
                     bool groupsFirst) {
  RankedTensorType type = tensorType(value);
  ArrayRef<int64_t> shape = type.getShape(), rest = shape.drop_front(2);
  int64_t outer = shape[0], inner = shape[1] / groups;
  SmallVector<int64_t> apart = {outer, groups, inner};
  llvm::append_range(apart, rest);
  SmallVector<int64_t> order = {2, 1, 0};
  if (groupsFirst)
    order = {1, 2, 0};
  llvm::append_range(order, llvm::seq<int64_t>(3, apart.size()));
  SmallVector<int64_t> merged = {groupsFirst ? shape[1] : inner,
                                 groupsFirst ? outer : groups * outer};
  llvm::append_range(merged, rest);
  value = ReshapeOp::create(builder, type.clone(apart), value);
  value = TransposeOp::create(builder, value, order);
  return ReshapeOp::create(builder, type.clone(merged), value);
}

/// A convolution over the batch: the gradient is the filter, and what was a
/// stride is its dilation.
void Localizer::localizeConvWeightGradient(ConvWeightGradientOp op) {
  Value x = mapping.lookup(op.getX()), dy = mapping.lookup(op.getGradient());
  RankedTensorType type = localType(op.getType());
  int64_t groups =
      tensorType(x).getDimSize(1) / std::max<int64_t>(type.getDimSize(1), 1);
  size_t spatial = op.getKernel().size();
  SmallVector<int64_t> pads(op.getPads());
  for (size_t i = 0; i < spatial; ++i) {
    int64_t size = tensorType(x).getDimSize(i + 2);
    int64_t windows = tensorType(dy).getDimSize(i + 2);
    int64_t reached = (op.getKernel()[i] - 1) * op.getDilations()[i] +
                      (windows - 1) * op.getStrides()[i] + 1 - pads[i];
    pads[i + spatial] = std::max<int64_t>(reached - size, 0);
    if (reached >= size)
      continue;
    // What no window reads.
    SmallVector<int64_t> shape(tensorType(x).getShape());
    SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
    shape[i + 2] = reached;
    x = SliceOp::create(builder, type.clone(shape), x, starts, steps);
  }
  Value filter = regroup(builder, dy, groups, /*groupsFirst=*/true);
  Value conv = ConvOp::create(
      builder, regroup(builder, x, groups, /*groupsFirst=*/false), filter,
      Value(), Value(), op.getDilations(), pads, op.getStrides(), groups,
      UnaryKindAttr());
  SmallVector<int64_t> order = {1, 0};
  llvm::append_range(order, llvm::seq<int64_t>(2, type.getRank()));
  mapping.map(op.getResult(), TransposeOp::create(builder, conv, order));
}

/// Tap by tap, where each window has its first largest element; then all
/// gradients are added there.
llvm::Error Localizer::localizeMaxPoolGradient(MaxPoolGradientOp op) {
  Value x = mapping.lookup(op.getX()), dy = mapping.lookup(op.getGradient());
  RankedTensorType xType = tensorType(x), yType = tensorType(dy);
  ArrayRef<int64_t> area = xType.getShape().drop_front(2);
  ArrayRef<int64_t> windows = yType.getShape().drop_front(2);
  ArrayRef<int64_t> kernel = op.getKernel(), strides = op.getStrides();
  int64_t spatial = kernel.size();

  SmallVector<int64_t> low = {0, 0}, high = {0, 0}, steps = {1, 1};
  Value base = constantInt(0);
  SmallVector<int64_t> weights(spatial, 1);
  for (int64_t i = spatial - 1; i > 0; --i)
    weights[i - 1] = weights[i] * area[i];
  for (int64_t i = 0; i < spatial; ++i) {
    low.push_back(op.getPads()[i]);
    if (low.back() < 0)
      return fault(op, "has a negative pad");
    int64_t reached = (windows[i] - 1) * strides[i] +
                      (kernel[i] - 1) * op.getDilations()[i] + 1;
    high.push_back(std::max<int64_t>(reached - low.back() - area[i], 0));
    steps.push_back(strides[i]);
    SmallVector<int64_t> shape(spatial + 2, 1);
    shape[i + 2] = windows[i];
    Value window = IotaOp::create(builder, i64Type(shape), i + 2);
    base = binary(
        BinaryKind::add, base,
        binary(BinaryKind::mul, window, constantInt(strides[i] * weights[i])));
  }
  Value outside = constant(FloatAttr::get(
      xType.getElementType(), -std::numeric_limits<double>::infinity()));
  Value padded =
      PadOp::create(builder, x, outside, low, high, PadMode::constant);

  Value best, place;
  SmallVector<int64_t> starts(spatial + 2, 0);
  int64_t taps = llvm::product_of(kernel);
  for (int64_t tap = 0; tap < taps; ++tap) {
    int64_t offset = 0;
    for (int64_t i = spatial - 1, rest = tap; i >= 0; rest /= kernel[i--]) {
      starts[i + 2] = rest % kernel[i] * op.getDilations()[i];
      offset += (starts[i + 2] - low[i + 2]) * weights[i];
    }
    Value value = SliceOp::create(builder, yType, padded, starts, steps);
    Value here = binary(BinaryKind::add, base, constantInt(offset));
    // Not <=, so that NaN is larger than anything.
    Value wins = best ? compare(CompareKind::le, value, best) : Value();
    place = best ? select(wins, place, here) : here;
    best = best ? select(wins, best, value) : value;
  }
  // A window that has nothing but -inf may have found padding.
  int64_t size = llvm::product_of(area), numWindows = llvm::product_of(windows);
  place = binary(BinaryKind::max, place, constantInt(0));
  place = binary(BinaryKind::min, place, constantInt(size - 1));
  place = BroadcastOp::create(builder, i64Type(yType.getShape()), place);
  int64_t batch = xType.getDimSize(0), channels = xType.getDimSize(1);
  auto flat = xType.clone({batch, channels, size});
  Value zeros = ConstantOp::create(
      builder, DenseElementsAttr::get(
                   flat, builder.getZeroAttr(xType.getElementType())));
  SmallVector<int64_t> flatWindows = {batch, channels, numWindows};
  Value sum = ScatterElementsOp::create(builder, ScatterKind::add, zeros,
                                        reshape(place, flatWindows),
                                        reshape(dy, flatWindows), /*axis=*/2);
  mapping.map(op.getResult(), reshape(sum, xType.getShape()));
  return llvm::Error::success();
}

} // namespace ax::codegen
