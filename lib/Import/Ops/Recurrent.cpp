//===- Recurrent.cpp - RNN, GRU, LSTM, unrolled ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Contractions.h"
#include "../OpTable.h"
#include "../Recurrence.h"

using namespace ax;
using namespace ax::import;

namespace {

/// What the three operators share: directions, steps, masks of short sequences.
class Recurrent {
public:
  Recurrent(Node &n, int64_t numGates, const GateProducts &products)
      : n(n), b(n.b), numGates(numGates), products(products) {}

  /// One step: gates' input part x W^T + biases and state -> new state. Set by
  /// each operator.
  using Step = llvm::function_ref<std::vector<Value>(
      int64_t direction, Value input, std::vector<Value> state)>;
  void run(int numStates, Step step);

  /// Slice `gate` of x [..., gates * hidden].
  Value gate(Value x, int64_t gate) {
    return b.sliceDim(x, Emitter::rankOf(x) - 1, gate * hidden, hidden);
  }
  /// x R^T of this direction, R's rows [first, first + count) gates.
  Value recur(int64_t direction, Value x, int64_t first, int64_t count);
  /// Recurrent bias of a direction, null when there is none.
  Value recurrentBias(int64_t direction, int64_t gate);
  /// Activation number `i` of a direction.
  Value activate(int64_t direction, int64_t i, Value x);
  Value clip(Value x);

  Node &n;
  Emitter &b;
  int64_t numGates, hidden = 0, numDirections = 1, batch = 0;
  std::vector<std::string> activations;
  /// Alpha and beta of those of them that are HardSigmoid.
  std::vector<std::pair<float, float>> hardSigmoids;

private:
  bool prepare();
  void takeParameters();
  Value perDirection(Value x, int64_t direction) {
    return ofDirection(n, x, direction);
  }
  /// x times gates [first, first + count) of weight W or R.
  Value multiply(int input, int64_t direction, Value x, int64_t first,
                 int64_t count);

  const GateProducts &products;
  bool reverseFirst = false, batchFirst = false;
  int64_t steps = 0;
  Value x;
};

} // namespace

Value ax::import::ofDirection(Node &n, Value value, int64_t direction) {
  if (!value)
    return {};
  Shape shape(Emitter::shapeOf(value));
  shape.erase(shape.begin());
  return n.b.reshape(n.b.sliceDim(value, 0, direction, 1), shape);
}

/// Products of floats, as the standard has them.
static GateProducts plainProducts(Node &n) {
  return {/*areGatesLast=*/false, [&n](int, int64_t, Value x, Value weight) {
            return n.b.dot(x, weight, {{}, {}, {Emitter::rankOf(x) - 1}, {1}});
          }};
}

Value Recurrent::multiply(int input, int64_t direction, Value x, int64_t first,
                          int64_t count) {
  Value part =
      b.sliceDim(perDirection(n.in(input), direction),
                 products.areGatesLast ? 1 : 0, first * hidden, count * hidden);
  return products.multiply(input, direction, x, part);
}

Value Recurrent::recur(int64_t direction, Value state, int64_t first,
                       int64_t count) {
  return multiply(2, direction, state, first, count);
}

Value Recurrent::recurrentBias(int64_t direction, int64_t gate) {
  if (!n.has(3))
    return {};
  return b.sliceDim(perDirection(n.in(3), direction), 0,
                    (numGates + gate) * hidden, hidden);
}

Value Recurrent::clip(Value value) {
  if (!n.hasAttribute("clip"))
    return value;
  double limit = n.floatAttr("clip", 0);
  return b.min(b.max(value, b.like(value, -limit)), b.like(value, limit));
}

Value Recurrent::activate(int64_t direction, int64_t i, Value value) {
  size_t perDirection = activations.size() / numDirections;
  const std::string &name = activations[direction * perDirection + i];
  value = clip(value);
  if (name == "sigmoid")
    return b.unary(UnaryKind::sigmoid, value);
  if (name == "tanh")
    return b.unary(UnaryKind::tanh, value);
  if (name == "relu")
    return b.unary(UnaryKind::relu, value);
  if (name == "hardsigmoid") {
    auto [alpha, beta] = hardSigmoids[direction * perDirection + i];
    value = b.add(b.mul(value, alpha), b.like(value, beta));
    return b.min(b.max(value, b.like(value, 0)), b.like(value, 1));
  }
  return n.unsupported("activation " + name);
}

