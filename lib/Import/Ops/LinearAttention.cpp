//===- LinearAttention.cpp - Linear attention -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A head's state S [width of keys, width of values] is a memory that each
// position changes: S = decay S + key^T written, and reads: query S. What is
// written is the value, or by the delta rules rate (value - key decay S), what
// the memory lacks of it (Yang et al., "Gated Delta Networks", 2024).
//
// Positions are taken in chunks: within one, all is products of matrices, so
// that a prompt has an operation for a chunk, not for a position. As what is
// written depends on what was written before it in the chunk,
//
//   (I + A) written = rate (value - key decay S),
//   A[i, j] = rate[i] key[i] . key[j] decay of the positions from j to i, j <
//   i,
//
// where S is the state before the chunk. The inverse of I + A is the same
// whatever S is: those of all chunks are made at once.
//
//===----------------------------------------------------------------------===//

#include "../Heads.h"
#include "../OpTable.h"

#include <cmath>
#include <limits>

using namespace ax;
using namespace ax::import;

/// Positions of a chunk, a power of two. The inverse costs its square for each
/// position, the state is read and written once for it.
static constexpr int64_t maxChunk = 32;

namespace {

class LinearAttention {
public:
  explicit LinearAttention(Node &n) : n(n), b(n.b) {}
  void run();

private:
  bool readOperands();
  bool readGates();
  Value repeatHeads(Value x);
  Value inChunks(Value x);
  /// A chunk [batch, heads, ...] of all of them [batch, heads, chunks, ...].
  Value chunkOf(Value x, int64_t i);
  Value stack(ArrayRef<Value> parts);
  Value isPair(llvm::function_ref<bool(int64_t, int64_t)> fn);
  Value where(llvm::function_ref<bool(int64_t, int64_t)> fn, Value x,
              double otherwise);
  /// [batch, heads, chunks, chunk, n], the same for each of a group.
  Value ofGroups(Value x);
  void spreadDecay();
  Value solution();
  std::pair<Value, Value> passChunks();

  Node &n;
  Emitter &b;
  bool isDelta = false;
  int64_t batch = 0, length = 0, heads = 0, queryHeads = 0, group = 1;
  int64_t keyWidth = 0, valueWidth = 0, chunk = 1, chunks = 1;
  /// [batch, heads, positions, width], then in chunks, and in the type in which
  /// sums are; heads are those of values, `q` has `group` of each.
  Value q, k, v, decay, rates;
  Value state;
  DType type{}, stateType{};
  /// What is left at a position of the state before the chunk, of that after
  /// the chunk, and of what was written at another one.
  Value fromStart, ofChunk, between;
};

} // namespace

/// Whether position j is not behind i.
static bool isPresent(int64_t i, int64_t j) { return i >= j; }

/// Of each head, as many in a row as make those of values.
Value LinearAttention::repeatHeads(Value x) {
  if (!x)
    return {};
  ArrayRef<int64_t> s = Emitter::shapeOf(x);
  if (s[1] == heads)
    return x;
  Value one = b.reshape(x, {s[0], s[1], 1, s[2], s[3]});
  return b.reshape(b.broadcast(one, {s[0], s[1], heads / s[1], s[2], s[3]}),
                   {s[0], heads, s[2], s[3]});
}

