//===- ParameterRoles.cpp - Parameters by what nodes do with them ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exporters write numbers of all kinds as initializers; one is a parameter
// where a layer takes it, and where the exporter says so.
//
//===----------------------------------------------------------------------===//

#include "ParameterRoles.h"

#include "Operators.h"
#include "Prepare.h"
#include "Schemas.h"
#include "WeightKinds.h"

#include "ax/Support/GivenWeights.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace ax;
using namespace ax::import;
using onnx::NodeProto;

bool ParameterRoles::isParameter(const std::string &name, DType type,
                                 int64_t numElements,
                                 llvm::ArrayRef<uint8_t> elements) const {
  return has(name) || (numElements > 1 && !settings.count(name) &&
                       isOfLayers(type, elements));
}

static bool isSingle(const Shape &shape) {
  return llvm::all_of(shape, [](int64_t size) { return size == 1; });
}

/// Nodes whose result has the numbers of their operands as they are.
static bool isMoving(llvm::StringRef type) {
  return llvm::StringSwitch<bool>(type)
      .Cases({"Cast", "Concat", "Expand", "Flatten", "Gather"}, true)
      .Cases({"Identity", "Reshape", "Slice", "Squeeze"}, true)
      .Cases({"Transpose", "Unsqueeze"}, true)
      .Default(false);
}

/// Whether operand `number` says what a node does, and is nothing that it
/// computes with.
static bool isSetting(llvm::StringRef type, size_t number) {
  constexpr size_t none = std::numeric_limits<size_t>::max();
  size_t first =
      llvm::StringSwitch<size_t>(type)
          .Cases({"Resize", "Upsample", "Pad", "Dropout", "OneHot"}, 1)
          .Case("NonMaxSuppression", 2)
          .Cases({"Range", "MelWeightMatrix", "HannWindow"}, 0)
          .Default(none);
  return number >= first;
}

/// Whether operand `number` of an operator is of integers that stand for
/// numbers, or is their scale or zero point.
static bool isQuantised(llvm::StringRef type, size_t number) {
  type.consume_front("com.microsoft.");
  return llvm::StringSwitch<bool>(type)
      .Cases({"MatMulInteger", "ConvInteger", "DequantizeLinear", "QGemm"},
             true)
      .Case("GatherBlockQuantized", number != 1)
      .Case("MatMulIntegerToFloat", number < 6)
      .Cases({"MatMulNBits", "DynamicQuantizeMatMul"},
             number >= 1 && number < 4)
      .Case("DynamicQuantizeLSTM", number == 1 || number == 2 || number >= 8)
      .Case("QAttention", number != 2 && number != 5 && number < 8)
      .Cases({"QuantizeLinear", "QLinearWhere"}, number >= 1)
      .Default(type.starts_with("QLinear"));
}

/// Functions inside each other; the importer takes as many.
static constexpr int maxDepth = 32;

namespace {

/// What names of a function's body stand for: a value of the caller, or else
/// one of this call.
struct Call {
  std::map<std::string, std::string> given;
  std::string prefix;
  int depth = 0;

  std::string resolve(const std::string &name) const {
    auto found = given.find(name);
    if (found != given.end())
      return found->second;
    return name.empty() ? "" : prefix + name;
  }
};

/// A node, by the names of values in the main graph.
struct Use {
  /// With its domain, if that is not ONNX's own.
  std::string type;
  std::vector<std::string> inputs, outputs;

  bool isAny(llvm::ArrayRef<llvm::StringRef> types) const {
    return llvm::is_contained(types, llvm::StringRef(type));
  }
};

class ParameterFinder {
public:
  ParameterFinder(const onnx::ModelProto &model, const ShapeMap &floats,
                  ParameterRoles &roles)
      : model(model), floats(floats), roles(roles) {}

