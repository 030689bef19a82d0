//===- InferContraction.cpp - Result types of contractions ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "InferTypes.h"

#include "ax/Dialect/AttentionValues.h"

#include <limits>

using namespace mlir;
using namespace ax;

/// Factors have one type, but that those of eight bits may have two.
static LogicalResult checkFactors(std::optional<Location> location, Value a,
                                  Value b) {
  auto areBoth = [&](auto is) { return is(elementOf(a)) && is(elementOf(b)); };
  if (areBoth(isFloat8) || areBoth(isInteger8))
    return success();
  return checkElements(location, {a, b});
}

/// What the sum of their products is rounded to.
static Type sumOf(Value a, Value b) {
  Type element = elementOf(a);
  if (element != elementOf(b) && isInteger8(element))
    return IntegerType::get(element.getContext(), 32);
  return isFloat8(element) ? BFloat16Type::get(element.getContext()) : element;
}

AX_INFER(DotOp) {
  ArrayRef<int64_t> lhs = shapeOf(op.getLhs()), rhs = shapeOf(op.getRhs());
  if (failed(checkFactors(location, op.getLhs(), op.getRhs())))
    return failure();
  SmallVector<int64_t> shape;
  SmallVector<bool> lhsUsed(lhs.size()), rhsUsed(rhs.size());
  auto pair = [&](ArrayRef<int64_t> a, ArrayRef<int64_t> b,
                  bool keep) -> LogicalResult {
    if (a.size() != b.size())
      return emitOptionalError(location,
                               "as many lhs as rhs dimensions must be ",
                               keep ? "batch" : "contracted");
    for (auto [i, j] : llvm::zip(a, b)) {
      if (!inRange(i, lhs.size()) || !inRange(j, rhs.size()) || lhsUsed[i] ||
          rhsUsed[j])
        return emitOptionalError(location, "dimension pair ", i, " x ", j,
                                 " is out of range or used twice");
      if (lhs[i] != rhs[j])
        return emitOptionalError(location, "sizes of dimension pair ", i, " x ",
                                 j, " differ: ", lhs[i], " and ", rhs[j]);
      lhsUsed[i] = rhsUsed[j] = true;
      if (keep)
        shape.push_back(lhs[i]);
    }
    return success();
  };
  if (failed(pair(op.getLhsBatch(), op.getRhsBatch(), true)) ||
      failed(pair(op.getLhsContract(), op.getRhsContract(), false)))
    return failure();
  for (auto [i, size] : llvm::enumerate(lhs))
    if (!lhsUsed[i])
      shape.push_back(size);
  for (auto [i, size] : llvm::enumerate(rhs))
    if (!rhsUsed[i])
      shape.push_back(size);
  return checkedGive(location, types, shape, sumOf(op.getLhs(), op.getRhs()));
}

int64_t LinearOp::getK() { return shapeOf(getW())[getTransposeW() ? 1 : 0]; }
int64_t LinearOp::getN() { return shapeOf(getW())[getTransposeW() ? 0 : 1]; }

template <typename OpTy>
static LogicalResult verifyLayer(OpTy op) {
  // It would be an attribute that nobody reads.
  if (op->hasAttr("activation"))
    return op.emitOpError("has an activation, as plans had before they were "
                          "ax.unary operations: make the plan again");
  return success();
}

LogicalResult LinearOp::verify() { return verifyLayer(*this); }
LogicalResult ConvOp::verify() { return verifyLayer(*this); }
LogicalResult ConvTransposeOp::verify() { return verifyLayer(*this); }

AX_INFER(LinearOp) {
  ArrayRef<int64_t> x = shapeOf(op.getX()), w = shapeOf(op.getW());
  if (x.empty() || w.size() != 2)
    return emitOptionalError(location,
                             "needs x of rank >= 1 and w of rank 2, got ",
                             op.getX().getType(), " and ", op.getW().getType());
  if (failed(checkFactors(location, op.getX(), op.getW())))
    return failure();
  int64_t k = w[op.getTransposeW() ? 1 : 0], n = w[op.getTransposeW() ? 0 : 1];
  if (x.back() != k)
    return emitOptionalError(location, "x has ", x.back(),
                             " features, the weight takes ", k);
  SmallVector<int64_t> shape(x);
  shape.back() = n;
  return checkedGive(location, types, shape, sumOf(op.getX(), op.getX()));
}

