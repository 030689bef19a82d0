//===- SlimModel.cpp - A model's bytes without its weights ----------------===//

#include "SlimModel.h"

#include "Types.h"
#include "WireFormat.h"

#include "ax/Support/Error.h"

#include <onnx/onnx_pb.h>

using namespace ax;
using namespace ax::import;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::TensorProto;

namespace {

/// What the wire says of one initializer.
struct TensorHeader {
  std::string name;
  Shape dims;
  int32_t type = 0;
  bool external = false;
  /// Data in the model's file that can be used in place.
  llvm::ArrayRef<uint8_t> data;
  /// Data fields seen, of any kind.
  int numDataFields = 0;
  std::string location;
  std::optional<std::string> offset, length;
};

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
  bool readHeader(llvm::ArrayRef<uint8_t> tensor, TensorHeader &header);
  llvm::Expected<Weight> locate(const TensorHeader &header, DType type);

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
  WireReader reader(graph);
  WireField field;
  while (reader.read(field)) {
    if (field.number == GraphProto::kInitializerFieldNumber &&
        field.type == WireType::Bytes) {
      if (llvm::Error error = visitInitializer(field, out))
        return error;
    } else {
      append(out, field.whole);
    }
  }
  if (reader.isMalformed())
    return malformed("its graph is damaged or cut off");
  return llvm::Error::success();
}

bool Slimmer::readHeader(llvm::ArrayRef<uint8_t> tensor, TensorHeader &header) {
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
      if (field.type != WireType::Bytes ||
          !entry.ParseFromArray(field.bytes.data(),
                                static_cast<int>(field.bytes.size())))
        return false;
      if (entry.key() == "location")
        header.location = entry.value();
      else if (entry.key() == "offset")
        header.offset = entry.value();
      else if (entry.key() == "length")
        header.length = entry.value();
      break;
    }
    default:
      break;
    }
  }
  return !reader.isMalformed();
}

/// Where the data of `header` lies; checks it against the file's size.
llvm::Expected<Weight> Slimmer::locate(const TensorHeader &header, DType type) {
  std::optional<int64_t> count =
      checkedNumElements(header.dims, byteSize(type));
  if (!count)
    return makeErrorf(ExitCode::BadModel,
                      "tensor '{0}' has impossible shape {1}", header.name,
                      shapeToString(header.dims));
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

llvm::Error Slimmer::visitInitializer(const WireField &field,
                                      std::string &out) {
  TensorHeader header;
  if (!readHeader(field.bytes, header))
    return malformed("an initializer is damaged");
  std::optional<DType> type = fromOnnxType(header.type);
  bool inPlace = type && header.numDataFields == 1 && header.data.data();
  if (!header.external && !inPlace) {
    append(out, field.whole);
    return llvm::Error::success();
  }
  if (header.external && !type)
    return makeErrorf(
        ExitCode::Unsupported,
        "tensor '{0}' has element type {1}, which is not supported",
        header.name, onnxTypeName(header.type));

  llvm::Expected<Weight> weight = locate(header, *type);
  if (!weight)
    return weight.takeError();
  bool large = weight->length > maxInlineBytes;
  bool isState = large || (isFloat(*type) && weight->length > byteSize(*type));
  if (!large) {
    if (header.external) {
      llvm::Expected<HostTensor> tensor = folder.read(*weight);
      if (!tensor)
        return tensor.takeError();
      appendBytesField(out, GraphProto::kInitializerFieldNumber,
                       toTensorProto(*tensor, header.name).SerializeAsString());
    } else {
      append(out, field.whole);
    }
  }
  if (!isState)
    return llvm::Error::success();
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

llvm::Expected<SlimModel> ax::import::slimModel(ModelFolder &folder) {
  SlimModel result;
  if (llvm::Error error = Slimmer(folder, result).run())
    return error;
  return result;
}
