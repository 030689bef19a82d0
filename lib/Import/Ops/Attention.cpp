//===- Attention.cpp - Attention ------------------------------------------===//

#include "../Contractions.h"
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
  Value toHeads(Value x, int64_t heads);
  Value fullMask();

  Node &n;
  Emitter &b;
  Value q, k, v;
  bool merged = false; // heads were merged into the last dimension
  int64_t queryHeads = 0, keyHeads = 0;
  int64_t queries = 0, keys = 0, pastKeys = 0;
  AttentionOptions options;
};

} // namespace

/// [batch, length, heads * width] -> [batch, heads, length, width]
Value AttentionImporter::toHeads(Value x, int64_t heads) {
  if (!x)
    return {};
  ArrayRef<int64_t> s = Emitter::shapeOf(x);
  if (heads < 1 || s[2] % heads)
    return n.fail("hidden size " + llvm::Twine(s[2]) + " is no multiple of " +
                  llvm::Twine(heads) + " heads");
  return b.transpose(b.reshape(x, {s[0], s[1], heads, s[2] / heads}),
                     {0, 2, 1, 3});
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
    q = toHeads(q, n.intAttr("q_num_heads", 0));
    k = toHeads(k, n.intAttr("kv_num_heads", 0));
    v = toHeads(v, n.intAttr("kv_num_heads", 0));
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
  return true;
}

/// The mask operand with four dimensions and `keys` columns, causality and
/// lengths of keys put into it where the operation cannot say them.
Value AttentionImporter::fullMask() {
  Value mask = n.optional(3);
  if (mask) {
    Shape shape(Emitter::shapeOf(mask));
    if (shape.size() > 4 || shape.empty())
      return n.fail("the mask has rank " + llvm::Twine(shape.size()));
    shape.insert(shape.begin(), 4 - shape.size(), 1);
    mask = b.reshape(mask, shape);
    if (shape[3] < keys && shape[3] != 1) {
      Value never = Emitter::typeOf(mask) == DType::Bool
                        ? b.like(mask, 0)
                        : b.like(mask, -INFINITY);
      mask = b.pad(mask, {0, 0, 0, 0}, {0, 0, 0, keys - shape[3]},
                   PadMode::constant, never);
    }
  }
  Value allowed;
  Value column = b.iota(DType::I64, {1, 1, 1, keys}, 3);
  // Query i may see keys up to i + past: with `causal` the operation means
  // i + keys - queries.
  if (options.causal && (pastKeys != keys - queries || n.has(6))) {
    Value row = b.iota(DType::I64, {1, 1, queries, 1}, 2);
    row = b.add(row, static_cast<double>(pastKeys));
    allowed = b.compare(CompareKind::le, column, row);
    options.causal = false;
  }
  if (n.has(6)) {
    Value lengths = n.in(6);
    if (!lengths)
      return {};
    Value length = b.reshape(b.cast(lengths, DType::I64),
                             {Emitter::numElementsOf(lengths), 1, 1, 1});
    Value valid = b.compare(CompareKind::lt, column, length);
    allowed =
        allowed ? b.binary(BinaryKind::logical_and, allowed, valid) : valid;
  }
  if (!allowed)
    return mask;
  if (!mask)
    return allowed;
  if (Emitter::typeOf(mask) == DType::Bool)
    return b.binary(BinaryKind::logical_and, mask, allowed);
  return b.select(allowed, mask, b.like(mask, -INFINITY));
}

void AttentionImporter::run() {
  if (!readOperands())
    return;
  Value mask = fullMask();
  if (n.failed())
    return;
  if (mask && Emitter::typeOf(mask) != DType::Bool)
    mask = b.cast(mask, Emitter::typeOf(q));
  if (n.wants(3)) {
    n.unsupported("the output qk_matmul_output");
    return;
  }
  Value y = b.attention(q, k, v, mask, options);
  if (merged && y) {
    ArrayRef<int64_t> s = Emitter::shapeOf(y);
    y = b.reshape(b.transpose(y, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
  }
  n.out(0, y);
}

static void importAttention(Node &n) { AttentionImporter(n).run(); }

static const OpEntry entries[] = {
    {"Attention", importAttention},
};

OpTable ax::import::attentionOps() { return entries; }
