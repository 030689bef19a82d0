//===- ContribExperts.cpp - Mixtures of experts ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A token's result is a weighted sum of what the k experts that its router
// prefers make of it. Their matrices are looked up, those of a few bits as
// bytes that are widened behind that, as if each token had its own: a token is
// a row times k matrices. How few of these are read or widened is the
// compiler's.
//
//===----------------------------------------------------------------------===//

#include "../Bits.h"
#include "../OpTable.h"

#include <cmath>

using namespace ax;
using namespace ax::import;

namespace {

/// A layer of all experts by the numbers of its inputs, [experts, rows,
/// columns]; 0: there is no such input.
struct ExpertLayer {
  llvm::StringLiteral name;
  int weights = 0, bias = 0, scales = 0, zeros = 0;
  int64_t rows = 0, columns = 0, bits = 0;
};

class Experts {
public:
  Experts(Node &n, bool isQuantised) : n(n), b(n.b), isQuantised(isQuantised) {}
  void run();

private:
  bool readOperands();
  bool checkLayers();
  bool checkInput(int input, llvm::StringRef what, ArrayRef<int64_t> shape);
  bool checkLayer(const ExpertLayer &layer);
  bool route();
  Value ofExpert(Value all) { return b.gather(all, expert, 0); }
  Value weightsOf(const ExpertLayer &layer);
  Value zerosOf(const ExpertLayer &layer);
  Value apply(const ExpertLayer &layer, Value x);
  Value activate(Value y, Value x);
  Value gated(Value gate, Value linear);
  Value mix();
  int64_t blocksOf(const ExpertLayer &layer) const {
    return block ? layer.columns / block : 1;
  }

  Node &n;
  Emitter &b;
  bool isQuantised;
  Value x, router;
  std::string activation = n.stringAttr("activation_type", "relu");
  int64_t fusion = n.intAttr("swiglu_fusion", 0), k = n.intAttr("k", 1),
          block = n.intAttr("block_size", 0);
  int64_t tokens = 0, experts = 0, width = 0, inner = 0;
  ExpertLayer first{"fc1"}, second{"fc2"}, third{"fc3"};
  /// [tokens, k]: which ones, and their parts.
  Value chosen, parts;
  /// The one of each row: [tokens k].
  Value expert;
};

} // namespace

bool Experts::readOperands() {
  Value given = n.in(0);
  router = n.in(1);
  Value w = n.in(2);
  if (n.failed())
    return false;
  for (llvm::StringRef name :
       {"use_sparse_mixer", "swiglu_limit_after_activation"})
    if (n.intAttr(name, 0)) {
      n.unsupported("attribute '" + name + "' is 1");
      return false;
    }
  if (n.intAttr("weights_prepacked", 0) == 1) {
    n.unsupported("attribute 'weights_prepacked' is 1");
    return false;
  }
  if (std::string type = n.stringAttr("quant_type", "int"); type != "int") {
    n.unsupported("attribute 'quant_type' is '" + type + "'");
    return false;
  }
  ArrayRef<int64_t> shape = Emitter::shapeOf(given);
  if ((shape.size() != 2 && shape.size() != 3) ||
      Emitter::rankOf(router) != 2 || Emitter::rankOf(w) != 3) {
    n.fail("'input' must have two or three dimensions, 'router_probs' two and "
           "'fc1_experts_weights' three");
    return false;
  }
  width = shape.back();
  tokens = Emitter::numElementsOf(given) / std::max<int64_t>(width, 1);
  x = b.reshape(given, {tokens, width});
  experts = Emitter::shapeOf(w)[0];
  if (Emitter::shapeOf(router) != ArrayRef<int64_t>({tokens, experts})) {
    n.fail("'router_probs' of [" + shapeToString(Emitter::shapeOf(router)) +
           "] for " + llvm::Twine(tokens) + " tokens and " +
           llvm::Twine(experts) + " experts");
    return false;
  }
  if (k < 1 || k > experts) {
    n.fail("attribute 'k' is " + llvm::Twine(k) + " of " +
           llvm::Twine(experts) + " experts");
    return false;
  }
  return checkLayers();
}

bool Experts::checkLayers() {
  bool isGated = activation == "swiglu", isFused = isGated && fusion != 0;
  int64_t rows = Emitter::shapeOf(n.in(2))[1];
  inner = isFused ? rows / 2 : rows;
  if (isFused && rows % 2) {
    n.fail("'fc1_experts_weights' has " + llvm::Twine(rows) +
           " rows, of which half are gates");
    return false;
  }
  int all = isQuantised ? 3 : 2;
  int64_t bits = n.intAttr("expert_weight_bits", 4);
  int number = 0;
  for (ExpertLayer *layer : {&first, &second, &third}) {
    layer->weights = 2 + number * all;
    layer->bias = layer->weights + all - 1;
    if (isQuantised) {
      layer->scales = layer->weights + 1;
      layer->zeros = 11 + number;
      layer->bits =
          n.intAttr((layer->name + "_expert_weight_bits").str(), bits);
    }
    ++number;
  }
  first.rows = rows;
  second.rows = first.columns = third.columns = width;
  third.rows = second.columns = inner;
  bool hasThird = isGated && !isFused;
  if (n.has(third.weights) != hasThird) {
    n.unsupported(hasThird ? "'swiglu' without 'fc3_experts_weights'"
                           : "input 'fc3_experts_weights' is for 'swiglu' that "
                             "is not fused");
    return false;
  }
  return checkLayer(first) && checkLayer(second) &&
         (!hasThird || checkLayer(third));
}

