//===- RoiAlign.cpp - Regions of images as grids of bins ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../OpTable.h"
#include "../Sampling.h"

using namespace ax;
using namespace ax::import;

/// The largest number of samples of a bin, in each dimension.
static constexpr int64_t maxSamples = 1024;

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

/// Samples along the dimension whose ends are the columns `first` and first +
/// 2.
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
    line.live = b.max(line.live, b.like(line.live, 0));
    if (std::optional<HostTensor> known = b.demand(line.live)) {
      count = 1;
      for (int64_t i = 0; i < regions; ++i)
        count = std::max(count, static_cast<int64_t>(std::clamp<double>(
                                    known->getDouble(i), 0, 1e6)));
    } else {
      // As many as regions need that are no larger than the image.
      count = b.maxResults().value_or((size + bins - 1) / bins);
      Value checked = b.atMost(b.cast(line.live, DType::I64), count);
      line.live = b.cast(checked, Emitter::typeOf(line.live));
    }
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
    // The maximum of no samples is 0.
    y = b.select(b.compare(CompareKind::gt, count, b.like(count, 0)), y,
                 b.like(y, 0));
  else
    y = b.div(y, b.cast(b.max(count, b.like(count, 1)), Emitter::typeOf(y)));
  n.out(b.cast(b.reshape(b.transpose(y, {0, 2, 1}), result), type));
}

static void importRoiAlign(Node &n) { RoiAligner(n).run(); }

static const OpEntry entries[] = {
    {"RoiAlign", importRoiAlign},
};

void ax::import::addRoiAlign(OpTable &table) { table.add(entries); }
