//===- Attention.cpp - Attention ------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Contractions.h"
#include "../Heads.h"
#include "../OpTable.h"

#include <cmath>

using namespace ax;
using namespace ax::import;

namespace {

/// The operator Attention of operator sets 23 and later.
class AttentionImporter {
public:
  explicit AttentionImporter(Node &n) : n(n), b(n.b) {}
  void run();

private:
  bool readOperands();
  Value givenMask();
  Value allowedPlaces();
  Value combine(Value mask, Value allowed);
  Value scores(Value mask);

  Node &n;
  Emitter &b;
  Value q, k, v;
  bool merged = false; // heads were merged into the last dimension
  int64_t queryHeads = 0, keyHeads = 0;
  int64_t queries = 0, keys = 0, pastKeys = 0;
  AttentionOptions options;
};

} // namespace

Value ax::import::splitHeads(Node &n, Value x, int64_t heads) {
  if (!x)
    return {};
  ArrayRef<int64_t> s = Emitter::shapeOf(x);
  if (heads < 1 || s[2] % heads)
    return n.fail("hidden size " + llvm::Twine(s[2]) + " is no multiple of " +
                  llvm::Twine(heads) + " heads");
  return n.b.transpose(n.b.reshape(x, {s[0], s[1], heads, s[2] / heads}),
                       {0, 2, 1, 3});
}

