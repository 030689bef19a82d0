//===- Sampling.cpp - Reading between the elements ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Sampling.h"
#include "../Contractions.h"
#include "../OpTable.h"

#include "llvm/Support/MathExtras.h"

using namespace ax;
using namespace ax::import;

static constexpr int64_t maxTaps = 4096;

/// x, beyond `low` and `high` as in mirrors there.
static Value reflect(Emitter &b, Value x, double low, double high) {
  if (!x)
    return {};
  double range = high - low;
  if (range <= 0)
    return b.splat(Emitter::typeOf(x), Emitter::shapeOf(x), low);
  Value first = b.like(x, low), last = b.like(x, high);
  Value isBelow = b.compare(CompareKind::lt, x, first);
  Value isAbove = b.compare(CompareKind::gt, x, last);
  Value beyond = b.select(isBelow, b.sub(first, x), b.sub(x, last));
  Value turns = b.unary(UnaryKind::floor, b.div(beyond, b.like(beyond, range)));
  Value rest = b.sub(beyond, b.mul(turns, range));
  Value isOdd = b.compare(
      CompareKind::ne, b.binary(BinaryKind::floor_mod, turns, b.like(turns, 2)),
      b.like(turns, 0));
  Value fromLow = b.binary(BinaryKind::logical_xor, isBelow, isOdd);
  Value mirrored = b.select(fromLow, b.add(first, rest), b.sub(last, rest));
  Value isOutside = b.binary(BinaryKind::logical_or, isBelow, isAbove);
  return b.select(isOutside, mirrored, x);
}

/// Keys' cubic convolution with a = -0.75, for distances below 2.
static Value cubicWeight(Emitter &b, Value distance) {
  constexpr double a = -0.75;
  Value square = b.mul(distance, distance);
  Value near = b.add(b.mul(b.add(b.mul(distance, a + 2), -(a + 3)), square), 1);
  Value far = b.add(
      b.mul(b.add(b.mul(b.add(b.mul(distance, a), -5 * a), distance), 8 * a),
            distance),
      -4 * a);
  return b.select(b.compare(CompareKind::le, distance, b.like(distance, 1)),
                  near, far);
}

Taps ax::import::findTaps(Emitter &b, Value x, const Line &line) {
  if (!x)
    return {};
  Shape shape(Emitter::shapeOf(x));
  shape.insert(shape.end() - 1, 1);
  x = b.reshape(x, shape);
  // Near enough for neighbours to differ; beyond this they are all the same.
  x = line.border == Border::Reflection
          ? reflect(b, x, line.low, line.high)
          : b.min(b.max(x, b.like(x, -2)),
                  b.like(x, static_cast<double>(line.size + 1)));
  Value at = x;
  Taps taps;
  if (line.mode != Interpolation::Nearest) {
    bool isCubic = line.mode == Interpolation::Cubic;
    Shape each(shape.size(), 1);
    each[each.size() - 2] = isCubic ? 4 : 2;
    Value number =
        b.iota(Emitter::typeOf(x), each, static_cast<int64_t>(each.size()) - 2);
    at = b.add(b.unary(UnaryKind::floor, x), b.add(number, isCubic ? -1 : 0));
    Value distance = b.unary(UnaryKind::abs, b.sub(x, at));
    taps.weight = isCubic ? cubicWeight(b, distance)
                          : b.sub(b.like(distance, 1), distance);
  }
  auto last = static_cast<double>(line.size - 1);
  if (line.border == Border::Reflection)
    at = reflect(b, at, line.low, line.high);
  if (line.border == Border::Zeros)
    taps.isInside = b.binary(BinaryKind::logical_and,
                             b.compare(CompareKind::ge, at, b.like(at, 0)),
                             b.compare(CompareKind::le, at, b.like(at, last)));
  Value whole = b.cast(at, DType::I64);
  taps.index = b.min(b.max(whole, b.like(whole, 0)), b.like(whole, last));
  return taps;
}

