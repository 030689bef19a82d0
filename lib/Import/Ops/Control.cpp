//===- Control.cpp - Branches and loops -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../OpTable.h"

using namespace ax;
using namespace ax::import;

/// Whether a condition that is computed can choose between them, element by
/// element.
static bool areAlike(Node &n, const Entry &a, const Entry &b) {
  return a.tensor && b.tensor &&
         (a.tensor == b.tensor ||
          (a.tensor.getType() == b.tensor.getType() && !n.b.boundOf(a.tensor) &&
           !n.b.boundOf(b.tensor)));
}

/// The first that are not; nothing where all are.
static std::optional<size_t> findOther(Node &n, ArrayRef<Entry> a,
                                       ArrayRef<Entry> b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (!areAlike(n, a[i], b[i]))
      return i;
  return std::nullopt;
}

/// `a` where the condition, one bool, is true, else `b`, which are alike.
static std::vector<Entry> choose(Node &n, Value condition, ArrayRef<Entry> a,
                                 ArrayRef<Entry> b) {
  std::vector<Entry> chosen;
  for (auto [yes, no] : llvm::zip_equal(a, b))
    chosen.push_back(yes.tensor == no.tensor
                         ? yes
                         : n.b.select(condition, yes.tensor, no.tensor));
  return chosen;
}

/// Where one branch has nothing along a dimension, and the other results of
/// which data decide how many, these are less by all where the condition says
/// so: of no results detectors of torchvision say that there are none.
static void chooseResults(Node &n, Value condition, Entry &yes, Entry &no) {
  if (!yes.tensor || !no.tensor)
    return;
  bool isNoneIfTrue = !n.b.boundOf(yes.tensor);
  Value none = isNoneIfTrue ? yes.tensor : no.tensor,
        some = isNoneIfTrue ? no.tensor : yes.tensor;
  const Bound *bound = n.b.boundOf(some);
  if (!bound || n.b.boundOf(none) ||
      Emitter::typeOf(none) != Emitter::typeOf(some))
    return;
  Shape shape(Emitter::shapeOf(some));
  int64_t dim = bound->dim;
  Value count = bound->count;
  shape[dim] = 0;
  if (Emitter::shapeOf(none) != ArrayRef(shape))
    return;
  Value zero = n.b.like(count, 0), nothing = n.b.like(some, 0);
  Value left = isNoneIfTrue ? n.b.select(condition, zero, count)
                            : n.b.select(condition, count, zero);
  Value made = isNoneIfTrue ? n.b.select(condition, nothing, some)
                            : n.b.select(condition, some, nothing);
  yes = no = Entry(n.b.bounded(made, dim, left));
}

/// Results of both branches, of which the condition chooses; nothing, and no
/// failure, but why in `why`, where they are not alike.
static std::optional<std::vector<Entry>> doBoth(Node &n,
                                                const onnx::GraphProto &yes,
                                                const onnx::GraphProto &no,
                                                std::string &why) {
  std::vector<Entry> a = n.subgraphs.run(yes, {});
  std::vector<Entry> b = n.subgraphs.run(no, {});
  // One number is written in this shape here, and there in that one.
  for (auto [first, second] : llvm::zip(a, b))
    if (first.tensor && second.tensor &&
        Emitter::numElementsOf(first.tensor) == 1 &&
        Emitter::numElementsOf(second.tensor) == 1)
      second = n.b.reshape(second.tensor, Emitter::shapeOf(first.tensor));
  if (n.failed()) {
    why = describeError(n.b.takeFailure()).message;
    return std::nullopt;
  }
  Value condition = n.b.reshape(n.in(0), {});
  for (auto [yesResults, noResults] : llvm::zip(a, b))
    chooseResults(n, condition, yesResults, noResults);
  if (std::optional<size_t> other = findOther(n, a, b)) {
    why =
        "their outputs " + std::to_string(*other) + " differ in shape or type";
    return std::nullopt;
  }
  if (a.size() != b.size()) {
    why = "they have different numbers of outputs";
    return std::nullopt;
  }
  return choose(n, condition, a, b);
}