  void run(const WeightKinds &kinds) {
    for (const auto &[name, kind] : kinds)
      if (kind == WeightKind::Parameter)
        takeNumber(name, /*leastRank=*/0);
    visit(model.graph().node(), Call());
    for (const onnx::ValueInfoProto &output : model.graph().output())
      computed.insert(output.name());
    for (const std::string &name : set)
      if (isOnlySet(name))
        roles.settings.insert(stateName(name));
  }

private:
  template <typename Nodes>
  void visit(const Nodes &nodes, const Call &call);
  void visitCall(const onnx::FunctionProto &function, const Use &use,
                 const Call &call);
  void visitLayer(const Use &use);
  void visitQuantised(const Use &use);
  void visitSettings(const Use &use);
  void takeSetting(const std::string &name);
  /// Neither it nor what it is moved to is computed with.
  bool isOnlySet(const std::string &name);
  /// Layers have lists of parameters, also of one.
  void takeNumber(const std::string &name, size_t leastRank = 1);
  /// What was moved, and nothing else, to become a value: a slope that is given
  /// the dimensions of an image.
  std::string originOf(std::string name) const;
  /// A value, and those that were moved to become it.
  void takeQuantised(const std::string &name);
  /// A product with a weight of one column.
  bool hasOneFeature(const std::string &value) const;

  const onnx::ModelProto &model;
  const ShapeMap &floats;
  ParameterRoles &roles;
  int64_t numNodes = 0, numCalls = 0;
  /// Second operands of products, and what was moved to become a value.
  llvm::StringMap<std::string> columns;
  llvm::StringMap<std::vector<std::string>> moved;
  /// Operands that are settings, or are moved to become one, and others.
  std::set<std::string> set;
  llvm::StringSet<> computed;
  llvm::StringMap<std::vector<std::string>> movedTo;
  /// Sums of products of integers, and scales that are computed of the input.
  llvm::StringSet<> unscaled;
};

} // namespace

/// Graphs in nodes see what is around them.
template <typename Nodes>
void ParameterFinder::visit(const Nodes &nodes, const Call &call) {
  for (const NodeProto &node : nodes) {
    // More are refused by who imports them.
    if (++numNodes > maxNodes)
      return;
    Use use{qualifiedName(node), {}, {}};
    for (const std::string &name : node.input())
      use.inputs.push_back(call.resolve(name));
    for (const std::string &name : node.output())
      use.outputs.push_back(call.resolve(name));
    if (const onnx::FunctionProto *function = findFunction(model, node)) {
      visitCall(*function, use, call);
      continue;
    }
    visitLayer(use);
    visitQuantised(use);
    visitSettings(use);
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      visit(attribute.g().node(), call);
      for (const onnx::GraphProto &inner : attribute.graphs())
        visit(inner.node(), call);
    }
  }
}

void ParameterFinder::visitCall(const onnx::FunctionProto &function,
                                const Use &use, const Call &call) {
  if (call.depth >= maxDepth)
    return;
  Call inner;
  inner.depth = call.depth + 1;
  // No name of a file begins so.
  inner.prefix = std::string(1, '\0') + std::to_string(++numCalls) + '\0';
  auto bind = [&](const auto &names, const std::vector<std::string> &values) {
    for (auto [name, value] : llvm::zip(names, values))
      inner.given[name] = value;
  };
  bind(function.input(), use.inputs);
  bind(function.output(), use.outputs);
  visit(function.node(), inner);
}

void ParameterFinder::visitLayer(const Use &use) {
  size_t numInputs = use.inputs.size();
  auto take = [&](size_t input, size_t leastRank) {
    if (input < numInputs)
      takeNumber(use.inputs[input], leastRank);
  };
  for (int input : parameterInputs(use.type))
    if (size_t(input) < numInputs)
      takeNumber(originOf(use.inputs[input]));
  // The running mean and variance, which training counts on.
  if (use.type == "BatchNormalization")
    for (size_t input : {3, 4})
      take(input, 1);
  if (use.isAny({"Gemm", "MatMul", "Conv", "ConvTranspose",
                 "com.microsoft.FusedConv", "com.microsoft.FusedGemm",
                 "com.microsoft.FusedMatMul", "com.microsoft.GemmFastGelu"}))
    take(1, 2);
  if (use.type == "MatMul" && numInputs == 2 && !use.outputs.empty()) {
    columns[use.outputs[0]] = use.inputs[1];
  } else if (use.type == "Add" && numInputs == 2) {
    for (int i : {0, 1})
      if (hasOneFeature(use.inputs[i]))
        takeNumber(use.inputs[1 - i]);
  }
}