bool LinearAttention::readOperands() {
  q = n.in(0);
  k = n.in(1);
  v = n.in(2);
  state = n.optional(3);
  if (n.failed())
    return false;
  Shape ofQ(Emitter::shapeOf(q)), ofK(Emitter::shapeOf(k)),
      ofV(Emitter::shapeOf(v));
  auto goes = [&](const Shape &shape) {
    return shape.size() == 3 && shape[0] == ofQ[0] && shape[1] == ofQ[1];
  };
  if (ofQ.size() != 3 || !goes(ofK) || !goes(ofV)) {
    n.fail("'query' of [" + shapeToString(ofQ) + "], 'key' of [" +
           shapeToString(ofK) + "] and 'value' of [" + shapeToString(ofV) +
           "] are not [batch, length, heads * width] of one length");
    return false;
  }
  batch = ofQ[0];
  length = ofQ[1];
  if (length < 1) {
    n.unsupported("a sequence of no steps is not supported");
    return false;
  }
  type = Emitter::typeOf(q);
  stateType = state ? Emitter::typeOf(state) : type;
  queryHeads = n.intAttr("q_num_heads", 0);
  heads = n.intAttr("kv_num_heads", 0);
  q = splitHeads(n, q, queryHeads);
  v = splitHeads(n, v, heads);
  if (!q || !v)
    return false;
  keyWidth = Emitter::shapeOf(q)[3];
  valueWidth = Emitter::shapeOf(v)[3];
  int64_t keyHeads = keyWidth && ofK[2] % keyWidth == 0 ? ofK[2] / keyWidth : 0;
  if (keyHeads < 1 || heads % keyHeads ||
      (queryHeads % heads && heads % queryHeads)) {
    n.fail(llvm::Twine(queryHeads) + " heads of 'query' of [" +
           shapeToString(ofQ) + "] and 'key' of [" + shapeToString(ofK) +
           "] do not go with " + llvm::Twine(heads) + " heads of 'value'");
    return false;
  }
  Shape ofState{batch, heads, keyWidth, valueWidth};
  if (state && Emitter::shapeOf(state) != ArrayRef<int64_t>(ofState)) {
    n.fail("'past_state' of [" + shapeToString(Emitter::shapeOf(state)) +
           "] is not [" + shapeToString(ofState) + "]");
    return false;
  }
  b.noteInitialState(state);
  k = repeatHeads(splitHeads(n, k, keyHeads));
  if (queryHeads < heads)
    q = repeatHeads(q);
  else
    group = queryHeads / heads;
  return !n.failed();
}

bool LinearAttention::readGates() {
  std::string rule = n.stringAttr("update_rule", "gated_delta");
  bool hasDecay = rule == "gated" || rule == "gated_delta";
  isDelta = rule == "delta" || rule == "gated_delta";
  // One number for each head, or as many as `other`: [batch, heads, length, n].
  auto read = [&](int input, llvm::StringRef name, int64_t other) -> Value {
    Value x = n.optional(input);
    if (!x)
      return n.fail("'" + name + "' is missing, which the rule " + rule +
                    " takes");
    Shape one{batch, length, heads}, more{batch, length, other};
    ArrayRef<int64_t> shape = Emitter::shapeOf(x);
    if (shape != ArrayRef<int64_t>(one) && shape != ArrayRef<int64_t>(more))
      return n.fail("'" + name + "' of [" + shapeToString(shape) +
                    "] is neither [" + shapeToString(one) + "] nor [" +
                    shapeToString(more) + "]");
    return splitHeads(n, x, std::min(shape[2], heads));
  };
  if (hasDecay)
    decay = read(4, "decay", heads * keyWidth);
  if (isDelta)
    rates = read(5, "beta", 1);
  return !n.failed();
}

/// [batch, heads, length, width] -> [batch, heads, chunks, chunk, width], zeros
/// behind the end: these write nothing, and nothing decays there.
Value LinearAttention::inChunks(Value x) {
  x = b.wide(x);
  if (!x)
    return {};
  Shape s(Emitter::shapeOf(x));
  if (int64_t missing = chunks * chunk - length)
    x = b.pad(x, {0, 0, 0, 0}, {0, 0, missing, 0}, PadMode::constant,
              b.like(x, 0));
  return b.reshape(x, {s[0], s[1], chunks, chunk, s[3]});
}

Value LinearAttention::chunkOf(Value x, int64_t i) {
  if (!x)
    return {};
  Shape shape(Emitter::shapeOf(x));
  shape.erase(shape.begin() + 2);
  return b.reshape(b.sliceDim(x, 2, i, 1), shape);
}

/// The inverse of chunkOf.
Value LinearAttention::stack(ArrayRef<Value> parts) {
  std::vector<Value> rows;
  for (Value part : parts) {
    if (!part)
      return {};
    Shape shape(Emitter::shapeOf(part));
    shape.insert(shape.begin() + 2, 1);
    rows.push_back(b.reshape(part, shape));
  }
  return b.concat(rows, 2);
}

Value LinearAttention::ofGroups(Value x) {
  if (!x)
    return {};
  Shape shape(Emitter::shapeOf(x));
  shape.insert(shape.begin() + 3, 1);
  return b.reshape(x, shape);
}

/// Of which pairs of a chunk's positions something holds: [chunk, chunk].
Value LinearAttention::isPair(llvm::function_ref<bool(int64_t, int64_t)> fn) {
  HostTensor mask(DType::Bool, {chunk, chunk});
  for (int64_t i = 0; i < chunk; ++i)
    for (int64_t j = 0; j < chunk; ++j)
      mask.setInt(i * chunk + j, fn(i, j));
  return b.constant(std::move(mask));
}

