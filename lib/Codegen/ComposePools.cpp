//===- ComposePools.cpp - Pools of reads and reductions -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A window's maximum is a reduction over its places, each of which is read
// where it is in the image; a gradient is a sum over the windows that an
// element may be in. Both are pairs of an element of the result and something
// that it reads, which are worked out one by one and never in memory.
//
// An example, in one dimension: windows of 3 elements at a distance of 2 with a
// pad of 1. Window o reads the places 2 o - 1 + k for k in 0 .. 2. Element p is
// in the windows (p + 1) / 2 - 1 + j for j in 0 .. 1, or in one of them.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Gradients/PoolSizes.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

namespace ax::codegen {
#define GEN_PASS_DEF_COMPOSEPOOLS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

namespace {

using Dims = ArrayRef<int64_t>;

/// Places are numbers of 32 bits, of which a card divides many at once.
constexpr int64_t mostPlaces = std::numeric_limits<int32_t>::max();

int64_t placesOf(Value images) {
  return llvm::product_of(shapeOf(images).drop_front(2));
}

/// Each element of a result of [rows, own...] with all that it may read, as
/// tensors of [rows, own..., others...]. All are of that shape, indices too:
/// what is smaller would be a kernel's own result, in memory.
class Pairs {
public:
  Pairs(TensorBuilder &t, int64_t rows, Dims own, Dims others)
      : t(t), numOwn(own.size()) {
    shape.push_back(rows);
    llvm::append_range(shape, own);
    llvm::append_range(shape, others);
  }

  Value own(size_t i) { return number(1 + i); }
  Value other(size_t i) { return number(1 + numOwn + i); }

  /// Where what is read lies in its next dimension, of `size`; the index is in
  /// [first, last], and outside of that dimension nothing is read.
  void addIndex(Value index, int64_t size, int64_t first, int64_t last) {
    if (first < 0)
      require(t.compare(CompareKind::ge, index, 0));
    if (last >= size)
      require(t.compare(CompareKind::lt, index, static_cast<double>(size)));
    place = append(place, index, size);
  }
  void require(Value condition) {
    isThere = isThere ? t.binary(BinaryKind::logical_and, isThere, condition)
                      : condition;
  }
  /// The place in row-major order of what is read; of no meaning where nothing
  /// is.
  Value getPlace() const { return place; }
  Value getOwnPlace() {
    Value at;
    for (size_t i = 0; i < numOwn; ++i)
      at = append(at, own(i), shape[1 + i]);
    return at;
  }

  /// What is read of images, or of other tensors of as many rows.
  Value read(Value images) {
    int64_t rows = shape[0], all = llvm::product_of(shape);
    Value from =
        t.reshape(images, {rows, tensorType(images).getNumElements() / rows});
    Value at = t.reshape(orElse(place, 0), {rows, all / rows});
    return t.reshape(GatherElementsOp::create(t.b, from, at, /*axis=*/1),
                     shape);
  }
  /// `values` where something is read, `number` elsewhere.
  Value orElse(Value values, double number) {
    return isThere ? t.select(isThere, values, number) : values;
  }
  Value reduce(ReduceOpKind kind, Value values, bool keepDims = false) {
    return t.reduce(kind, values, dimsFrom(1 + numOwn, shape.size()), keepDims);
  }

private:
  Value number(int64_t dim) {
    return IotaOp::create(t.b, RankedTensorType::get(shape, t.b.getI32Type()),
                          dim);
  }
  Value append(Value at, Value index, int64_t size) {
    return at ? t.add(t.mul(at, static_cast<double>(size)), index) : index;
  }

  TensorBuilder &t;
  size_t numOwn;
  SmallVector<int64_t> shape;
  Value place, isThere;
};

class PoolComposer {
public:
  /// `images` and `windows` have the shapes of what windows read, and of one
  /// element for each window.
  template <typename Op>
  PoolComposer(Op op, Value images, Value windows, Dims kernel)
      : builder(op), t(op.getLoc(), builder),
        rows(shapeOf(images)[0] * shapeOf(images)[1]),
        image(shapeOf(images).drop_front(2)),
        window(shapeOf(windows).drop_front(2)), kernel(kernel),
        strides(op.getStrides()), low(op.getPads().take_front(kernel.size())),
        dilations(op.getDilations()) {}

