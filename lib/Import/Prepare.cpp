//===- Prepare.cpp - A model ready to be walked ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Prepare.h"

#include "FourBits.h"
#include "Operators.h"
#include "Schemas.h"
#include "SortNodes.h"

#include "SlimModel.h"
#include "Types.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/StringSet.h"

#include <onnx/inliner/inliner.h>
#include <onnx/version_converter/convert.h>

using namespace ax;
using namespace ax::import;

/// The module that a node belongs to, from the list `['', 'm', 'm.encoder',
/// 'linear']` that torch.onnx leaves: all but the last are modules.
static std::string moduleOf(llvm::StringRef scopes) {
  llvm::SmallVector<llvm::StringRef, 8> parts;
  scopes.trim("[] ").split(parts, ',');
  if (parts.size() < 2)
    return "";
  return parts[parts.size() - 2].trim(" '\"").str();
}

static void collectScopes(const onnx::GraphProto &graph,
                          std::map<std::string, std::string> &scopes) {
  for (const onnx::NodeProto &node : graph.node())
    for (const onnx::StringStringEntryProto &entry : node.metadata_props())
      if (entry.key() == "pkg.torch.onnx.name_scopes" && node.output_size())
        if (std::string scope = moduleOf(entry.value()); !scope.empty())
          scopes[node.output(0)] = scope;
}

/// Inputs stand for the initializers that were taken out.
static void declareRemoved(const SlimModel &slim, onnx::GraphProto &graph) {
  llvm::StringSet<> inputs;
  for (const onnx::ValueInfoProto &input : graph.input())
    inputs.insert(input.name());
  for (const std::string &name : slim.removed) {
    if (inputs.contains(name))
      continue;
    const Weight &weight = slim.weights.at(name);
    onnx::ValueInfoProto *input = graph.add_input();
    input->set_name(name);
    onnx::TypeProto::Tensor *type =
        input->mutable_type()->mutable_tensor_type();
    type->set_elem_type(toOnnxType(weight.type));
    type->mutable_shape();
    for (int64_t size : weight.shape)
      type->mutable_shape()->add_dim()->set_dim_value(size);
  }
}

/// Gives a tensor without shape an empty one; false when it has one.
static bool addShape(onnx::ValueInfoProto &value) {
  if (!value.type().has_tensor_type() || value.type().tensor_type().has_shape())
    return false;
  value.mutable_type()->mutable_tensor_type()->mutable_shape();
  return true;
}

/// Exporters list a tensor twice that is two results of a module. Outputs go by
/// their names, of which there is one.
static void dropRepeatedOutputs(onnx::GraphProto &graph) {
  llvm::StringSet<> seen;
  auto repeated = llvm::remove_if(*graph.mutable_output(),
                                  [&](const onnx::ValueInfoProto &output) {
                                    return !seen.insert(output.name()).second;
                                  });
  graph.mutable_output()->erase(repeated, graph.mutable_output()->end());
}

static bool usesScan(const onnx::GraphProto &graph) {
  for (const onnx::NodeProto &node : graph.node()) {
    if (node.op_type() == "Scan")
      return true;
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (attribute.has_g() && usesScan(attribute.g()))
        return true;
  }
  return false;
}

namespace {

/// Nodes of a model once its functions are written out where they are called.
/// The checker has seen that they do not call themselves.
class InlinedSize {
public:
  explicit InlinedSize(const onnx::ModelProto &model) {
    for (const onnx::FunctionProto &function : model.functions())
      functions[keyOf(function.domain(), function.name(),
                      function.overload())] = {&function, std::nullopt};
  }

  template <typename Nodes>
  int64_t count(const Nodes &nodes) {
    int64_t sum = 0;
    for (const onnx::NodeProto &node : nodes)
      sum = std::min(sum + countNode(node), maxNodes + 1);
    return sum;
  }

private:
  struct Function {
    const onnx::FunctionProto *proto = nullptr;
    std::optional<int64_t> size;
  };

  static std::string keyOf(const std::string &domain, const std::string &name,
                           const std::string &overload) {
    return (domain == "ai.onnx" ? "" : domain) + '\0' + name + '\0' + overload;
  }

