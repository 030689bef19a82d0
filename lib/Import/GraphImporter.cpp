//===- GraphImporter.cpp - Walks graphs, node by node ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GraphImporter.h"

#include "AttributeRules.h"
#include "NodeCheck.h"
#include "Operators.h"
#include "Schemas.h"
#include "Types.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SaveAndRestore.h"

#include <map>

using namespace ax;
using namespace ax::import;
using onnx::AttributeProto;
using onnx::NodeProto;
template <typename T>
using Repeated = google::protobuf::RepeatedPtrField<T>;

/// Functions and subgraphs inside each other.
static constexpr int maxDepth = 32;
/// Letters of a message about the types of a node's inputs.
static constexpr size_t maxTypes = 200;

static std::string describeType(const Entry &entry) {
  if (entry.isEmpty())
    return "nothing";
  if (entry.sequence)
    return "sequence of " + std::to_string(entry.sequence->size());
  std::string text = shapeToString(Emitter::shapeOf(entry.tensor));
  return text + (text.empty() ? "" : "x") +
         toString(Emitter::typeOf(entry.tensor));
}

//===----------------------------------------------------------------------===//
// Subgraphs
//===----------------------------------------------------------------------===//

class GraphImporter::Subgraphs : public SubgraphRunner {
public:
  Subgraphs(GraphImporter &importer, const Scope &around)
      : importer(importer), around(around) {}

  std::vector<Entry> run(const onnx::GraphProto &graph,
                         ArrayRef<Entry> inputs) override {
    Emitter &b = importer.b;
    std::vector<Entry> outputs;
    // Bodies without nodes count too, for a loop over one may have no end.
    if (b.hasFailed() || !importer.countNode())
      return outputs;
    if (static_cast<int>(inputs.size()) != graph.input_size()) {
      b.fail(ExitCode::BadModel,
             llvm::formatv("its graph takes {0} inputs and is given {1}",
                           graph.input_size(), inputs.size()));
      return outputs;
    }
    Scope scope;
    scope.parent = &around;
    for (int i = 0; i < graph.input_size(); ++i)
      scope.entries[graph.input(i).name()] = inputs[i];
    mlir::Location outer = b.getLocation();
    if (importer.importInitializers(graph, scope) &&
        importer.importNodes(graph.node(), scope))
      importer.collectOutputs(graph.output(), scope, outputs);
    b.setLocation(outer);
    return outputs;
  }

private:
  GraphImporter &importer;
  const Scope &around;
};

//===----------------------------------------------------------------------===//
// Graphs and nodes
//===----------------------------------------------------------------------===//

bool GraphImporter::importInitializers(const onnx::GraphProto &graph,
                                       Scope &scope) {
  for (const onnx::TensorProto &proto : graph.initializer()) {
    bool isMain = &graph == &model.proto.graph();
    auto weight = model.weights.find(proto.name());
    if (isMain && weight != model.weights.end()) {
      scope.entries[proto.name()] = Entry(b.load(proto.name(), weight->second));
      continue;
    }
    llvm::Expected<HostTensor> tensor = toHostTensor(proto);
    if (!tensor) {
      ErrorDescription why = describeError(tensor.takeError());
      b.fail(why.code, why.message);
      return false;
    }
    b.noteFolded(stateName(proto.name()), *tensor);
    Value constant = b.constant(std::move(*tensor));
    if (fourBitKind(proto.data_type()))
      b.noteFourBits(constant);
    scope.entries[proto.name()] = Entry(constant);
  }
  if (graph.sparse_initializer_size()) {
    b.fail(ExitCode::Unsupported, "sparse initializers are not supported");
    return false;
  }
  return true;
}

bool GraphImporter::importNodes(const Repeated<NodeProto> &nodes,
                                Scope &scope) {
  if (++depth > maxDepth)
    b.fail(ExitCode::Unsupported, "subgraphs or functions are nested too deep");
  for (const NodeProto &node : nodes)
    if (b.hasFailed() || !importNode(node, scope))
      break;
  --depth;
  return !b.hasFailed();
}