/// Activations that have parameters take the next ones of each list.
void Recurrent::takeParameters() {
  auto valuesOf = [&](llvm::StringRef name) {
    const onnx::AttributeProto *found = n.attribute(name);
    return found ? llvm::ArrayRef<float>(found->floats().data(),
                                         found->floats_size())
                 : llvm::ArrayRef<float>();
  };
  llvm::ArrayRef<float> alphas = valuesOf("activation_alpha"),
                        betas = valuesOf("activation_beta");
  auto next = [](llvm::ArrayRef<float> &values, float otherwise) {
    if (values.empty())
      return otherwise;
    float value = values.front();
    values = values.drop_front();
    return value;
  };
  hardSigmoids.resize(activations.size());
  for (auto [name, parameters] : llvm::zip_equal(activations, hardSigmoids))
    if (name == "hardsigmoid")
      parameters = {next(alphas, 0.2f), next(betas, 0.5f)};
  if (!alphas.empty() || !betas.empty())
    n.unsupported("parameters of activations other than HardSigmoid");
}

bool Recurrent::prepare() {
  x = n.in(0);
  Value w = n.in(1), r = n.in(2);
  if (n.failed())
    return false;
  std::string direction = n.stringAttr("direction", "forward");
  reverseFirst = direction == "reverse";
  numDirections = direction == "bidirectional" ? 2 : 1;
  batchFirst = n.intAttr("layout", 0);
  if (Emitter::rankOf(x) != 3 || Emitter::rankOf(w) != 3 ||
      Emitter::rankOf(r) != 3) {
    n.fail("X, W and R have three dimensions");
    return false;
  }
  if (batchFirst)
    x = b.transpose(x, {1, 0, 2});
  steps = Emitter::shapeOf(x)[0];
  batch = Emitter::shapeOf(x)[1];
  size_t gates = products.areGatesLast ? 2 : 1, inner = 3 - gates;
  ArrayRef<int64_t> ofW = Emitter::shapeOf(w), ofR = Emitter::shapeOf(r);
  hidden = ofR[inner];
  if (hidden < 1 || ofW[0] != numDirections || ofR[0] != numDirections ||
      ofR[gates] != numGates * hidden || ofW[gates] != numGates * hidden) {
    n.fail("W and R do not fit");
    return false;
  }
  if (steps < 1) {
    b.fail(ExitCode::Unsupported, "a sequence of no steps is not supported");
    return false;
  }
  Value bias = n.optional(3);
  if (n.failed())
    return false;
  if (bias && Emitter::shapeOf(bias) !=
                  ArrayRef<int64_t>({numDirections, 2 * numGates * hidden})) {
    n.fail("B does not fit");
    return false;
  }
  if (const onnx::AttributeProto *names = n.attribute("activations")) {
    activations.clear();
    for (const std::string &name : names->strings())
      activations.push_back(llvm::StringRef(name).lower());
  } else if (numDirections == 2) {
    std::vector<std::string> once = activations;
    activations.insert(activations.end(), once.begin(), once.end());
  }
  takeParameters();
  return !n.failed();
}

void Recurrent::run(int numStates, Step step) {
  size_t wanted = activations.size();
  if (!prepare())
    return;
  if (activations.size() < wanted * numDirections) {
    n.fail("too few activations");
    return;
  }
  DType type = Emitter::typeOf(x);
  Value lengths = n.optional(4);
  std::vector<std::vector<Value>> outputs(steps);
  std::vector<std::vector<Value>> last(numStates);
  for (int64_t d = 0; d < numDirections && !n.failed(); ++d) {
    bool reverse = reverseFirst || d == 1;
    // The input part of all steps in one product.
    Value input = multiply(1, d, x, 0, numGates);
    if (n.has(3))
      input = b.add(
          input, b.sliceDim(perDirection(n.in(3), d), 0, 0, numGates * hidden));
    std::vector<Value> state;
    for (int i = 0; i < numStates; ++i) {
      Value initial = n.optional(5 + i);
      Shape wanted{numDirections, batch, hidden};
      if (batchFirst)
        std::swap(wanted[0], wanted[1]);
      if (initial && Emitter::shapeOf(initial) != ArrayRef<int64_t>(wanted)) {
        // Exporters write so what they cannot.
        n.fail("initial states are [" +
               shapeToString(Emitter::shapeOf(initial)) + "], not [" +
               shapeToString(wanted) + "]; ONNX has no projections");
        return;
      }
      b.noteInitialState(initial);
      if (initial && batchFirst)
        initial = b.transpose(initial, {1, 0, 2});
      state.push_back(initial ? perDirection(initial, d)
                              : b.splat(type, {batch, hidden}, 0));
    }
    for (int64_t s = 0; s < steps && !n.failed(); ++s) {
      int64_t t = reverse ? steps - 1 - s : s;
      Value at =
          b.reshape(b.sliceDim(input, 0, t, 1), {batch, numGates * hidden});
      std::vector<Value> next = step(d, at, state);
      Value y = next[0];
      if (lengths) {
        // Past its end a sequence keeps its state and gives 0.
        Value place = b.constant(HostTensor::scalar<int64_t>(t));
        Value isInside = b.reshape(
            b.compare(CompareKind::lt, place, b.cast(lengths, DType::I64)),
            {batch, 1});
        for (int i = 0; i < numStates; ++i)
          next[i] = b.select(isInside, next[i], state[i]);
        y = b.select(isInside, y, b.like(y, 0));
      }
      state = next;
      outputs[t].push_back(b.reshape(y, {1, 1, batch, hidden}));
    }
    for (int i = 0; i < numStates; ++i)
      last[i].push_back(b.reshape(state[i], {1, batch, hidden}));
  }
  if (n.failed())
    return;
  std::vector<Value> rows;
  for (const std::vector<Value> &directions : outputs)
    rows.push_back(b.concat(directions, 1));
  Value y = b.concat(rows, 0);
  n.out(0, batchFirst ? b.transpose(y, {2, 0, 1, 3}) : y);
  for (int i = 0; i < numStates; ++i) {
    Value state = b.concat(last[i], 0);
    n.out(1 + i, batchFirst ? b.transpose(state, {1, 0, 2}) : state);
  }
}