static bool isPad(int64_t size) { return size >= -maxPad && size <= maxPad; }

/// Attribute lengths of a windowed op with `spatial` dimensions.
static LogicalResult checkWindow(std::optional<Location> location,
                                 size_t spatial, ArrayRef<int64_t> strides,
                                 ArrayRef<int64_t> pads,
                                 ArrayRef<int64_t> dilations) {
  auto positive = [](int64_t n) { return n >= 1 && n < maxSize; };
  if (strides.size() != spatial || dilations.size() != spatial ||
      pads.size() != 2 * spatial)
    return emitOptionalError(location, "needs ", spatial,
                             " strides and dilations and ", 2 * spatial,
                             " pads, got ", strides.size(), ", ",
                             dilations.size(), ", ", pads.size());
  if (!llvm::all_of(strides, positive) || !llvm::all_of(dilations, positive))
    return emitOptionalError(location, "strides and dilations are at least 1");
  if (!llvm::all_of(pads, isPad))
    return emitOptionalError(location, "pads are out of range");
  return success();
}

/// Elements from the first that a window touches to the last.
static int64_t windowOf(int64_t kernel, int64_t dilation) {
  return cappedProduct(kernel - 1, dilation) + 1;
}

AX_INFER(ConvOp) {
  ArrayRef<int64_t> x = shapeOf(op.getX()), w = shapeOf(op.getW());
  if (x.size() < 3 || w.size() != x.size())
    return emitOptionalError(location,
                             "needs x and w of the same rank >= 3, got ",
                             op.getX().getType(), " and ", op.getW().getType());
  size_t spatial = x.size() - 2;
  Type element = elementOf(op.getX());
  if (!isa<FloatType>(element) && !isInteger8(element))
    return emitOptionalError(location,
                             "x has floats, or integers of eight bits, got ",
                             op.getX().getType());
  if (failed(isInteger8(element)
                 ? checkFactors(location, op.getX(), op.getW())
                 : checkElements(location, {op.getX(), op.getW()})) ||
      failed(checkWindow(location, spatial, op.getStrides(), op.getPads(),
                         op.getDilations())))
    return failure();
  int64_t groups = op.getGroups();
  if (groups < 1 || x[1] % groups || w[0] % groups || w[1] != x[1] / groups)
    return emitOptionalError(location, "channels do not fit: x has ", x[1],
                             ", w takes ", w[1], " in ", groups,
                             " groups and gives ", w[0]);
  SmallVector<int64_t> shape{x[0], w[0]};
  for (size_t i = 0; i < spatial; ++i) {
    int64_t window = windowOf(w[i + 2], op.getDilations()[i]);
    int64_t room =
        x[i + 2] + op.getPads()[i] + op.getPads()[i + spatial] - window;
    if (room < 0)
      return emitOptionalError(location, "the kernel of ", window,
                               " is larger than the padded dimension ", i + 2,
                               " of ", x[i + 2]);
    shape.push_back(room / op.getStrides()[i] + 1);
  }
  return checkedGive(location, types, shape,
                     isInteger8(element) ? sumOf(op.getX(), op.getW())
                                         : element);
}

AX_INFER(ConvTransposeOp) {
  ArrayRef<int64_t> x = shapeOf(op.getX()), w = shapeOf(op.getW());
  if (x.size() < 3 || w.size() != x.size())
    return emitOptionalError(location,
                             "needs x and w of the same rank >= 3, got ",
                             op.getX().getType(), " and ", op.getW().getType());
  size_t spatial = x.size() - 2;
  if (failed(checkElements(location, {op.getX(), op.getW()})) ||
      failed(checkWindow(location, spatial, op.getStrides(), op.getPads(),
                         op.getDilations())))
    return failure();
  int64_t groups = op.getGroups();
  if (op.getOutputPads().size() != spatial ||
      !llvm::all_of(op.getOutputPads(), isPad))
    return emitOptionalError(location, "needs ", spatial,
                             " output pads in range");
  if (groups < 1 || x[1] % groups || w[0] != x[1])
    return emitOptionalError(location, "channels do not fit: x has ", x[1],
                             ", w takes ", w[0], " in ", groups, " groups");
  SmallVector<int64_t> shape{x[0], cappedProduct(w[1], groups)};
  for (size_t i = 0; i < spatial; ++i)
    shape.push_back(cappedProduct(x[i + 2] - 1, op.getStrides()[i]) +
                    op.getOutputPads()[i] +
                    windowOf(w[i + 2], op.getDilations()[i]) - op.getPads()[i] -
                    op.getPads()[i + spatial]);
  return checkedGive(location, types, shape, elementOf(op.getX()));
}

