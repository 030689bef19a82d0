//===- TensorHeader.cpp - An initializer without its data -----------------===//

#include "TensorHeader.h"

#include "Types.h"
#include "WireFormat.h"

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
