//===- Pool.cpp - Pooling -------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Contractions.h"
#include "../OpTable.h"

using namespace ax;
using namespace ax::import;

static std::optional<Window> poolWindow(Node &n, Value x) {
  std::optional<Window> window = readWindow(n, x, {});
  if (window)
    finishPoolWindow(n, x, *window);
  return window;
}

/// Index, in the flattened spatial dimensions of each image, of the first
/// largest element of each window: one comparison for each place in the window.
static Value maxIndices(Node &n, Value x, const Window &window,
                        ArrayRef<int64_t> outShape) {
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  int64_t spatial = window.kernel.size(), rank = shape.size();
  // Index of every element; column-major when asked for.
  bool columnMajor = n.intAttr("storage_order", 0);
  Value index;
  int64_t stride = 1;
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t dim = columnMajor ? 2 + i : rank - 1 - i;
    Shape line(rank, 1);
    line[dim] = shape[dim];
    Value term =
        n.b.mul(n.b.iota(DType::I64, line, dim), static_cast<double>(stride));
    index = index ? n.b.add(index, term) : term;
    stride *= shape[dim];
  }
  int64_t images = shape[0] * shape[1];
  Value image =
      n.b.reshape(n.b.iota(DType::I64, {images}, 0), {shape[0], shape[1]});
  Shape perImage(rank, 1);
  perImage[0] = shape[0];
  perImage[1] = shape[1];
  index = n.b.add(index, n.b.mul(n.b.reshape(image, perImage),
                                 static_cast<double>(stride)));
  index = n.b.broadcast(index, shape);

  Shape low(rank, 0), high(rank, 0);
  for (int64_t i = 0; i < spatial; ++i) {
    low[i + 2] = window.pads[i];
    high[i + 2] = window.pads[i + spatial] + window.extra[i];
  }
  Value lowest = n.b.like(x, isFloat(Emitter::typeOf(x)) ? -INFINITY : -128);
  if (isUnsigned(Emitter::typeOf(x)))
    lowest = n.b.like(x, 0);
  Value values = n.b.pad(x, low, high, PadMode::constant, lowest);
  Value indices =
      n.b.pad(index, low, high, PadMode::constant, n.b.like(index, -1));
  Value best, bestIndex;
  std::vector<int64_t> place(spatial, 0);
  while (!n.failed()) {
    Shape starts(rank, 0), steps(rank, 1);
    for (int64_t i = 0; i < spatial; ++i) {
      starts[i + 2] = place[i] * window.dilations[i];
      steps[i + 2] = outShape[i + 2] > 1 ? window.strides[i] : 1;
    }
    Value value = n.b.slice(values, starts, outShape, steps);
    Value at = n.b.slice(indices, starts, outShape, steps);
    if (!best) {
      best = value;
      bestIndex = at;
    } else {
      Value isLarger = n.b.compare(CompareKind::gt, value, best);
      // Padding may come first and equal the lowest number.
      Value isPadding =
          n.b.compare(CompareKind::lt, bestIndex, n.b.like(bestIndex, 0));
      Value take = n.b.binary(BinaryKind::logical_or, isLarger, isPadding);
      best = n.b.select(take, value, best);
      bestIndex = n.b.select(take, at, bestIndex);
    }
    int64_t i = spatial;
    while (i > 0 && ++place[i - 1] == window.kernel[i - 1])
      place[--i] = 0;
    if (i == 0)
      break;
  }
  return bestIndex;
}

static void importMaxPool(Node &n) {
  Value x = n.in(0);
  std::optional<Window> window = poolWindow(n, x);
  if (!window)
    return;
  Value y = n.b.pool(PoolKind::max, x, *window, false);
  n.out(0, y);
  if (!n.wants(1) || !y)
    return;
  int64_t places = 1;
  for (int64_t size : window->kernel)
    places = std::min<int64_t>(places * std::min<int64_t>(size, 4096), 4096);
  if (places >= 4096) {
    n.unsupported("indices of so large a window");
    return;
  }
  n.out(1, maxIndices(n, x, *window, Emitter::shapeOf(y)));
}

Value ax::import::importAverage(Node &n, Value x) {
  std::optional<Window> window = poolWindow(n, x);
  return window ? n.b.pool(PoolKind::avg, x, *window,
                           n.intAttr("count_include_pad", 0))
                : Value();
}

static void importAveragePool(Node &n) { n.out(importAverage(n, n.in(0))); }

/// (sum |x|^p)^(1/p), given how to sum.
static Value powerMean(Node &n, Value x, double p,
                       llvm::function_ref<Value(Value)> sum) {
  if (!x)
    return {};
  auto narrow = [&](Value y) { return n.b.cast(y, Emitter::typeOf(x)); };
  Value wide = n.b.wide(x);
  Value magnitude = n.b.unary(UnaryKind::abs, wide);
  if (p == 1)
    return narrow(sum(magnitude));
  if (p == 2)
    return narrow(n.b.rootOfSquares(sum(n.b.mul(wide, wide))));
  Value powers = n.b.binary(BinaryKind::pow, magnitude, n.b.like(wide, p));
  return narrow(
      n.b.binary(BinaryKind::pow, sum(powers), n.b.like(wide, 1 / p)));
}

