//===- ContribDiffusion.cpp - Layers of diffusion models ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// onnxruntime's optimizer has channels last in them. Here they are where ONNX
// has them: how tensors lie in memory is chosen later.
//
//===----------------------------------------------------------------------===//

#include "../Contractions.h"
#include "../Norms.h"
#include "../OpTable.h"

using namespace ax;
using namespace ax::import;

/// [batch, .., channels] as [batch, channels, ..], or the other way round.
static Value moveChannels(Emitter &b, Value x, bool toFront) {
  if (!x)
    return {};
  int64_t rank = Emitter::rankOf(x);
  std::vector<int64_t> order{0};
  if (toFront)
    order.push_back(rank - 1);
  for (int64_t i = toFront ? 1 : 2; i < rank - (toFront ? 1 : 0); ++i)
    order.push_back(i);
  if (!toFront)
    order.push_back(1);
  return b.transpose(x, order);
}

static void importNhwcConv(Node &n) {
  Value x = n.in(0), w = n.in(1), bias = n.optional(2);
  if (n.failed())
    return;
  if (Emitter::rankOf(x) < 3 || Emitter::rankOf(w) < 3) {
    n.fail("X and W must have the same rank, at least 3");
    return;
  }
  Value y = importConvolution(n, moveChannels(n.b, x, /*toFront=*/true),
                              moveChannels(n.b, w, /*toFront=*/true), bias);
  n.out(moveChannels(n.b, y, /*toFront=*/false));
}

/// What is added to x before it is normalised; null, and a failure, where it
/// does not fit x, channels last or not.
static Value addSkip(Node &n, Value x, bool isLast) {
  Value skip = n.in(3), bias = n.optional(4);
  if (n.failed())
    return {};
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  size_t channels = isLast ? shape.size() - 1 : 1;
  // One for each channel of a sample, or for each channel.
  Shape ofSample(shape.size(), 1), ofChannel(shape.size(), 1);
  ofSample[0] = shape[0];
  ofSample[channels] = ofChannel[channels] = shape[channels];
  ArrayRef<int64_t> given = Emitter::shapeOf(skip);
  if (given == ArrayRef<int64_t>({shape[0], shape[channels]}))
    skip = n.b.reshape(skip, ofSample);
  else if (given != shape && given != ArrayRef<int64_t>(ofSample))
    return n.fail("'skip' of [" + shapeToString(given) +
                  "] does not go with 'X' of [" + shapeToString(shape) + "]");
  Value sum = n.b.add(x, skip);
  if (!bias)
    return sum;
  if (Emitter::shapeOf(bias) != ArrayRef<int64_t>(shape[channels]))
    return n.fail("'bias' of [" + shapeToString(Emitter::shapeOf(bias)) +
                  "] for " + llvm::Twine(shape[channels]) + " channels");
  return n.b.add(sum, n.b.reshape(bias, ofChannel));
}

template <bool skips>
static void importGroupNorm(Node &n) {
  Value x = n.in(0), scale = n.in(1), bias = n.in(2);
  if (n.failed())
    return;
  bool isLast = n.intAttr("channels_last", 1);
  if (Emitter::rankOf(x) < 3) {
    n.fail("'X' must have batch, channels and at least one more dimension");
    return;
  }
  if (skips) {
    x = addSkip(n, x, isLast);
    n.out(1, x);
  }
  Value y = isLast ? moveChannels(n.b, x, /*toFront=*/true) : x;
  if (!y)
    return;
  y = normalizeGroups(n, y, scale, bias, n.intAttr("groups", 1),
                      n.floatAttr("epsilon", 1e-5f));
  if (y && n.intAttr("activation", 0))
    y = n.b.unary(UnaryKind::silu, y);
  n.out(0, isLast ? moveChannels(n.b, y, /*toFront=*/false) : y);
}

/// Of x + bias, the first half of the last dimension times the GELU of the
/// second.
static void importBiasSplitGelu(Node &n) {
  Value x = n.in(0), bias = n.in(1);
  if (n.failed())
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  if (shape.empty() || shape.back() % 2 ||
      Emitter::shapeOf(bias) != shape.take_back()) {
    n.fail("'bias' of [" + shapeToString(Emitter::shapeOf(bias)) +
           "] and 'X' of [" + shapeToString(shape) +
           "] have no last dimension of two halves");
    return;
  }
  int64_t dim = Emitter::rankOf(x) - 1, half = shape.back() / 2;
  Value sum = n.b.add(x, bias);
  Value gate = n.b.unary(UnaryKind::gelu, n.b.sliceDim(sum, dim, half, half));
  n.out(n.b.mul(n.b.sliceDim(sum, dim, 0, half), gate));
}

static constexpr llvm::StringLiteral ofNorm =
    "activation!:int channels_last:int epsilon:float groups!:int";

static const OpEntry entries[] = {
    {"BiasSplitGelu", importBiasSplitGelu, 1, {"X:T=floats bias:T", "Y:T"}},
    {"GroupNorm",
     importGroupNorm<false>,
     1,
     {"X:T=floats gamma:M=floats beta:M", "Y:T", ofNorm}},
    {"NhwcConv",
     importNhwcConv,
     1,
     {"X:T=floats W:T B?:T", "Y:T",
      "auto_pad:string dilations:ints group:int kernel_shape:ints pads:ints "
      "strides:ints"}},
    {"SkipGroupNorm",
     importGroupNorm<true>,
     1,
     {"X:T=floats gamma:M=floats beta:M skip:T bias?:T", "Y:T S?:T", ofNorm}},
};

void ax::import::addContribDiffusion(OpTable &table) {
  table.add(entries, contribDomain);
}