static void importIf(Node &n) {
  const onnx::GraphProto *yes = n.graphAttr("then_branch"),
                         *no = n.graphAttr("else_branch");
  Value condition = n.in(0);
  if (!condition || !yes || !no)
    return;
  std::string decides = "which branch there is";
  std::optional<std::vector<Entry>> outputs;
  // Of what is not taken a gradient may be no number, and statistics would go
  // on.
  if (!n.b.isTraining() && !n.b.demand(condition) &&
      Emitter::numElementsOf(condition) == 1) {
    std::string why;
    outputs = doBoth(n, *yes, *no, why);
    decides += " (both cannot be done: " + why + ")";
  } else if (n.b.isTraining()) {
    decides += " (both are done in predictions only)";
  }
  if (!outputs) {
    std::optional<int64_t> known = n.knownInt(0, "cond", decides);
    if (!known)
      return;
    outputs = n.subgraphs.run(*known ? *yes : *no, {});
  }
  for (size_t i = 0; i < outputs->size(); ++i)
    n.out(static_cast<int>(i), (*outputs)[i]);
}

/// Values of one scan output, one an iteration, along a new dimension.
static Value stack(Node &n, ArrayRef<Value> values, int64_t axis) {
  std::vector<Value> rows;
  for (Value value : values) {
    if (!value || n.failed())
      return {};
    Shape shape(Emitter::shapeOf(value));
    int64_t dim = n.dim(axis, shape.size() + 1);
    if (n.failed())
      return {};
    shape.insert(shape.begin() + dim, 1);
    rows.push_back(n.b.reshape(value, shape));
    axis = dim;
  }
  return n.b.concat(rows, axis);
}

static void importLoop(Node &n) {
  const onnx::GraphProto *body = n.graphAttr("body");
  if (!body)
    return;
  std::optional<int64_t> limit;
  if (n.has(0)) {
    limit = n.knownInt(0, "M", "how often a loop runs");
    if (!limit)
      return;
  }
  int numCarried = std::max(n.numInputs() - 2, 0),
      numScans = body->output_size() - 1 - numCarried;
  std::vector<Entry> carried;
  for (int i = 2; i < n.numInputs(); ++i)
    carried.push_back(n.entry(i));
  // Whether a loop that ends by data still runs, null as long as it does, and
  // what it has left if not. Each step goes on from the one before as if it
  // ran, so that what is known of a step, as its number, stays known.
  Value runs;
  std::vector<Entry> left = carried;
  constexpr int64_t mostSteps = 1024;
  bool goesOn = true;
  if (n.has(1)) {
    Value condition = n.in(1);
    if (condition && !n.b.demand(condition) && numScans == 0 &&
        !n.b.isTraining() && Emitter::numElementsOf(condition) == 1) {
      runs = n.b.reshape(condition, {});
    } else {
      std::optional<int64_t> known =
          n.knownInt(1, "cond", "whether a loop runs");
      if (!known)
        return;
      goesOn = *known;
    }
  }
  if (numScans < 0 || body->input_size() != numCarried + 2) {
    n.fail("the body does not fit the loop's inputs");
    return;
  }
  std::vector<std::vector<Value>> scans(numScans);
  auto refuse = [&](llvm::StringRef others) {
    n.unsupported("whether the loop goes on depends on data; only loops whose "
                  "length is known when compiling " +
                  others);
  };
  for (int64_t i = 0; goesOn && (!limit || i < *limit); ++i) {
    if (runs && i >= mostSteps)
      return refuse("have so many steps");
    std::vector<Entry> inputs = {
        Entry(n.b.constant(HostTensor::scalar<int64_t>(i))),
        Entry(n.b.constant(HostTensor::scalar<bool>(true)))};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    std::vector<Entry> outputs = n.subgraphs.run(*body, inputs);
    if (n.failed())
      return;
    ArrayRef<Entry> next = ArrayRef(outputs).slice(1, numCarried);
    if (std::optional<size_t> other =
            runs ? findOther(n, next, left) : std::nullopt) {
      n.unsupported("how often the loop runs depends on data, and value " +
                    llvm::Twine(*other) +
                    " that it carries along changes its shape or type");
      return;
    }
    carried = next;
    left = runs ? choose(n, runs, next, left) : carried;
    for (int j = 0; j < numScans; ++j)
      scans[j].push_back(outputs[1 + numCarried + j].tensor);
    std::optional<HostTensor> condition = n.b.knownValue(outputs[0].tensor);
    if (condition && condition->numElements() == 1) {
      goesOn = condition->getInt(0);
      continue;
    }
    if (!outputs[0].tensor ||
        Emitter::typeOf(outputs[0].tensor) != DType::Bool ||
        Emitter::numElementsOf(outputs[0].tensor) != 1) {
      n.fail("the body's condition is not one bool");
      return;
    }
    if (numScans > 0 || n.b.isTraining())
      return refuse(numScans > 0 ? "have scan outputs" : "train");
    Value isNext = n.b.reshape(outputs[0].tensor, {});
    runs = runs ? n.b.binary(BinaryKind::logical_and, runs, isNext) : isNext;
  }
  for (int j = 0; j < numCarried; ++j)
    n.out(j, runs ? left[j] : carried[j]);
  for (int j = 0; j < numScans; ++j) {
    if (scans[j].empty() && n.wants(numCarried + j)) {
      n.unsupported("a loop that never runs has no shape for its scan outputs");
      return;
    }
    if (!scans[j].empty())
      n.out(numCarried + j, stack(n, scans[j], 0));
  }
}