Value ax::import::mergeHeads(Emitter &b, Value x) {
  if (!x)
    return {};
  ArrayRef<int64_t> s = Emitter::shapeOf(x);
  return b.reshape(b.transpose(x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

bool AttentionImporter::readOperands() {
  q = n.in(0);
  k = n.in(1);
  v = n.in(2);
  if (n.failed())
    return false;
  int64_t rank = Emitter::rankOf(q);
  if ((rank != 3 && rank != 4) || Emitter::rankOf(k) != rank ||
      Emitter::rankOf(v) != rank) {
    n.fail("Q, K and V must all have rank 3, or all rank 4");
    return false;
  }
  merged = rank == 3;
  if (merged) {
    q = splitHeads(n, q, n.intAttr("q_num_heads", 0));
    k = splitHeads(n, k, n.intAttr("kv_num_heads", 0));
    v = splitHeads(n, v, n.intAttr("kv_num_heads", 0));
  }
  if (n.has(4) && n.has(5)) {
    if (Value past = n.in(4))
      pastKeys = Emitter::rankOf(past) == 4 ? Emitter::shapeOf(past)[2] : 0;
    k = b.concat({n.in(4), k}, 2);
    v = b.concat({n.in(5), v}, 2);
  }
  if (n.failed() || !q || !k || !v)
    return false;
  n.out(1, k);
  n.out(2, v);
  queryHeads = Emitter::shapeOf(q)[1];
  keyHeads = Emitter::shapeOf(k)[1];
  queries = Emitter::shapeOf(q)[2];
  keys = Emitter::shapeOf(k)[2];
  if (keyHeads < 1 || queryHeads % keyHeads) {
    n.fail("query heads are no multiple of key/value heads");
    return false;
  }
  double width = static_cast<double>(Emitter::shapeOf(q)[3]);
  options.scale = n.floatAttr("scale", 1 / std::sqrt(width));
  options.softcap = n.floatAttr("softcap", 0);
  options.causal = n.intAttr("is_causal", 0);
  options.emptyRowsZero = true;
  return true;
}

/// The mask operand with four dimensions and as many columns as there are keys.
Value AttentionImporter::givenMask() {
  Value mask = n.optional(3);
  if (!mask)
    return {};
  Shape shape(Emitter::shapeOf(mask));
  if (shape.size() > 4 || shape.empty())
    return n.fail("the mask has rank " + llvm::Twine(shape.size()));
  shape.insert(shape.begin(), 4 - shape.size(), 1);
  mask = b.reshape(mask, shape);
  if (shape[3] < keys)
    mask =
        b.pad(mask, {0, 0, 0, 0}, {0, 0, 0, keys - shape[3]}, PadMode::constant,
              Emitter::typeOf(mask) == DType::Bool ? b.like(mask, 0)
                                                   : b.like(mask, -INFINITY));
  if (!mask || Emitter::typeOf(mask) == DType::Bool)
    return mask;
  return b.cast(mask, Emitter::typeOf(q));
}

/// Where positions allow attention: causality, windows, lengths of the keys.
/// Null when everywhere. With `causal` the operation means that query i sees
/// keys up to i + keys - queries.
Value AttentionImporter::allowedPlaces() {
  int64_t left = n.intAttr("left_window_size", -1),
          right = n.intAttr("right_window_size", -1);
  bool causalAsIs = options.causal && !n.has(6) && pastKeys == keys - queries;
  Value allowed;
  auto require = [&](Value condition) {
    allowed = allowed ? b.binary(BinaryKind::logical_and, allowed, condition)
                      : condition;
  };
  Value column = b.iota(DType::I64, {1, 1, 1, keys}, 3);
  // A query's place among the keys.
  Value place = b.iota(DType::I64, {1, 1, queries, 1}, 2);
  if (n.has(6)) {
    Value lengths = n.in(6);
    if (!lengths)
      return {};
    Value length = b.reshape(b.cast(lengths, DType::I64),
                             {Emitter::numElementsOf(lengths), 1, 1, 1});
    require(b.compare(CompareKind::lt, column, length));
    place = b.add(b.add(place, length), static_cast<double>(-queries));
  } else {
    place = b.add(place, static_cast<double>(pastKeys));
  }
  if (options.causal && !causalAsIs)
    require(b.compare(CompareKind::le, column, place));
  options.causal = causalAsIs;
  if (left >= 0)
    require(b.compare(CompareKind::ge, column,
                      b.add(place, -static_cast<double>(left))));
  if (right >= 0)
    require(b.compare(CompareKind::le, column,
                      b.add(place, static_cast<double>(right))));
  return allowed;
}

Value AttentionImporter::combine(Value mask, Value allowed) {
  if (!mask || !allowed)
    return mask ? mask : allowed;
  if (Emitter::typeOf(mask) == DType::Bool)
    return b.binary(BinaryKind::logical_and, mask, allowed);
  return b.select(allowed, mask, b.like(mask, -INFINITY));
}

/// The output qk_matmul_output, computed a second time beside the operation.
Value AttentionImporter::scores(Value mask) {
  int64_t mode = n.intAttr("qk_matmul_output_mode", 0);
  DType type = Emitter::typeOf(q);
  Value wideKeys = k;
  if (keyHeads != queryHeads) {
    Shape s(Emitter::shapeOf(k));
    wideKeys = b.broadcast(b.reshape(k, {s[0], s[1], 1, s[2], s[3]}),
                           {s[0], s[1], queryHeads / keyHeads, s[2], s[3]});
    wideKeys = b.reshape(wideKeys, {s[0], queryHeads, s[2], s[3]});
  }
  double root = std::sqrt(options.scale);
  Value x = matmul(b, b.mul(q, root),
                   b.transpose(b.mul(wideKeys, root), {0, 1, 3, 2}));
  if (options.softcap != 0)
    x = b.mul(b.unary(UnaryKind::tanh, b.mul(x, 1 / options.softcap)),
              options.softcap);
  if (mode < 2 || !x)
    return x;
  if (options.causal) {
    Value column = b.iota(DType::I64, {1, 1, 1, keys}, 3);
    Value place = b.add(b.iota(DType::I64, {1, 1, queries, 1}, 2),
                        static_cast<double>(keys - queries));
    mask = combine(mask, b.compare(CompareKind::le, column, place));
  }
  if (mask && Emitter::typeOf(mask) == DType::Bool)
    mask = b.select(mask, b.like(x, 0), b.like(x, -INFINITY));
  if (mask)
    x = b.add(x, mask);
  if (mode == 2)
    return x;
  Value wide = b.cast(x, n.typeAttr("softmax_precision", type));
  Value y = b.cast(b.softmax(wide, 3, false), type);
  if (!mask)
    return y;
  Value most = b.reduce(ReduceOpKind::max, mask, {3}, true);
  Value isEmpty = b.compare(CompareKind::eq, most, b.like(most, -INFINITY));
  return b.select(isEmpty, b.like(y, 0), y);
}

void AttentionImporter::run() {
  if (!readOperands())
    return;
  Value given = givenMask();
  Value allowed = allowedPlaces();
  if (n.failed())
    return;
  Value mask = combine(given, allowed);
  if (n.wants(3))
    n.out(3, scores(mask));
  Value y = b.attention(q, k, v, mask, options);
  n.out(0, merged ? mergeHeads(b, y) : y);
}

static void importAttention(Node &n) { AttentionImporter(n).run(); }

static const OpEntry entries[] = {
    {"Attention", importAttention},
};

void ax::import::addAttention(OpTable &table) { table.add(entries); }
