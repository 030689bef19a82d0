//===- Reduce.cpp - Reductions and scans ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../OpTable.h"

using namespace ax;
using namespace ax::import;

namespace {
enum class Neutral { None, Zero, One, Lowest, Highest };

struct Reduction {
  /// The operand, and in the type in which it is added up.
  Value operand, x;
  std::vector<int64_t> dims;
  bool keepDims = true;
  /// The operator leaves its input as it is.
  bool isIdentity = false;
  /// The bound of the operand, where it had fewer results than it has room for.
  std::optional<Bound> bound;
};
} // namespace

static Value neutralOf(Emitter &b, Value x, Neutral neutral) {
  switch (neutral) {
  case Neutral::None:
  case Neutral::Zero:
    return b.like(x, 0);
  case Neutral::One:
    return b.like(x, 1);
  case Neutral::Lowest:
    return b.extremeOf(x, /*lowest=*/true);
  case Neutral::Highest:
    return b.extremeOf(x, /*lowest=*/false);
  }
  llvm_unreachable("neutral");
}

/// Results of which there may be fewer are followed by `neutral`, where there
/// is such a number.
static std::optional<Reduction> readReduction(Node &n, Neutral neutral) {
  Reduction result;
  result.operand = n.in(0);
  std::optional<std::vector<int64_t>> axes = n.intsOf(1, "axes");
  if (!result.operand || !axes)
    return std::nullopt;
  int64_t rank = Emitter::rankOf(result.operand);
  result.keepDims = n.intAttr("keepdims", 1);
  result.dims = n.dims(*axes, rank);
  if (axes->empty()) {
    result.isIdentity = n.intAttr("noop_with_empty_axes", 0);
    for (int64_t i = 0; i < rank && !result.isIdentity; ++i)
      result.dims.push_back(i);
  }
  if (n.failed())
    return std::nullopt;
  const Bound *bound = n.b.boundOf(result.operand);
  if (bound && neutral != Neutral::None &&
      llvm::is_contained(result.dims, bound->dim)) {
    result.bound = *bound;
    n.b.dropBounds();
    result.operand =
        n.b.filled(result.operand, neutralOf(n.b, result.operand, neutral));
  }
  result.x = n.b.wide(result.operand);
  return result;
}

static Value sum(Node &n, const Reduction &r, Value x) {
  return n.b.reduce(ReduceOpKind::sum, x, r.dims, r.keepDims);
}

/// What was computed from the sum, as the operand's type.
static void give(Node &n, const Reduction &r, Value y) {
  n.out(y ? n.b.cast(y, Emitter::typeOf(r.operand)) : y);
}

template <ReduceOpKind kind>
static void importPlain(Node &n) {
  Neutral neutral = kind == ReduceOpKind::sum    ? Neutral::Zero
                    : kind == ReduceOpKind::prod ? Neutral::One
                    : kind == ReduceOpKind::max  ? Neutral::Lowest
                                                 : Neutral::Highest;
  if (auto r = readReduction(n, neutral))
    n.out(n.b.reduce(kind, r->operand, r->dims, r->keepDims));
}

static void importReduceMean(Node &n) {
  auto r = readReduction(n, Neutral::Zero);
  if (!r)
    return;
  double count = 1;
  for (int64_t dim : r->dims)
    count *= static_cast<double>(Emitter::shapeOf(r->x)[dim]);
  Value total = sum(n, *r, r->x);
  if (!total)
    return;
  if (r->bound) {
    auto room = Emitter::shapeOf(r->x)[r->bound->dim];
    Value results =
        n.b.mul(n.b.cast(r->bound->count, Emitter::typeOf(total)),
                count / static_cast<double>(std::max<int64_t>(room, 1)));
    return give(n, *r, n.b.div(total, results));
  }
  give(n, *r,
       isFloat(Emitter::typeOf(total)) && count != 0
           ? n.b.mul(total, 1 / count)
           : n.b.div(total, n.b.like(total, count)));
}

static void importReduceL1(Node &n) {
  if (auto r = readReduction(n, Neutral::Zero)) {
    bool noSign = isUnsigned(Emitter::typeOf(r->x));
    give(n, *r, sum(n, *r, noSign ? r->x : n.b.unary(UnaryKind::abs, r->x)));
  }
}

static void importReduceSumSquare(Node &n) {
  if (auto r = readReduction(n, Neutral::Zero))
    give(n, *r, sum(n, *r, n.b.mul(r->x, r->x)));
}

/// What `make` gives of a tensor of any numbers: integers go by way of f64.
static Value throughFloat(Value x, Emitter &b,
                          llvm::function_ref<Value(Value)> make) {
  if (!x)
    return {};
  DType type = Emitter::typeOf(x);
  return isFloat(type) ? make(x) : b.cast(make(b.cast(x, DType::F64)), type);
}

static void importReduceL2(Node &n) {
  if (auto r = readReduction(n, Neutral::Zero))
    give(n, *r,
         throughFloat(sum(n, *r, n.b.mul(r->x, r->x)), n.b,
                      [&](Value all) { return n.b.rootOfSquares(all); }));
}