  int64_t countNode(const onnx::NodeProto &node) {
    int64_t sum = 1;
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      sum += count(attribute.g().node());
      for (const onnx::GraphProto &graph : attribute.graphs())
        sum += count(graph.node());
    }
    auto callee =
        functions.find(keyOf(node.domain(), node.op_type(), node.overload()));
    if (callee != functions.end()) {
      std::optional<int64_t> &size = callee->second.size;
      if (!size)
        size = count(callee->second.proto->node());
      sum += *size;
    }
    return sum;
  }

  std::map<std::string, Function> functions;
};

} // namespace

/// The inliner takes no defaults of attributes, and takes functions away that
/// others call which it leaves alone, as those of other operator sets.
static bool isForInliner(const onnx::ModelProto &model) {
  int64_t opset = importedOpset(model, 0);
  return llvm::none_of(model.functions(),
                       [&](const onnx::FunctionProto &function) {
                         return function.attribute_proto_size() ||
                                importedOpset(function, opset) != opset;
                       });
}

/// Functions that stay are imported as such. The inliner itself has no bounds.
static llvm::Error inlineFunctions(onnx::ModelProto &model) {
  if (!model.functions_size())
    return llvm::Error::success();
  InlinedSize size(model);
  int64_t numNodes = size.count(model.graph().node());
  if (numNodes > maxNodes)
    return makeErrorf(ExitCode::Unsupported,
                      "the model has more than {0} nodes, its functions "
                      "written out",
                      maxNodes);
  if (isForInliner(model))
    onnx::inliner::InlineLocalFunctions(model, /*convert_version=*/false);
  return llvm::Error::success();
}

/// Twice the same set is a slip; two of them give operators two meanings.
template <typename Proto>
static llvm::Error checkOneOpset(const Proto &proto, llvm::StringRef what) {
  int64_t opset = importedOpset(proto, 0);
  for (const onnx::OperatorSetIdProto &other : proto.opset_import())
    if (isDefaultDomain(other.domain()) && other.version() != opset)
      return makeErrorf(ExitCode::BadModel,
                        "{0} imports operator sets {1} and {2} of the default "
                        "domain",
                        what, opset, other.version());
  return llvm::Error::success();
}

/// Before set 7 a slope is of a channel; the converter leaves it where those of
/// later sets are of the last dimension: only of a matrix that is the same.
static llvm::Error checkOldSlopes(const onnx::GraphProto &graph,
                                  const SlimModel &slim) {
  auto isOne = [](const auto &shape) {
    return llvm::all_of(shape, [](int64_t size) { return size == 1; });
  };
  std::set<std::string> single, matrices;
  for (const WeightMap *weights : {&slim.weights, &slim.numbers})
    for (const auto &[name, weight] : *weights)
      if (isOne(weight.shape))
        single.insert(name);
  for (const onnx::NodeProto &node : graph.node())
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (node.op_type() == "Constant" && node.output_size() &&
          attribute.has_t() && isOne(attribute.t().dims()))
        single.insert(node.output(0));
  for (const auto *values : {&graph.input(), &graph.value_info()})
    for (const onnx::ValueInfoProto &value : *values)
      if (value.type().tensor_type().shape().dim_size() == 2)
        matrices.insert(value.name());
  for (const onnx::NodeProto &node : graph.node()) {
    if (node.op_type() == "PRelu" && isDefaultDomain(node.domain()) &&
        node.input_size() > 1 && !single.count(node.input(1)) &&
        !matrices.count(node.input(0)))
      return makeErrorf(ExitCode::Unsupported,
                        "node '{0}' (PRelu) has a slope for each channel: this "
                        "is known from operator set {1} on",
                        node.name(), oldestOpset);
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (attribute.has_g())
        if (llvm::Error error = checkOldSlopes(attribute.g(), slim))
          return error;
  }
  return llvm::Error::success();
}

/// One spelling of the default domain, and the newest IR version: what older
/// ones ask for besides (initializers that are inputs) changes no meaning.
static llvm::Error normalise(onnx::ModelProto &model) {
  if (model.ir_version() < 1)
    return makeError(ExitCode::BadModel, "the model has no IR version");
  if (model.ir_version() > onnx::IR_VERSION)
    return makeErrorf(ExitCode::Unsupported,
                      "the model has IR version {0}; 1 to {1} are known",
                      model.ir_version(), int64_t(onnx::IR_VERSION));
  if (model.ir_version() < 3 && !model.opset_import_size())
    model.add_opset_import()->set_version(1);
  model.set_ir_version(onnx::IR_VERSION);
  if (model.graph().name().empty())
    model.mutable_graph()->set_name("graph");
  return llvm::Error::success();
}

