//===- ContribGroupQuery.cpp - GroupQueryAttention ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../CacheWindow.h"
#include "../CarriedValues.h"
#include "../Heads.h"
#include "../OpTable.h"

#include <cmath>

using namespace ax;
using namespace ax::import;

namespace {

/// Keys and values of all steps lie in tensors of one length; what sequence b
/// has of them is `seqlens_k[b] + 1`, the new ones last. Where all are new (a
/// prompt) they lie at the front, and shorter sequences are padded behind.
class GroupQuery {
public:
  explicit GroupQuery(Node &n) : n(n), b(n.b) {}
  void run();

private:
  bool checkAttributes();
  bool readOperands();
  bool readLengths();
  bool readPast();
  void rotateBoth();
  void normalizeBoth();
  /// The past, [batch, heads, length, width], and the new ones behind what of
  /// it there is.
  Value append(int past, Value fresh);
  Value visible();
  bool isWindow() const { return n.intAttr("sliding_window_cache", 0); }
  bool checkWindow();
  Value withBias(Value seen);
  bool hasSink() { return n.has(11) || n.intAttr("smooth_softmax", 0) == 1; }
  Value addSink(Value mask);

  Node &n;
  Emitter &b;
  int64_t heads = n.intAttr("num_heads", 0),
          keyHeads = n.intAttr("kv_num_heads", 0);
  Value q, k, v;
  int64_t batch = 0, length = 0, total = 0, past = 0, room = 0;
  bool isPrompt = false;
  /// How many keys a sequence had before, [batch or 1, 1], and has now, [batch,
  /// 1], i64.
  Value before, after;
};

} // namespace

/// What other kinds of caches and of attention ask for.
bool GroupQuery::checkAttributes() {
  struct Only {
    llvm::StringLiteral name;
    int64_t value;
  };
  for (Only only : {Only{"qk_output", 0}, Only{"causal", 1}})
    if (int64_t value = n.intAttr(only.name, only.value); value != only.value) {
      n.unsupported("attribute '" + only.name + "' is " + llvm::Twine(value));
      return false;
    }
  if (n.intAttr("local_window_size", -1) == 0) {
    n.fail("attribute 'local_window_size' is 0");
    return false;
  }
  for (llvm::StringRef name : {"k_quant_type", "v_quant_type"})
    if (n.stringAttr(name, "NONE") != "NONE") {
      n.unsupported("attribute '" + name + "' is " + n.stringAttr(name, ""));
      return false;
    }
  struct Other {
    int input;
    llvm::StringLiteral name;
  };
  for (Other other :
       {Other{12, "k_scale"}, Other{13, "v_scale"}, Other{16, "query_seqlens"}})
    if (n.has(other.input)) {
      n.unsupported("input '" + other.name + "' is not supported");
      return false;
    }
  if (n.has(14) != n.has(15)) {
    n.fail("'q_norm_weight' and 'k_norm_weight' go together");
    return false;
  }
  return !isWindow() || checkWindow();
}

bool GroupQuery::checkWindow() {
  int64_t window = n.intAttr("local_window_size", -1);
  Value cache = n.optional(3);
  int64_t rows =
      cache && Emitter::rankOf(cache) == 4 ? Emitter::shapeOf(cache)[2] : 0;
  if (window < 1 || rows < window) {
    n.fail("'past_key' with room for " + llvm::Twine(rows) +
           " keys cannot hold a window of " + llvm::Twine(window));
    return false;
  }
  if (n.has(10)) {
    n.unsupported("input 'attention_bias' with a 'sliding_window_cache'");
    return false;
  }
  return true;
}

