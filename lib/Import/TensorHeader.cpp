//===- TensorHeader.cpp - An initializer without its data -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TensorHeader.h"

#include "Types.h"
#include "ax/Support/WireFormat.h"

#include "ax/Support/Error.h"

#include <onnx/onnx_pb.h>

using namespace ax;
using namespace ax::import;
using onnx::TensorProto;

static bool readEntry(const WireField &field,
                      onnx::StringStringEntryProto &entry) {
  return field.type == WireType::Bytes &&
         entry.ParseFromArray(field.bytes.data(),
                              static_cast<int>(field.bytes.size()));
}

bool ax::import::readTensorHeader(llvm::ArrayRef<uint8_t> tensor,
                                  TensorHeader &header) {
  WireReader reader(tensor);
  WireField field;
  while (reader.read(field)) {
    switch (field.number) {
    case TensorProto::kDimsFieldNumber:
      if (field.type == WireType::Bytes) {
        // Packed varints: read them as the fields of no message would be.
        TensorProto dims;
        if (!dims.ParseFromArray(field.whole.data(),
                                 static_cast<int>(field.whole.size())))
          return false;
        header.dims.insert(header.dims.end(), dims.dims().begin(),
                           dims.dims().end());
      } else {
        header.dims.push_back(static_cast<int64_t>(field.value));
      }
      break;
    case TensorProto::kDataTypeFieldNumber:
      header.type = static_cast<int32_t>(field.value);
      break;
    case TensorProto::kNameFieldNumber:
      header.name = field.text().str();
      break;
    case TensorProto::kRawDataFieldNumber:
    case TensorProto::kFloatDataFieldNumber:
    case TensorProto::kDoubleDataFieldNumber:
      if (field.number != TensorProto::kRawDataFieldNumber)
        header.dataType = field.number == TensorProto::kFloatDataFieldNumber
                              ? TensorProto::FLOAT
                              : TensorProto::DOUBLE;
      header.data = field.type == WireType::Bytes ? field.bytes
                                                  : llvm::ArrayRef<uint8_t>();
      ++header.numDataFields;
      break;
    case TensorProto::kInt32DataFieldNumber:
    case TensorProto::kInt64DataFieldNumber:
    case TensorProto::kUint64DataFieldNumber:
    case TensorProto::kStringDataFieldNumber:
    case TensorProto::kSegmentFieldNumber:
      header.data = {};
      header.numDataFields += 2;
      break;
    case TensorProto::kDataLocationFieldNumber:
      header.external = field.value == TensorProto::EXTERNAL;
      break;
    case TensorProto::kExternalDataFieldNumber: {
      onnx::StringStringEntryProto entry;
      if (!readEntry(field, entry))
        return false;
      if (entry.key() == "location")
        header.location = entry.value();
      else if (entry.key() == "offset")
        header.offset = entry.value();
      else if (entry.key() == "length")
        header.length = entry.value();
      break;
    }
    case TensorProto::kMetadataPropsFieldNumber: {
      onnx::StringStringEntryProto entry;
      if (!readEntry(field, entry))
        return false;
      if (std::optional<WeightKind> kind = declaredKind(entry))
        header.kind = kind;
      break;
    }
    default:
      break;
    }
  }
  return !reader.isMalformed();
}

/// The last field of that number, as protobuf reads what is there twice.
static WireField lastField(llvm::ArrayRef<uint8_t> message, uint32_t number,
                           int &count) {
  WireReader reader(message);
  WireField field, last;
  count = 0;
  while (reader.read(field))
    if (field.number == number) {
      last = field;
      ++count;
    }
  if (reader.isMalformed())
    count = -1;
  return last;
}

static std::optional<ConstantNode>
readConstantNode(llvm::ArrayRef<uint8_t> node) {
  using onnx::AttributeProto;
  using onnx::NodeProto;
  auto only = [](llvm::ArrayRef<uint8_t> message, uint32_t number) {
    int count;
    WireField field = lastField(message, number, count);
    return count == 1 && field.type == WireType::Bytes ? std::optional(field)
                                                       : std::nullopt;
  };
  auto type = only(node, NodeProto::kOpTypeFieldNumber);
  auto output = only(node, NodeProto::kOutputFieldNumber);
  if (!type || type->text() != "Constant" || !output || output->bytes.empty())
    return std::nullopt;
  int count;
  WireField domain = lastField(node, NodeProto::kDomainFieldNumber, count);
  if (count < 0 || !(domain.text().empty() || domain.text() == "ai.onnx"))
    return std::nullopt;
  auto attribute = only(node, NodeProto::kAttributeFieldNumber);
  if (!attribute)
    return std::nullopt;
  auto name = only(attribute->bytes, AttributeProto::kNameFieldNumber);
  auto tensor = only(attribute->bytes, AttributeProto::kTFieldNumber);
  ConstantNode result;
  if (!name || name->text() != "value" || !tensor ||
      !readTensorHeader(tensor->bytes, result.header))
    return std::nullopt;
  result.header.name = output->text().str();
  result.node = node;
  result.attribute = attribute->bytes;
  result.tensor = tensor->bytes;
  return result;
}

