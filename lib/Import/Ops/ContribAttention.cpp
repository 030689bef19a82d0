//===- ContribAttention.cpp - Attention of com.microsoft ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention and QAttention, which have the weights of query, key and value in
// them, and MultiHeadAttention, which is given the three.
//
//===----------------------------------------------------------------------===//

#include "../Contractions.h"
#include "../Heads.h"
#include "../OpTable.h"
#include "../Quantization.h"

#include <cmath>

using namespace ax;
using namespace ax::import;

namespace {

/// What both have in common. Query, key and value have heads: [batch, heads,
/// length, width].
class Attention {
protected:
  explicit Attention(Node &n) : n(n), b(n.b) {}

  /// attention(q, k, v), heads merged.
  Value run(Value q, Value k, Value v);
  /// The integers of input `i` say which keys count.
  void addMask(int i, llvm::StringRef name);
  /// Input `i` is added to the scores.
  void addBias(int i);

  /// Slice of the last dimension.
  Value part(Value x, int64_t start, int64_t size) {
    return x ? b.sliceDim(x, Emitter::rankOf(x) - 1, start, size) : Value();
  }

  Node &n;
  Emitter &b;
  int64_t heads = n.intAttr("num_heads", 0);
  /// Of the batch, queries, new keys and all keys.
  int64_t batch = 0, queries = 0, newKeys = 0, keys = 0;
  DType type = DType::F32;

private:
  Value readMask(int i, llvm::StringRef name);
  Value mask;
};

} // namespace

/// What is hidden as a mask that is added, [batch or 1, 1, queries or 1, keys];
/// null when nothing is.
Value Attention::readMask(int i, llvm::StringRef name) {
  Value given = n.in(i);
  if (!given)
    return {};
  ArrayRef<int64_t> s = Emitter::shapeOf(given);
  int64_t rank = s.size();
  Value counts;
  if (rank == 1 && (s[0] == batch || s[0] == 2 * batch)) {
    // Where sequences end and, behind that, where they start.
    Value column = b.iota(DType::I32, {1, keys}, 1);
    auto places = [&](int64_t first) {
      return b.reshape(b.sliceDim(given, 0, first, batch), {batch, 1});
    };
    counts = b.compare(CompareKind::lt, column, places(0));
    if (s[0] == 2 * batch)
      counts = b.binary(BinaryKind::logical_and, counts,
                        b.compare(CompareKind::ge, column, places(batch)));
    counts = b.reshape(counts, {batch, 1, 1, keys});
  } else if (rank == 2 && s[1] == 1 && (s[0] == batch || s[0] == 1) &&
             keys != 1) {
    // The same for all keys.
    return {};
  } else if (rank == 2 && s[0] == batch && s[1] == keys) {
    counts = b.reshape(b.compare(CompareKind::gt, given, b.like(given, 0)),
                       {batch, 1, 1, keys});
  } else if (rank == 3 && s[0] == batch && s[1] == queries && s[2] == keys) {
    counts = b.reshape(b.compare(CompareKind::gt, given, b.like(given, 0)),
                       {batch, 1, queries, keys});
  } else {
    return n.unsupported("'" + name + "' of [" + shapeToString(s) + "] for " +
                         llvm::Twine(batch) + " sequences of " +
                         llvm::Twine(queries) + " queries and " +
                         llvm::Twine(keys) + " keys");
  }
  // A finite number: where all is hidden, it is as if nothing were.
  double hidden = n.floatAttr("mask_filter_value", -10000);
  return b.select(counts, b.scalar(type, 0), b.scalar(type, hidden));
}

void Attention::addMask(int i, llvm::StringRef name) {
  if (n.has(i))
    mask = readMask(i, name);
}

void Attention::addBias(int i) {
  Value bias = n.optional(i);
  if (!bias)
    return;
  ArrayRef<int64_t> s = Emitter::shapeOf(bias);
  if (s.size() != 4 || (s[0] != 1 && s[0] != batch) ||
      (s[1] != 1 && s[1] != heads) || s[2] != queries || s[3] != keys) {
    n.fail("'attention_bias' of [" + shapeToString(s) + "] is not [" +
           llvm::Twine(batch) + " or 1, " + llvm::Twine(heads) + " or 1, " +
           llvm::Twine(queries) + ", " + llvm::Twine(keys) + "]");
    return;
  }
  mask = mask ? b.add(bias, mask) : bias;
}

