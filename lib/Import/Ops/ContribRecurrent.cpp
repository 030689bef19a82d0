//===- ContribRecurrent.cpp - Recurrent operators, of com.microsoft -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../OpTable.h"
#include "../Quantization.h"
#include "../Recurrence.h"

#include <numeric>

using namespace ax;
using namespace ax::import;

/// A scale or zero point of a weight: one number for each direction, or one for
/// each of its columns. Null after a failure.
static Value parameterOf(Node &n, int input, int64_t direction, Value weight) {
  Value all = n.in(input);
  if (!all)
    return {};
  int64_t directions = Emitter::shapeOf(n.in(1))[0],
          columns = Emitter::shapeOf(weight).back();
  ArrayRef<int64_t> shape = Emitter::shapeOf(all);
  if (shape != ArrayRef({directions}) &&
      shape != ArrayRef({directions, columns}))
    return n.fail("a scale or zero point of [" + shapeToString(shape) +
                  "] is neither one number a direction nor one a column");
  return ofDirection(n, all, direction);
}

/// `x`, all steps of a sequence, 0 behind the end of the longest: what is there
/// has no part in the range that is quantised.
static Value withoutTail(Node &n, Value x) {
  Value lengths = n.optional(4);
  if (!lengths || n.failed())
    return x;
  int64_t steps = Emitter::shapeOf(x)[0];
  std::vector<int64_t> numbers(steps);
  std::iota(numbers.begin(), numbers.end(), 0);
  Value longest = n.b.reduce(ReduceOpKind::max, n.b.cast(lengths, DType::I64),
                             {0}, /*keepDims=*/false);
  Value isInside = n.b.compare(
      CompareKind::lt,
      n.b.constant(HostTensor::fromValues<int64_t>({steps, 1, 1}, numbers)),
      longest);
  return n.b.select(isInside, x, n.b.like(x, 0));
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
    auto [left, scaleX] =
        quantizeDynamically(n, input == 1 ? withoutTail(n, x) : x);
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