bool GroupQuery::readOperands() {
  q = n.in(0);
  k = n.optional(1);
  v = n.optional(2);
  if (n.failed())
    return false;
  if (heads < 1 || keyHeads < 1 || heads % keyHeads) {
    n.fail(llvm::Twine(heads) + " heads are no multiple of " +
           llvm::Twine(keyHeads) + " heads of keys");
    return false;
  }
  if (bool(k) != bool(v) || Emitter::rankOf(q) != 3 ||
      (k && (Emitter::rankOf(k) != 3 || Emitter::rankOf(v) != 3))) {
    n.fail("'query', or 'query', 'key' and 'value' must have three dimensions");
    return false;
  }
  if (!k) {
    int64_t width = Emitter::shapeOf(q)[2], all = heads + 2 * keyHeads;
    if (width % all) {
      n.fail("'query' of width " + llvm::Twine(width) + " is no multiple of " +
             llvm::Twine(all) + " heads");
      return false;
    }
    Value packed = q;
    auto part = [&](int64_t first, int64_t count) {
      return b.sliceDim(packed, 2, first * (width / all),
                        count * (width / all));
    };
    q = part(0, heads);
    k = part(heads, keyHeads);
    v = part(heads + keyHeads, keyHeads);
  }
  q = splitHeads(n, q, heads);
  k = splitHeads(n, k, keyHeads);
  v = splitHeads(n, v, keyHeads);
  if (!q || !k || !v)
    return false;
  batch = Emitter::shapeOf(q)[0];
  length = Emitter::shapeOf(q)[2];
  if (Emitter::shapeOf(k)[2] != length || Emitter::shapeOf(v)[2] != length) {
    n.fail("'query', 'key' and 'value' are not of one length");
    return false;
  }
  return true;
}

bool GroupQuery::readPast() {
  if (n.has(3) != n.has(4)) {
    n.fail("'past_key' and 'past_value' go together");
    return false;
  }
  for (int i : {3, 4}) {
    if (!n.has(i))
      continue;
    Value given = n.in(i);
    if (!given)
      return false;
    Shape shape(Emitter::shapeOf(given));
    Shape expected(Emitter::shapeOf(i == 3 ? k : v));
    if (shape.size() == 4)
      past = expected[2] = shape[2];
    if (shape != expected) {
      n.fail("'past_key' or 'past_value' of [" + shapeToString(shape) +
             "] is not [batch, heads of keys, length, width], here [" +
             shapeToString(expected) + "]");
      return false;
    }
  }
  return true;
}

bool GroupQuery::readLengths() {
  Value ends = n.in(5);
  std::optional<int64_t> known = n.knownInt(6, "total_sequence_length");
  if (!ends || !known)
    return false;
  total = *known;
  room = std::max(total, past);
  isPrompt = total == length;
  if (total < length) {
    n.fail("total_sequence_length is " + llvm::Twine(total) + " for " +
           llvm::Twine(length) + " new keys");
    return false;
  }
  if (Emitter::numElementsOf(ends) != batch) {
    n.fail("'seqlens_k' of [" + shapeToString(Emitter::shapeOf(ends)) +
           "] for " + llvm::Twine(batch) + " sequences");
    return false;
  }
  if (!isPrompt && length > 1 && batch > 1) {
    n.unsupported("several sequences have more than one new key each behind "
                  "those of the past");
    return false;
  }
  after = b.add(b.reshape(b.cast(ends, DType::I64), {batch, 1}), 1);
  before = isPrompt ? b.splat(DType::I64, {1, 1}, 0)
                    : b.add(after, static_cast<double>(-length));
  return true;
}

/// Each head of queries and keys by itself, as in Qwen3.
void GroupQuery::normalizeBoth() {
  double epsilon = n.floatAttr("qk_norm_epsilon", 1e-6);
  struct One {
    Value &heads;
    int weight;
    llvm::StringLiteral name;
  };
  for (One one : {One{q, 14, "q_norm"}, One{k, 15, "k_norm"}}) {
    Value weight = n.optional(one.weight);
    if (!weight)
      return;
    if (Emitter::shapeOf(weight) != Emitter::shapeOf(one.heads).take_back()) {
      n.fail("'" + one.name + "_weight' of [" +
             shapeToString(Emitter::shapeOf(weight)) + "] for heads of width " +
             llvm::Twine(Emitter::shapeOf(one.heads).back()));
      return;
    }
    one.heads = b.rmsNorm(one.heads, weight, {}, 3,
                          n.floatAttr((one.name + "_epsilon").str(), epsilon));
  }
}

