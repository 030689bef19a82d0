//===- Norm.cpp - Normalisations ------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../BatchStatistics.h"
#include "../Norms.h"
#include "../OpTable.h"

using namespace ax;
using namespace ax::import;

/// A vector over the channels, shaped to broadcast with `x` [batch, channels,
/// spatial...].
static Value perChannel(Node &n, Value vector, Value x) {
  if (!vector || !x)
    return {};
  Shape shape(std::max<int64_t>(Emitter::rankOf(x), 2) - 1, 1);
  shape[0] = Emitter::numElementsOf(vector);
  return n.b.reshape(vector, shape);
}

namespace {
struct Moments {
  Value mean, variance;
};

/// A batch [samples, channels, spatial...] in the parts whose statistics count:
/// one is as it was, several are [parts, samples / parts, channels,
/// spatial...].
struct BatchParts {
  int64_t number, channelDim;
  /// All dimensions but channels and parts.
  std::vector<int64_t> dims;
  Value batch;
  /// How many values of a channel a part has.
  double numSamples;
};
} // namespace

/// The mean over `dims`, which are kept as 1.
static Value meanOver(Node &n, Value x, ArrayRef<int64_t> dims) {
  if (!x)
    return {};
  double count = 1;
  for (int64_t dim : dims)
    count *= static_cast<double>(Emitter::shapeOf(x)[dim]);
  return n.b.mul(n.b.reduce(ReduceOpKind::sum, x, dims, true), 1 / count);
}

/// Mean and (biased) variance over `dims`, which are kept as 1.
static Moments moments(Node &n, Value x, ArrayRef<int64_t> dims) {
  Value average = meanOver(n, x, dims);
  Value centred = n.b.sub(x, average);
  return {average, meanOver(n, n.b.mul(centred, centred), dims)};
}

static Value inverseDeviation(Node &n, Value variance, double epsilon) {
  return n.b.unary(UnaryKind::rsqrt, n.b.add(variance, epsilon));
}

/// The batch that is normalised, [samples, channels, spatial...], in parts.
static BatchParts cutBatch(Node &n, Value x, int64_t numParts) {
  Shape shape = Emitter::shapeOf(x);
  auto refuse = [&](const llvm::Twine &why) {
    n.b.fail(ExitCode::Usage,
             "--batchnorm=train:" + llvm::Twine(numParts) + " " + why);
    return BatchParts();
  };
  if (numParts > 1) {
    if (shape[0] < numParts || shape[0] % numParts != 0)
      return refuse("does not divide the " + llvm::Twine(shape[0]) +
                    " in front of [" + shapeToString(shape) + "]");
    shape[0] /= numParts;
    shape.insert(shape.begin(), numParts);
    x = n.b.reshape(x, shape);
    if (auto cut = x.getDefiningOp<ReshapeOp>())
      cut->setAttr(kCutsBatch, n.b.getOpBuilder().getUnitAttr());
  }
  BatchParts cut{numParts > 1 ? numParts : 1, numParts > 1 ? 2 : 1, {}, x, 1};
  for (int64_t i = numParts > 1 ? 1 : 0; i < Emitter::rankOf(x); ++i)
    if (i != cut.channelDim) {
      cut.dims.push_back(i);
      cut.numSamples *= static_cast<double>(Emitter::shapeOf(x)[i]);
    }
  if (numParts > 1 && cut.numSamples < 2)
    return refuse("leaves one value for each channel in a part, which have no "
                  "variance: take fewer parts");
  return cut;
}

