//===- Resize.cpp - Interpolation -----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Interpolation is separable: along each resized dimension it is a product with
// a matrix [out, in] that is known when compiling; for `nearest`, a gather.
//
//===----------------------------------------------------------------------===//

#include "../OpTable.h"

#include <cmath>

using namespace ax;
using namespace ax::import;

namespace {

struct ResizeOptions {
  /// These are what the attributes of set 11 say; `nearest` is also `outer`: up
  /// when shrinking, else down.
  std::string mode, coordinates, nearest;
  bool antialias = false, excludeOutside = false;
  double cubic = -0.75;
};

struct Axis {
  int64_t in = 0, out = 0;
  double scale = 1;
  double roiStart = 0, roiEnd = 1;
};

/// Weights of the inputs first, first + 1, ... for one output.
struct Taps {
  int64_t first = 0;
  std::vector<double> weights;
};

} // namespace

/// Where output `i` lies among the inputs, computed in `Real`.
template <typename Real>
static Real origin(const ResizeOptions &options, const Axis &axis, int64_t i) {
  Real x = static_cast<Real>(i), in = static_cast<Real>(axis.in);
  Real scale = static_cast<Real>(axis.scale), out = scale * in;
  if (options.coordinates == "align_corners")
    return out == 1 ? 0 : x * (in - 1) / (out - 1);
  if (options.coordinates == "asymmetric")
    return x / scale;
  if (options.coordinates == "tf_half_pixel_for_nn")
    return (x + Real(0.5)) / scale;
  if (options.coordinates == "tf_crop_and_resize") {
    Real width = static_cast<Real>(axis.roiEnd - axis.roiStart) * (in - 1);
    Real start = static_cast<Real>(axis.roiStart) * (in - 1);
    return start + (out == 1 ? width / 2 : x * width / (out - 1));
  }
  if (options.coordinates == "pytorch_half_pixel" && out == 1)
    return Real(-0.5);
  Real centre = (x + Real(0.5)) / scale;
  if (options.coordinates == "half_pixel_symmetric")
    centre += in / 2 * (1 - static_cast<Real>(axis.out) / out);
  return centre - Real(0.5);
}

static double cubicWeight(double distance, double a) {
  double x = std::abs(distance);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2)
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

static Taps findTaps(const ResizeOptions &options, const Axis &axis, double x) {
  // Left neighbour; a whole number counts as the right one's place.
  double left = std::ceil(x) - 1, ratio = x - left;
  Taps taps;
  if (options.mode == "nearest") {
    bool right = ratio == 1 || options.nearest == "ceil" ||
                 (options.nearest == "outer" && axis.scale < 1) ||
                 (options.nearest == "round_prefer_floor" && ratio > 0.5) ||
                 (options.nearest == "round_prefer_ceil" && ratio >= 0.5);
    taps.first = static_cast<int64_t>(left) + (right ? 1 : 0);
    taps.weights = {1};
    return taps;
  }
  bool isCubic = options.mode == "cubic";
  double shrink = options.antialias ? std::min(axis.scale, 1.0) : 1;
  double reach = isCubic ? 2 : 1;
  auto start = static_cast<int64_t>(std::floor(-reach / shrink)) + 1;
  taps.first = static_cast<int64_t>(left) + start;
  for (int64_t i = start; i < 2 - start; ++i) {
    double distance = (static_cast<double>(i) - ratio) * shrink;
    taps.weights.push_back(isCubic ? cubicWeight(distance, options.cubic)
                                   : std::max(0.0, 1 - std::abs(distance)));
  }
  return taps;
}