/// The spatial extents of a window op's result, appended to `shape`.
static LogicalResult
appendExtents(std::optional<Location> location, ArrayRef<int64_t> spatial,
              ArrayRef<int64_t> kernel, ArrayRef<int64_t> strides,
              ArrayRef<int64_t> pads, ArrayRef<int64_t> dilations,
              ArrayRef<int64_t> extra, SmallVectorImpl<int64_t> &shape) {
  for (size_t i = 0; i < spatial.size(); ++i) {
    int64_t more = extra.empty() ? 0 : extra[i];
    if (kernel[i] < 1 || more < 0 || !isPad(more))
      return emitOptionalError(location, "kernel sizes are at least 1, "
                                         "ceil_extra sizes at least 0");
    int64_t window = windowOf(kernel[i], dilations[i]);
    int64_t room =
        spatial[i] + pads[i] + pads[i + spatial.size()] + more - window;
    if (room < 0)
      return emitOptionalError(location, "the window of ", window,
                               " is larger than the padded dimension ", i + 2,
                               " of ", spatial[i]);
    shape.push_back(room / strides[i] + 1);
  }
  return success();
}

AX_INFER(ConvWeightGradientOp) {
  ArrayRef<int64_t> x = shapeOf(op.getX()), dy = shapeOf(op.getGradient());
  if (x.size() < 3 || dy.size() != x.size())
    return emitOptionalError(
        location, "needs x and gradient of the same rank >= 3, got ",
        op.getX().getType(), " and ", op.getGradient().getType());
  size_t spatial = x.size() - 2;
  if (failed(checkElements(location, {op.getX(), op.getGradient()})) ||
      failed(checkWindow(location, spatial, op.getStrides(), op.getPads(),
                         op.getDilations())))
    return failure();
  int64_t groups = op.getGroups();
  if (op.getKernel().size() != spatial)
    return emitOptionalError(location, "needs ", spatial, " kernel sizes");
  if (groups < 1 || x[1] % groups || dy[1] % groups || x[0] != dy[0])
    return emitOptionalError(
        location, "batch or channels do not fit: x is ", op.getX().getType(),
        ", gradient ", op.getGradient().getType(), " in ", groups, " groups");
  SmallVector<int64_t> result{x[0], dy[1]};
  if (failed(appendExtents(location, x.drop_front(2), op.getKernel(),
                           op.getStrides(), op.getPads(), op.getDilations(), {},
                           result)))
    return failure();
  if (ArrayRef<int64_t>(result) != dy)
    return emitOptionalError(location, "gradient ", op.getGradient().getType(),
                             " is not of a convolution of ",
                             op.getX().getType());
  SmallVector<int64_t> shape{dy[1], x[1] / groups};
  llvm::append_range(shape, op.getKernel());
  return checkedGive(location, types, shape, elementOf(op.getX()));
}

AX_INFER(MaxPoolGradientOp) {
  ArrayRef<int64_t> x = shapeOf(op.getX());
  if (x.size() < 3)
    return emitOptionalError(location, "needs a tensor of rank >= 3, got ",
                             op.getX().getType());
  size_t spatial = x.size() - 2;
  if (failed(checkWindow(location, spatial, op.getStrides(), op.getPads(),
                         op.getDilations())))
    return failure();
  if (op.getKernel().size() != spatial || op.getCeilExtra().size() != spatial)
    return emitOptionalError(location, "needs ", spatial,
                             " kernel and ceil_extra sizes");
  SmallVector<int64_t> result{x[0], x[1]};
  if (failed(appendExtents(location, x.drop_front(2), op.getKernel(),
                           op.getStrides(), op.getPads(), op.getDilations(),
                           op.getCeilExtra(), result)))
    return failure();
  if (ArrayRef<int64_t>(result) != shapeOf(op.getGradient()) ||
      elementOf(op.getX()) != elementOf(op.getGradient()))
    return emitOptionalError(location, "gradient ", op.getGradient().getType(),
                             " is not of a pool of ", op.getX().getType());
  return give(types, x, elementOf(op.getX()));
}

