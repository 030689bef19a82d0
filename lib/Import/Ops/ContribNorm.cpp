//===- ContribNorm.cpp - Norms of sums ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../OpTable.h"

using namespace ax;
using namespace ax::import;

/// onnxruntime's epsilon of norms that are fused with what is before them.
static constexpr float fusedEpsilon = 1e-12f;

/// Whether `x` is a vector of the last dimension of `like`; absent ones are. If
/// not, says so.
static bool isVector(Node &n, Value x, Value like, llvm::StringRef name) {
  if (!like || !x || Emitter::shapeOf(x) == Emitter::shapeOf(like).take_back())
    return !n.failed();
  n.fail("'" + name + "' of [" + shapeToString(Emitter::shapeOf(x)) +
         "] is no vector of the last dimension of [" +
         shapeToString(Emitter::shapeOf(like)) + "]");
  return false;
}

/// Whether `skip` is as `x` or lacks all but its last two dimensions, or has
/// them as 1.
static bool isSkip(Node &n, Value skip, Value x) {
  ArrayRef<int64_t> shape = Emitter::shapeOf(skip), of = Emitter::shapeOf(x);
  bool isOfRows =
      shape.size() >= 2 && shape.size() <= of.size() &&
      shape.take_back(2) == of.take_back(2) &&
      llvm::all_of(shape.drop_back(2), [](int64_t size) { return size == 1; });
  if (isOfRows || shape == of)
    return true;
  n.fail("'skip' of [" + shapeToString(shape) +
         "] does not go with 'input' "
         "of [" +
         shapeToString(of) + "]");
  return false;
}

/// norm(input + skip + bias); the sum is output 3. Outputs 1 and 2, which only
/// training in onnxruntime reads, are not made there either.
template <bool centre>
static void importSkipNorm(Node &n) {
  Value x = n.in(0), skip = n.in(1), scale = n.in(2);
  Value beta = centre ? n.optional(3) : Value();
  Value bias = n.optional(centre ? 4 : 3);
  if (n.failed() || !isSkip(n, skip, x) || !isVector(n, scale, x, "gamma") ||
      !isVector(n, beta, x, "beta") || !isVector(n, bias, x, "bias"))
    return;
  Value sum = n.b.add(x, skip);
  if (bias)
    sum = n.b.add(sum, bias);
  n.out(3, sum);
  double epsilon = n.floatAttr("epsilon", fusedEpsilon);
  int64_t axis = Emitter::rankOf(x) - 1;
  n.out(0, centre ? n.b.layerNorm(sum, scale, beta, axis, epsilon)
                  : n.b.rmsNorm(sum, scale, {}, axis, epsilon));
}

/// The RMS norm of each so many numbers as there are scales, times what a gate
/// lets through; all of it in f32.
static void importGatedNorm(Node &n) {
  Value x = n.in(0), scale = n.in(1), gate = n.in(2);
  if (n.failed())
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x), one = Emitter::shapeOf(scale);
  if (shape.empty() || one.size() != 1 || one[0] < 1 || shape.back() % one[0] ||
      Emitter::shapeOf(gate) != shape) {
    n.fail("'X' of [" + shapeToString(shape) + "], 'scale' of [" +
           shapeToString(one) + "] and 'gate' of [" +
           shapeToString(Emitter::shapeOf(gate)) + "] do not fit");
    return;
  }
  Shape groups(shape);
  groups.back() /= one[0];
  groups.push_back(one[0]);
  Value y = n.b.rmsNorm(n.b.reshape(n.b.wide(x), groups), n.b.wide(scale), {},
                        Emitter::rankOf(x), n.floatAttr("epsilon", 1e-6f));
  bool isSigmoid = n.stringAttr("activation", "silu") == "sigmoid";
  Value open = n.b.unary(isSigmoid ? UnaryKind::sigmoid : UnaryKind::silu,
                         n.b.wide(gate));
  n.out(n.b.cast(n.b.mul(n.b.reshape(y, shape), open), Emitter::typeOf(x)));
}

/// X + Y gate, one number a row.
static void importGatedAdd(Node &n) {
  Value x = n.in(0), y = n.in(1), gate = n.in(2);
  if (n.failed())
    return;
  if (n.has(3))
    return (void)n.unsupported("input 'gate_weight' is not supported");
  Shape rows(Emitter::shapeOf(x));
  if (!rows.empty())
    rows.back() = 1;
  if (rows.empty() || Emitter::shapeOf(y) != Emitter::shapeOf(x) ||
      Emitter::shapeOf(gate) != ArrayRef<int64_t>(rows)) {
    n.fail("'X' of [" + shapeToString(Emitter::shapeOf(x)) + "], 'Y' of [" +
           shapeToString(Emitter::shapeOf(y)) + "] and 'gate' of [" +
           shapeToString(Emitter::shapeOf(gate)) + "] do not fit");
    return;
  }
  n.out(n.b.add(x, n.b.mul(y, gate)));
}