/// Resizes dimension `dim`. `outside` gets the outputs that lie outside of the
/// input, for tf_crop_and_resize.
static Value resizeAxis(Node &n, Value x, int64_t dim, const Axis &axis,
                        const ResizeOptions &options,
                        std::vector<bool> &outside) {
  bool crops = options.coordinates == "tf_crop_and_resize";
  std::vector<int64_t> indices;
  HostTensor matrix(DType::F32, {axis.out, axis.in});
  for (int64_t i = 0; i < axis.out; ++i) {
    // Frameworks compute in single precision, which decides where two inputs
    // are equally near.
    double at = options.mode == "nearest" ? origin<float>(options, axis, i)
                                          : origin<double>(options, axis, i);
    // Not a number, from a nonsensical roi, is outside too.
    at = std::isnan(at) ? -1 : std::clamp(at, -1e9, 1e9);
    outside.push_back(crops &&
                      (at < 0 || at > static_cast<double>(axis.in - 1)));
    Taps taps = findTaps(options, axis, at);
    double sum = 0;
    for (size_t t = 0; t < taps.weights.size(); ++t) {
      int64_t place = taps.first + static_cast<int64_t>(t);
      if (options.excludeOutside && (place < 0 || place >= axis.in))
        taps.weights[t] = 0;
      sum += taps.weights[t];
    }
    for (size_t t = 0; t < taps.weights.size(); ++t) {
      int64_t place = std::clamp<int64_t>(taps.first + static_cast<int64_t>(t),
                                          0, axis.in - 1);
      int64_t element = i * axis.in + place;
      matrix.setDouble(element,
                       matrix.getDouble(element) + taps.weights[t] / sum);
      if (t == 0)
        indices.push_back(place);
    }
  }
  if (options.mode == "nearest")
    return n.b.gather(x, n.b.ints(indices), dim);
  Value weights = n.b.cast(n.b.constant(std::move(matrix)), Emitter::typeOf(x));
  Value y = n.b.dot(x, weights, {{}, {}, {dim}, {1}});
  // The new dimension came last.
  std::vector<int64_t> back;
  int64_t rank = Emitter::rankOf(x);
  for (int64_t i = 0; i < rank - 1; ++i)
    back.push_back(i);
  back.insert(back.begin() + dim, rank - 1);
  return n.b.transpose(y, back);
}

/// The scale is of f32, and its product with the size: 9 by 1.4444444 is 13, of
/// which exporters make the scale, and not one less.
static void setScale(Axis &axis, double scale) {
  axis.scale = scale;
  float out =
      std::floor(static_cast<float>(scale) * static_cast<float>(axis.in));
  axis.out = out >= 0 && out < 1e9 ? static_cast<int64_t>(out) : -1;
}

static bool fit(Node &n, ArrayRef<Axis> all) {
  for (const Axis &axis : all)
    if (axis.in < 1 || axis.out < 1 || !(axis.scale > 0) ||
        axis.out > (int64_t(1) << 24) / axis.in) {
      n.fail("scales or sizes do not fit the input");
      return false;
    }
  return true;
}

/// Sizes and scales of all dimensions; false after a failure.
static bool readAxes(Node &n, ArrayRef<int64_t> shape, std::vector<Axis> &all) {
  int64_t rank = shape.size();
  for (int64_t size : shape)
    all.push_back({size, size, 1, 0, 1});
  std::vector<int64_t> named = n.intsAttr("axes");
  for (int64_t &axis : named)
    axis = n.dim(axis, rank);
  if (named.empty())
    for (int64_t i = 0; i < rank; ++i)
      named.push_back(i);
  if (n.failed())
    return false;
  size_t count = named.size();
  auto hasCount = [&](int64_t found, llvm::StringRef what) {
    if (found != static_cast<int64_t>(count))
      n.fail(what + " has not one number an axis");
    return !n.failed();
  };
  auto isEmpty = [&](int i) {
    return !n.has(i) || !n.entry(i).tensor ||
           Emitter::numElementsOf(n.entry(i).tensor) == 0;
  };
  if (!isEmpty(2)) {
    std::optional<HostTensor> scales = n.known(2, "scales");
    if (!scales)
      return false;
    if (!hasCount(scales->numElements(), "scales"))
      return false;
    for (size_t i = 0; i < count; ++i)
      setScale(all[named[i]], scales->getDouble(static_cast<int64_t>(i)));
  } else {
    std::optional<std::vector<int64_t>> sizes = n.knownInts(3, "sizes");
    if (!sizes)
      return false;
    if (!hasCount(static_cast<int64_t>(sizes->size()), "sizes"))
      return false;
    std::string policy = n.stringAttr("keep_aspect_ratio_policy", "stretch");
    double common = policy == "not_larger" ? INFINITY : 0;
    for (size_t i = 0; i < count; ++i) {
      Axis &axis = all[named[i]];
      axis.out = (*sizes)[i];
      axis.scale = static_cast<double>(axis.out) / static_cast<double>(axis.in);
      common = policy == "not_larger" ? std::min(common, axis.scale)
                                      : std::max(common, axis.scale);
    }
    if (policy != "stretch")
      for (size_t i = 0; i < count; ++i) {
        Axis &axis = all[named[i]];
        axis.scale = common;
        double out = std::floor(common * static_cast<double>(axis.in) + 0.5);
        axis.out = out >= 0 && out < 1e9 ? static_cast<int64_t>(out) : -1;
      }
  }
  if (n.stringAttr("coordinate_transformation_mode", "half_pixel") ==
      "tf_crop_and_resize") {
    std::optional<HostTensor> roi = n.known(1, "roi");
    if (!roi || !hasCount(roi->numElements() / 2, "roi"))
      return false;
    for (size_t i = 0; i < count; ++i) {
      all[named[i]].roiStart = roi->getDouble(static_cast<int64_t>(i));
      all[named[i]].roiEnd = roi->getDouble(static_cast<int64_t>(i + count));
    }
  }
  return fit(n, all);
}

