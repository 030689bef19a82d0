//===- ContribRecurrent.cpp - Recurrent operators, of com.microsoft -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../OpTable.h"
#include "../Quantization.h"
#include "../Recurrence.h"

using namespace ax;
using namespace ax::import;

/// A scale or zero point of a weight: one number for each direction, or one for
/// each of its columns. Null after a failure.
static Value parameterOf(Node &n, int input, int64_t direction, Value weight) {
  Value parameter = ofDirection(n, n.in(input), direction);
  if (!parameter)
    return {};
  int64_t count = Emitter::numElementsOf(parameter),
          columns = Emitter::shapeOf(weight).back();
  if (count == 1)
    return n.b.reshape(parameter, {});
  if (count != columns || Emitter::rankOf(parameter) != 1)
    return n.fail("a scale or zero point of [" +
                  shapeToString(Emitter::shapeOf(n.in(input))) +
                  "] is neither one number a direction nor one a column");
  return parameter;
}

/// Sequences, and states in each step, are quantised as they come, all of a
/// batch together.
static void importDynamicQuantizeLSTM(Node &n) {
  GateProducts products;
  products.areGatesLast = true;
  products.multiply = [&n](int input, int64_t direction, Value x,
                           Value weight) -> Value {
    constexpr int firstScale = 8;
    int at = firstScale + 2 * (input - 1);
    Value scale = parameterOf(n, at, direction, weight),
          zero = parameterOf(n, at + 1, direction, weight);
    auto [left, scaleX] = quantizeDynamically(n, x);
    if (!scale || !zero || !left)
      return {};
    Value right =
        n.b.sub(n.b.cast(weight, DType::I32), n.b.cast(zero, DType::I32));
    Value sum = n.b.dot(left, right, {{}, {}, {Emitter::rankOf(x) - 1}, {0}});
    return n.b.mul(n.b.cast(sum, DType::F32), n.b.mul(scaleX, scale));
  };
  importLSTM(n, products);
}

static const OpEntry entries[] = {
    {"DynamicQuantizeLSTM",
     importDynamicQuantizeLSTM,
     1,
     {"X:float W:T=bytes R:T B?:float sequence_lens?:int32 initial_h?:float "
      "initial_c?:float P?:float W_scale:float W_zero_point:T R_scale:float "
      "R_zero_point:T",
      "Y?:float Y_h?:float Y_c?:float",
      "direction:string hidden_size:int activations:strings "
      "activation_alpha:floats activation_beta:floats clip:float "
      "input_forget:int"}},
};

void ax::import::addContribRecurrent(OpTable &table) {
  table.add(entries, contribDomain);
}
