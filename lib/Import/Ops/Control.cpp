//===- Control.cpp - Branches and loops that are known --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../OpTable.h"

using namespace ax;
using namespace ax::import;

static void importIf(Node &n) {
  std::optional<int64_t> condition =
      n.knownInt(0, "cond", "which branch there is");
  if (!condition)
    return;
  const onnx::GraphProto *branch =
      n.graphAttr(*condition ? "then_branch" : "else_branch");
  if (!branch)
    return;
  std::vector<Entry> outputs = n.subgraphs.run(*branch, {});
  for (size_t i = 0; i < outputs.size(); ++i)
    n.out(static_cast<int>(i), outputs[i]);
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
  bool goesOn = true;
  if (n.has(1)) {
    std::optional<int64_t> condition =
        n.knownInt(1, "cond", "whether a loop runs");
    if (!condition)
      return;
    goesOn = *condition;
  }
  std::vector<Entry> carried;
  for (int i = 2; i < n.numInputs(); ++i)
    carried.push_back(n.entry(i));
  int numCarried = carried.size(),
      numScans = body->output_size() - 1 - numCarried;
  if (numScans < 0 || body->input_size() != numCarried + 2) {
    n.fail("the body does not fit the loop's inputs");
    return;
  }
  std::vector<std::vector<Value>> scans(numScans);
  for (int64_t i = 0; goesOn && (!limit || i < *limit); ++i) {
    std::vector<Entry> inputs = {
        Entry(n.b.constant(HostTensor::scalar<int64_t>(i))),
        Entry(n.b.constant(HostTensor::scalar<bool>(true)))};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    std::vector<Entry> outputs = n.subgraphs.run(*body, inputs);
    if (n.failed())
      return;
    std::optional<HostTensor> condition = n.b.knownValue(outputs[0].tensor);
    if (!condition || condition->numElements() != 1) {
      n.unsupported("whether the loop goes on depends on data; only loops "
                    "whose length is known when compiling are supported");
      return;
    }
    goesOn = condition->getInt(0);
    for (int j = 0; j < numCarried; ++j)
      carried[j] = outputs[1 + j];
    for (int j = 0; j < numScans; ++j)
      scans[j].push_back(outputs[1 + numCarried + j].tensor);
  }
  for (int j = 0; j < numCarried; ++j)
    n.out(j, carried[j]);
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