/// Sizes and scales as Upsample and set 10's Resize have them.
static bool readScales(Node &n, ArrayRef<int64_t> shape,
                       std::vector<Axis> &all) {
  std::vector<double> scales;
  if (n.hasAttribute("scales")) {
    for (float scale : n.attribute("scales")->floats())
      scales.push_back(scale);
  } else if (std::optional<HostTensor> tensor = n.known(1, "scales")) {
    for (int64_t i = 0; i < tensor->numElements(); ++i)
      scales.push_back(tensor->getDouble(i));
  }
  if (n.failed())
    return false;
  if (scales.size() != shape.size()) {
    n.fail("scales has not one number a dimension");
    return false;
  }
  for (auto [size, scale] : llvm::zip(shape, scales)) {
    all.push_back({size, size, 1, 0, 1});
    setScale(all.back(), scale);
  }
  return fit(n, all);
}

static void resize(Node &n, Value x, const ResizeOptions &options,
                   ArrayRef<Axis> axes) {
  DType type = Emitter::typeOf(x);
  Value y =
      options.mode == "nearest" || isFloat(type) ? x : n.b.cast(x, DType::F32);
  Value isOutside;
  for (size_t dim = 0; dim < axes.size(); ++dim) {
    const Axis &axis = axes[dim];
    bool whole = axis.roiStart == 0 && axis.roiEnd == 1;
    if (axis.scale == 1 && axis.in == axis.out && whole)
      continue;
    std::vector<bool> outside;
    y = resizeAxis(n, y, static_cast<int64_t>(dim), axis, options, outside);
    if (llvm::none_of(outside, [](bool is) { return is; }))
      continue;
    Shape line(axes.size(), 1);
    line[dim] = axis.out;
    HostTensor mask(DType::Bool, line);
    for (int64_t i = 0; i < axis.out; ++i)
      mask.setInt(i, outside[i]);
    Value here = n.b.constant(std::move(mask));
    isOutside =
        isOutside ? n.b.binary(BinaryKind::logical_or, isOutside, here) : here;
  }
  if (isOutside && y)
    y = n.b.select(isOutside,
                   n.b.like(y, n.floatAttr("extrapolation_value", 0)), y);
  n.out(n.b.cast(y, type));
}

/// Before set 11 coordinates were not said: onnxruntime's became the meaning.
static void importOldResize(Node &n) {
  Value x = n.in(0);
  if (!x)
    return;
  ResizeOptions options;
  options.mode = n.stringAttr("mode", "nearest");
  options.coordinates = "asymmetric";
  options.nearest = "outer";
  std::vector<Axis> axes;
  if (readScales(n, Emitter::shapeOf(x), axes))
    resize(n, x, options, axes);
}

static void importResize(Node &n) {
  Value x = n.in(0);
  if (!x)
    return;
  ResizeOptions options;
  options.mode = n.stringAttr("mode", "nearest");
  options.coordinates =
      n.stringAttr("coordinate_transformation_mode", "half_pixel");
  options.nearest = n.stringAttr("nearest_mode", "round_prefer_floor");
  options.antialias = n.intAttr("antialias", 0);
  options.excludeOutside = n.intAttr("exclude_outside", 0);
  options.cubic = n.floatAttr("cubic_coeff_a", -0.75);
  std::vector<Axis> axes;
  if (readAxes(n, Emitter::shapeOf(x), axes))
    resize(n, x, options, axes);
}

static const OpEntry entries[] = {
    {"Resize", importOldResize},
    {"Resize", importResize, 11},
    {"Upsample", importOldResize},
};

void ax::import::addResize(OpTable &table) { table.add(entries); }
