//===- SlimModel.cpp - A model's bytes without its weights ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SlimModel.h"

#include "TensorHeader.h"
#include "Types.h"
#include "ax/Support/WireFormat.h"

#include "ax/Support/Error.h"

#include <onnx/onnx_pb.h>

#include <limits>

using namespace ax;
using namespace ax::import;
using onnx::GraphProto;
using onnx::ModelProto;

namespace {

class Slimmer {
public:
  Slimmer(ModelFolder &folder, SlimModel &result)
      : folder(folder), result(result) {}

  llvm::Error run() {
    auto file = folder.openModel();
    if (!file)
      return file.takeError();
    model = (*file)->bytes();
    if (model.empty())
      return malformed("the file is empty");
    return walkModel();
  }

private:
  llvm::Error malformed(const llvm::Twine &what) {
    return makeErrorf(ExitCode::BadModel, "'{0}/{1}' is not an ONNX model: {2}",
                      folder.getPath(), folder.getModelFile(), what.str());
  }
  llvm::Error walkModel();
  llvm::Error walkGraph(llvm::ArrayRef<uint8_t> graph, std::string &out);
  llvm::Error visitInitializer(const WireField &field, std::string &out);
  llvm::Error visitConstant(const ConstantNode &constant, std::string &out);
  llvm::Error visitTensor(const TensorHeader &given, const WireField &field,
                          std::string &out);

  ModelFolder &folder;
  SlimModel &result;
  llvm::ArrayRef<uint8_t> model;
};

} // namespace

static void append(std::string &out, llvm::ArrayRef<uint8_t> bytes) {
  out.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
}

llvm::Error Slimmer::walkModel() {
  WireReader reader(model);
  WireField field;
  bool sawGraph = false;
  while (reader.read(field)) {
    if (field.number != ModelProto::kGraphFieldNumber) {
      append(result.bytes, field.whole);
      continue;
    }
    // Protobuf would merge them; no exporter writes such a file.
    if (sawGraph || field.type != WireType::Bytes)
      return malformed("it has more than one graph");
    sawGraph = true;
    std::string graph;
    if (llvm::Error error = walkGraph(field.bytes, graph))
      return error;
    appendBytesField(result.bytes, ModelProto::kGraphFieldNumber, graph);
  }
  if (reader.isMalformed())
    return malformed("its bytes are damaged or cut off");
  if (!sawGraph)
    return malformed("it has no graph");
  return llvm::Error::success();
}

llvm::Error Slimmer::walkGraph(llvm::ArrayRef<uint8_t> graph,
                               std::string &out) {
  WeightNodes nodes(graph);
  WireReader reader(graph);
  WireField field;
  while (reader.read(field)) {
    if (field.number == GraphProto::kInitializerFieldNumber &&
        field.type == WireType::Bytes) {
      if (llvm::Error error = visitInitializer(field, out))
        return error;
    } else if (field.number == GraphProto::kNodeFieldNumber &&
               field.type == WireType::Bytes) {
      auto constant = nodes.read(field.bytes);
      if (!constant)
        append(out, field.whole);
      else if (llvm::Error error = visitConstant(*constant, out))
        return error;
    } else {
      append(out, field.whole);
    }
  }
  if (reader.isMalformed())
    return malformed("its graph is damaged or cut off");
  return llvm::Error::success();
}

llvm::Error Slimmer::visitInitializer(const WireField &field,
                                      std::string &out) {
  TensorHeader header;
  if (!readTensorHeader(field.bytes, header))
    return malformed("an initializer is damaged");
  if (header.kind)
    result.kinds.emplace(header.name, *header.kind);
  return visitTensor(header, field, out);
}

/// Writes the constant as an initializer.
llvm::Error Slimmer::visitConstant(const ConstantNode &constant,
                                   std::string &out) {
  result.constants.insert(constant.header.name);
  std::string whole;
  if (!constant.isLarge) {
    // Of several names the last counts.
    std::string tensor(constant.tensor.begin(), constant.tensor.end());
    appendBytesField(tensor, onnx::TensorProto::kNameFieldNumber,
                     constant.header.name);
    appendBytesField(whole, GraphProto::kInitializerFieldNumber, tensor);
  }
  WireField field;
  field.whole = llvm::ArrayRef(reinterpret_cast<const uint8_t *>(whole.data()),
                               whole.size());
  return visitTensor(constant.header, field, out);
}

llvm::Error Slimmer::visitTensor(const TensorHeader &given,
                                 const WireField &field, std::string &out) {
  TensorHeader header = given;
  std::optional<FourBits> fourBits;
  if (fourBitKind(given.type)) {
    fourBits = {*fourBitKind(given.type), given.dims};
    header.type = onnx::TensorProto::UINT8;
    header.dims = fourBits->ofBytes();
  }
  std::optional<DType> type = fromOnnxType(header.type);
  if (!header.external && !(type && isInPlace(header))) {
    append(out, field.whole);
    return llvm::Error::success();
  }
  if (header.external && !type)
    return makeErrorf(
        ExitCode::Unsupported,
        "tensor '{0}' has element type {1}, which is not supported",
        header.name, onnxTypeName(header.type));

  llvm::Expected<Weight> weight = locateTensor(folder, model, header, *type);
  if (!weight)
    return weight.takeError();
  weight->fourBits = fourBits;
  // What is missing cannot be held either.
  bool large = weight->length > maxInlineBytes || folder.lacks(weight->file);
  bool isState = large || (isFloat(*type) && weight->length > byteSize(*type));
  if (!large) {
    if (header.external) {
      llvm::Expected<HostTensor> tensor = folder.read(*weight);
      if (tensor && fourBits)
        tensor = unpack(tensor->rawBytes(), *fourBits);
      if (!tensor)
        return tensor.takeError();
      appendBytesField(out, GraphProto::kInitializerFieldNumber,
                       toTensorProto(*tensor, header.name).SerializeAsString());
    } else {
      append(out, field.whole);
    }
  }
  if (!isState) {
    if (isFloat(*type) && weight->length == byteSize(*type))
      result.numbers.emplace(header.name, std::move(*weight));
    return llvm::Error::success();
  }
  if (header.name.empty())
    return makeErrorf(ExitCode::BadModel,
                      "an initializer of {0}x{1} has no name",
                      shapeToString(header.dims), toString(*type));
  if (large)
    result.removed.push_back(header.name);
  if (!result.weights.emplace(header.name, std::move(*weight)).second)
    return makeErrorf(ExitCode::BadModel,
                      "there are two initializers named '{0}'", header.name);
  return llvm::Error::success();
}

llvm::Error ax::import::parseSlim(const SlimModel &slim,
                                  onnx::ModelProto &model) {
  if (slim.bytes.size() > std::numeric_limits<int>::max() ||
      !model.ParseFromArray(slim.bytes.data(),
                            static_cast<int>(slim.bytes.size())))
    return makeErrorf(ExitCode::BadModel, "protobuf cannot parse it");
  return llvm::Error::success();
}

llvm::Expected<SlimModel> ax::import::slimModel(ModelFolder &folder) {
  SlimModel result;
  if (llvm::Error error = Slimmer(folder, result).run())
    return error;
  if (llvm::all_of(llvm::make_first_range(result.weights),
                   [&](const std::string &name) {
                     return result.constants.count(name) > 0;
                   }))
    result.constants.clear();
  return result;
}