/// Sizes may be declared wrongly, as by exporters of loops that change them;
/// of one number, and of the main graph, where nothing follows, ranks too.
static bool isAsDeclared(const onnx::ValueInfoProto &output, const Entry &entry,
                         bool isMain) {
  if (!output.type().has_tensor_type() || !entry.tensor)
    return true;
  const onnx::TypeProto::Tensor &type = output.type().tensor_type();
  bool hasType = type.elem_type() != onnx::TensorProto::UNDEFINED;
  return (!hasType ||
          type.elem_type() == toOnnxType(Emitter::typeOf(entry.tensor))) &&
         (isMain || !type.has_shape() ||
          Emitter::numElementsOf(entry.tensor) == 1 ||
          type.shape().dim_size() == Emitter::rankOf(entry.tensor));
}

bool GraphImporter::collectOutputs(
    const Repeated<onnx::ValueInfoProto> &outputs, const Scope &scope,
    std::vector<Entry> &entries) {
  for (const onnx::ValueInfoProto &output : outputs) {
    const Entry *entry = scope.find(output.name());
    if (!entry) {
      b.fail(ExitCode::BadModel,
             "output '" + output.name() + "' is made by no node");
      return false;
    }
    if (!isAsDeclared(output, *entry,
                      &outputs == &model.proto.graph().output())) {
      b.fail(ExitCode::BadModel, "output '" + output.name() +
                                     "' is declared of another type or rank "
                                     "than " +
                                     describeType(*entry));
      return false;
    }
    entries.push_back(*entry);
  }
  return true;
}

mlir::Location GraphImporter::locationOf(const NodeProto &proto) {
  if (outerLocation)
    return *outerLocation;
  mlir::MLIRContext *context = b.getOpBuilder().getContext();
  std::string name = proto.name();
  if (name.empty() && proto.output_size())
    name = proto.output(0);
  if (name.empty())
    name = proto.op_type();
  auto named = [&](const llvm::Twine &text, auto... child) {
    return mlir::NameLoc::get(mlir::StringAttr::get(context, text), child...);
  };
  mlir::Location node = named(name);
  if (!proto.output_size())
    return node;
  auto scope = model.scopes.find(proto.output(0));
  if (scope == model.scopes.end())
    return node;
  // `encoder.fc1/node_linear_3`: users know the module, viewers show the node.
  return named(scope->second + "/" + name,
               mlir::Location(named(scope->second, node)));
}

bool GraphImporter::countNode() {
  if (++numNodes <= maxNodes)
    return true;
  b.fail(ExitCode::Unsupported, "the model has too many nodes, its loops "
                                "unrolled");
  return false;
}