Value LinearAttention::where(llvm::function_ref<bool(int64_t, int64_t)> fn,
                             Value x, double otherwise) {
  return b.select(isPair(fn), x, b.like(x, otherwise));
}

/// Products of decays as sums of what is in log-space: differences of sums from
/// the chunk's start would lose what is small behind what is large.
void LinearAttention::spreadDecay() {
  if (chunk > 1) {
    auto isBehind = [](int64_t i, int64_t j) { return i > j; };
    Value sums = b.cumulative(ReduceOpKind::sum, where(isBehind, decay, 0), 3,
                              /*exclusive=*/false, /*reverse=*/false);
    between = b.unary(
        UnaryKind::exp,
        where(isPresent, sums, -std::numeric_limits<double>::infinity()));
    decay = b.cumulative(ReduceOpKind::sum, decay, 3, /*exclusive=*/false,
                         /*reverse=*/false);
  }
  fromStart = b.unary(UnaryKind::exp, decay);
  if (!fromStart)
    return;
  int64_t width = Emitter::shapeOf(fromStart)[4];
  ofChunk = b.reshape(b.sliceDim(fromStart, 3, chunk - 1, 1),
                      {batch, heads, chunks, width, 1});
}

/// (I + A)^-1 rates, by blocks of the diagonal, of 1, 2, 4, ...: the inverse of
/// [[X, 0], [B, Y]] is [[X', 0], [-Y' B X', Y']]. No powers of A, whose numbers
/// may be large where the inverse's are not.
Value LinearAttention::solution() {
  if (chunk == 1)
    return rates;
  Value a = b.mul(b.dot(k, k, {{0, 1, 2}, {0, 1, 2}, {4}, {4}}), rates);
  if (decay)
    a = b.mul(a, between);
  Value inverse = b.cast(isPair([](int64_t i, int64_t j) { return i == j; }),
                         Emitter::typeOf(k));
  for (int64_t size = 1; size < chunk; size *= 2) {
    Value below = where(
        [&](int64_t i, int64_t j) {
          return i / size == j / size + 1 && j / size % 2 == 0;
        },
        a, 0);
    if (size > 1) {
      DotDims matrices{{0, 1, 2}, {0, 1, 2}, {4}, {3}};
      below = b.dot(b.dot(inverse, below, matrices), inverse, matrices);
    }
    inverse = b.sub(inverse, below);
  }
  Value perColumn = b.transpose(rates, {0, 1, 2, 4, 3});
  return b.mul(inverse, perColumn);
}

/// Takes the state through all chunks: what they write to it [batch, heads,
/// chunks, chunk, width], and what they read of it as it was before them, of
/// each of a group.
std::pair<Value, Value> LinearAttention::passChunks() {
  Value reading = k, asking = q, writing = k;
  if (decay) {
    reading = b.mul(k, fromStart);
    asking = b.mul(q, ofGroups(fromStart));
    if (chunk > 1)
      writing = b.mul(k, b.reshape(b.sliceDim(between, 3, chunk - 1, 1),
                                   {batch, heads, chunks, chunk, 1}));
  }
  Value solved = isDelta ? solution() : Value();
  std::vector<Value> written, read;
  for (int64_t i = 0; i < chunks && !n.failed(); ++i) {
    DotDims matrices{{0, 1}, {0, 1}, {3}, {2}};
    Value next = chunkOf(v, i), keys = chunkOf(writing, i);
    if (isDelta) {
      Value lacks = b.sub(next, b.dot(chunkOf(reading, i), state, matrices)),
            by = chunkOf(solved, i);
      next = chunk == 1 ? b.mul(by, lacks) : b.dot(by, lacks, matrices);
    }
    written.push_back(next);
    read.push_back(
        b.dot(chunkOf(asking, i), state, {{0, 1}, {0, 1}, {4}, {2}}));
    if (decay)
      state = b.mul(chunkOf(ofChunk, i), state);
    // A step's is made as it is added.
    Value change =
        chunk == 1 ? b.mul(b.reshape(keys, {batch, heads, keyWidth, 1}), next)
                   : b.dot(keys, next, {{0, 1}, {0, 1}, {2}, {2}});
    state = b.add(state, change);
  }
  return {isDelta ? stack(written) : v, stack(read)};
}