static void importRNN(Node &n) {
  GateProducts products = plainProducts(n);
  Recurrent r(n, 1, products);
  r.activations = {"tanh"};
  r.run(1, [&](int64_t d, Value input, std::vector<Value> state) {
    Value sum = n.b.add(input, r.recur(d, state[0], 0, 1));
    if (Value bias = r.recurrentBias(d, 0))
      sum = n.b.add(sum, bias);
    return std::vector<Value>{r.activate(d, 0, sum)};
  });
}

static void importGRU(Node &n) {
  GateProducts products = plainProducts(n);
  Recurrent r(n, 3, products);
  r.activations = {"sigmoid", "tanh"};
  bool linear = n.intAttr("linear_before_reset", 0);
  // Gates: z, r, h.
  r.run(1, [&](int64_t d, Value input, std::vector<Value> state) {
    Emitter &b = n.b;
    // All gates are one product, unless the reset is before the last of them.
    Value h = state[0], recurrent = r.recur(d, h, 0, linear ? 3 : 2);
    auto gate = [&](int64_t i) {
      Value sum = b.add(r.gate(input, i), r.gate(recurrent, i));
      if (Value bias = r.recurrentBias(d, i))
        sum = b.add(sum, bias);
      return r.activate(d, 0, sum);
    };
    Value z = gate(0), reset = gate(1), bias = r.recurrentBias(d, 2), inner;
    if (linear) {
      inner = r.gate(recurrent, 2);
      if (bias)
        inner = b.add(inner, bias);
      inner = b.mul(reset, inner);
    } else {
      inner = r.recur(d, b.mul(reset, h), 2, 1);
      if (bias)
        inner = b.add(inner, bias);
    }
    Value candidate = r.activate(d, 1, b.add(r.gate(input, 2), inner));
    // (1 - z) candidate + z h
    return std::vector<Value>{b.add(candidate, b.mul(z, b.sub(h, candidate)))};
  });
}

void ax::import::importLSTM(Node &n, const GateProducts &products) {
  Recurrent r(n, 4, products);
  r.activations = {"sigmoid", "tanh", "tanh"};
  bool coupled = n.intAttr("input_forget", 0);
  // Gates: i, o, f, c; peepholes: i, o, f.
  r.run(2, [&](int64_t d, Value input, std::vector<Value> state) {
    Emitter &b = n.b;
    Value h = state[0], c = state[1], recurrent = r.recur(d, h, 0, 4);
    auto sum = [&](int64_t i, int64_t peephole, Value cell) {
      Value s = b.add(r.gate(input, i), r.gate(recurrent, i));
      if (Value bias = r.recurrentBias(d, i))
        s = b.add(s, bias);
      if (peephole >= 0 && n.has(7)) {
        Value p =
            b.reshape(b.slice(n.in(7), {d, peephole * r.hidden}, {1, r.hidden}),
                      {r.hidden});
        s = b.add(s, b.mul(p, cell));
      }
      return s;
    };
    Value i = r.activate(d, 0, sum(0, 0, c));
    Value f = coupled ? b.sub(b.like(i, 1), i) : r.activate(d, 0, sum(2, 2, c));
    Value candidate = r.activate(d, 1, sum(3, -1, c));
    Value cell = b.add(b.mul(f, c), b.mul(i, candidate));
    Value o = r.activate(d, 0, sum(1, 1, cell));
    Value y = b.mul(o, r.activate(d, 2, cell));
    return std::vector<Value>{y, cell};
  });
}

static const OpEntry entries[] = {
    {"GRU", importGRU},
    {"LSTM", [](Node &n) { importLSTM(n, plainProducts(n)); }},
    {"RNN", importRNN},
};

void ax::import::addRecurrent(OpTable &table) { table.add(entries); }