/// By the batch's statistics, which are added to the running ones.
static void normalizeByBatch(Node &n, double epsilon) {
  Value x = n.in(0), scale = n.in(1), bias = n.in(2), mean = n.in(3),
        variance = n.in(4);
  DType type = Emitter::typeOf(x), compute = Emitter::sumType(type);
  int64_t numParts = n.b.batchPartsOf(x);
  BatchParts cut = cutBatch(n, n.b.cast(x, compute), numParts);
  if (n.failed())
    return;
  Moments batch = moments(n, cut.batch, cut.dims);
  if (n.failed())
    return;
  double momentum = n.floatAttr("momentum", 0.9f);
  auto seen = [&](Value fresh) { return Observation{fresh, momentum}; };
  n.out(1, runOver(n.b, mean, seen(batch.mean), cut.number));
  n.out(2, runOver(n.b, variance, seen(batch.variance), cut.number));
  // ONNX's running variance is that of the batch; frameworks keep the unbiased
  // estimate.
  Value unbiased =
      cut.numSamples > 1
          ? n.b.mul(batch.variance, cut.numSamples / (cut.numSamples - 1))
          : batch.variance;
  n.b.observe(mean, numParts, seen(batch.mean));
  n.b.observe(variance, numParts, seen(unbiased));
  // What exporters keep for a backward pass: of parts their means.
  auto ofBatch = [&](Value statistic) {
    int64_t channels = Emitter::shapeOf(cut.batch)[cut.channelDim];
    Value parts = n.b.reshape(statistic, {cut.number, channels});
    Value sum = n.b.reduce(ReduceOpKind::sum, parts, {0}, false);
    return n.b.cast(n.b.mul(sum, 1.0 / static_cast<double>(cut.number)), type);
  };
  n.out(3, ofBatch(batch.mean));
  n.out(4, ofBatch(batch.variance));
  // Nothing cancels, which x factor + (bias - mean factor) would risk.
  Value factor = n.b.mul(perChannel(n, n.b.cast(scale, compute), x),
                         inverseDeviation(n, batch.variance, epsilon));
  Value y = n.b.mul(n.b.sub(cut.batch, batch.mean), factor);
  y = n.b.add(y, perChannel(n, n.b.cast(bias, compute), x));
  n.out(0, n.b.cast(n.b.reshape(y, Emitter::shapeOf(x)), type));
}

static void importBatchNormalization(Node &n) {
  Value x = n.in(0), scale = n.in(1), bias = n.in(2), mean = n.in(3),
        variance = n.in(4);
  if (n.failed())
    return;
  if (Emitter::rankOf(x) < 2) {
    n.fail("needs batch and channels");
    return;
  }
  n.b.setKind(mean, WeightKind::Statistic);
  n.b.setKind(variance, WeightKind::Statistic);
  double epsilon = n.floatAttr("epsilon", 1e-5f);
  DType type = Emitter::typeOf(x);
  // Until set 13 whoever asks for statistics trains.
  bool isTraining =
      n.intAttr("training_mode", n.opset < 14 && n.wants(1) ? 1 : 0);
  if (!n.intAttr("spatial", 1)) {
    n.unsupported("statistics of each place (spatial = 0)");
    return;
  }
  if (isTraining && n.b.isEvaluationMode()) {
    for (int i : {1, 3})
      n.out(i, mean);
    for (int i : {2, 4})
      n.out(i, variance);
  } else if (isTraining) {
    normalizeByBatch(n, epsilon);
    return;
  }
  // y = x factor + (bias - mean factor)
  DType compute = Emitter::sumType(type);
  Value factor =
      n.b.mul(n.b.cast(scale, compute),
              inverseDeviation(n, n.b.cast(variance, compute), epsilon));
  Value shift = n.b.sub(n.b.cast(bias, compute),
                        n.b.mul(n.b.cast(mean, compute), factor));
  Value y = n.b.mul(x, n.b.cast(perChannel(n, factor, x), type));
  n.out(0, n.b.add(y, n.b.cast(perChannel(n, shift, x), type)));
}

static void importInstanceNormalization(Node &n) {
  Value x = n.in(0), scale = n.in(1), bias = n.in(2);
  if (!x)
    return;
  DType type = Emitter::typeOf(x), compute = Emitter::sumType(type);
  std::vector<int64_t> dims;
  for (int64_t i = 2; i < Emitter::rankOf(x); ++i)
    dims.push_back(i);
  if (dims.empty()) {
    n.fail("needs at least one spatial dimension");
    return;
  }
  Value wide = n.b.cast(x, compute);
  Moments m = moments(n, wide, dims);
  Value y =
      n.b.mul(n.b.sub(wide, m.mean),
              inverseDeviation(n, m.variance, n.floatAttr("epsilon", 1e-5f)));
  y = n.b.mul(y, n.b.cast(perChannel(n, scale, x), compute));
  y = n.b.add(y, n.b.cast(perChannel(n, bias, x), compute));
  n.out(n.b.cast(y, type));
}

/// One number a group as one number a channel.
static Value perChannelOfGroups(Node &n, Value vector, int64_t groups,
                                int64_t channels) {
  if (channels % groups)
    return vector;
  Value column = n.b.reshape(vector, {groups, 1});
  return n.b.reshape(n.b.broadcast(column, {groups, channels / groups}),
                     {channels});
}

