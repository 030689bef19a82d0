//===- Activation.cpp - Activations and softmax ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Activations.h"
#include "../OpTable.h"

#include "ax/Dialect/Ax.h"

#include <numeric>

using namespace ax;
using namespace ax::import;

/// x where x > 0, else `negative`.
static Value positiveOr(Node &n, Value x, Value negative) {
  Value isPositive = n.b.compare(CompareKind::gt, x, n.b.like(x, 0));
  return n.b.select(isPositive, x, negative);
}

static void importRelu(Node &n) {
  Value x = n.in(0);
  n.out(n.b.unary(UnaryKind::relu, x));
}

static Value leakyRelu(Node &n, Value x, double alpha) {
  return positiveOr(n, x, n.b.mul(x, alpha));
}

static void importLeakyRelu(Node &n) {
  n.out(leakyRelu(n, n.in(0), n.floatAttr("alpha", 0.01)));
}

static Value thresholdedRelu(Node &n, Value x, double alpha) {
  Value above = n.b.compare(CompareKind::gt, x, n.b.like(x, alpha));
  return n.b.select(above, x, n.b.like(x, 0));
}

static void importThresholdedRelu(Node &n) {
  n.out(thresholdedRelu(n, n.in(0), n.floatAttr("alpha", 1)));
}

static void importPRelu(Node &n) {
  Value x = n.in(0);
  n.out(positiveOr(n, x, n.b.mul(x, n.in(1))));
}

/// alpha (exp(x / scale) - 1)
static Value scaledExpm1(Node &n, Value x, double alpha, double scale = 1) {
  Value inner = scale == 1 ? x : n.b.div(x, n.b.like(x, scale));
  Value y = n.b.unary(UnaryKind::expm1, inner);
  return alpha == 1 ? y : n.b.mul(y, alpha);
}

static void importElu(Node &n) {
  Value x = n.in(0);
  n.out(positiveOr(n, x, scaledExpm1(n, x, n.floatAttr("alpha", 1))));
}

static void importSelu(Node &n) {
  Value x = n.in(0);
  double alpha = n.floatAttr("alpha", 1.67326319217681884765625);
  double gamma = n.floatAttr("gamma", 1.05070102214813232421875);
  n.out(n.b.mul(positiveOr(n, x, scaledExpm1(n, x, alpha)), gamma));
}

static void importCelu(Node &n) {
  Value x = n.in(0);
  double alpha = n.floatAttr("alpha", 1);
  n.out(positiveOr(n, x, scaledExpm1(n, x, alpha, alpha)));
}

static Value clamp(Node &n, Value x, double low, double high) {
  return n.b.min(n.b.max(x, n.b.like(x, low)), n.b.like(x, high));
}

static Value hardSigmoid(Node &n, Value x, double alpha, double beta) {
  return clamp(n, n.b.add(n.b.mul(x, alpha), beta), 0, 1);
}

static void importHardSigmoid(Node &n) {
  n.out(hardSigmoid(n, n.in(0), n.floatAttr("alpha", 0.2f),
                    n.floatAttr("beta", 0.5)));
}

static void importHardSwish(Node &n) {
  Value x = n.in(0);
  n.out(n.b.mul(x, hardSigmoid(n, x, 1.0 / 6, 0.5)));
}

static void importClip(Node &n) {
  Value x = n.in(0);
  // Attributes until set 10.
  if (n.has(1))
    x = n.b.max(x, n.in(1));
  else if (n.hasAttribute("min"))
    x = n.b.max(x, n.b.like(x, n.floatAttr("min", 0)));
  if (n.has(2))
    x = n.b.min(x, n.in(2));
  else if (n.hasAttribute("max"))
    x = n.b.min(x, n.b.like(x, n.floatAttr("max", 0)));
  n.out(x);
}

static void importGelu(Node &n) {
  bool isTanh = n.stringAttr("approximate", "none") == "tanh";
  n.out(n.b.unary(isTanh ? UnaryKind::gelu_tanh : UnaryKind::gelu, n.in(0)));
}

static void importSwish(Node &n) {
  Value x = n.in(0);
  double alpha = n.floatAttr("alpha", 1);
  if (alpha == 1)
    return n.out(n.b.unary(UnaryKind::silu, x));
  n.out(n.b.mul(x, n.b.unary(UnaryKind::sigmoid, n.b.mul(x, alpha))));
}

static void importMish(Node &n) {
  Value x = n.in(0);
  n.out(n.b.mul(x,
                n.b.unary(UnaryKind::tanh, n.b.unary(UnaryKind::softplus, x))));
}

static Value softsign(Node &n, Value x) {
  return n.b.div(x, n.b.add(n.b.unary(UnaryKind::abs, x), 1.0));
}

static void importSoftsign(Node &n) { n.out(softsign(n, n.in(0))); }

namespace {
struct NamedActivation {
  llvm::StringLiteral name;
  size_t numParameters;
  Value (*make)(Node &n, Value x, ArrayRef<double> parameters);
};
} // namespace

template <UnaryKind kind>
static Value unary(Node &n, Value x, ArrayRef<double>) {
  return n.b.unary(kind, x);
}