  void pool(PoolOp op) {
    Pairs pairs = elementsOfWindows();
    Value read = pairs.read(op.getX());
    bool isMax = op.getKind() == PoolKind::max;
    if (!isMax)
      read = t.wide(read);
    Value y = pairs.reduce(isMax ? ReduceOpKind::max : ReduceOpKind::sum,
                           pairs.orElse(read, isMax ? lowest(read) : 0));
    if (op.getKind() == PoolKind::avg)
      y = t.div(y, poolSizes(op, t, elementType(y)));
    replace(op, y);
  }

  /// Two reductions: which element has a window's gradient, and what an element
  /// gets of its windows.
  void maxGradient(MaxPoolGradientOp op) {
    Value winners = winnersIn(op.getX());
    Pairs pairs = windowsOfElements();
    Value isWinner =
        t.compare(CompareKind::eq, pairs.read(winners), pairs.getOwnPlace());
    Value given = t.select(isWinner, t.wide(pairs.read(op.getGradient())), 0.0);
    replace(op, pairs.reduce(ReduceOpKind::sum, pairs.orElse(given, 0)));
  }

  /// What each window has is given to all elements that it reads, times
  /// `factor`.
  void spread(ConvTransposeOp op, double factor) {
    Pairs pairs = windowsOfElements();
    for (size_t i = 0; i < kernel.size(); ++i) {
      Value first =
          t.mul(windowIndex(pairs, i), static_cast<double>(strides[i]));
      Value offset =
          t.sub(t.add(pairs.own(i), static_cast<double>(low[i])), first);
      pairs.require(t.compare(CompareKind::ge, offset, 0));
      pairs.require(
          t.compare(CompareKind::lt, offset, static_cast<double>(reach(i))));
      if (dilations[i] > 1) {
        auto step = static_cast<double>(dilations[i]);
        Value rest =
            t.binary(BinaryKind::floor_mod, offset, t.number(offset, step));
        pairs.require(t.compare(CompareKind::eq, rest, 0));
      }
    }
    Value given = pairs.orElse(t.wide(pairs.read(op.getX())), 0);
    replace(op, t.mul(pairs.reduce(ReduceOpKind::sum, given), factor));
  }

private:
  /// The elements from a window's first to its last, in one dimension.
  int64_t reach(size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
  /// Of how many windows, one behind another, an element may be.
  int64_t numWindows(size_t i) const {
    return std::min<int64_t>(window[i], llvm::divideCeil(reach(i), strides[i]));
  }

  Pairs elementsOfWindows() {
    Pairs pairs(t, rows, window, kernel);
    for (size_t i = 0; i < kernel.size(); ++i) {
      Value first = t.mul(pairs.own(i), static_cast<double>(strides[i]));
      Value inside = t.mul(pairs.other(i), static_cast<double>(dilations[i]));
      Value index = t.add(t.add(first, inside), static_cast<double>(-low[i]));
      int64_t last = (window[i] - 1) * strides[i] + reach(i) - 1 - low[i];
      pairs.addIndex(index, image[i], -low[i], last);
    }
    return pairs;
  }

  Pairs windowsOfElements() {
    SmallVector<int64_t> counts;
    for (size_t i = 0; i < kernel.size(); ++i)
      counts.push_back(numWindows(i));
    Pairs pairs(t, rows, image, counts);
    for (size_t i = 0; i < kernel.size(); ++i) {
      Value index = windowIndex(pairs, i);
      if (counts[i] == window[i])
        pairs.addIndex(index, window[i], 0, window[i] - 1);
      else
        pairs.addIndex(index, window[i], low[i] / strides[i] - counts[i] + 1,
                       (image[i] - 1 + low[i]) / strides[i]);
    }
    return pairs;
  }
  Value windowIndex(Pairs &pairs, size_t i) {
    if (numWindows(i) == window[i])
      return pairs.other(i);
    Value place = t.add(pairs.own(i), static_cast<double>(low[i]));
    Value last = t.div(place, t.number(place, static_cast<double>(strides[i])));
    return t.add(t.add(last, static_cast<double>(1 - numWindows(i))),
                 pairs.other(i));
  }

  /// The place in the image that each window's gradient goes to: the first of
  /// its largest elements, or the last that is no number.
  Value winnersIn(Value images) {
    Pairs pairs = elementsOfWindows();
    Value read = pairs.read(images);
    Value masked = pairs.orElse(read, lowest(read));
    Value best = pairs.reduce(ReduceOpKind::max, masked, /*keepDims=*/true);
    Value isNoNumber = t.unary(UnaryKind::is_nan, masked);
    Value isBest = t.binary(BinaryKind::logical_or, isNoNumber,
                            t.compare(CompareKind::eq, masked, best));
    // The last of them has the least of these, which are negative.
    Value place = pairs.getPlace();
    Value key = t.select(isNoNumber, before(place), place);
    constexpr double none = mostPlaces;
    Value first = pairs.reduce(ReduceOpKind::min,
                               pairs.orElse(t.select(isBest, key, none), none));
    return t.select(t.compare(CompareKind::lt, first, 0), before(first), first);
  }
  /// -1 - x, which undoes itself.
  Value before(Value x) { return t.sub(t.number(x, -1), x); }

  /// What is no larger than anything.
  static double lowest(Value x) {
    Type type = elementType(x);
    if (isa<FloatType>(type))
      return -std::numeric_limits<double>::infinity();
    return type.isUnsignedInteger()
               ? 0
               : -std::ldexp(1.0, type.getIntOrFloatBitWidth() - 1);
  }

  void replace(Operation *op, Value y) {
    Value result = op->getResult(0);
    result.replaceAllUsesWith(
        t.cast(t.reshape(y, shapeOf(result)), elementType(result)));
    op->erase();
  }

  OpBuilder builder;
  TensorBuilder t;
  int64_t rows;
  SmallVector<int64_t> image, window, kernel, strides, low, dilations;
};

bool canCompose(Value images, Value windows) {
  auto isSome = [](Value value) {
    return tensorType(value).getNumElements() > 0;
  };
  return isSome(images) && isSome(windows) && placesOf(images) < mostPlaces &&
         placesOf(windows) < mostPlaces;
}

void compose(PoolOp op) {
  if (canCompose(op.getX(), op.getResult()) &&
      !elementType(op.getX()).isInteger(1))
    PoolComposer(op, op.getX(), op.getResult(), op.getKernel()).pool(op);
}

void compose(MaxPoolGradientOp op) {
  if (canCompose(op.getX(), op.getGradient()))
    PoolComposer(op, op.getX(), op.getGradient(), op.getKernel())
        .maxGradient(op);
}

/// What the gradient of a mean is made of: a transposed convolution of each
/// channel by itself, all of whose weights are one number.
void compose(ConvTransposeOp op) {
  Dims weights = shapeOf(op.getW());
  auto constant = op.getW().getDefiningOp<ConstantOp>();
  auto values = constant ? dyn_cast<SplatElementsAttr>(constant.getValue())
                         : SplatElementsAttr();
  if (!values || weights[0] != static_cast<int64_t>(op.getGroups()) ||
      weights[1] != 1 || !canCompose(op.getResult(), op.getX()))
    return;
  PoolComposer(op, op.getResult(), op.getX(), weights.drop_front(2))
      .spread(op, values.getSplatValue<APFloat>().convertToDouble());
}

struct ComposePoolsPass : codegen::impl::ComposePoolsBase<ComposePoolsPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock()))
        llvm::TypeSwitch<Operation *>(&op)
            .Case<PoolOp, MaxPoolGradientOp, ConvTransposeOp>(
                [](auto pool) { compose(pool); });
    });
  }
};

} // namespace
