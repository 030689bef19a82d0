//===- Operators.cpp - Which operators a model uses -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Operators.h"

#include "OpTable.h"
#include "Schemas.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace ax;
using namespace ax::import;
using onnx::AttributeProto;
using onnx::NodeProto;
template <typename T>
using Repeated = google::protobuf::RepeatedPtrField<T>;

/// So many nodes of one operator that is not supported are named.
static constexpr size_t maxNodesNamed = 8;

const onnx::FunctionProto *
ax::import::findFunction(const onnx::ModelProto &model, const NodeProto &node) {
  for (const onnx::FunctionProto &function : model.functions())
    if (function.domain() == node.domain() &&
        function.name() == node.op_type() &&
        function.overload() == node.overload())
      return &function;
  return nullptr;
}

const onnx::OpSchema *ax::import::findFunctionSchema(const NodeProto &node,
                                                     int opset) {
  if (!isDefaultDomain(node.domain()))
    return nullptr;
  const onnx::OpSchema *schema =
      findSchema(node.domain(), node.op_type(), opset);
  bool hasBody = schema && (schema->HasFunction() ||
                            schema->HasContextDependentFunction());
  return hasBody ? schema : nullptr;
}

std::string ax::import::describe(const NodeProto &node) {
  if (!node.name().empty())
    return "'" + node.name() + "'";
  for (const std::string &output : node.output())
    if (!output.empty())
      return "of output '" + output + "'";
  return "unnamed";
}

namespace {

/// The uses of operators, by domain and name.
using UseMap = std::map<std::pair<std::string, std::string>, OperatorUse>;

class OperatorFinder {
public:
  explicit OperatorFinder(const onnx::ModelProto &model) : model(model) {}

  void find(const Repeated<NodeProto> &nodes, int opset) {
    for (const NodeProto &node : nodes) {
      count(node, opset);
      for (const AttributeProto &attribute : node.attribute()) {
        if (attribute.has_g())
          find(attribute.g().node(), opset);
        for (const onnx::GraphProto &graph : attribute.graphs())
          find(graph.node(), opset);
      }
    }
  }
  UseMap uses;

private:
  void count(const NodeProto &node, int opset) {
    std::string domain =
        isDefaultDomain(node.domain()) ? std::string() : node.domain();
    OperatorUse &use = uses[{domain, node.op_type()}];
    use.domain = domain;
    use.name = node.op_type();
    ++use.count;
    if (!findImporter(node.domain(), node.op_type(), opset) &&
        !findFunctionSchema(node, opset) && !findFunction(model, node))
      use.unsupported.push_back(describe(node));
  }

  const onnx::ModelProto &model;
};

} // namespace

std::vector<OperatorUse>
ax::import::findOperators(const onnx::ModelProto &model, int opset) {
  OperatorFinder finder(model);
  finder.find(model.graph().node(), opset);
  for (const onnx::FunctionProto &function : model.functions())
    finder.find(function.node(),
                static_cast<int>(importedOpset(function, opset)));
  std::vector<OperatorUse> uses;
  for (auto &[key, use] : finder.uses)
    uses.push_back(std::move(use));
  return uses;
}

llvm::Error ax::import::checkOperators(const onnx::ModelProto &model,
                                       int opset) {
  std::string list, domain;
  for (const OperatorUse &use : findOperators(model, opset)) {
    if (use.unsupported.empty())
      continue;
    if (use.domain != domain)
      list += "\n of domain " + use.domain + ", which is not ONNX's own:";
    domain = use.domain;
    size_t shown = std::min(use.unsupported.size(), maxNodesNamed);
    list += "\n  " + use.name + ": node " +
            llvm::join(llvm::ArrayRef(use.unsupported).take_front(shown), ", ");
    if (shown < use.unsupported.size())
      list +=
          " and " + std::to_string(use.unsupported.size() - shown) + " more";
  }
  if (list.empty())
    return llvm::Error::success();
  return makeError(ExitCode::Unsupported,
                   "these operators are not supported:" + list);
}