/// `value` [batch..., taps, places], its taps the `number`-th of `count`
/// dimensions of taps, its places those of `number` of as many if `places`.
static Value spreadTaps(Emitter &b, Value value, size_t number, size_t count,
                        bool spreadsPlaces) {
  if (!value)
    return {};
  ArrayRef<int64_t> shape = Emitter::shapeOf(value);
  Shape result(shape.drop_back(2));
  Shape taps(count, 1), places(spreadsPlaces ? count : 1, 1);
  taps[number] = shape[shape.size() - 2];
  places[spreadsPlaces ? number : 0] = shape.back();
  llvm::append_range(result, taps);
  llvm::append_range(result, places);
  return b.reshape(value, result);
}

Taps ax::import::combine(Emitter &b, ArrayRef<Taps> lines,
                         ArrayRef<int64_t> sizes, bool isGrid) {
  Taps all;
  for (auto [number, line] : llvm::enumerate(lines)) {
    auto spread = [&, number = number](Value value) {
      return spreadTaps(b, value, number, lines.size(), isGrid);
    };
    Value index = spread(line.index);
    all.index =
        number == 0
            ? index
            : b.add(b.mul(all.index, static_cast<double>(sizes[number])),
                    index);
    if (Value isInside = spread(line.isInside))
      all.isInside = all.isInside ? b.binary(BinaryKind::logical_and,
                                             all.isInside, isInside)
                                  : isInside;
    if (Value weight = spread(line.weight))
      all.weight = all.weight ? b.mul(all.weight, weight) : weight;
  }
  if (b.hasFailed() || !all.index)
    return {};
  ArrayRef<int64_t> found = Emitter::shapeOf(all.index);
  size_t batch = found.size() - lines.size() - (isGrid ? lines.size() : 1);
  Shape whole(found), merged(found.take_front(batch));
  merged.push_back(llvm::product_of(found.slice(batch, lines.size())));
  merged.push_back(llvm::product_of(found.drop_front(batch + lines.size())));
  auto merge = [&](Value value) {
    return value ? b.reshape(b.broadcast(value, whole), merged) : value;
  };
  return {merge(all.index), merge(all.isInside), merge(all.weight)};
}

Value ax::import::toRows(Emitter &b, Value x) {
  if (!x)
    return {};
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  int64_t places = llvm::product_of(shape.drop_front(2));
  return b.transpose(b.reshape(x, {shape[0], shape[1], places}), {0, 2, 1});
}

Value ax::import::readTaps(Emitter &b, Value rows, const Taps &taps,
                           int64_t batchDims) {
  if (!rows || !taps.index)
    return {};
  auto column = [&](Value value) {
    Shape shape(Emitter::shapeOf(value));
    shape.push_back(1);
    return b.reshape(value, shape);
  };
  Value read = b.wide(b.gatherND(rows, column(taps.index), batchDims));
  if (!read)
    return {};
  if (taps.isInside)
    read = b.select(column(taps.isInside), read, b.like(read, 0));
  if (taps.weight)
    read = b.mul(read, column(b.cast(taps.weight, Emitter::typeOf(read))));
  return read;
}

Value ax::import::sample(Emitter &b, Value rows, const Taps &taps) {
  return b.reduce(ReduceOpKind::sum, readTaps(b, rows, taps, 1), {1}, false);
}

//===----------------------------------------------------------------------===//
// GridSample
//===----------------------------------------------------------------------===//

/// Places along a dimension, of numbers of which -1 and 1 are its ends.
static Value fromUnit(Emitter &b, Value x, int64_t size, bool alignCorners) {
  auto length = static_cast<double>(size);
  x = b.add(x, 1);
  return alignCorners ? b.mul(b.mul(x, 0.5), length - 1)
                      : b.mul(b.add(b.mul(x, length), -1), 0.5);
}