/// Whether it is what layers have: numbers, and more than one.
static bool isFloatTensor(const TensorHeader &header) {
  std::optional<DType> type = fromOnnxType(header.type);
  return type && isFloat(*type) &&
         checkedNumElements(header.dims).value_or(0) > 1;
}

WeightNodes::WeightNodes(llvm::ArrayRef<uint8_t> graph) {
  using onnx::GraphProto;
  WireReader reader(graph);
  WireField field;
  while (!hasInitializers && reader.read(field)) {
    TensorHeader header;
    hasInitializers = field.number == GraphProto::kInitializerFieldNumber &&
                      field.type == WireType::Bytes &&
                      readTensorHeader(field.bytes, header) &&
                      isFloatTensor(header);
  }
}

std::optional<ConstantNode>
WeightNodes::read(llvm::ArrayRef<uint8_t> node) const {
  std::optional<ConstantNode> constant = readConstantNode(node);
  if (!constant)
    return std::nullopt;
  const TensorHeader &header = constant->header;
  std::optional<DType> type = fromOnnxType(header.type);
  auto count = type ? checkedNumElements(header.dims, byteSize(*type))
                    : std::optional<int64_t>();
  if (!count)
    return std::nullopt;
  constant->isLarge = *count * byteSize(*type) > maxInlineBytes;
  bool isOfLayer = !hasInitializers && isFloatTensor(header);
  bool isWeight = header.external ||
                  (isInPlace(header) && (constant->isLarge || isOfLayer));
  return isWeight ? constant : std::nullopt;
}

llvm::Expected<Weight> ax::import::locateTensor(ModelFolder &folder,
                                                llvm::ArrayRef<uint8_t> model,
                                                const TensorHeader &header,
                                                DType type) {
  llvm::Expected<int64_t> count = countElements(header.name, header.dims, type);
  if (!count)
    return count.takeError();
  Weight weight;
  weight.type = type;
  weight.shape = header.dims;
  weight.length = *count * byteSize(type);
  if (!header.external) {
    weight.file = folder.getModelFile();
    weight.offset = header.data.data() - model.data();
    if (static_cast<int64_t>(header.data.size()) != weight.length)
      return makeErrorf(ExitCode::BadModel,
                        "tensor '{0}' of {1}x{2} needs {3} bytes and has {4}",
                        header.name, shapeToString(header.dims), toString(type),
                        weight.length, header.data.size());
    return weight;
  }

  weight.file = header.location;
  int64_t length = weight.length;
  if (header.offset &&
      llvm::StringRef(*header.offset).getAsInteger(10, weight.offset))
    return makeErrorf(ExitCode::BadModel,
                      "external tensor '{0}' has offset '{1}', not a number",
                      header.name, *header.offset);
  if (header.length && llvm::StringRef(*header.length).getAsInteger(10, length))
    return makeErrorf(ExitCode::BadModel,
                      "external tensor '{0}' has length '{1}', not a number",
                      header.name, *header.length);
  if (length != weight.length)
    return makeErrorf(ExitCode::BadModel,
                      "external tensor '{0}' of {1}x{2} needs {3} bytes, its "
                      "length says {4}",
                      header.name, shapeToString(header.dims), toString(type),
                      weight.length, length);
  if (folder.lacks(weight.file))
    return weight;
  auto file = folder.open(weight.file);
  if (!file)
    return addContext(file.takeError(), "tensor '" + header.name + "'");
  int64_t size = (*file)->getSize();
  if (weight.offset < 0 || weight.offset > size ||
      weight.length > size - weight.offset)
    return makeErrorf(ExitCode::BadModel,
                      "external tensor '{0}' needs {1} bytes at offset {2} of "
                      "'{3}', which has {4} bytes",
                      header.name, weight.length, weight.offset, weight.file,
                      size);
  return weight;
}