static void importLpPool(Node &n) {
  Value x = n.in(0);
  std::optional<Window> window = poolWindow(n, x);
  if (!window)
    return;
  n.out(powerMean(n, x, static_cast<double>(n.intAttr("p", 2)), [&](Value v) {
    return n.b.pool(PoolKind::sum, v, *window, false);
  }));
}

static std::vector<int64_t> spatialDims(Node &n, Value x) {
  std::vector<int64_t> dims;
  if (x)
    for (int64_t i = 2; i < Emitter::rankOf(x); ++i)
      dims.push_back(i);
  return dims;
}

Value ax::import::globalAverage(Node &n, Value x) {
  std::vector<int64_t> dims = spatialDims(n, x);
  if (!x)
    return {};
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= Emitter::shapeOf(x)[dim];
  Value sum = n.b.reduce(ReduceOpKind::sum, n.b.wide(x), dims, true);
  return n.b.cast(n.b.mul(sum, 1.0 / static_cast<double>(count)),
                  Emitter::typeOf(x));
}

static void importGlobalAveragePool(Node &n) {
  n.out(globalAverage(n, n.in(0)));
}

static void importGlobalMaxPool(Node &n) {
  Value x = n.in(0);
  n.out(n.b.reduce(ReduceOpKind::max, x, spatialDims(n, x), true));
}

static void importGlobalLpPool(Node &n) {
  Value x = n.in(0);
  std::vector<int64_t> dims = spatialDims(n, x);
  n.out(powerMean(n, x, static_cast<double>(n.intAttr("p", 2)), [&](Value v) {
    return n.b.reduce(ReduceOpKind::sum, v, dims, true);
  }));
}

/// What MaxPool chose, put back where it was. Indices are those of MaxPool: of
/// the whole tensor, within the element's own image and channel.
static void importMaxUnpool(Node &n) {
  Value x = n.in(0), indices = n.in(1);
  std::optional<Window> window = readWindow(n, x, {});
  if (!window || !indices)
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  size_t dims = window->kernel.size();
  if (Emitter::shapeOf(indices) != shape) {
    n.fail("I has not the shape of X, [" + shapeToString(shape) + "]");
    return;
  }
  Shape result(shape.take_front(2));
  for (size_t i = 0; i < dims; ++i)
    result.push_back((shape[i + 2] - 1) * window->strides[i] - window->pads[i] -
                     window->pads[i + dims] + window->kernel[i]);
  auto isPositive = [](int64_t size) { return size > 0; };
  std::optional<int64_t> total = checkedNumElements(result);
  if (!llvm::all_of(ArrayRef<int64_t>(result).drop_front(2), isPositive) ||
      !total) {
    n.fail("kernel_shape, strides and pads do not fit X");
    return;
  }
  Emitter &b = n.b;
  int64_t images = shape[0] * shape[1];
  int64_t room = llvm::product_of(ArrayRef<int64_t>(result).drop_front(2));
  int64_t places = llvm::product_of(shape.drop_front(2));
  Value begin =
      b.mul(b.iota(DType::I64, {images, 1}, 0), static_cast<double>(room));
  Value at = b.sub(b.reshape(indices, {images, places}), begin);
  // Beyond the image, as an index that there is not: none counts from its end.
  if (!at)
    return;
  at = b.select(b.compare(CompareKind::lt, at, b.like(at, 0)),
                b.like(at, static_cast<double>(room)), at);
  Value zeros = b.splat(Emitter::typeOf(x), {images, room}, 0);
  Value y = b.scatterElements(ScatterKind::set, zeros, at,
                              b.reshape(x, {images, places}), 1);
  y = b.reshape(y, result);
  if (!n.has(2))
    return n.out(y);
  std::optional<std::vector<int64_t>> sizes = n.knownInts(2, "output_shape");
  if (!sizes)
    return;
  // Indices count in the tensor above; what is more than it is empty.
  Shape high(result.size(), 0);
  bool fits = sizes->size() == result.size();
  for (size_t i = 0; fits && i < result.size(); ++i) {
    high[i] = (*sizes)[i] - result[i];
    fits = high[i] >= 0 && (i >= 2 || high[i] == 0);
  }
  if (!fits) {
    n.fail("output_shape [" + shapeToString(*sizes) +
           "] is smaller than what the window makes, [" +
           shapeToString(result) + "]");
    return;
  }
  n.out(
      b.pad(y, Shape(result.size(), 0), high, PadMode::constant, b.like(y, 0)));
}

static const OpEntry entries[] = {
    {"AveragePool", importAveragePool},
    {"GlobalAveragePool", importGlobalAveragePool},
    {"GlobalLpPool", importGlobalLpPool},
    {"GlobalMaxPool", importGlobalMaxPool},
    {"LpPool", importLpPool},
    {"MaxPool", importMaxPool},
    {"MaxUnpool", importMaxUnpool},
};

void ax::import::addPool(OpTable &table) { table.add(entries); }