static void importGridSample(Node &n) {
  Value x = n.in(0), grid = n.in(1);
  if (!x || !grid)
    return;
  Emitter &b = n.b;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x),
                    gridShape = Emitter::shapeOf(grid);
  size_t dims = shape.size() < 3 ? 0 : shape.size() - 2;
  if (dims == 0 || gridShape.size() != dims + 2 ||
      gridShape.back() != static_cast<int64_t>(dims) ||
      gridShape[0] != shape[0]) {
    n.fail("grid [" + shapeToString(gridShape) + "] does not fit X [" +
           shapeToString(shape) + "]");
    return;
  }
  std::string mode = n.stringAttr("mode", "linear");
  std::string padding = n.stringAttr("padding_mode", "zeros");
  bool alignCorners = n.intAttr("align_corners", 0);
  Line line;
  line.mode = mode == "nearest"                      ? Interpolation::Nearest
              : mode == "cubic" || mode == "bicubic" ? Interpolation::Cubic
                                                     : Interpolation::Linear;
  line.border = padding == "zeros"    ? Border::Zeros
                : padding == "border" ? Border::Edge
                                      : Border::Reflection;
  DType type = Emitter::typeOf(x);
  if (line.mode != Interpolation::Nearest && !isFloat(type)) {
    n.unsupported("interpolation of integers");
    return;
  }
  int64_t places = llvm::product_of(gridShape.drop_front().drop_back());
  double taps = std::pow(line.mode == Interpolation::Cubic ? 4 : 2,
                         static_cast<double>(dims));
  if (taps > maxTaps) {
    n.unsupported("interpolation in so many dimensions");
    return;
  }
  Shape result(shape.take_front(2));
  llvm::append_range(result, gridShape.drop_front().drop_back());
  if (llvm::product_of(shape) == 0) {
    n.out(b.splat(type, result, 0));
    return;
  }
  Value wide =
      b.reshape(b.wide(grid), {shape[0], places, static_cast<int64_t>(dims)});
  std::vector<Taps> lines;
  for (size_t d = 0; d < dims; ++d) {
    line.size = shape[d + 2];
    line.low = alignCorners ? 0 : -0.5;
    line.high = static_cast<double>(line.size) - (alignCorners ? 1 : 0.5);
    // The last number is of the first dimension.
    Value at =
        b.reshape(b.sliceDim(wide, 2, static_cast<int64_t>(dims - 1 - d), 1),
                  {shape[0], places});
    at = fromUnit(b, at, line.size, alignCorners);
    if (line.mode == Interpolation::Nearest)
      at = b.unary(UnaryKind::round, at);
    lines.push_back(findTaps(b, at, line));
  }
  Value y = sample(b, toRows(b, x),
                   combine(b, lines, shape.drop_front(2), /*isGrid=*/false));
  n.out(b.cast(b.reshape(b.transpose(y, {0, 2, 1}), result), type));
}

//===----------------------------------------------------------------------===//
// DeformConv
//===----------------------------------------------------------------------===//

