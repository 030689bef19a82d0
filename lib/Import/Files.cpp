//===- Files.cpp - Files that a model is made of --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Import/Import.h"

#include "ImportWith.h"
#include "TensorHeader.h"
#include "ax/Support/WireFormat.h"

#include <onnx/onnx_pb.h>

#include <set>

using namespace ax;
using namespace ax::import;
using onnx::AttributeProto;
using onnx::FunctionProto;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::NodeProto;
using onnx::SparseTensorProto;
using onnx::TrainingInfoProto;

namespace {

enum class Message {
  Model,
  Training,
  Graph,
  Function,
  Node,
  Attribute,
  SparseTensor,
  Tensor
};

/// A field through which tensors are reached.
struct Field {
  Message of;
  uint32_t number;
  Message holds;
};

struct Found {
  Message kind;
  llvm::ArrayRef<uint8_t> bytes;
};

} // namespace

static constexpr Field fields[] = {
    {Message::Model, ModelProto::kGraphFieldNumber, Message::Graph},
    {Message::Model, ModelProto::kFunctionsFieldNumber, Message::Function},
    {Message::Model, ModelProto::kTrainingInfoFieldNumber, Message::Training},
    {Message::Training, TrainingInfoProto::kInitializationFieldNumber,
     Message::Graph},
    {Message::Training, TrainingInfoProto::kAlgorithmFieldNumber,
     Message::Graph},
    {Message::Graph, GraphProto::kInitializerFieldNumber, Message::Tensor},
    {Message::Graph, GraphProto::kSparseInitializerFieldNumber,
     Message::SparseTensor},
    {Message::Graph, GraphProto::kNodeFieldNumber, Message::Node},
    {Message::Function, FunctionProto::kNodeFieldNumber, Message::Node},
    {Message::Function, FunctionProto::kAttributeProtoFieldNumber,
     Message::Attribute},
    {Message::Node, NodeProto::kAttributeFieldNumber, Message::Attribute},
    {Message::Attribute, AttributeProto::kTFieldNumber, Message::Tensor},
    {Message::Attribute, AttributeProto::kTensorsFieldNumber, Message::Tensor},
    {Message::Attribute, AttributeProto::kSparseTensorFieldNumber,
     Message::SparseTensor},
    {Message::Attribute, AttributeProto::kSparseTensorsFieldNumber,
     Message::SparseTensor},
    {Message::SparseTensor, SparseTensorProto::kValuesFieldNumber,
     Message::Tensor},
    {Message::SparseTensor, SparseTensorProto::kIndicesFieldNumber,
     Message::Tensor},
    {Message::Attribute, AttributeProto::kGFieldNumber, Message::Graph},
    {Message::Attribute, AttributeProto::kGraphsFieldNumber, Message::Graph},
};

std::set<std::string> ax::import::filesOf(ModelFolder &folder) {
  std::set<std::string> files{folder.getModelFile()};
  auto model = folder.openModel();
  if (!model) {
    llvm::consumeError(model.takeError());
    return files;
  }
  std::vector<Found> left{{Message::Model, (*model)->bytes()}};
  while (!left.empty()) {
    Found message = left.back();
    left.pop_back();
    TensorHeader header;
    if (message.kind == Message::Tensor) {
      if (readTensorHeader(message.bytes, header) && header.external)
        files.insert(header.location);
      continue;
    }
    WireReader reader(message.bytes);
    WireField read;
    while (reader.read(read))
      for (const Field &field : fields)
        if (field.of == message.kind && field.number == read.number &&
            read.type == WireType::Bytes)
          left.push_back({field.holds, read.bytes});
  }
  return files;
}

std::vector<std::string> ax::import::filesOfModel(llvm::StringRef model) {
  ModelFolder folder(model);
  std::vector<std::string> paths;
  for (const std::string &file : filesOf(folder))
    paths.push_back(folder.getPath() + "/" + file);
  return paths;
}

llvm::Expected<mlir::DictionaryAttr>
ax::import::fingerprints(PlanOp plan, ModelFolder &folder) {
  mlir::Builder builder(plan.getContext());
  mlir::NamedAttrList files;
  // What no state is in is still what the plan was made from.
  for (const std::string &name : filesOf(folder))
    if (auto file = folder.openEither(name))
      files.set(name, builder.getStringAttr((*file)->fingerprint()));
    else
      llvm::consumeError(file.takeError());
  for (auto state : plan.getBody().getOps<StateOp>()) {
    if (state.getFile().empty() || files.get(state.getFile()) ||
        folder.lacks(state.getFile()))
      continue;
    auto file = folder.openEither(state.getFile());
    if (!file)
      return file.takeError();
    files.set(state.getFile(), builder.getStringAttr((*file)->fingerprint()));
  }
  return files.getDictionary(plan.getContext());
}
