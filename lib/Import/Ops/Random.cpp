//===- Random.cpp - Random numbers and Dropout ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Their seed is the run's: the attribute `seed` does not count.
//
//===----------------------------------------------------------------------===//

#include "../OpTable.h"

#include "llvm/Support/MathExtras.h"

using namespace ax;
using namespace ax::import;

static Value uniform(Node &n, ArrayRef<int64_t> shape) {
  return n.b.uniform(shape, n.b.takeRandomId());
}

/// Less than 1 also after rounding.
static Value uniform(Node &n, ArrayRef<int64_t> shape, DType type) {
  Value wide = uniform(n, shape), random = n.b.cast(wide, type);
  if (type == DType::F16)
    return n.b.min(random, n.b.scalar(type, 1 - 0x1p-11));
  if (type == DType::BF16)
    return n.b.min(random, n.b.scalar(type, 1 - 0x1p-8));
  return random;
}

/// Makes normal numbers as Box and Muller do (A note on the generation of
/// random normal deviates, 1958).
static Value normal(Node &n, ArrayRef<int64_t> shape) {
  Value rest = n.b.add(n.b.unary(UnaryKind::neg, uniform(n, shape)), 1);
  Value radius =
      n.b.unary(UnaryKind::sqrt, n.b.mul(n.b.unary(UnaryKind::log, rest), -2));
  Value angle = n.b.mul(uniform(n, shape), 2 * llvm::numbers::pi);
  return n.b.mul(radius, n.b.unary(UnaryKind::cos, angle));
}

static void giveUniform(Node &n, ArrayRef<int64_t> shape, DType type) {
  double low = n.floatAttr("low", 0), high = n.floatAttr("high", 1);
  n.out(n.b.add(n.b.mul(uniform(n, shape, type), high - low), low));
}

static void giveNormal(Node &n, ArrayRef<int64_t> shape, DType type) {
  Value scaled = n.b.mul(normal(n, shape), n.floatAttr("scale", 1));
  n.out(n.b.cast(n.b.add(scaled, n.floatAttr("mean", 0)), type));
}

template <void give(Node &, ArrayRef<int64_t>, DType)>
static void giveFloats(Node &n, ArrayRef<int64_t> shape, DType otherwise) {
  DType type = n.typeAttr("dtype", otherwise);
  if (n.failed())
    return;
  if (isFloat(type))
    give(n, shape, type);
  else
    n.fail(llvm::Twine("gives floats, not ") + toString(type));
}

template <void give(Node &, ArrayRef<int64_t>, DType)>
static void importOfShape(Node &n) {
  giveFloats<give>(n, n.intsAttr("shape"), DType::F32);
}

template <void give(Node &, ArrayRef<int64_t>, DType)>
static void importLike(Node &n) {
  if (Value x = n.in(0))
    giveFloats<give>(n, Emitter::shapeOf(x), Emitter::typeOf(x));
}

static void importBernoulli(Node &n) {
  Value x = n.in(0);
  if (!x)
    return;
  Value isOne = n.b.compare(CompareKind::lt, uniform(n, Emitter::shapeOf(x)),
                            n.b.cast(x, DType::F32));
  n.out(n.b.cast(isOne, n.typeAttr("dtype", Emitter::typeOf(x))));
}

/// The largest of logarithms with Gumbel noise: Gumbel, Statistical theory of
/// extreme values and some practical applications, 1954.
static void importMultinomial(Node &n) {
  Value x = n.in(0);
  int64_t samples = n.intAttr("sample_size", 1);
  DType type = n.typeAttr("dtype", DType::I32);
  if (!x)
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  if (shape.size() != 2 || shape[1] < 1 || samples < 1) {
    n.fail("needs 2 dimensions, at least one class and one sample");
    return;
  }
  int64_t batch = shape[0], classes = shape[1];
  Value wide = n.b.reshape(n.b.cast(x, DType::F32), {batch, 1, classes});
  auto minusLog = [&](Value value) {
    return n.b.unary(UnaryKind::neg, n.b.unary(UnaryKind::log, value));
  };
  Value noise = minusLog(minusLog(uniform(n, {batch, samples, classes})));
  Value best =
      n.b.argReduce(n.b.add(wide, noise), 2, /*min=*/false, /*last=*/false);
  n.out(n.b.cast(n.b.reshape(best, {batch, samples}), type));
}

/// Drops elements as training does. The mask is ones treated alike: true where
/// they are kept.
static void drop(Node &n, Value x, double rate) {
  int64_t id = n.b.takeRandomId();
  n.out(0, n.b.dropout(x, rate, id));
  if (n.wants(1)) {
    Value ones = n.b.splat(Emitter::typeOf(x), Emitter::shapeOf(x), 1);
    n.out(1, n.b.cast(n.b.dropout(ones, rate, id), DType::Bool));
  }
}

static void importDropout(Node &n) {
  Value x = n.in(0);
  if (!x)
    return;
  if (n.has(2)) {
    std::optional<int64_t> training = n.knownInt(2, "training_mode");
    std::optional<HostTensor> ratio;
    if (n.has(1))
      ratio = n.known(1, "ratio");
    double rate = ratio ? ratio->getDouble(0) : 0.5;
    if (training && *training && rate != 0 && !n.b.isEvaluationMode()) {
      drop(n, x, rate);
      return;
    }
  }
  n.out(0, x);
  if (n.wants(1)) {
    // Until set 11 "not filled", and until set 9 of the input's type.
    DType type = n.opset < 10 ? Emitter::typeOf(x) : DType::Bool;
    n.out(1, n.b.splat(type, Emitter::shapeOf(x), n.opset < 12 ? 0 : 1));
  }
}

static const OpEntry entries[] = {
    {"Bernoulli", importBernoulli},
    {"Dropout", importDropout},
    {"Multinomial", importMultinomial},
    {"RandomNormal", importOfShape<giveNormal>},
    {"RandomNormalLike", importLike<giveNormal>},
    {"RandomUniform", importOfShape<giveUniform>},
    {"RandomUniformLike", importLike<giveUniform>},
};

void ax::import::addRandom(OpTable &table) { table.add(entries); }