static void importDeformConv(Node &n) {
  Value x = n.in(0), w = n.in(1), offset = n.in(2);
  Value bias = n.optional(3), mask = n.optional(4);
  if (!x || !w || !offset || n.failed())
    return;
  Emitter &b = n.b;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  if (shape.size() < 3 || Emitter::rankOf(w) != Emitter::rankOf(x) ||
      Emitter::rankOf(offset) != Emitter::rankOf(x)) {
    n.fail("X, W and offset must have the same rank, at least 3");
    return;
  }
  ArrayRef<int64_t> kernel = Emitter::shapeOf(w).drop_front(2);
  std::optional<Window> window = readWindow(n, x, kernel);
  if (!window)
    return;
  auto dims = static_cast<int64_t>(kernel.size());
  int64_t group = n.intAttr("group", 1), parts = n.intAttr("offset_group", 1);
  int64_t batch = shape[0], channels = shape[1];
  int64_t made = Emitter::shapeOf(w)[0], taps = llvm::product_of(kernel);
  Shape result{batch, made}, offsets{batch, parts * taps * dims},
      masks{batch, parts * taps};
  bool fits = ArrayRef<int64_t>(window->kernel) == kernel &&
              channels == Emitter::shapeOf(w)[1] * group && made % group == 0 &&
              channels % parts == 0;
  for (int64_t i = 0; i < dims; ++i) {
    int64_t room = shape[i + 2] + window->pads[i] + window->pads[i + dims] -
                   (kernel[i] - 1) * window->dilations[i] - 1;
    result.push_back(room < 0 ? 0 : room / window->strides[i] + 1);
  }
  ArrayRef<int64_t> out = ArrayRef<int64_t>(result).drop_front(2);
  llvm::append_range(offsets, out);
  llvm::append_range(masks, out);
  if (!fits || Emitter::shapeOf(offset) != ArrayRef<int64_t>(offsets) ||
      (mask && Emitter::shapeOf(mask) != ArrayRef<int64_t>(masks))) {
    n.fail("X [" + shapeToString(shape) + "], W [" +
           shapeToString(Emitter::shapeOf(w)) + "], offset [" +
           shapeToString(Emitter::shapeOf(offset)) +
           "], mask and groups do not fit");
    return;
  }
  if (dims > 8) {
    n.unsupported("interpolation in so many dimensions");
    return;
  }
  DType type = Emitter::typeOf(x);
  int64_t places = llvm::product_of(out);
  if (batch * channels * places * taps == 0 || llvm::product_of(shape) == 0) {
    n.unsupported("a convolution of nothing");
    return;
  }
  // [batch and parts, taps and places] of each dimension.
  Value shifts = b.reshape(b.wide(offset), {batch * parts, taps, dims, places});
  std::vector<Taps> lines;
  for (int64_t i = 0; i < dims; ++i) {
    Shape taken(2 * dims, 1), put(2 * dims, 1);
    taken[i] = kernel[i];
    put[i + dims] = out[i];
    Value at = b.add(b.mul(b.iota(Emitter::typeOf(shifts), taken, i),
                           static_cast<double>(window->dilations[i])),
                     b.add(b.mul(b.iota(Emitter::typeOf(shifts), put, i + dims),
                                 static_cast<double>(window->strides[i])),
                           static_cast<double>(-window->pads[i])));
    Shape grid(kernel);
    llvm::append_range(grid, out);
    at = b.reshape(b.broadcast(at, grid), {1, taps, places});
    Value shift =
        b.reshape(b.sliceDim(shifts, 2, i, 1), {batch * parts, taps, places});
    Line line{shape[i + 2], Interpolation::Linear, Border::Zeros};
    lines.push_back(findTaps(
        b, b.reshape(b.add(shift, at), {batch * parts, taps * places}), line));
  }
  Shape split{batch * parts, channels / parts};
  llvm::append_range(split, shape.drop_front(2));
  Value columns =
      sample(b, toRows(b, b.reshape(x, split)),
             combine(b, lines, shape.drop_front(2), /*isGrid=*/false));
  if (mask)
    columns = b.mul(columns,
                    b.reshape(b.wide(mask), {batch * parts, taps * places, 1}));
  // Channels, taps and places, as a convolution's matrix has them.
  columns =
      b.transpose(b.reshape(b.cast(columns, type),
                            {batch, parts, taps, places, channels / parts}),
                  {0, 1, 4, 2, 3});
  int64_t summed = channels / group * taps;
  columns = b.reshape(columns, {batch, group, summed, places});
  Value y = b.dot(b.reshape(w, {group, made / group, summed}), columns,
                  {{0}, {1}, {2}, {2}});
  y = b.reshape(b.transpose(y, {2, 0, 1, 3}), result);
  if (bias) {
    Shape line(result.size(), 1);
    line[1] = made;
    y = b.add(y, b.reshape(bias, line));
  }
  n.out(y);
}

static const OpEntry entries[] = {
    {"DeformConv", importDeformConv},
    {"GridSample", importGridSample},
};

void ax::import::addSampling(OpTable &table) { table.add(entries); }