bool GraphImporter::importNode(const NodeProto &proto, Scope &scope) {
  if (!countNode())
    return false;
  std::vector<Entry> inputs;
  for (const std::string &name : proto.input()) {
    const Entry *entry = name.empty() ? nullptr : scope.find(name);
    if (!name.empty() && !entry) {
      b.fail(ExitCode::BadModel, "node " + describe(proto) + " (" +
                                     proto.op_type() + ") reads '" + name +
                                     "', which nothing before it makes");
      return false;
    }
    inputs.push_back(entry ? *entry : Entry());
  }
  auto setKinds = [&](ArrayRef<int> numbers, WeightKind kind) {
    for (int i : numbers)
      if (i < static_cast<int>(inputs.size()) && inputs[i].tensor)
        b.setKind(inputs[i].tensor, kind);
  };
  std::string name = qualifiedName(proto);
  setKinds(parameterInputs(name), WeightKind::LayerParameter);
  setKinds(bufferInputs(name), WeightKind::Buffer);
  b.setLocation(locationOf(proto));
  std::vector<Entry> outputs;
  Subgraphs subgraphs(*this, scope);
  Node node(b, proto, opset, inputs, subgraphs);
  const onnx::OpSchema *schema =
      findSchema(proto.domain(), proto.op_type(), opset);
  if (schema && checkAttributes(node, *schema))
    checkInputTypes(node, *schema);
  if (OpImporter importer =
          findImporter(proto.domain(), proto.op_type(), opset)) {
    b.beginNode();
    importer(node);
    outputs = node.takeOutputs();
    // Graphs in nodes were looked at node by node.
    bool hasGraphs = llvm::any_of(proto.attribute(),
                                  [](const auto &a) { return a.has_g(); });
    auto tensors = [](ArrayRef<Entry> entries) {
      std::vector<Value> all;
      for (const Entry &entry : entries) {
        all.push_back(entry.tensor);
        if (entry.sequence)
          llvm::append_range(all, *entry.sequence);
      }
      return all;
    };
    if (!hasGraphs)
      b.checkDropped(tensors(inputs), tensors(outputs));
  } else if (auto expanded = expandFunction(proto, inputs)) {
    outputs = std::move(*expanded);
  }
  // The bodies that ONNX gives are looser than its inference.
  if (schema && !b.hasFailed() && !isInSchema)
    checkOutputTypes(node, *schema, outputs);
  for (int i = 0; i < proto.output_size() && !b.hasFailed(); ++i) {
    if (proto.output(i).empty())
      continue;
    bool missing = i >= static_cast<int>(outputs.size());
    if (missing || (outputs[i].isEmpty() && proto.op_type() != "Optional" &&
                    proto.op_type() != "Identity"))
      b.fail(ExitCode::Unsupported,
             llvm::formatv("output {0} is not supported", i));
    else
      scope.entries[proto.output(i)] = std::move(outputs[i]);
  }
  if (b.hasFailed()) {
    std::string types;
    for (const Entry &entry : inputs)
      types += (types.empty() ? "" : ", ") + describeType(entry);
    types = shorten(types, maxTypes);
    b.addContext("node " + describe(proto) + " (" + proto.op_type() + " of " +
                 types + ")");
    return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Replaces references to the function's attributes by those of the call.
static void
bindAttributes(NodeProto &node,
               const std::map<std::string, AttributeProto> &values) {
  Repeated<AttributeProto> bound;
  for (const AttributeProto &attribute : node.attribute()) {
    if (attribute.ref_attr_name().empty()) {
      AttributeProto *copy = bound.Add();
      *copy = attribute;
      if (copy->has_g())
        for (NodeProto &inner : *copy->mutable_g()->mutable_node())
          bindAttributes(inner, values);
    } else if (auto value = values.find(attribute.ref_attr_name());
               value != values.end()) {
      AttributeProto *copy = bound.Add();
      *copy = value->second;
      copy->set_name(attribute.name());
    }
  }
  *node.mutable_attribute() = std::move(bound);
}

bool GraphImporter::findBody(const NodeProto &proto, ArrayRef<Entry> inputs,
                             onnx::FunctionProto &body) {
  std::map<std::string, AttributeProto> attributes;
  const onnx::FunctionProto *ofModel = findFunction(model.proto, proto);
  if (const onnx::OpSchema *schema =
          ofModel ? nullptr : findFunctionSchema(proto, opset)) {
    for (const auto &[name, attribute] : schema->attributes())
      if (attribute.default_value.has_name())
        attributes[name] = attribute.default_value;
    if (schema->HasFunction()) {
      ofModel = schema->GetFunction(opset);
    } else {
      std::vector<onnx::TypeProto> types;
      for (const Entry &entry : inputs)
        types.push_back(toTypeProto(entry));
      onnx::FunctionBodyBuildContextImpl context(proto, types);
      if (!schema->BuildContextDependentFunction(context, body, opset))
        return false;
      ofModel = &body;
    }
  }
  if (!ofModel)
    return false;
  if (ofModel != &body)
    body = *ofModel;
  for (const AttributeProto &attribute : body.attribute_proto())
    attributes[attribute.name()] = attribute;
  for (const AttributeProto &attribute : proto.attribute())
    attributes[attribute.name()] = attribute;
  for (NodeProto &node : *body.mutable_node())
    bindAttributes(node, attributes);
  return true;
}

std::optional<std::vector<Entry>>
GraphImporter::expandFunction(const NodeProto &proto, ArrayRef<Entry> inputs) {
  onnx::FunctionProto function;
  if (b.hasFailed() || !findBody(proto, inputs, function)) {
    b.fail(ExitCode::Unsupported, "this operator is not supported");
    return std::nullopt;
  }
  Scope scope;
  for (int i = 0; i < function.input_size(); ++i)
    scope.entries[function.input(i)] =
        i < static_cast<int>(inputs.size()) ? inputs[i] : Entry();
  llvm::SaveAndRestore<std::optional<mlir::Location>> at(outerLocation,
                                                         b.getLocation());
  llvm::SaveAndRestore<int> of(opset, importedOpset(function, opset));
  llvm::SaveAndRestore<bool> by(
      isInSchema, isInSchema || !findFunction(model.proto, proto));
  bool done = importNodes(function.node(), scope);
  if (!done)
    return std::nullopt;
  std::vector<Entry> outputs;
  for (const std::string &name : function.output()) {
    const Entry *entry = scope.find(name);
    outputs.push_back(entry ? *entry : Entry());
  }
  return outputs;
}