using Numbers = ArrayRef<double>;
static constexpr NamedActivation namedActivations[] = {
    {"Clip", 2,
     [](Node &n, Value x, Numbers p) { return clamp(n, x, p[0], p[1]); }},
    {"Elu", 1,
     [](Node &n, Value x, Numbers p) {
       return positiveOr(n, x, scaledExpm1(n, x, p[0]));
     }},
    {"HardSigmoid", 2,
     [](Node &n, Value x, Numbers p) { return hardSigmoid(n, x, p[0], p[1]); }},
    {"LeakyRelu", 1,
     [](Node &n, Value x, Numbers p) { return leakyRelu(n, x, p[0]); }},
    {"Relu", 0, unary<UnaryKind::relu>},
    {"ScaledTanh", 2,
     [](Node &n, Value x, Numbers p) {
       return n.b.mul(n.b.unary(UnaryKind::tanh, n.b.mul(x, p[1])), p[0]);
     }},
    {"Sigmoid", 0, unary<UnaryKind::sigmoid>},
    {"Silu", 0, unary<UnaryKind::silu>},
    {"Softplus", 0, unary<UnaryKind::softplus>},
    {"Softsign", 0, [](Node &n, Value x, Numbers) { return softsign(n, x); }},
    {"Tanh", 0, unary<UnaryKind::tanh>},
    {"ThresholdedRelu", 1,
     [](Node &n, Value x, Numbers p) { return thresholdedRelu(n, x, p[0]); }},
};

Value ax::import::activate(Node &n, llvm::StringRef name,
                           ArrayRef<double> parameters, Value x) {
  if (!x)
    return {};
  const auto *found = llvm::find_if(
      namedActivations, [&](const auto &known) { return known.name == name; });
  assert(found != std::end(namedActivations) && "names are checked before");
  if (parameters.size() != found->numParameters)
    return n.fail("activation " + name + " takes " +
                  llvm::Twine(found->numParameters) + " parameters and has " +
                  llvm::Twine(parameters.size()));
  return found->make(n, x, parameters);
}

static void importShrink(Node &n) {
  Value x = n.in(0);
  if (!x)
    return;
  double lambd = n.floatAttr("lambd", 0.5), bias = n.floatAttr("bias", 0);
  Value above = n.b.compare(CompareKind::gt, x, n.b.like(x, lambd));
  Value below = n.b.compare(CompareKind::lt, x, n.b.like(x, -lambd));
  Value zero = n.b.like(x, 0);
  Value lower = n.b.select(below, n.b.add(x, bias), zero);
  n.out(n.b.select(above, n.b.sub(x, n.b.like(x, bias)), lower));
}

/// An operator along `dim` to which -inf, as padding, changes nothing.
using AlongDim = Value (*)(Node &, Value x, int64_t dim);

template <AlongDim make>
static Value makeAlong(Node &n, Value x, int64_t dim) {
  return n.b.alongResults(x, dim, -INFINITY,
                          [&](Value all) { return make(n, all, dim); });
}

/// An operator along one dimension.
template <AlongDim make>
static void importAlong(Node &n) {
  Value x = n.in(0);
  if (!x)
    return;
  int64_t dim = n.dim(n.intAttr("axis", -1), Emitter::rankOf(x));
  if (!n.failed())
    n.out(makeAlong<make>(n, x, dim));
}

/// The same until set 12: all dimensions from `axis` on count as one.
template <AlongDim make>
static void importAlongRest(Node &n) {
  Value x = n.in(0);
  if (!x)
    return;
  Shape shape(Emitter::shapeOf(x));
  int64_t axis = n.dim(n.intAttr("axis", 1), shape.size());
  if (n.failed())
    return;
  ArrayRef<int64_t> rest = ArrayRef<int64_t>(shape).drop_front(axis);
  if (llvm::count_if(rest, [](int64_t size) { return size != 1; }) <= 1) {
    auto longest = llvm::max_element(rest);
    return n.out(makeAlong<make>(n, x, axis + (longest - rest.begin())));
  }
  Shape flat(ArrayRef<int64_t>(shape).take_front(axis));
  flat.push_back(std::accumulate(rest.begin(), rest.end(), int64_t(1),
                                 std::multiplies<>()));
  n.out(n.b.reshape(make(n, n.b.reshape(x, flat), axis), shape));
}

template <bool log>
static Value softmax(Node &n, Value x, int64_t dim) {
  return n.b.softmax(x, dim, log);
}

static Value hardmax(Node &n, Value x, int64_t dim) {
  Value best = n.b.argReduce(x, dim, /*min=*/false, /*last=*/false);
  Shape line(Emitter::rankOf(x), 1);
  line[dim] = Emitter::shapeOf(x)[dim];
  Value isBest =
      n.b.compare(CompareKind::eq, n.b.iota(DType::I64, line, dim), best);
  return n.b.cast(isBest, Emitter::typeOf(x));
}

static const OpEntry entries[] = {
    {"Celu", importCelu},
    {"Clip", importClip},
    {"Elu", importElu},
    {"Gelu", importGelu},
    {"HardSigmoid", importHardSigmoid},
    {"HardSwish", importHardSwish},
    {"Hardmax", importAlongRest<hardmax>},
    {"Hardmax", importAlong<hardmax>, 13},
    {"LeakyRelu", importLeakyRelu},
    {"LogSoftmax", importAlongRest<softmax<true>>},
    {"LogSoftmax", importAlong<softmax<true>>, 13},
    {"Mish", importMish},
    {"PRelu", importPRelu},
    {"Relu", importRelu},
    {"Selu", importSelu},
    {"Shrink", importShrink},
    {"Softmax", importAlongRest<softmax<false>>},
    {"Softmax", importAlong<softmax<false>>, 13},
    {"Softplus",
     [](Node &n) { n.out(n.b.unary(UnaryKind::softplus, n.in(0))); }},
    {"Softsign", importSoftsign},
    {"Swish", importSwish},
    {"ThresholdedRelu", importThresholdedRelu},
};

void ax::import::addActivation(OpTable &table) { table.add(entries); }
