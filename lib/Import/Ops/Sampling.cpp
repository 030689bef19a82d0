//===- Sampling.cpp - Reading between the elements ------------------------===//
//
// A value between elements is a weighted sum of some around it, its taps. Which
// they are and their weights are computed for each dimension, and then
// combined. Elements are read as rows of all channels, so that places are
// shared by them and channels lie side by side.
//
//===----------------------------------------------------------------------===//

#include "../Contractions.h"
#include "../OpTable.h"

#include "llvm/Support/MathExtras.h"

using namespace ax;
using namespace ax::import;

namespace {

enum class Interpolation { Nearest, Linear, Cubic };
enum class Border { Zeros, Edge, Reflection };

/// How places along one dimension become taps.
struct Line {
  int64_t size = 0;
  Interpolation mode = Interpolation::Linear;
  Border border = Border::Edge;
  /// What is reflected lies between these.
  double low = 0, high = 0;
};

/// Taps of places: [batch..., taps, places].
struct Taps {
  /// Within the dimension, or the dimensions together.
  Value index;
  /// Whether there is such an element; null when there always is.
  Value isInside;
  /// Null where there is one tap of weight 1.
  Value weight;
};

} // namespace

static constexpr int64_t maxTaps = 4096;
/// Of a bin of RoiAlign, in each dimension.
static constexpr int64_t maxSamples = 1024;

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