void LinearAttention::run() {
  if (int64_t window = n.intAttr("state_window", 0))
    return (void)n.unsupported("attribute 'state_window' is " +
                               llvm::Twine(window));
  if (!readOperands() || !readGates())
    return;
  // Decays of each element of a key are no matrix for pairs of positions.
  if (!decay || Emitter::shapeOf(decay)[3] == 1)
    while (chunk < length && chunk < maxChunk)
      chunk *= 2;
  chunks = (length + chunk - 1) / chunk;
  double scale = n.floatAttr("scale", 0);
  if (scale == 0)
    scale = 1 / std::sqrt(static_cast<double>(keyWidth));
  // [batch, heads, chunks, group, chunk, width]
  q = b.reshape(inChunks(q), {batch, heads, group, chunks, chunk, keyWidth});
  q = b.mul(b.transpose(q, {0, 1, 3, 2, 4, 5}), scale);
  k = inChunks(k);
  v = inChunks(v);
  decay = decay ? inChunks(decay) : decay;
  rates = rates ? inChunks(rates) : rates;
  state = state ? b.wide(state)
                : b.splat(Emitter::sumType(type),
                          {batch, heads, keyWidth, valueWidth}, 0);
  if (decay)
    spreadDecay();
  if (n.failed())
    return;
  auto [written, read] = passChunks();
  // What was read of the states, and of what the chunks wrote themselves.
  Value pairs = b.dot(q, k, {{0, 1, 2}, {0, 1, 2}, {5}, {4}});
  if (chunk > 1)
    pairs =
        decay ? b.mul(pairs, ofGroups(between)) : where(isPresent, pairs, 0);
  Value own = b.dot(pairs, written, {{0, 1, 2}, {0, 1, 2}, {5}, {3}});
  // [batch, heads, chunks, group, chunk, width] -> [batch, length, all]
  Value y = b.transpose(b.add(read, own), {0, 2, 4, 1, 3, 5});
  y = b.reshape(y, {batch, chunks * chunk, heads * group * valueWidth});
  n.out(0, b.cast(b.sliceDim(y, 1, 0, length), type));
  n.out(1, b.cast(state, stateType));
}

/// decay = scale softplus(a + bias), rate = sigmoid(b): the gates of the delta
/// rule, of each head.
static void importLinearAttentionGate(Node &n) {
  Emitter &b = n.b;
  Value x = n.in(0), bias = n.in(1), scale = n.in(2), rate = n.optional(3);
  if (n.failed())
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  if (shape.empty() || Emitter::shapeOf(bias) != shape.take_back() ||
      Emitter::shapeOf(scale) != shape.take_back()) {
    n.fail("'dt_bias' of [" + shapeToString(Emitter::shapeOf(bias)) +
           "] and 'decay_scale' of [" + shapeToString(Emitter::shapeOf(scale)) +
           "] are not one number for each head of 'a' of [" +
           shapeToString(shape) + "]");
    return;
  }
  if (!rate && n.wants(1)) {
    n.fail("'b' is missing, of which 'beta' is made");
    return;
  }
  if (rate && Emitter::shapeOf(rate) != shape) {
    n.fail("'b' of [" + shapeToString(Emitter::shapeOf(rate)) +
           "] is not of the shape of 'a', [" + shapeToString(shape) + "]");
    return;
  }
  Value wide = b.unary(UnaryKind::softplus, b.add(b.wide(x), bias));
  n.out(0, b.cast(b.mul(wide, scale), Emitter::typeOf(x)));
  if (rate)
    n.out(1, b.unary(UnaryKind::sigmoid, rate));
}

static void importLinearAttention(Node &n) { LinearAttention(n).run(); }

/// ONNX's own, the same but for several states.
static const OpEntry onnxEntries[] = {
    {"LinearAttention", importLinearAttention, 27},
};

static const OpEntry entries[] = {
    {"LinearAttention",
     importLinearAttention,
     1,
     {"query:T=float|float16|bfloat16 key:T value:T "
      "past_state?:S=float|float16|bfloat16 decay?:T beta?:T",
      "output:T present_state:S",
      "chunk_size:int kv_num_heads!:int q_num_heads!:int scale:float "
      "state_window:int update_rule:string"}},
    {"LinearAttentionGate",
     importLinearAttentionGate,
     1,
     {"a:T=float|float16|bfloat16 dt_bias:float decay_scale:float b?:T",
      "decay:T beta?:T"}},
};

void ax::import::addLinearAttention(OpTable &table) {
  table.add(onnxEntries);
  table.add(entries, contribDomain);
}