bool Experts::checkInput(int input, llvm::StringRef what,
                         ArrayRef<int64_t> shape) {
  Value given = n.in(input);
  if (!given)
    return false;
  if (Emitter::shapeOf(given) == shape)
    return true;
  n.fail("'" + what + "' of [" + shapeToString(Emitter::shapeOf(given)) +
         "] is not [" + shapeToString(shape) + "]");
  return false;
}

bool Experts::checkLayer(const ExpertLayer &layer) {
  auto named = [&](llvm::StringRef what) { return (layer.name + what).str(); };
  if (n.has(layer.bias) &&
      !checkInput(layer.bias, named("_experts_bias"), {experts, layer.rows}))
    return false;
  if (!isQuantised)
    return checkInput(layer.weights, named("_experts_weights"),
                      {experts, layer.rows, layer.columns});
  if (layer.bits != 2 && layer.bits != 4 && layer.bits != 8) {
    n.unsupported("weights of " + llvm::Twine(layer.bits) +
                  " bits, not 2, 4 or 8");
    return false;
  }
  if (block < 0 || (block && layer.columns % block) ||
      layer.columns * layer.bits % 8) {
    n.fail("attribute 'block_size' is " + llvm::Twine(block) + " for rows of " +
           llvm::Twine(layer.columns));
    return false;
  }
  auto bytesOf = [&](int64_t count) { return (count * layer.bits + 7) / 8; };
  Shape ofScales{experts, layer.rows}, ofZeros{experts, bytesOf(layer.rows)};
  if (block) {
    ofScales.push_back(blocksOf(layer));
    ofZeros = {experts, layer.rows, bytesOf(blocksOf(layer))};
  }
  return checkInput(layer.weights, named("_experts_weights"),
                    {experts, layer.rows, bytesOf(layer.columns)}) &&
         checkInput(layer.scales, named("_scales"), ofScales) &&
         (!n.has(layer.zeros) ||
          checkInput(layer.zeros, named("_zero_points"), ofZeros));
}

/// The router's k largest, and their shares of all, or of one another.
bool Experts::route() {
  constexpr int weights = 14;
  bool isGiven = isQuantised && n.has(weights);
  Value scores = b.softmax(b.wide(router), 1, /*log=*/false);
  std::tie(parts, chosen) = b.topK(scores, k, 1, /*smallest=*/false);
  if (isGiven) {
    if (!checkInput(weights, "router_weights", {tokens, experts}))
      return false;
    parts = b.gatherElements(b.wide(n.in(weights)), chosen, 1);
  }
  if (n.intAttr("normalize_routing_weights", 0) || (isQuantised && !isGiven))
    parts = b.div(parts, b.reduce(ReduceOpKind::sum, parts, {1}, true));
  return parts && chosen;
}

/// One for each row, or block of a row, as f32 with dimensions behind that are
/// 1: [.., blocks, 1].
Value Experts::zerosOf(const ExpertLayer &layer) {
  if (!n.has(layer.zeros))
    return b.scalar(DType::F32,
                    static_cast<double>(int64_t(1) << (layer.bits - 1)));
  // Of whole rows several lie in a byte.
  Value zeros = unpackBits(b, ofExpert(n.in(layer.zeros)), layer.bits,
                           block ? blocksOf(layer) : layer.rows);
  if (!zeros)
    return {};
  Shape shape(Emitter::shapeOf(zeros));
  shape.resize(shape.size() + (block ? 1 : 2), 1);
  return b.reshape(b.cast(zeros, DType::F32), shape);
}

/// [tokens k, rows, columns] of the input's type.
Value Experts::weightsOf(const ExpertLayer &layer) {
  Value given = ofExpert(n.in(layer.weights));
  if (!isQuantised || !given)
    return given;
  int64_t blocks = blocksOf(layer), columns = layer.columns / blocks;
  Value numbers = unpackBits(b, given, layer.bits, layer.columns);
  Value scales = ofExpert(n.in(layer.scales));
  if (!numbers || !scales)
    return {};
  Shape all(Emitter::shapeOf(numbers)), grid(all), ofScales(all);
  grid.back() = ofScales.back() = blocks;
  grid.push_back(columns);
  ofScales.push_back(1);
  Value y = b.sub(b.cast(b.reshape(numbers, grid), DType::F32), zerosOf(layer));
  y = b.mul(y, b.reshape(b.cast(scales, DType::F32), ofScales));
  return b.cast(b.reshape(y, all), Emitter::typeOf(x));
}