void ParameterFinder::visitQuantised(const Use &use) {
  size_t numInputs = use.inputs.size();
  bool isSum = use.isAny({"MatMulInteger", "ConvInteger"});
  for (size_t i = 0; i < numInputs; ++i)
    if (isQuantised(use.type, i))
      takeQuantised(use.inputs[i]);
  // Layers that quantise their input as it comes: sums are multiplied with the
  // scale that was found for it and with the layer's own.
  if (use.type == "Mul" && numInputs == 2)
    for (int i : {0, 1})
      if (unscaled.contains(use.inputs[i]))
        takeQuantised(use.inputs[1 - i]);
  bool isScale = use.type == "DynamicQuantizeLinear",
       isCast =
           use.type == "Cast" && numInputs && unscaled.contains(use.inputs[0]);
  size_t output = isScale ? 1 : 0;
  if ((isSum || isScale || isCast) && output < use.outputs.size())
    unscaled.insert(use.outputs[output]);
  if (isMoving(use.type) && numInputs && !use.outputs.empty())
    moved[use.outputs[0]] =
        use.type == "Concat" ? use.inputs : std::vector{use.inputs[0]};
}

void ParameterFinder::visitSettings(const Use &use) {
  for (auto [number, name] : llvm::enumerate(use.inputs))
    if (isSetting(use.type, number))
      takeSetting(name);
    else if (isMoving(use.type) && !use.outputs.empty())
      movedTo[name].push_back(use.outputs[0]);
    else
      computed.insert(name);
}

/// What was moved to become one, too; nodes are in order.
void ParameterFinder::takeSetting(const std::string &name) {
  std::vector<std::string> names{name};
  while (!names.empty()) {
    std::string next = std::move(names.back());
    names.pop_back();
    if (set.insert(next).second)
      if (auto source = moved.find(next); source != moved.end())
        llvm::append_range(names, source->second);
  }
}

bool ParameterFinder::isOnlySet(const std::string &name) {
  std::vector<std::string> names{name};
  llvm::StringSet<> seen;
  while (!names.empty()) {
    std::string next = std::move(names.back());
    names.pop_back();
    if (computed.contains(next))
      return false;
    if (auto to = movedTo.find(next);
        seen.insert(next).second && to != movedTo.end())
      llvm::append_range(names, to->second);
  }
  return true;
}

void ParameterFinder::takeNumber(const std::string &name, size_t leastRank) {
  auto found = floats.find(name);
  if (found != floats.end() && found->second.size() >= leastRank &&
      isSingle(found->second))
    roles.numbers.insert(stateName(name));
}

std::string ParameterFinder::originOf(std::string name) const {
  // More moves than exporters write; names that a file has twice may go round.
  constexpr int maxMoves = 32;
  for (int i = 0; i < maxMoves; ++i) {
    auto source = moved.find(name);
    if (source == moved.end() || source->second.size() != 1)
      break;
    name = source->second.front();
  }
  return name;
}

void ParameterFinder::takeQuantised(const std::string &name) {
  std::vector<std::string> names{name};
  while (!names.empty()) {
    std::string next = std::move(names.back());
    names.pop_back();
    if (next.empty() || !roles.quantised.insert(stateName(next)).second)
      continue;
    if (auto source = moved.find(next); source != moved.end())
      llvm::append_range(names, source->second);
  }
}

bool ParameterFinder::hasOneFeature(const std::string &value) const {
  auto product = columns.find(value);
  if (product == columns.end())
    return false;
  auto weight = floats.find(product->second);
  // A single number is a weight only where that is known.
  return weight != floats.end() && !weight->second.empty() &&
         weight->second.back() == 1 &&
         (!isSingle(weight->second) ||
          roles.numbers.count(stateName(weight->first)));
}

ParameterRoles ax::import::findParameters(const onnx::ModelProto &model,
                                          const ShapeMap &floats,
                                          const WeightKinds &kinds) {
  ParameterRoles roles;
  ParameterFinder(model, floats, roles).run(kinds);
  return roles;
}

/// Whether it is not one that an exporter made up for a number in the code
/// (`onnx::Mul_3`, `/fc/Constant_output_0`).
static bool isUsersName(llvm::StringRef name) {
  return !name.empty() && !llvm::isDigit(name.front()) &&
         name.find_first_of(":/") == llvm::StringRef::npos;
}

std::vector<std::string> ax::import::unclearNumbers(const ParameterRoles &roles,
                                                    const ShapeMap &floats,
                                                    const WeightKinds &kinds) {
  std::vector<std::string> names;
  // What the exporter says of others, it would say of these.
  if (areParametersDeclared(kinds))
    return names;
  for (const auto &[name, shape] : floats)
    if (isSingle(shape) && !roles.numbers.count(stateName(name)) &&
        !roles.settings.count(stateName(name)) && isUsersName(name))
      names.push_back(name);
  return names;
}
