//===- NodeCheck.cpp - Nodes held against their operators' schemas --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "NodeCheck.h"

#include "Schemas.h"
#include "Types.h"

#include <onnx/defs/data_type_utils.h>

using namespace ax;
using namespace ax::import;
using onnx::TypeProto;

/// Longer inputs decide no shapes.
static constexpr int64_t maxInferredElements = 1024;

TypeProto ax::import::toTypeProto(const Entry &entry) {
  TypeProto type;
  if (entry.isEmpty())
    return type;
  TypeProto::Tensor *tensor = nullptr;
  Value value = entry.tensor;
  if (entry.sequence) {
    tensor = type.mutable_sequence_type()
                 ->mutable_elem_type()
                 ->mutable_tensor_type();
    if (entry.sequence->empty())
      return type;
    value = entry.sequence->front();
  } else {
    tensor = type.mutable_tensor_type();
  }
  tensor->set_elem_type(toOnnxType(Emitter::typeOf(value)));
  if (!entry.sequence) {
    tensor->mutable_shape();
    for (int64_t size : Emitter::shapeOf(value))
      tensor->mutable_shape()->add_dim()->set_dim_value(size);
  }
  return type;
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

static std::string nameOf(const Entry &entry) {
  if (!entry.sequence)
    return toString(Emitter::typeOf(entry.tensor));
  return std::string("a sequence of ") +
         toString(Emitter::typeOf(entry.sequence->front()));
}

static bool isAllowed(const onnx::DataTypeSet &types, onnx::DataType type) {
  return types.count(type) || llvm::any_of(types, [&](onnx::DataType allowed) {
           return *allowed == "optional(" + *type + ")";
         });
}

/// Later operator sets take more types, with no other meaning: exporters write
/// bf16 into models of any set.
static bool isAllowedNow(const onnx::OpSchema &schema, int input,
                         onnx::DataType type) {
  const onnx::OpSchema *newest =
      findSchema(schema.domain(), schema.Name(), newestOpset());
  if (!newest || newest->inputs().empty())
    return false;
  size_t last = newest->inputs().size() - 1;
  const auto &formal = newest->inputs()[std::min<size_t>(input, last)];
  return isAllowed(formal.GetTypes(), type);
}

bool ax::import::checkInputTypes(Node &node, const onnx::OpSchema &schema) {
  const auto &formals = schema.inputs();
  std::map<std::string, int> first;
  for (int i = 0; i < node.numInputs() && !formals.empty(); ++i) {
    const Entry &entry = node.entry(i);
    // An empty sequence is of any type.
    if (!node.has(i) || (entry.sequence && entry.sequence->empty()))
      continue;
    const auto &formal = formals[std::min<size_t>(i, formals.size() - 1)];
    onnx::DataType type =
        onnx::Utils::DataTypeUtils::ToType(toTypeProto(entry));
    if (!isAllowed(formal.GetTypes(), type) && !isAllowedNow(schema, i, type)) {
      node.fail("input " + llvm::Twine(i) + " ('" + formal.GetName() +
                "') is " + nameOf(entry) + ", which " + schema.Name() +
                " of operator set " + llvm::Twine(node.opset) +
                " does not take");
      return false;
    }
    if (!formal.GetIsHomogeneous())
      continue;
    auto [same, isNew] = first.emplace(formal.GetTypeStr(), i);
    const Entry &other = node.entry(same->second);
    if (!isNew && nameOf(other) != nameOf(entry)) {
      node.fail("inputs " + llvm::Twine(same->second) + " and " +
                llvm::Twine(i) + " must be of one type, and are " +
                nameOf(other) + " and " + nameOf(entry));
      return false;
    }
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

namespace {

class NodeInference : public onnx::InferenceContext {
public:
  explicit NodeInference(Node &node)
      : node(node), data(node.numInputs()), outputs(node.numOutputs()) {
    for (int i = 0; i < node.numInputs(); ++i)
      inputs.push_back(toTypeProto(node.entry(i)));
  }

  const onnx::AttributeProto *
  getAttribute(const std::string &name) const override {
    return node.attribute(name);
  }
  size_t getNumInputs() const override { return inputs.size(); }
  bool hasInput(size_t i) const override {
    return node.has(static_cast<int>(i));
  }
  const TypeProto *getInputType(size_t i) const override {
    return hasInput(i) ? &inputs[i] : nullptr;
  }
  const onnx::TensorProto *getInputData(size_t i) const override;
  const onnx::SparseTensorProto *getInputSparseData(size_t) const override {
    return nullptr;
  }
  const onnx::TensorShapeProto *getSymbolicInput(size_t) const override {
    return nullptr;
  }
  size_t getNumOutputs() const override { return outputs.size(); }
  TypeProto *getOutputType(size_t i) override { return &outputs[i]; }
  onnx::GraphInferencer *
  getGraphAttributeInferencer(const std::string &) override {
    return nullptr;
  }

private:
  Node &node;
  std::vector<TypeProto> inputs;
  mutable std::vector<std::optional<onnx::TensorProto>> data;
  std::vector<TypeProto> outputs;
};

} // namespace

const onnx::TensorProto *NodeInference::getInputData(size_t i) const {
  if (!hasInput(i))
    return nullptr;
  Value value = node.entry(static_cast<int>(i)).tensor;
  if (!value || Emitter::numElementsOf(value) > maxInferredElements)
    return nullptr;
  if (!data[i])
    if (std::optional<HostTensor> known = node.b.knownValue(value))
      data[i] = toTensorProto(*known, "");
  return data[i] ? &*data[i] : nullptr;
}

/// Numbers of four bits have more here.
static int32_t asRead(int32_t type) {
  std::optional<FourBits::Kind> kind = fourBitKind(type);
  return kind ? toOnnxType(typeOf(*kind)) : type;
}

/// Whether inference, which may leave dimensions open, found what `entry` is.
static bool agrees(const TypeProto &inferred, const Entry &entry) {
  if (!entry.tensor || !inferred.has_tensor_type())
    return true;
  const TypeProto::Tensor &tensor = inferred.tensor_type();
  if (tensor.elem_type() != onnx::TensorProto::UNDEFINED &&
      asRead(tensor.elem_type()) != toOnnxType(Emitter::typeOf(entry.tensor)))
    return false;
  if (!tensor.has_shape())
    return true;
  ArrayRef<int64_t> shape = Emitter::shapeOf(entry.tensor);
  if (tensor.shape().dim_size() != static_cast<int>(shape.size()))
    return false;
  for (auto [dim, size] : llvm::zip(tensor.shape().dim(), shape))
    if (dim.has_dim_value() && dim.dim_value() != size)
      return false;
  return true;
}

/// Entries do not say whether they are optional.
static bool takesOptionals(const onnx::OpSchema &schema) {
  auto isOptional = [](const onnx::OpSchema::FormalParameter &formal) {
    return llvm::any_of(formal.GetTypes(), [](onnx::DataType type) {
      return llvm::StringRef(*type).starts_with("optional(");
    });
  };
  return llvm::any_of(schema.inputs(), isOptional) ||
         llvm::any_of(schema.outputs(), isOptional);
}

/// Nor of which type the elements of an empty sequence would be.
static bool hasEmptySequence(const Node &node) {
  for (int i = 0; i < node.numInputs(); ++i)
    if (node.has(i) && node.entry(i).sequence &&
        node.entry(i).sequence->empty())
      return true;
  return false;
}

bool ax::import::checkOutputTypes(Node &node, const onnx::OpSchema &schema,
                                  ArrayRef<Entry> outputs) {
  // Those of graphs in nodes are checked node by node.
  bool hasGraphs = llvm::any_of(
      node.proto.attribute(),
      [](const onnx::AttributeProto &attribute) { return attribute.has_g(); });
  // ONNX's own body of AffineGrid gives Range tensors of one element, which its
  // inference refuses. Of STFT's `onesided` inference believes that it is 0
  // unless said, and sizes by scales it multiplies with more digits than these
  // have.
  bool isLooser = llvm::is_contained({"Range", "STFT", "Resize", "Upsample"},
                                     llvm::StringRef(schema.Name()));
  if (hasGraphs || isLooser || takesOptionals(schema) ||
      hasEmptySequence(node) || !schema.has_type_and_shape_inference_function())
    return true;
  NodeInference inference(node);
  std::string fault;
  try {
    schema.GetTypeAndShapeInferenceFunction()(inference);
  } catch (const std::exception &exception) {
    fault = firstReason(exception.what());
  }
  if (!fault.empty()) {
    node.fail(fault);
    return false;
  }
  for (auto [i, entry] : llvm::enumerate(outputs))
    if (!agrees(*inference.getOutputType(i), entry)) {
      node.unsupported("output " + llvm::Twine(i) +
                       " is not of the type and shape that ONNX infers");
      return false;
    }
  return true;
}