/// x [tokens k, columns] by the expert of each row.
Value Experts::apply(const ExpertLayer &layer, Value x) {
  Value w = weightsOf(layer);
  if (!w || !x)
    return {};
  // Without being told so, as onnxruntime does on processors.
  if (isQuantised && layer.bits == 8 && block)
    x = roundBlocks(b, x, block);
  Value y = b.dot(x, w, {{0}, {0}, {1}, {2}});
  return n.has(layer.bias) ? b.add(y, ofExpert(n.in(layer.bias))) : y;
}

/// gate sigmoid(alpha gate) (linear + beta), both clipped.
Value Experts::gated(Value gate, Value linear) {
  double alpha = n.floatAttr("activation_alpha", 1),
         beta = n.floatAttr("activation_beta", 0);
  if (n.hasAttribute("swiglu_limit")) {
    Value limit = b.like(gate, n.floatAttr("swiglu_limit", 0));
    gate = b.min(gate, limit);
    linear = b.max(b.min(linear, limit), b.unary(UnaryKind::neg, limit));
  }
  Value share = b.unary(UnaryKind::sigmoid, b.mul(gate, alpha));
  return b.mul(b.mul(gate, share), b.add(linear, beta));
}

/// `x`: what the first layer took.
Value Experts::activate(Value y, Value x) {
  if (!y || activation == "identity")
    return y;
  if (activation == "relu")
    return b.unary(UnaryKind::relu, y);
  if (activation == "gelu")
    return b.unary(UnaryKind::gelu_tanh, y);
  if (activation == "silu")
    return b.unary(UnaryKind::silu, y);
  if (fusion == 0)
    return gated(y, apply(third, x));
  // Gates and others by turns, or one behind the other.
  Shape split(Emitter::shapeOf(y)), half(split);
  half.back() = split.back() = inner;
  split.insert(split.end() - (fusion == 1 ? 0 : 1), 2);
  Value pairs = b.reshape(y, split);
  int64_t dim = static_cast<int64_t>(split.size()) - (fusion == 1 ? 1 : 2);
  auto part = [&](int64_t i) {
    return b.reshape(b.sliceDim(pairs, dim, i, 1), half);
  };
  return gated(part(0), part(1));
}

/// [tokens, width], f32 or wider.
Value Experts::mix() {
  expert = b.reshape(chosen, {tokens * k});
  Value rows =
      b.broadcast(b.reshape(x, {tokens, 1, width}), {tokens, k, width});
  rows = b.reshape(rows, {tokens * k, width});
  Value y = b.wide(apply(second, activate(apply(first, rows), rows)));
  if (!y)
    return {};
  y = b.mul(b.reshape(y, {tokens, k, width}), b.reshape(parts, {tokens, k, 1}));
  return b.reduce(ReduceOpKind::sum, y, {1}, /*keepDims=*/false);
}

void Experts::run() {
  if (!readOperands() || !route())
    return;
  Shape shape(Emitter::shapeOf(n.in(0)));
  if (Value y = mix())
    n.out(b.reshape(b.cast(y, Emitter::typeOf(x)), shape));
}

static const OpEntry entries[] = {
    {"MoE",
     [](Node &n) { Experts(n, /*isQuantised=*/false).run(); },
     1,
     {"input:T=float|float16|bfloat16 router_probs:T fc1_experts_weights:T "
      "fc1_experts_bias?:T fc2_experts_weights:T fc2_experts_bias?:T "
      "fc3_experts_weights?:T fc3_experts_bias?:T",
      "output:T",
      "activation_alpha:float activation_beta:float activation_type:string "
      "k:int normalize_routing_weights:int swiglu_fusion:int "
      "swiglu_limit:float swiglu_limit_after_activation:int "
      "use_sparse_mixer:int"}},
    {"QMoE",
     [](Node &n) { Experts(n, /*isQuantised=*/true).run(); },
     1,
     {"input:T=float|float16|bfloat16 router_probs:T "
      "fc1_experts_weights:W=uint8 fc1_scales?:S=float|float16|bfloat16 "
      "fc1_experts_bias?:T fc2_experts_weights:W fc2_scales?:S "
      "fc2_experts_bias?:T fc3_experts_weights?:W fc3_scales?:S "
      "fc3_experts_bias?:T fc1_zero_points?:W fc2_zero_points?:W "
      "fc3_zero_points?:W router_weights?:T",
      "output:T",
      "accuracy_level:int activation_alpha:float activation_beta:float "
      "activation_type:string block_size:int expert_weight_bits:int "
      "fc1_expert_weight_bits:int fc2_expert_weight_bits:int "
      "fc3_expert_weight_bits:int k:int normalize_routing_weights:int "
      "quant_type:string swiglu_fusion:int swiglu_limit:float "
      "swiglu_limit_after_activation:int use_sparse_mixer:int "
      "weights_prepacked:int"}},
};

void ax::import::addContribExperts(OpTable &table) {
  table.add(entries, contribDomain);
}