void GroupQuery::rotateBoth() {
  if (!n.intAttr("do_rotary", 0))
    return;
  Value places = n.optional(9);
  if (!places)
    places = b.add(b.iota(DType::I64, {1, length}, 1), before);
  if (!places)
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(places);
  if (shape.size() != 2 || shape[1] != length ||
      (shape[0] != batch && shape[0] != 1)) {
    n.fail("'position_ids' of [" + shapeToString(shape) + "] for [" +
           llvm::Twine(batch) + ", " + llvm::Twine(length) + "] positions");
    return;
  }
  // Of a prompt's the first alone counts; the others follow it.
  if (n.has(9) && isPrompt && length > 0)
    places = b.add(b.iota(DType::I64, {1, length}, 1),
                   b.slice(places, {0, 0}, {1, 1}));
  auto [cosine, sine] = readAngles(n, 7, 8, places, Emitter::shapeOf(q)[3]);
  bool interleaved = n.intAttr("rotary_interleaved", 0);
  q = rotate(b, q, cosine, sine, interleaved);
  k = rotate(b, k, cosine, sine, interleaved);
}

Value GroupQuery::append(int input, Value fresh) {
  if (!fresh)
    return {};
  auto padded = [&](Value x) {
    int64_t more = room - Emitter::shapeOf(x)[2];
    return more == 0 ? x
                     : b.pad(x, {0, 0, 0, 0}, {0, 0, more, 0},
                             PadMode::constant, b.like(x, 0));
  };
  if (isPrompt)
    return padded(fresh);
  Value old = n.has(input) ? padded(n.in(input)) : b.like(fresh, 0);
  // Where a place is among the new ones.
  Value place = b.sub(b.iota(DType::I64, {1, 1, room, 1}, 2),
                      b.reshape(before, {batch, 1, 1, 1}));
  if (length > 1) {
    Value index = b.min(b.max(place, b.like(place, 0)),
                        b.like(place, static_cast<double>(length - 1)));
    fresh = b.gather(fresh, b.reshape(index, {room}), 2);
  }
  Value isOld = b.compare(CompareKind::lt, place, b.like(place, 0)),
        isNew = b.compare(CompareKind::lt, place,
                          b.like(place, static_cast<double>(length)));
  Value behind = b.select(isNew, fresh, b.like(fresh, 0));
  if (behind && behind.getDefiningOp<SelectOp>())
    behind.getDefiningOp()->setAttr(kUnseenElse,
                                    b.getOpBuilder().getUnitAttr());
  return b.select(isOld, old, behind);
}

/// Which keys a query sees, [batch or 1, 1, length, room]; null where what
/// `causal` means says it, of these keys alone.
Value GroupQuery::visible() {
  int64_t window = n.intAttr("local_window_size", -1);
  if (isPrompt && room == length && window < 0 && !hasSink())
    return {};
  Value place = b.add(b.iota(DType::I64, {1, 1, length, 1}, 2),
                      b.reshape(before, {isPrompt ? 1 : batch, 1, 1, 1}));
  Value key = b.iota(DType::I64, {1, 1, 1, room}, 3);
  Value seen = b.compare(CompareKind::le, key, place);
  if (window < 0)
    return seen;
  Value first = b.add(place, static_cast<double>(-window));
  return b.binary(BinaryKind::logical_and, seen,
                  b.compare(CompareKind::gt, key, first));
}

Value GroupQuery::withBias(Value seen) {
  Value bias = n.optional(10);
  if (!bias)
    return seen;
  ArrayRef<int64_t> s = Emitter::shapeOf(bias);
  if (s.size() != 4 || (s[0] != 1 && s[0] != batch) ||
      (s[1] != 1 && s[1] != heads) || s[2] != length || s[3] != total)
    return n.fail("'attention_bias' of [" + shapeToString(s) + "] is not [" +
                  llvm::Twine(batch) + " or 1, " + llvm::Twine(heads) +
                  " or 1, " + llvm::Twine(length) + ", " + llvm::Twine(total) +
                  "]");
  if (room > total)
    bias = b.pad(bias, {0, 0, 0, 0}, {0, 0, 0, room - total}, PadMode::constant,
                 b.like(bias, 0));
  return seen ? b.select(seen, bias, b.like(bias, -INFINITY)) : bias;
}