Value ax::import::normalizeGroups(Node &n, Value x, Value scale, Value bias,
                                  int64_t groups, double epsilon) {
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  if (shape.size() < 2 || groups < 1 || shape[1] % groups || shape[1] == 0)
    return n.fail("channels do not divide into groups");
  DType type = Emitter::typeOf(x), compute = Emitter::sumType(type);
  int64_t perGroup = Emitter::numElementsOf(x);
  perGroup = perGroup ? perGroup / (shape[0] * groups) : 0;
  Value wide = n.b.reshape(n.b.cast(x, compute), {shape[0], groups, perGroup});
  Value y = n.b.layerNorm(wide, {}, {}, 2, epsilon);
  y = n.b.reshape(y, shape);
  y = n.b.mul(y, n.b.cast(perChannel(n, scale, x), compute));
  y = n.b.add(y, n.b.cast(perChannel(n, bias, x), compute));
  return n.b.cast(y, type);
}

static void importGroupNormalization(Node &n) {
  Value x = n.in(0), scale = n.in(1), bias = n.in(2);
  if (!x || !scale || !bias)
    return;
  int64_t groups = n.intAttr("num_groups", 1);
  if (n.opset < 21 && Emitter::rankOf(x) >= 2) {
    int64_t channels = Emitter::shapeOf(x)[1];
    scale = perChannelOfGroups(n, scale, groups, channels);
    bias = perChannelOfGroups(n, bias, groups, channels);
  }
  n.out(normalizeGroups(n, x, scale, bias, groups,
                        n.floatAttr("epsilon", 1e-5f)));
}

/// Scale or bias with exactly the normalised dimensions of `x`, or null when
/// it broadcasts along others.
static Value exactly(Node &n, Value v, Value x, int64_t axis) {
  if (!v)
    return {};
  ArrayRef<int64_t> tail = Emitter::shapeOf(x).drop_front(axis);
  ArrayRef<int64_t> shape = Emitter::shapeOf(v);
  while (!shape.empty() && shape.size() > tail.size() && shape.front() == 1)
    shape = shape.drop_front();
  if (shape.size() > tail.size())
    return {};
  return n.b.broadcast(n.b.reshape(v, shape), tail);
}

template <bool centre>
static void importLayerNorm(Node &n) {
  Value x = n.in(0), scale = n.optional(1);
  Value bias = centre ? n.optional(2) : Value();
  if (!x || n.failed())
    return;
  int64_t rank = Emitter::rankOf(x);
  int64_t axis = n.dim(n.intAttr("axis", -1), rank);
  double epsilon = n.floatAttr("epsilon", 1e-5f);
  if (n.failed())
    return;
  Value exactScale = exactly(n, scale, x, axis);
  Value exactBias = exactly(n, bias, x, axis);
  bool isExact = (!scale || exactScale) && (!bias || exactBias);
  DType type = Emitter::typeOf(x);
  auto normalise = [&](Value s, Value shift) {
    return centre ? n.b.layerNorm(x, s, shift, axis, epsilon)
                  : n.b.rmsNorm(x, s, shift, axis, epsilon);
  };
  bool sameTypes = (!scale || Emitter::typeOf(scale) == type) &&
                   (!bias || Emitter::typeOf(bias) == type);
  Value y;
  if (isExact && sameTypes) {
    y = normalise(exactScale, exactBias);
  } else {
    y = normalise({}, {});
    DType out = scale ? Emitter::typeOf(scale) : type;
    y = n.b.cast(y, out);
    if (scale)
      y = n.b.mul(y, scale);
    if (bias)
      y = n.b.add(y, bias);
  }
  n.out(0, y);
  if (!n.wants(1) && !n.wants(2))
    return;
  Value wide = n.b.wide(x);
  std::vector<int64_t> dims;
  for (int64_t i = axis; i < rank; ++i)
    dims.push_back(i);
  if (!centre)
    return n.out(1, inverseDeviation(n, meanOver(n, n.b.mul(wide, wide), dims),
                                     epsilon));
  Moments m = moments(n, wide, dims);
  n.out(1, m.mean);
  n.out(2, inverseDeviation(n, m.variance, epsilon));
}