Value Attention::run(Value q, Value k, Value v) {
  if (!q || !k || !v || n.failed())
    return {};
  AttentionOptions options;
  options.scale = n.floatAttr("scale", 0);
  if (options.scale == 0)
    options.scale = 1 / std::sqrt(static_cast<double>(Emitter::shapeOf(q)[3]));
  // One query, the newest, sees all keys.
  options.causal = n.intAttr("unidirectional", 0) && queries > 1;
  if (options.causal && newKeys != queries)
    return n.unsupported("'unidirectional' with " + llvm::Twine(queries) +
                         " queries and " + llvm::Twine(newKeys) + " keys");
  return mergeHeads(b, b.attention(q, k, v, mask, options));
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {
class PackedAttention : Attention {
public:
  explicit PackedAttention(Node &n) : Attention(n) {}
  void run();
  void runQuantised();

private:
  bool readSizes();
  /// Attends by query, key and value side by side; the rest are places of
  /// inputs.
  void attend(Value all, int mask, int past, int scores);
  Value x, w, bias;
  /// Of query and key, and of value.
  int64_t hidden = 0, valueHidden = 0;
};
} // namespace

bool PackedAttention::readSizes() {
  x = n.in(0);
  w = n.in(1);
  bias = n.optional(2);
  if (n.failed())
    return false;
  if (Emitter::rankOf(x) != 3 || Emitter::rankOf(w) != 2) {
    n.fail("'input' must have three dimensions and 'weights' two");
    return false;
  }
  int64_t columns = Emitter::shapeOf(w)[1];
  std::vector<int64_t> sizes =
      n.intsAttr("qkv_hidden_sizes", std::vector<int64_t>(3, columns / 3));
  if (sizes.size() != 3 || sizes[0] != sizes[1] ||
      sizes[0] + sizes[1] + sizes[2] != columns) {
    n.fail("'weights' of " + llvm::Twine(columns) +
           " columns are not those of query, key and value");
    return false;
  }
  hidden = sizes[0];
  valueHidden = sizes[2];
  for (llvm::StringRef name : {"do_rotary", "past_present_share_buffer"})
    if (n.intAttr(name, 0)) {
      n.unsupported("attribute '" + name + "' is not supported");
      return false;
    }
  return true;
}

void PackedAttention::run() {
  if (!readSizes())
    return;
  Value all = matmul(b, x, w);
  attend(bias ? b.add(all, bias) : all, 3, 4, 5);
}

void PackedAttention::runQuantised() {
  if (!readSizes())
    return;
  Value sum = matmul(b, centred(n, 0, 6, rowsOf), centred(n, 1, 7, columnsOf));
  // It has no scores that are added: no node has so many inputs.
  attend(asNumbers(n, sum, n.in(3), 4, 2), 5, 8, 9);
}

void PackedAttention::attend(Value all, int mask, int past, int scores) {
  Value q = splitHeads(n, part(all, 0, hidden), heads),
        k = splitHeads(n, part(all, hidden, hidden), heads),
        v = splitHeads(n, part(all, 2 * hidden, valueHidden), heads);
  if (!q || !k || !v)
    return;
  type = Emitter::typeOf(q);
  batch = Emitter::shapeOf(x)[0];
  queries = newKeys = Emitter::shapeOf(x)[1];
  if (Value state = n.optional(past)) {
    // [2, batch, heads, length, width]: of keys and of values
    Shape s(Emitter::shapeOf(state));
    if (s.size() != 5 || s[0] != 2) {
      n.fail("'past' of [" + shapeToString(s) +
             "] is not [2, batch, heads, length, width]");
      return;
    }
    Shape half(ArrayRef<int64_t>(s).drop_front());
    k = b.concat({b.reshape(b.sliceDim(state, 0, 0, 1), half), k}, 2);
    v = b.concat({b.reshape(b.sliceDim(state, 0, 1, 1), half), v}, 2);
    if (!k || !v)
      return;
  }
  keys = Emitter::shapeOf(k)[2];
  if (n.wants(1)) {
    auto asHalf = [&](Value state) {
      Shape one(Emitter::shapeOf(state));
      one.insert(one.begin(), 1);
      return b.reshape(state, one);
    };
    if (valueHidden != hidden)
      return (void)n.unsupported("'present' of keys and values of two widths");
    n.out(1, b.concat({asHalf(k), asHalf(v)}, 0));
  }
  addMask(mask, "mask_index");
  addBias(scores);
  n.out(0, Attention::run(q, k, v));
}

//===----------------------------------------------------------------------===//
// MultiHeadAttention
//===----------------------------------------------------------------------===//

namespace {
class MultiHead : Attention {
public:
  explicit MultiHead(Node &n) : Attention(n) {}
  void run();

private:
  /// Slice of the bias for query, key or value.
  Value withBias(Value x, int64_t start);
};
} // namespace

Value MultiHead::withBias(Value x, int64_t start) {
  Value bias = n.optional(3);
  if (!bias || !x)
    return x;
  int64_t width = Emitter::shapeOf(x)[2];
  if (Emitter::rankOf(bias) != 1 ||
      Emitter::numElementsOf(bias) < start + width)
    return n.fail("'bias' of [" + shapeToString(Emitter::shapeOf(bias)) +
                  "] is not that of query, key and value");
  return b.add(x, part(bias, start, width));
}

void MultiHead::run() {
  Value q = n.in(0), k = n.optional(1), v = n.optional(2);
  if (n.failed())
    return;
  for (int i : {8, 9})
    if (n.has(i))
      return (void)n.unsupported("input " + llvm::Twine(i) +
                                 " is not supported: past and present are "
                                 "tensors of their own");
  if (!k || !v || Emitter::rankOf(q) != 3)
    return (void)n.unsupported("query, key and value in one tensor");
  int64_t rank = Emitter::rankOf(k);
  if ((rank != 3 && rank != 4) || Emitter::rankOf(v) != rank) {
    n.fail("'key' and 'value' must both have three dimensions, or both four");
    return;
  }
  type = Emitter::typeOf(q);
  batch = Emitter::shapeOf(q)[0];
  queries = Emitter::shapeOf(q)[1];
  int64_t hidden = Emitter::shapeOf(q)[2];
  q = splitHeads(n, withBias(q, 0), heads);
  // With four dimensions they have heads already.
  if (rank == 3) {
    k = splitHeads(n, withBias(k, hidden), heads);
    v = splitHeads(n, withBias(v, 2 * hidden), heads);
  }
  if (!q || !k || !v)
    return;
  newKeys = Emitter::shapeOf(k)[2];
  if (n.has(6) != n.has(7)) {
    n.fail("'past_key' and 'past_value' go together");
    return;
  }
  if (n.has(6)) {
    k = b.concat({n.in(6), k}, 2);
    v = b.concat({n.in(7), v}, 2);
    if (!k || !v)
      return;
  }
  keys = Emitter::shapeOf(k)[2];
  n.out(1, k);
  n.out(2, v);
  addMask(4, "key_padding_mask");
  addBias(5);
  n.out(0, Attention::run(q, k, v));
}

static const OpEntry entries[] = {
    {"Attention",
     [](Node &n) { PackedAttention(n).run(); },
     1,
     {"input:T=floats weights:T bias?:T mask_index?:int32 past?:T "
      "attention_bias?:T past_sequence_length?:int32",
      "output:T present?:T",
      "num_heads!:int unidirectional:int qkv_hidden_sizes:ints "
      "mask_filter_value:float scale:float do_rotary:int "
      "rotary_embedding_dim:int past_present_share_buffer:int"}},
    {"MultiHeadAttention",
     [](Node &n) { MultiHead(n).run(); },
     1,
     {"query:T=floats key?:T value?:T bias?:T key_padding_mask?:int32 "
      "attention_bias?:T past_key?:T past_value?:T "
      "past_sequence_length?:int32 cache_indirection?:int32",
      "output:T present_key?:T present_value?:T qk?:float",
      "num_heads!:int unidirectional:int mask_filter_value:float "
      "scale:float"}},
    {"QAttention",
     [](Node &n) { PackedAttention(n).runQuantised(); },
     1,
     {"input:TX=bytes weight:TW=bytes bias:S=float|float16 input_scale:S "
      "weight_scale:S mask_index?:int32 input_zero_point?:TX "
      "weight_zero_point?:TW past?:S",
      "output:S present?:S",
      "num_heads!:int unidirectional:int mask_filter_value:float scale:float "
      "do_rotary:int past_present_share_buffer:int"}},
};

void ax::import::addContribAttention(OpTable &table) {
  table.add(entries, contribDomain);
}
