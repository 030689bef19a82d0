//===- Describe.cpp - What a model's file says of itself ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Import/Describe.h"

#include "Operators.h"
#include "Prepare.h"
#include "Schemas.h"
#include "SlimModel.h"
#include "Types.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"

using namespace ax;
using namespace ax::import;

static ModelPort describePort(const onnx::ValueInfoProto &value) {
  ModelPort port;
  port.name = value.name();
  if (!value.type().has_tensor_type()) {
    port.type = value.type().has_sequence_type()   ? "sequence"
                : value.type().has_optional_type() ? "optional"
                : value.has_type()                 ? "no tensor"
                                                   : "?";
    return port;
  }
  const onnx::TypeProto::Tensor &tensor = value.type().tensor_type();
  std::optional<DType> type = fromOnnxType(tensor.elem_type());
  port.type = type ? toString(*type) : onnxTypeName(tensor.elem_type());
  if (!tensor.has_shape())
    return port;
  port.dims.emplace();
  for (const auto &dim : tensor.shape().dim()) {
    ModelDim &made = port.dims->emplace_back();
    if (dim.has_dim_value() && dim.dim_value() >= 0)
      made.size = dim.dim_value();
    else
      made.symbol = dim.dim_param();
  }
  return port;
}

/// PyTorch's exporters leave different traces.
static std::string exporterOf(const onnx::ModelProto &model, bool hasKinds) {
  if (model.producer_name() != "pytorch")
    return "";
  bool isDynamo = hasKinds;
  for (const onnx::NodeProto &node : model.graph().node()) {
    isDynamo |= llvm::StringRef(node.domain()).starts_with("pkg.");
    for (const onnx::StringStringEntryProto &entry : node.metadata_props())
      isDynamo |= llvm::StringRef(entry.key()).starts_with("pkg.torch.");
  }
  return isDynamo ? "dynamo" : "TorchScript";
}

llvm::Expected<ModelDescription>
ax::import::describeModel(llvm::StringRef path) {
  ModelFolder folder(path, /*mayLackData=*/true);
  llvm::Expected<SlimModel> slim = slimModel(folder);
  if (!slim)
    return slim.takeError();
  onnx::ModelProto model;
  if (llvm::Error error = parseSlim(*slim, model))
    return addContext(std::move(error), "'" + path + "'");

  ModelDescription result;
  result.irVersion = model.ir_version();
  result.producer = model.producer_name();
  result.producerVersion = model.producer_version();
  WeightKinds declared = std::move(slim->kinds);
  collectDeclared(model, slim->constants, declared);
  result.exporter = exporterOf(model, areParametersDeclared(declared));
  for (const onnx::OperatorSetIdProto &opset : model.opset_import())
    result.opsets.emplace_back(isDefaultDomain(opset.domain()) ? "ai.onnx"
                                                               : opset.domain(),
                               opset.version());
  result.operators = findOperators(
      model, std::max(static_cast<int>(importedOpset(model, newestOpset())),
                      oldestOpset));

  llvm::StringSet<> initializers;
  for (const onnx::TensorProto &tensor : model.graph().initializer())
    initializers.insert(tensor.name());
  for (const onnx::ValueInfoProto &input : model.graph().input())
    if (!initializers.contains(input.name()) &&
        !slim->weights.count(input.name()))
      result.inputs.push_back(describePort(input));
  for (const onnx::ValueInfoProto &output : model.graph().output())
    result.outputs.push_back(describePort(output));
  for (const auto &[name, weight] : slim->weights)
    result.weights.push_back({stateName(name), weight.type, weight.shape,
                              weight.file, weight.offset, weight.length});
  std::set<std::string> files = filesOf(folder);
  files.erase(folder.getModelFile());
  std::vector<std::string> names{folder.getModelFile()};
  names.insert(names.end(), files.begin(), files.end());
  for (const std::string &name : names) {
    uint64_t size = 0;
    bool isMissing =
        bool(llvm::sys::fs::file_size(folder.getPath() + "/" + name, size));
    result.files.push_back(
        {name, isMissing ? std::nullopt : std::optional<int64_t>(size)});
  }
  return result;
}