/// Appends a key of zeros, whose value is zeros and whose score is the head's
/// sink, or 0: it takes its share of what is given to keys. Returns the mask
/// with a column for it.
Value GroupQuery::addSink(Value mask) {
  if (!mask)
    return {};
  DType type = Emitter::typeOf(q);
  if (Emitter::typeOf(mask) == DType::Bool)
    mask = b.select(mask, b.scalar(type, 0), b.scalar(type, -INFINITY));
  Value sink = b.scalar(type, 0);
  if (Value given = n.optional(11)) {
    if (Emitter::shapeOf(given) != ArrayRef<int64_t>({heads}))
      return n.fail("'head_sink' of [" +
                    shapeToString(Emitter::shapeOf(given)) + "] for " +
                    llvm::Twine(heads) + " heads");
    sink = b.reshape(given, {1, heads, 1, 1});
  }
  if (!mask || !sink)
    return {};
  Shape all(Emitter::shapeOf(mask));
  if (n.has(11))
    all[1] = heads;
  mask = b.broadcast(mask, all);
  all[3] = 1;
  mask = b.concat({mask, b.broadcast(sink, all)}, 3);
  auto withZeros = [&](Value x) {
    return b.pad(x, {0, 0, 0, 0}, {0, 0, 1, 0}, PadMode::constant,
                 b.like(x, 0));
  };
  k = withZeros(k);
  v = withZeros(v);
  return mask;
}

void GroupQuery::run() {
  if (!checkAttributes() || !readOperands() || !readPast() || !readLengths())
    return;
  normalizeBoth();
  rotateBoth();
  if (n.failed())
    return;
  CacheWindow window{past, n.intAttr("local_window_size", -1), before, after};
  if (isWindow()) {
    k = b.concat({n.in(3), k}, 2);
    v = b.concat({n.in(4), v}, 2);
    n.out(1, window.slide(b, k));
    n.out(2, window.slide(b, v));
  } else {
    k = append(3, k);
    v = append(4, v);
    n.out(1, k);
    n.out(2, v);
  }
  if (!q || !k || !v)
    return;
  AttentionOptions options;
  options.scale = n.floatAttr("scale", 0);
  if (options.scale == 0)
    options.scale = 1 / std::sqrt(static_cast<double>(Emitter::shapeOf(q)[3]));
  options.softcap = n.floatAttr("softcap", 0);
  Value seen = isWindow() ? window.visible(b, length) : visible();
  options.causal = !seen;
  Value mask = withBias(seen);
  if (hasSink())
    mask = addSink(mask);
  if (n.failed())
    return;
  n.out(0, mergeHeads(b, b.attention(q, k, v, mask, options)));
}

static const OpEntry entries[] = {
    {"GroupQueryAttention",
     [](Node &n) { GroupQuery(n).run(); },
     1,
     {"query:T=floats key?:T value?:T past_key?:T past_value?:T "
      "seqlens_k:int32 total_sequence_length:int32 cos_cache?:T sin_cache?:T "
      "position_ids?:int64 attention_bias?:T head_sink?:T k_scale?:float "
      "v_scale?:float q_norm_weight?:T k_norm_weight?:T query_seqlens?:int32",
      "output:T present_key?:T present_value?:T output_qk?:T",
      "num_heads!:int kv_num_heads!:int scale:float softcap:float "
      "do_rotary:int rotary_interleaved:int local_window_size:int causal:int "
      "smooth_softmax:int qk_output:int qk_norm_epsilon:float "
      "q_norm_epsilon:float k_norm_epsilon:float "
      "sliding_window_cache:int kv_cache_bit_width:int k_quant_type:string "
      "v_quant_type:string"}},
};

void ax::import::addContribGroupQuery(OpTable &table) {
  table.add(entries, contribDomain);
}