static void importLRN(Node &n) {
  Value x = n.in(0);
  int64_t size = n.intAttr("size", 1);
  double alpha = n.floatAttr("alpha", 1e-4f), beta = n.floatAttr("beta", 0.75),
         bias = n.floatAttr("bias", 1);
  if (!x)
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  if (shape.size() < 2 || size < 1 || size > (1 << 20)) {
    n.fail("needs channels and a size of at least 1");
    return;
  }
  // Sums over neighbouring channels: a pool over [channels, places].
  int64_t places = 1;
  for (int64_t extent : shape.drop_front(2))
    places *= extent;
  Window window;
  window.kernel = {size, 1};
  window.strides = window.dilations = {1, 1};
  window.pads = {(size - 1) / 2, 0, size / 2, 0};
  window.extra = {0, 0};
  Value wide = n.b.wide(x);
  Value square =
      n.b.reshape(n.b.mul(wide, wide), {shape[0], 1, shape[1], places});
  Value sum =
      n.b.reshape(n.b.pool(PoolKind::sum, square, window, false), shape);
  Value base = n.b.add(n.b.mul(sum, alpha / static_cast<double>(size)), bias);
  Value y =
      n.b.div(wide, n.b.binary(BinaryKind::pow, base, n.b.like(base, beta)));
  n.out(n.b.cast(y, Emitter::typeOf(x)));
}

/// Normalises otherwise than ONNX's function does: its mean of squares less the
/// mean's square keeps no digit of numbers far from zero.
static void importMeanVarianceNormalization(Node &n) {
  Value x = n.in(0);
  if (!x)
    return;
  std::vector<int64_t> dims =
      n.dims(n.intsAttr("axes", {0, 2, 3}), Emitter::rankOf(x));
  if (n.failed())
    return;
  DType type = Emitter::typeOf(x);
  Value wide = n.b.wide(x);
  double count = 1;
  for (int64_t dim : dims)
    count *= static_cast<double>(Emitter::shapeOf(x)[dim]);
  // Of results of which there may be fewer, those that there are.
  Value results;
  const Bound *bound = n.b.boundOf(wide);
  if (bound && llvm::is_contained(dims, bound->dim)) {
    int64_t room = Emitter::shapeOf(x)[bound->dim];
    results = n.b.mul(n.b.cast(bound->count, Emitter::typeOf(wide)),
                      count / static_cast<double>(std::max<int64_t>(room, 1)));
  }
  auto mean = [&](Value v) {
    Value total = n.b.reduce(ReduceOpKind::sum, results ? n.b.filled(v, 0) : v,
                             dims, true);
    return results ? n.b.div(total, results) : n.b.mul(total, 1 / count);
  };
  Value centred = n.b.sub(wide, mean(wide));
  Value variance = mean(n.b.mul(centred, centred));
  Value deviation = n.b.add(n.b.rootOfSquares(variance), 1e-9);
  n.out(n.b.cast(n.b.div(centred, deviation), type));
}

static void importLpNormalization(Node &n) {
  Value x = n.in(0);
  int64_t p = n.intAttr("p", 2);
  if (!x)
    return;
  int64_t axis = n.dim(n.intAttr("axis", -1), Emitter::rankOf(x));
  if (n.failed())
    return;
  if (p != 1 && p != 2) {
    n.unsupported("p is " + llvm::Twine(p) + ", not 1 or 2");
    return;
  }
  DType type = Emitter::typeOf(x);
  Value y = n.b.alongResults(n.b.wide(x), axis, 0, [&](Value all) {
    Value powers = p == 1 ? n.b.unary(UnaryKind::abs, all) : n.b.mul(all, all);
    Value norm = n.b.reduce(ReduceOpKind::sum, powers, {axis}, true);
    if (p == 2)
      norm = n.b.rootOfSquares(norm);
    // A vector of zeros stays one.
    Value isZero = n.b.compare(CompareKind::eq, norm, n.b.like(norm, 0));
    return n.b.div(all, n.b.select(isZero, n.b.like(norm, 1), norm));
  });
  n.out(y ? n.b.cast(y, type) : y);
}

static const OpEntry entries[] = {
    {"BatchNormalization", importBatchNormalization},
    {"GroupNormalization", importGroupNormalization},
    {"InstanceNormalization", importInstanceNormalization},
    {"LRN", importLRN},
    // Before set 17 it is onnxruntime's.
    {"LayerNormalization",
     importLayerNorm<true>,
     1,
     {"X:T=floats Scale:V=floats B?:V", "Y:V Mean?:U=floats InvStdDev?:U",
      "axis:int epsilon:float stash_type:int"}},
    {"LpNormalization", importLpNormalization},
    {"MeanVarianceNormalization", importMeanVarianceNormalization},
    {"RMSNormalization", importLayerNorm<false>},
    // What onnxruntime calls it, in ONNX's own domain.
    {"SimplifiedLayerNormalization",
     importLayerNorm<false>,
     1,
     {"X:T=floats scale:V=floats", "Y:V inv_std_var?:U=floats",
      "axis:int epsilon:float stash_type:int"}},
};

void ax::import::addNorm(OpTable &table) { table.add(entries); }