/// Taps of the places `x` [batch..., places]; for the nearest one x is whole.
static Taps findTaps(Emitter &b, Value x, const Line &line) {
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

/// Of all dimensions together. With `isGrid` places are all combinations of
/// those of each dimension, else each is one place in all of them.
static Taps combine(Emitter &b, ArrayRef<Taps> lines, ArrayRef<int64_t> sizes,
                    bool isGrid) {
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

/// A tensor [batch, channels, dims...] as rows [batch, places, channels].
static Value toRows(Emitter &b, Value x) {
  if (!x)
    return {};
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  int64_t places = llvm::product_of(shape.drop_front(2));
  return b.transpose(b.reshape(x, {shape[0], shape[1], places}), {0, 2, 1});
}

/// The elements at `taps` of `rows` [batch..., places, channels], weighted:
/// [batch..., taps, places, channels], in the type of sums.
static Value readTaps(Emitter &b, Value rows, const Taps &taps,
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

/// Their sum: [batch, places, channels].
static Value sample(Emitter &b, Value rows, const Taps &taps) {
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

//===----------------------------------------------------------------------===//
// RoiAlign
//===----------------------------------------------------------------------===//

namespace {

/// Samples along one dimension of all regions: `count` in each bin, of which
/// the first `live` [regions] are taken.
struct RoiLine {
  Taps taps;
  /// [regions, count]: whether a region has so many.
  Value isLive;
  /// [regions]
  Value live;
};

class RoiAligner {
public:
  explicit RoiAligner(Node &n) : n(n), b(n.b) {}
  void run();

private:
  Value column(int64_t number);
  RoiLine alongDim(int64_t first, int64_t size, int64_t bins);

  Node &n;
  Emitter &b;
  Value rois;
  int64_t regions = 0, ratio = 0;
  double scale = 1;
  bool halfPixel = true;
};

} // namespace

/// A coordinate of all regions, [regions].
Value RoiAligner::column(int64_t number) {
  Value x = b.reshape(b.sliceDim(rois, 1, number, 1), {regions});
  x = b.mul(b.wide(x), scale);
  return halfPixel ? b.add(x, -0.5) : x;
}

/// Along the dimension whose ends are the columns `first` and first + 2.
RoiLine RoiAligner::alongDim(int64_t first, int64_t size, int64_t bins) {
  Value start = column(first);
  Value length = b.sub(column(first + 2), start);
  if (!length)
    return {};
  if (!halfPixel)
    length = b.max(length, b.like(length, 1));
  Value bin = b.div(length, b.like(length, static_cast<double>(bins)));
  RoiLine line;
  int64_t count = ratio;
  if (ratio == 0) {
    line.live = b.unary(UnaryKind::ceil, bin);
    std::optional<HostTensor> known = b.knownValue(line.live);
    if (!known) {
      n.unsupported("sampling_ratio 0 with regions that are computed");
      return {};
    }
    count = 1;
    for (int64_t i = 0; i < regions; ++i)
      count = std::max<int64_t>(count, static_cast<int64_t>(std::clamp<double>(
                                           known->getDouble(i), 0, 1e6)));
  } else {
    line.live = b.broadcast(b.like(bin, static_cast<double>(ratio)), {regions});
  }
  if (count > maxSamples) {
    n.unsupported("so many samples in a bin");
    return {};
  }
  DType type = Emitter::typeOf(bin);
  Value number = b.iota(type, {1, count}, 1);
  Value each = b.reshape(line.live, {regions, 1});
  if (ratio == 0)
    line.isLive = b.compare(CompareKind::lt, number, each);
  // [regions, count, bins]
  auto cube = [&](Value perRegion) {
    return b.reshape(perRegion, {regions, 1, 1});
  };
  Value within =
      b.div(b.reshape(b.add(number, 0.5), {1, count, 1}), cube(line.live));
  Value at =
      b.add(cube(start),
            b.mul(b.add(b.iota(type, {1, 1, bins}, 2), within), cube(bin)));
  // What is less than one element outside is the element at the edge.
  auto last = static_cast<double>(size - 1);
  Value isNear = b.binary(BinaryKind::logical_and,
                          b.compare(CompareKind::ge, at, b.like(at, -1)),
                          b.compare(CompareKind::le, at, b.like(at, last + 1)));
  at = b.min(b.max(at, b.like(at, 0)), b.like(at, last));
  // Taps side by side: [regions, count, 2, bins].
  Taps found = findTaps(b, at, {size, Interpolation::Linear, Border::Edge});
  if (!found.weight)
    return {};
  Value zero = b.like(found.weight, 0);
  found.weight = b.select(b.reshape(isNear, {regions, count, 1, bins}),
                          found.weight, zero);
  line.taps.index = b.reshape(found.index, {regions, 2 * count, bins});
  line.taps.weight = b.reshape(found.weight, {regions, 2 * count, bins});
  return line;
}

void RoiAligner::run() {
  Value x = n.in(0), images = n.in(2);
  rois = n.in(1);
  if (!x || !rois || !images)
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  regions = Emitter::numElementsOf(images);
  if (shape.size() != 4 || Emitter::rankOf(rois) != 2 ||
      Emitter::shapeOf(rois)[0] != regions || Emitter::shapeOf(rois)[1] != 4) {
    n.fail("X [" + shapeToString(shape) + "], rois [" +
           shapeToString(Emitter::shapeOf(rois)) +
           "] and batch_indices do not fit");
    return;
  }
  halfPixel = n.opset >= 16 && n.stringAttr("coordinate_transformation_mode",
                                            "half_pixel") == "half_pixel";
  scale = n.floatAttr("spatial_scale", 1);
  ratio = n.intAttr("sampling_ratio", 0);
  bool isMax = n.stringAttr("mode", "avg") == "max";
  int64_t height = n.intAttr("output_height", 1);
  int64_t width = n.intAttr("output_width", 1);
  int64_t channels = shape[1], area = shape[2] * shape[3];
  DType type = Emitter::typeOf(x);
  Shape result{regions, channels, height, width};
  if (regions * llvm::product_of(shape) == 0) {
    n.out(b.splat(type, result, 0));
    return;
  }
  std::vector<RoiLine> lines{alongDim(1, shape[2], height),
                             alongDim(0, shape[3], width)};
  if (n.failed())
    return;
  Taps taps = combine(b, {lines[0].taps, lines[1].taps}, shape.drop_front(2),
                      /*isGrid=*/true);
  // Where each image begins; no image is counted from the last one.
  std::vector<int64_t> begins;
  for (int64_t i = 0; i < shape[0]; ++i)
    begins.push_back(i * area);
  Value image = b.cast(b.reshape(images, {regions}), DType::I64);
  image = b.select(b.compare(CompareKind::lt, image, b.like(image, 0)),
                   b.like(image, static_cast<double>(shape[0])), image);
  Value begin = b.gather(b.ints(begins), image, 0);
  taps.index = b.add(taps.index, b.reshape(begin, {regions, 1, 1}));
  Value rows = b.reshape(toRows(b, x), {shape[0] * area, channels});
  Value read = readTaps(b, rows, taps, 0);
  if (!read)
    return;
  Value isLive;
  if (lines[0].isLive) {
    int64_t down = Emitter::shapeOf(lines[0].isLive)[1];
    int64_t across = Emitter::shapeOf(lines[1].isLive)[1];
    isLive = b.binary(BinaryKind::logical_and,
                      b.reshape(lines[0].isLive, {regions, down, 1, 1, 1}),
                      b.reshape(lines[1].isLive, {regions, 1, 1, across, 1}));
    isLive = b.broadcast(isLive, {regions, down, 2, across, 2});
    isLive = b.reshape(isLive, {regions, 4 * down * across, 1, 1});
    read = b.select(isLive, read, b.like(read, isMax ? -INFINITY : 0));
  }
  Value y =
      b.reduce(isMax ? ReduceOpKind::max : ReduceOpKind::sum, read, {1}, false);
  Value count = b.reshape(b.mul(lines[0].live, lines[1].live), {regions, 1, 1});
  if (isMax)
    // Of no samples.
    y = b.select(b.compare(CompareKind::gt, count, b.like(count, 0)), y,
                 b.like(y, 0));
  else
    y = b.div(y, b.cast(b.max(count, b.like(count, 1)), Emitter::typeOf(y)));
  n.out(b.cast(b.reshape(b.transpose(y, {0, 2, 1}), result), type));
}

static void importRoiAlign(Node &n) { RoiAligner(n).run(); }

static const OpEntry entries[] = {
    {"DeformConv", importDeformConv},
    {"GridSample", importGridSample},
    {"RoiAlign", importRoiAlign},
};

OpTable ax::import::samplingOps() { return entries; }