/// The rows of a table that [batch, length] of indices choose.
static Value embed(Node &n, int table, int indices, Value ids) {
  Value rows = n.in(table), chosen = n.in(indices);
  if (!rows || !chosen || !ids)
    return {};
  ArrayRef<int64_t> shape = Emitter::shapeOf(chosen),
                    all = Emitter::shapeOf(ids);
  bool fits = shape.size() == 2 && shape[1] == all[1] &&
              (shape[0] == all[0] || shape[0] == 1);
  if (!fits || Emitter::rankOf(rows) != 2)
    return n.fail("inputs " + llvm::Twine(table) + " and " +
                  llvm::Twine(indices) +
                  " are no table and [batch, length] of "
                  "its rows");
  return n.b.gather(rows, chosen, 0);
}

static void importEmbedLayerNorm(Node &n) {
  Value ids = n.in(0), scale = n.in(5), bias = n.in(6), mask = n.optional(7);
  Value places = n.in(3);
  if (n.failed())
    return;
  if (Emitter::rankOf(ids) != 2 || Emitter::rankOf(places) != 2) {
    n.fail("input_ids and position_embedding must have two dimensions");
    return;
  }
  if (n.has(1) != n.has(4)) {
    n.fail("segment_ids and segment_embedding go together");
    return;
  }
  Shape shape(Emitter::shapeOf(ids));
  int64_t length = shape[1];
  Value sum = embed(n, 2, 0, ids);
  if (n.has(8)) {
    sum = n.b.add(sum, embed(n, 3, 8, ids));
  } else {
    if (length > Emitter::shapeOf(places)[0]) {
      n.fail("position_embedding has " +
             llvm::Twine(Emitter::shapeOf(places)[0]) + " rows for " +
             llvm::Twine(length) + " positions");
      return;
    }
    sum = n.b.add(sum, n.b.sliceDim(places, 0, 0, length));
  }
  if (n.has(1))
    sum = n.b.add(sum, embed(n, 4, 1, ids));
  if (!isVector(n, scale, sum, "gamma") || !isVector(n, bias, sum, "beta"))
    return;
  n.out(2, sum);
  n.out(0, n.b.layerNorm(sum, scale, bias, 2,
                         n.floatAttr("epsilon", fusedEpsilon)));
  if (!n.wants(1))
    return;
  // How many words a sequence has.
  if (!mask)
    return n.out(1, n.b.splat(DType::I32, {shape[0]}, 0));
  Value isWord = n.b.compare(CompareKind::eq, mask, n.b.like(mask, 1));
  n.out(1, n.b.reduce(ReduceOpKind::sum, n.b.cast(isWord, DType::I32), {1},
                      /*keepDims=*/false));
}

static const OpEntry entries[] = {
    {"EmbedLayerNormalization",
     importEmbedLayerNorm,
     1,
     {"input_ids:int32 segment_ids?:int32 word_embedding:T=floats "
      "position_embedding:T segment_embedding?:T gamma:T beta:T mask?:int32 "
      "position_ids?:int32",
      "output:T mask_index?:int32 embedding_sum?:T",
      "epsilon:float mask_index_type:int"}},
    {"GatedAdd",
     importGatedAdd,
     1,
     {"X:T=float|float16|bfloat16 Y:T gate:T gate_weight?:T", "output:T"}},
    {"GatedRMSNorm",
     importGatedNorm,
     1,
     {"X:T=float|float16|bfloat16 scale:T gate:T", "Y:T",
      "activation:string epsilon:float"}},
    {"SkipLayerNormalization",
     importSkipNorm<true>,
     1,
     {"input:T=floats skip:T gamma:T beta?:T bias?:T",
      "output:T mean?:float inv_std_var?:float input_skip_bias_sum?:T",
      "epsilon:float"}},
    {"SkipSimplifiedLayerNormalization",
     importSkipNorm<false>,
     1,
     {"input:T=floats skip:T gamma:T bias?:T",
      "output:T mean?:float inv_std_var?:float input_skip_bias_sum?:T",
      "epsilon:float"}},
};

void ax::import::addContribNorm(OpTable &table) {
  table.add(entries, contribDomain);
}