static void importScan(Node &n) {
  const onnx::GraphProto *body = n.graphAttr("body");
  if (!body)
    return;
  int64_t numScanned = n.intAttr("num_scan_inputs", 0);
  int64_t numStates = n.numInputs() - numScanned;
  if (numScanned < 1 || numStates < 0 ||
      body->output_size() < static_cast<int>(numStates)) {
    n.fail("num_scan_inputs does not fit the inputs");
    return;
  }
  int64_t numScans = body->output_size() - numStates;
  auto attr = [&](llvm::StringRef name, int64_t count) {
    std::vector<int64_t> values = n.intsAttr(name);
    values.resize(count, 0);
    return values;
  };
  std::vector<int64_t> inAxes = attr("scan_input_axes", numScanned),
                       inReverse = attr("scan_input_directions", numScanned),
                       outAxes = attr("scan_output_axes", numScans),
                       outReverse = attr("scan_output_directions", numScans);
  std::vector<Entry> states;
  for (int64_t i = 0; i < numStates; ++i)
    states.push_back(n.entry(static_cast<int>(i)));
  std::vector<Value> scanned;
  std::optional<int64_t> length;
  for (int64_t i = 0; i < numScanned; ++i) {
    Value x = n.in(static_cast<int>(numStates + i));
    if (!x)
      return;
    inAxes[i] = n.dim(inAxes[i], Emitter::rankOf(x));
    if (n.failed())
      return;
    int64_t size = Emitter::shapeOf(x)[inAxes[i]];
    if (length && *length != size) {
      n.fail("scan inputs differ in length");
      return;
    }
    length = size;
    scanned.push_back(x);
  }
  std::vector<std::vector<Value>> scans(numScans);
  for (int64_t i = 0; i < *length; ++i) {
    std::vector<Entry> inputs = states;
    for (int64_t j = 0; j < numScanned; ++j) {
      int64_t at = inReverse[j] ? *length - 1 - i : i;
      Value row = n.b.sliceDim(scanned[j], inAxes[j], at, 1);
      Shape shape(Emitter::shapeOf(scanned[j]));
      shape.erase(shape.begin() + inAxes[j]);
      inputs.push_back(Entry(n.b.reshape(row, shape)));
    }
    std::vector<Entry> outputs = n.subgraphs.run(*body, inputs);
    if (n.failed())
      return;
    for (int64_t j = 0; j < numStates; ++j)
      states[j] = outputs[j];
    for (int64_t j = 0; j < numScans; ++j)
      scans[j].push_back(outputs[numStates + j].tensor);
  }
  for (int64_t j = 0; j < numStates; ++j)
    n.out(static_cast<int>(j), states[j]);
  for (int64_t j = 0; j < numScans; ++j) {
    if (scans[j].empty()) {
      n.unsupported("a scan over nothing has no shape for its outputs");
      return;
    }
    if (outReverse[j])
      std::reverse(scans[j].begin(), scans[j].end());
    n.out(static_cast<int>(numStates + j), stack(n, scans[j], outAxes[j]));
  }
}

static const OpEntry entries[] = {
    {"If", importIf},
    {"Loop", importLoop},
    {"Scan", importScan},
};

void ax::import::addControl(OpTable &table) { table.add(entries); }