static llvm::Error check(const onnx::ModelProto &model) {
  std::string fault = checkModel(model);
  return fault.empty() ? llvm::Error::success()
                       : makeError(ExitCode::BadModel, fault);
}

static llvm::Error prepare(const SlimModel &slim, PreparedModel &result) {
  onnx::ModelProto &model = result.proto;
  if (llvm::Error error = parseSlim(slim, model))
    return error;
  if (llvm::Error error = normalise(model))
    return error;
  if (llvm::Error error = checkOneOpset(model, "the model"))
    return error;
  for (const onnx::FunctionProto &function : model.functions())
    if (llvm::Error error =
            checkOneOpset(function, "function '" + function.name() + "'"))
      return error;
  int64_t opset = importedOpset(model, newestOpset());
  if (opset < 1 || opset > newestOpset())
    return makeErrorf(ExitCode::Unsupported,
                      "the model uses operator set {0}; 1 to {1} are known",
                      opset, newestOpset());
  result.opset = std::max<int>(static_cast<int>(opset), oldestOpset);
  if (llvm::Error error = checkOperators(model, result.opset))
    return error;
  declareRemoved(slim, *model.mutable_graph());
  // The checker wants shapes, though unknown ones are common and harmless.
  for (onnx::ValueInfoProto &input : *model.mutable_graph()->mutable_input())
    if (addShape(input))
      result.unranked.insert(input.name());
  dropRepeatedOutputs(*model.mutable_graph());
  // Nor need outputs say a type: it is that of the node that makes them.
  std::vector<onnx::ValueInfoProto> outputs(model.graph().output().begin(),
                                            model.graph().output().end());
  for (onnx::ValueInfoProto &output :
       *model.mutable_graph()->mutable_output()) {
    if (!output.has_type())
      output.mutable_type()->mutable_tensor_type()->set_elem_type(
          onnx::TensorProto::FLOAT);
    addShape(output);
  }
  if (llvm::Error error = sortNodes(model))
    return error;
  if (llvm::Error error = check(model))
    return error;
  for (auto [checked, given] :
       llvm::zip(*model.mutable_graph()->mutable_output(), outputs))
    checked = std::move(given);
  if (llvm::Error error = inlineFunctions(model))
    return error;
  if (llvm::Error error = checkFourBits(model, slim.weights))
    return error;
  collectScopes(model.graph(), result.scopes);
  collectDeclared(model, slim.constants, result.kinds);
  if (opset == 8 && usesScan(model.graph()))
    return makeError(ExitCode::Unsupported,
                     "Scan of operator set 8 is not supported; its meaning "
                     "changed in set 9");
  if (opset >= oldestOpset)
    return llvm::Error::success();
  if (llvm::Error error = checkOldSlopes(model.graph(), slim))
    return error;
  model = onnx::version_conversion::ConvertVersion(model, oldestOpset);
  // Where the converter knows no rule, old attributes are left.
  return check(model);
}

llvm::Expected<PreparedModel> ax::import::prepareModel(ModelFolder &folder) {
  llvm::Expected<SlimModel> slim = slimModel(folder);
  if (!slim)
    return slim.takeError();
  PreparedModel result;
  llvm::Error error = llvm::Error::success();
  std::string problem;
  // The onnx library reports by exceptions; none goes further.
  try {
    error = prepare(*slim, result);
  } catch (const std::exception &exception) {
    problem = firstReason(exception.what());
  }
  if (!problem.empty()) {
    llvm::consumeError(std::move(error));
    error = makeError(ExitCode::BadModel, problem);
  }
  if (error)
    return addContext(std::move(error), "'" + folder.getPath() + "/" +
                                            folder.getModelFile() + "'");
  result.weights = std::move(slim->weights);
  result.numbers = std::move(slim->numbers);
  result.kinds.merge(std::move(slim->kinds));
  return result;
}