AX_INFER(PoolOp) {
  ArrayRef<int64_t> x = shapeOf(op.getX()), kernel = op.getKernel();
  if (x.size() < 3)
    return emitOptionalError(location, "needs a tensor of rank >= 3, got ",
                             op.getX().getType());
  size_t spatial = x.size() - 2;
  if (failed(checkWindow(location, spatial, op.getStrides(), op.getPads(),
                         op.getDilations())))
    return failure();
  if (kernel.size() != spatial || op.getCeilExtra().size() != spatial)
    return emitOptionalError(location, "needs ", spatial,
                             " kernel and ceil_extra sizes");
  // A window in the padding alone has no mean, but floating point has NaN.
  if (op.getKind() == PoolKind::avg && elementOf(op.getX()).isInteger())
    return emitOptionalError(location, "a mean needs floating point, got ",
                             elementOf(op.getX()));
  SmallVector<int64_t> shape{x[0], x[1]};
  if (failed(appendExtents(location, x.drop_front(2), kernel, op.getStrides(),
                           op.getPads(), op.getDilations(), op.getCeilExtra(),
                           shape)))
    return failure();
  return checkedGive(location, types, shape, elementOf(op.getX()));
}

/// What attention and its gradient take alike.
template <typename Adaptor>
static LogicalResult checkAttention(std::optional<Location> location,
                                    Adaptor op) {
  ArrayRef<int64_t> q = shapeOf(op.getQ()), k = shapeOf(op.getK()),
                    v = shapeOf(op.getV());
  if (q.size() != 4 || k.size() != 4 || v.size() != 4)
    return emitOptionalError(location, "needs q, k, v of rank 4");
  if (failed(checkElements(location, {op.getQ(), op.getK(), op.getV()})))
    return failure();
  if (q[0] != k[0] || k[0] != v[0] || k[1] != v[1] || k[2] != v[2] ||
      q[3] != k[3])
    return emitOptionalError(location,
                             "q, k, v do not fit: ", op.getQ().getType(), ", ",
                             op.getK().getType(), ", ", op.getV().getType());
  if (k[1] < 1 || q[1] % k[1])
    return emitOptionalError(location, q[1], " heads are no multiple of ", k[1],
                             " key/value heads");
  if (op.getEmptyRowsZero() && op.getEmptyRowsMean())
    return emitOptionalError(
        location, "rows with nothing to attend to give 0 or a mean, not both");
  if (std::optional<int64_t> window = op.getWindow()) {
    if (*window < 1 || *window > std::numeric_limits<int32_t>::max())
      return emitOptionalError(location, "window ", *window,
                               " is not from 1 to 2^31 - 1");
    bool hasPlaces = op.getMask() && elementOf(op.getMask()).isInteger(64);
    if (!op.getCausal() && !hasPlaces)
      return emitOptionalError(
          location, "a window ends where causal or a mask of i64 says");
  }
  return op.getMask()
             ? checkAttentionMask(location, op.getQ(), op.getK(), op.getMask())
             : success();
}

template <typename Adaptor>
static LogicalResult checkProductType(std::optional<Location> location,
                                      Adaptor op) {
  if (std::optional<Type> type = op.getProductType();
      type && !type->isF16() && !type->isBF16())
    return emitOptionalError(location, "product_type ", *type,
                             " is neither f16 nor bf16");
  return success();
}

AX_INFER(AttentionOp) {
  if (failed(checkAttention(location, op)) ||
      failed(checkProductType(location, op)))
    return failure();
  ArrayRef<int64_t> q = shapeOf(op.getQ());
  return checkedGive(location, types, {q[0], q[1], q[2], shapeOf(op.getV())[3]},
                     elementOf(op.getQ()));
}

AX_INFER(AttentionGradientOp) {
  if (failed(checkAttention(location, op)) ||
      failed(checkProductType(location, op)) ||
      failed(checkElements(location,
                           {op.getQ(), op.getResult(), op.getGradient()})))
    return failure();
  ArrayRef<int64_t> q = shapeOf(op.getQ());
  int64_t result[] = {q[0], q[1], q[2], shapeOf(op.getV())[3]};
  for (Value value : {op.getResult(), op.getGradient()})
    if (shapeOf(value) != ArrayRef<int64_t>(result))
      return emitOptionalError(
          location, value.getType(), " is not of the attention of ",
          op.getQ().getType(), " to ", op.getV().getType());
  for (Value value : {op.getQ(), op.getK(), op.getV()})
    (void)give(types, shapeOf(value), elementOf(value));
  return success();
}
