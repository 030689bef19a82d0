//===- CausalConv.cpp - Convolutions of what came before ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../OpTable.h"

using namespace ax;
using namespace ax::import;

/// Attributes that onnxruntime has on GPUs only, or not yet, and the values
/// with which they say nothing.
static constexpr std::pair<llvm::StringLiteral, int64_t> unsupportedUnless[] = {
    {"input_channel_offset", 0},
    {"input_channels", 0},
    {"ndim", 1},
    {"state_channels_last", -1},
    {"state_length", 0},
    {"state_update_capacity", 0},
    {"state_window", 0},
};

/// How far a filter reaches back, at most: products with it do not overflow.
static constexpr int64_t maxReach = int64_t(1) << 20;

/// Every channel's own filter, whose last tap lies on the present position.
/// What came before the first is `past_state`, what comes before the next is
/// `present_state`; both are as long as the filter reaches back.
static void importCausalConv(Node &n) {
  Emitter &b = n.b;
  Value x = n.in(0), weight = n.in(1), bias = n.optional(2),
        past = n.optional(3);
  if (n.failed())
    return;
  for (auto [name, plain] : unsupportedUnless)
    if (int64_t value = n.intAttr(name, plain); value != plain)
      return (void)n.unsupported("attribute '" + name + "' is " +
                                 llvm::Twine(value));
  bool isLast = n.intAttr("channels_last", 0);
  Shape shape(Emitter::shapeOf(x));
  ArrayRef<int64_t> taps = Emitter::shapeOf(weight);
  if (isLast ? shape.size() < 3 : shape.size() != 3) {
    n.fail("'input' of [" + shapeToString(shape) +
           "] is no batch of sequences of channels");
    return;
  }
  // [batch, length, channels...] or [batch, channels, length]
  int64_t length = shape[isLast ? 1 : 2];
  int64_t channels =
      isLast ? checkedNumElements(ArrayRef<int64_t>(shape).drop_front(2))
                   .value_or(0)
             : shape[1];
  if (length < 1)
    return (void)n.unsupported("a sequence of no steps is not supported");
  if (taps.size() != 3 || taps[0] != channels || taps[1] != 1 || taps[2] < 1) {
    n.fail("'weight' of [" + shapeToString(taps) + "] is not [" +
           llvm::Twine(channels) + ", 1, taps]");
    return;
  }
  if (bias && Emitter::shapeOf(bias) != ArrayRef<int64_t>(channels)) {
    n.fail("'bias' of [" + shapeToString(Emitter::shapeOf(bias)) +
           "] is not one number for each of " + llvm::Twine(channels) +
           " channels");
    return;
  }
  int64_t dilation = n.intAttr("dilation", 1);
  if (taps[2] > maxReach / dilation) {
    n.unsupported("a filter of " + llvm::Twine(taps[2]) + " taps, " +
                  llvm::Twine(dilation) + " apart");
    return;
  }
  int64_t reach = (taps[2] - 1) * dilation;
  Shape stateShape(shape);
  stateShape[isLast ? 1 : 2] = reach;
  if (past && Emitter::shapeOf(past) != ArrayRef<int64_t>(stateShape)) {
    n.fail("'past_state' of [" + shapeToString(Emitter::shapeOf(past)) +
           "] is not [" + shapeToString(stateShape) + "]");
    return;
  }
  b.noteInitialState(past);
  auto channelsFirst = [&](Value of, int64_t size) {
    if (!of || !isLast)
      return of;
    return b.transpose(b.reshape(of, {shape[0], size, channels}), {0, 2, 1});
  };
  auto asGiven = [&](Value of, const Shape &as) {
    return isLast ? b.reshape(b.transpose(of, {0, 2, 1}), as) : of;
  };
  Value now = channelsFirst(x, length), before = channelsFirst(past, reach);
  if (!before)
    before = b.splat(Emitter::typeOf(x), {shape[0], channels, reach}, 0);
  Value all = reach ? b.concat({before, now}, 2) : now;
  Value y;
  if (length == 1) {
    // A step's products are added up in one kernel, with what follows.
    Value met = b.sliceDim(all, 2, 0, taps[2], dilation);
    Value products =
        b.mul(b.wide(met), b.wide(b.reshape(weight, {channels, taps[2]})));
    y = b.cast(b.reduce(ReduceOpKind::sum, products, {2}, /*keepDims=*/true),
               Emitter::typeOf(x));
  } else {
    Window window;
    window.kernel = {taps[2]};
    window.strides = {1};
    window.dilations = {dilation};
    window.pads = {0, 0};
    y = b.conv(all, weight, window, channels);
  }
  if (bias)
    y = b.add(y, b.reshape(bias, {channels, 1}));
  if (n.stringAttr("activation", "none") != "none")
    y = b.unary(UnaryKind::silu, y);
  n.out(0, asGiven(y, shape));
  n.out(1, asGiven(b.sliceDim(all, 2, length, reach), stateShape));
}

/// ONNX's own, with fewer attributes.
static const OpEntry onnxEntries[] = {
    {"CausalConvWithState", importCausalConv, 27},
};

static const OpEntry entries[] = {
    {"CausalConvWithState",
     importCausalConv,
     1,
     {"input:T=float|float16|bfloat16 weight:T bias?:T past_state?:T",
      "output:T present_state:T state_update?:T",
      "activation:string channels_last:int dilation:int "
      "input_channel_offset:int input_channels:int ndim:int "
      "state_channels_last:int state_length:int state_update_capacity:int "
      "state_window:int"}},
};

void ax::import::addCausalConv(OpTable &table) {
  table.add(onnxEntries);
  table.add(entries, contribDomain);
}