static void importReduceLogSum(Node &n) {
  if (auto r = readReduction(n, Neutral::Zero))
    give(n, *r, throughFloat(sum(n, *r, r->x), n.b, [&](Value all) {
           return n.b.unary(UnaryKind::log, all);
         }));
}

static void importReduceLogSumExp(Node &n) {
  auto r = readReduction(n, Neutral::Lowest);
  if (!r)
    return;
  if (!isFloat(Emitter::typeOf(r->x))) {
    n.unsupported("integers are not supported");
    return;
  }
  if (r->dims.empty())
    return n.out(r->operand);
  // Shifted by the maximum, where that is finite.
  Value top = n.b.reduce(ReduceOpKind::max, r->x, r->dims, true);
  Value isFinite = n.b.compare(CompareKind::lt, n.b.unary(UnaryKind::abs, top),
                               n.b.like(top, INFINITY));
  Value shift = n.b.select(isFinite, top, n.b.like(top, 0));
  Value total = sum(n, *r, n.b.unary(UnaryKind::exp, n.b.sub(r->x, shift)));
  if (!total)
    return;
  Value shiftOut = n.b.reshape(shift, Emitter::shapeOf(total));
  give(n, *r, n.b.add(n.b.unary(UnaryKind::log, total), shiftOut));
}

template <bool min>
static void importArg(Node &n) {
  Value x = n.in(0);
  if (!x)
    return;
  int64_t dim = n.dim(n.intAttr("axis", 0), Emitter::rankOf(x));
  if (n.failed())
    return;
  // The first of equal ones wins, before all padding.
  const Bound *bound = n.b.boundOf(x);
  if (bound && bound->dim == dim && !n.intAttr("select_last_index", 0)) {
    n.b.dropBounds();
    x = n.b.filled(x, n.b.extremeOf(x, !min));
  }
  Value index = n.b.argReduce(x, dim, min, n.intAttr("select_last_index", 0));
  if (index && !n.intAttr("keepdims", 1)) {
    Shape shape(Emitter::shapeOf(index));
    shape.erase(shape.begin() + dim);
    index = n.b.reshape(index, shape);
  }
  n.out(index);
}

template <ReduceOpKind kind>
static void importCumulative(Node &n) {
  Value x = n.in(0);
  std::optional<int64_t> axis = n.knownInt(1, "axis");
  if (!x || !axis)
    return;
  int64_t dim = n.dim(*axis, Emitter::rankOf(x));
  if (n.failed())
    return;
  double neutral = kind == ReduceOpKind::prod ? 1 : 0;
  n.out(n.b.alongResults(x, dim, neutral, [&](Value all) {
    return n.b.cumulative(kind, all, dim, n.intAttr("exclusive", 0),
                          n.intAttr("reverse", 0));
  }));
}

static void importTopK(Node &n) {
  Value x = n.in(0);
  // An attribute until set 9.
  std::optional<Sizes> k = n.opset < 10
                               ? Sizes{{n.intAttr("k", 0)}, std::nullopt, {}}
                               : n.sizes(1, "K");
  if (!x || !k)
    return;
  int64_t dim = n.dim(n.intAttr("axis", -1), Emitter::rankOf(x));
  if (!n.failed() && k->most.size() != 1)
    n.fail("input 'K' must be one number");
  if (n.failed())
    return;
  bool largest = n.intAttr("largest", 1);
  Value count = k->count;
  if (const Bound *bound = n.b.boundOf(x); bound && bound->dim == dim) {
    Value given = n.b.scalar(DType::I64, static_cast<double>(k->most[0]));
    count = n.b.min(bound->count, count ? count : given);
    // Behind all results, NaN too.
    bool isLast = !largest && isFloat(Emitter::typeOf(x));
    x = n.b.filled(x, isLast ? n.b.like(x, NAN) : n.b.extremeOf(x, largest));
  }
  if (k->open || count)
    n.b.dropBounds();
  auto [values, indices] = n.b.topK(x, k->most[0], dim, !largest);
  n.out(0, count ? n.b.bounded(values, dim, count) : values);
  n.out(1, count ? n.b.bounded(indices, dim, count) : indices);
}

static const OpEntry entries[] = {
    {"ArgMax", importArg<false>},
    {"ArgMin", importArg<true>},
    {"CumProd", importCumulative<ReduceOpKind::prod>},
    {"CumSum", importCumulative<ReduceOpKind::sum>},
    {"ReduceL1", importReduceL1},
    {"ReduceL2", importReduceL2},
    {"ReduceLogSum", importReduceLogSum},
    {"ReduceLogSumExp", importReduceLogSumExp},
    {"ReduceMax", importPlain<ReduceOpKind::max>},
    {"ReduceMean", importReduceMean},
    {"ReduceMin", importPlain<ReduceOpKind::min>},
    {"ReduceProd", importPlain<ReduceOpKind::prod>},
    {"ReduceSum", importPlain<ReduceOpKind::sum>},
    {"ReduceSumSquare", importReduceSumSquare},
    {"TopK", importTopK},
};

void ax::import::addReduce(OpTable &table) { table.add(entries); }
