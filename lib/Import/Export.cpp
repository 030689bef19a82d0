//===- Export.cpp - Other weights in a user's model -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bytes of the file are copied field by field, so that nothing of it is
// lost but the data that is replaced.
//
//===----------------------------------------------------------------------===//

#include "ax/Import/Export.h"

#include "GraphTensors.h"
#include "ParameterRoles.h"
#include "SlimModel.h"
#include "Types.h"
#include "ax/Support/WireFormat.h"

#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"
#include "ax/Support/FloatConversion.h"
#include "ax/Support/GivenWeights.h"

#include "llvm/Support/Path.h"

#include <onnx/onnx_pb.h>

#include <set>

using namespace ax;
using namespace ax::import;
using onnx::ModelProto;
using onnx::TensorProto;

/// A message of protobuf holds less than 2 GiB.
constexpr int64_t mostInlineBytes = int64_t(1) << 30;
/// Smaller tensors stay in the model's file in any case.
constexpr int64_t leastExternalBytes = 1024;
/// Names in a message.
constexpr size_t mostListed = 20;

namespace {

class Exporter {
public:
  Exporter(llvm::StringRef model, const std::string &output,
           ExportWeights weights)
      : folder(model), output(output), weights(std::move(weights)) {}

  llvm::Error run();

private:
  llvm::Error fault(const llvm::Twine &what) {
    return makeErrorf(ExitCode::BadModel, "'{0}/{1}' is not an ONNX model: {2}",
                      folder.getPath(), folder.getModelFile(), what.str());
  }
  llvm::Error findRoles(llvm::ArrayRef<uint8_t> graph);
  llvm::Error decide(llvm::ArrayRef<uint8_t> graph);
  llvm::Error complete();
  void warnOfUnclear();
  llvm::Error describeLack(llvm::ArrayRef<ModelWeight> all,
                           llvm::ArrayRef<std::string> lacking);
  llvm::Expected<llvm::ArrayRef<uint8_t>>
  bytesOf(const TensorHeader &header, DType type,
          std::shared_ptr<MappedFile> &file);
  llvm::Error checkFrozen(const TensorHeader &header, DType type);
  llvm::Expected<std::optional<std::string>>
  rewriteTensor(const TensorHeader &header, llvm::ArrayRef<uint8_t> given);
  /// What replaces the data; nothing when it stays.
  llvm::Expected<std::optional<HostTensor>>
  findWeight(const TensorHeader &header);

  ModelFolder folder;
  const std::string &output;
  ExportWeights weights;
  FloatConversion conversion;
  llvm::ArrayRef<uint8_t> model;
  /// The model's tensors, also those of graphs in nodes, which may have one
  /// name several times.
  std::vector<TensorHeader> tensors;
  ParameterRoles roles;
  /// Names of unclearNumbers.
  std::vector<std::string> unclear;
  std::set<std::string> replaced;
  /// The file of external data, if there is one.
  std::optional<AtomicFile> data;
};

void append(std::string &out, llvm::ArrayRef<uint8_t> bytes) {
  out.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
}

bool isData(const WireField &field) {
  switch (field.number) {
  case TensorProto::kRawDataFieldNumber:
  case TensorProto::kFloatDataFieldNumber:
  case TensorProto::kDoubleDataFieldNumber:
  case TensorProto::kInt32DataFieldNumber:
  case TensorProto::kInt64DataFieldNumber:
  case TensorProto::kUint64DataFieldNumber:
  case TensorProto::kDataLocationFieldNumber:
  case TensorProto::kExternalDataFieldNumber:
    return true;
  default:
    return false;
  }
}

} // namespace

/// What nodes and the exporter say of the tensors.
llvm::Error Exporter::findRoles(llvm::ArrayRef<uint8_t> graph) {
  SlimModel slim;
  WireReader reader(model);
  WireField field;
  while (reader.read(field))
    if (field.number != ModelProto::kGraphFieldNumber)
      append(slim.bytes, field.whole);
  appendBytesField(slim.bytes, ModelProto::kGraphFieldNumber,
                   withoutTensors(graph));
  ModelProto proto;
  if (llvm::Error error = parseSlim(slim, proto))
    return addContext(std::move(error), "'" + folder.getPath() + "/" +
                                            folder.getModelFile() + "'");
  ShapeMap floats;
  WeightKinds kinds;
  collectDeclared(proto, /*constants=*/{}, kinds);
  for (const TensorHeader &header : tensors) {
    if (header.kind)
      kinds.emplace(header.name, *header.kind);
    std::optional<DType> type = fromOnnxType(header.type);
    if (type && isFloat(*type))
      floats.emplace(header.name, header.dims);
  }
  roles = findParameters(proto, floats, kinds);
  for (const std::string &name : unclearNumbers(roles, floats, kinds))
    if (!roles.has(stateName(name)))
      unclear.push_back(stateName(name));
  return llvm::Error::success();
}

llvm::Error Exporter::decide(llvm::ArrayRef<uint8_t> graph) {
  auto isExternal = [](const TensorHeader &header) { return header.external; };
  if (graph.size() <= mostInlineBytes && llvm::none_of(tensors, isExternal))
    return llvm::Error::success();
  auto file = AtomicFile::create(dataFileOf(output));
  if (!file)
    return file.takeError();
  data.emplace(std::move(*file));
  return llvm::Error::success();
}

/// Returns the bytes of an initializer where they lie; `file` keeps them.
llvm::Expected<llvm::ArrayRef<uint8_t>>
Exporter::bytesOf(const TensorHeader &header, DType type,
                  std::shared_ptr<MappedFile> &file) {
  auto place = locateTensor(folder, model, header, type);
  if (!place)
    return place.takeError();
  auto opened = header.external ? folder.open(place->file) : folder.openModel();
  if (!opened)
    return opened.takeError();
  file = *opened;
  return file->range(place->offset, place->length);
}

static llvm::Error checkFit(const TensorHeader &header,
                            const PiecedTensor &tensor) {
  std::optional<DType> type = fromOnnxType(header.type);
  if (type && canConvert(*type, tensor.type) && header.dims == tensor.shape)
    return llvm::Error::success();
  return makeErrorf(ExitCode::BadInput,
                    "weight '{0}' is {1}, in the model {2}x{3}",
                    stateName(header.name), tensor.typeToString(),
                    shapeToString(header.dims), onnxTypeName(header.type));
}

/// What was not trained is in both models.
llvm::Error Exporter::checkFrozen(const TensorHeader &header, DType type) {
  auto frozen = weights.frozen.find(stateName(header.name));
  if (frozen == weights.frozen.end() || !(header.external || isInPlace(header)))
    return llvm::Error::success();
  std::shared_ptr<MappedFile> file;
  auto bytes = bytesOf(header, type, file);
  if (!bytes)
    return bytes.takeError();
  HostTensor own =
      HostTensor::borrow(type, header.dims, bytes->data(), nullptr);
  if (fingerprintOf(own) == frozen->second)
    return llvm::Error::success();
  return makeErrorf(ExitCode::BadInput,
                    "weights '{0}': weight '{1}' has other values in this "
                    "model than in that of the run, which did not train it",
                    weights.given.path, frozen->first);
}

/// Weights that stay what they are, though others do not, are an error.
llvm::Error Exporter::complete() {
  std::vector<ModelWeight> all;
  std::map<std::string, size_t> places;
  for (const TensorHeader &header : tensors) {
    std::optional<DType> type = fromOnnxType(header.type);
    auto count = checkedNumElements(header.dims);
    ModelWeight weight{
        stateName(header.name), type.value_or(DType::U8), header.dims, {}};
    std::shared_ptr<MappedFile> file;
    bool isThere = type && count && (header.external || isInPlace(header));
    if (isThere && !weights.frozen.count(weight.name)) {
      // What cannot be read is an error when it has to be.
      if (auto bytes = bytesOf(header, *type, file))
        weight.bytes = *bytes;
      else
        llvm::consumeError(bytes.takeError());
    }
    // Other ones are constants of the graph. What has a role has it in types,
    // too, that are not known here.
    bool isParameter = type ? roles.isParameter(weight.name, *type,
                                                count.value_or(0), weight.bytes)
                            : roles.has(weight.name);
    weight.isRequired = isParameter && !weights.frozen.count(weight.name);
    auto known = weights.given.tensors.find(weight.name);
    // What does not fit tells more of a file than what it lacks.
    if (weight.isRequired && known != weights.given.tensors.end())
      if (llvm::Error error = checkFit(header, known->second))
        return error;
    if (type)
      if (llvm::Error error = checkFrozen(header, *type))
        return error;
    // Branches may each have one of that name, and the file has one for all.
    auto [place, isFirst] = places.try_emplace(weight.name, all.size());
    if (isFirst)
      all.push_back(std::move(weight));
    else
      all[place->second].isRequired |= weight.isRequired;
  }
  auto isGiven = [&](const ModelWeight &weight) {
    return weight.isRequired && weights.given.tensors.count(weight.name);
  };
  auto lacking = matchWeights(all, weights.given);
  if (!lacking)
    return lacking.takeError();
  // Without any, that is what is said.
  if (!lacking->empty() && llvm::any_of(all, isGiven) && !weights.isPartial)
    return describeLack(all, *lacking);
  auto isTaken = [&](const ModelWeight &weight) {
    return weights.given.tensors.count(weight.name) > 0;
  };
  if (llvm::none_of(all, isTaken))
    return llvm::Error::success();
  if (llvm::Error error = checkLeftOver(all, weights.given))
    return error;
  warnOfUnclear();
  return llvm::Error::success();
}

void Exporter::warnOfUnclear() {
  llvm::erase_if(unclear, [&](const std::string &name) {
    return weights.given.tensors.count(name) || weights.frozen.count(name);
  });
  if (!unclear.empty() && !weights.isPartial)
    weights.given.warn("weights '" + weights.given.path +
                       "': single numbers "
                       "that they do not have stay what they are in the "
                       "model: " +
                       listSome(unclear));
}

llvm::Error Exporter::describeLack(llvm::ArrayRef<ModelWeight> all,
                                   llvm::ArrayRef<std::string> lacking) {
  auto hints = describeMissing(all, weights.given, lacking);
  if (!hints)
    return hints.takeError();
  std::string hint, advice = adviceForMissing(lacking);
  for (const std::string &text : *hints)
    if (hint.empty())
      hint = text;
  return makeErrorf(ExitCode::BadInput,
                    "weights '{0}' do not have {1}{2}, which would keep the "
                    "model's values: if that is meant, give --partial{3}",
                    weights.given.path, listSome(lacking, mostListed), hint,
                    advice.empty() ? advice : "; " + advice);
}

llvm::Expected<std::optional<HostTensor>>
Exporter::findWeight(const TensorHeader &header) {
  std::string name = stateName(header.name);
  auto found = weights.given.tensors.find(name);
  if (found == weights.given.tensors.end())
    return std::nullopt;
  if (llvm::Error error = checkFit(header, found->second))
    return error;
  replaced.insert(name);
  auto typed = conversion.to(*fromOnnxType(header.type), found->second);
  if (!typed)
    return addContext(typed.takeError(), "weight '" + name + "'");
  auto result = typed->assemble();
  if (!result)
    return addContext(result.takeError(), "weight '" + name + "'");
  return std::move(*result);
}

/// The tensor with what becomes of its data; nothing when it stays as it is.
llvm::Expected<std::optional<std::string>>
Exporter::rewriteTensor(const TensorHeader &header,
                        llvm::ArrayRef<uint8_t> given) {
  auto weight = findWeight(header);
  if (!weight)
    return weight.takeError();
  llvm::ArrayRef<uint8_t> bytes;
  std::shared_ptr<MappedFile> file;
  if (*weight) {
    bytes = (**weight).rawBytes();
  } else {
    std::optional<DType> type = fromOnnxType(header.type);
    bool isLarge = static_cast<int64_t>(given.size()) > leastExternalBytes;
    if (!header.external && !(data && isLarge && type && isInPlace(header)))
      return std::nullopt;
    if (!type)
      return makeErrorf(
          ExitCode::Unsupported,
          "tensor '{0}' has element type {1}, which is not supported",
          header.name, onnxTypeName(header.type));
    auto range = bytesOf(header, *type, file);
    if (!range)
      return range.takeError();
    bytes = *range;
  }
  std::string tensor;
  WireReader reader(given);
  WireField part;
  while (reader.read(part))
    if (!isData(part))
      append(tensor, part.whole);
  auto length = static_cast<int64_t>(bytes.size());
  if (!data || length <= leastExternalBytes) {
    appendBytesField(
        tensor, TensorProto::kRawDataFieldNumber,
        {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
  } else {
    TensorProto reference;
    reference.set_data_location(TensorProto::EXTERNAL);
    auto add = [&](const char *key, std::string value) {
      auto *entry = reference.add_external_data();
      entry->set_key(key);
      entry->set_value(std::move(value));
    };
    // So that it can be mapped.
    constexpr int64_t alignment = 4096;
    int64_t padding = (alignment - data->getPosition() % alignment) % alignment;
    if (llvm::Error error = data->write(std::string(padding, '\0')))
      return error;
    add("location", llvm::sys::path::filename(dataFileOf(output)).str());
    add("offset", std::to_string(data->getPosition()));
    add("length", std::to_string(length));
    tensor += reference.SerializeAsString();
    if (llvm::Error error = data->write(bytes))
      return error;
    // What was read is not needed in memory any more.
    if (file)
      file->release(bytes.data() - file->bytes().data(), length);
  }
  return tensor;
}

llvm::Error Exporter::run() {
  auto file = folder.openModel();
  if (!file)
    return file.takeError();
  model = (*file)->bytes();
  std::string out;
  WireReader reader(model);
  WireField field;
  while (reader.read(field)) {
    if (field.number != ModelProto::kGraphFieldNumber ||
        field.type != WireType::Bytes) {
      append(out, field.whole);
      continue;
    }
    tensors = findTensors(field.bytes);
    if (llvm::Error error = findRoles(field.bytes))
      return error;
    if (llvm::Error error = complete())
      return error;
    if (llvm::Error error = decide(field.bytes))
      return error;
    auto graph = rewriteTensors(
        field.bytes,
        [&](const TensorHeader &header, llvm::ArrayRef<uint8_t> tensor) {
          return rewriteTensor(header, tensor);
        },
        [&](const llvm::Twine &what) { return fault(what); });
    if (!graph)
      return graph.takeError();
    appendBytesField(out, ModelProto::kGraphFieldNumber, *graph);
  }
  if (reader.isMalformed())
    return fault("its bytes are damaged or cut off");
  for (const std::string &name : weights.required)
    if (!replaced.count(name))
      return makeError(ExitCode::BadInput,
                       "the model has no weight '" + name + "'");
  if (replaced.empty())
    return makeError(ExitCode::BadInput,
                     "none of the weights is one of the model's");
  conversion.tell(weights.given.path, weights.given.warn);
  // Both are there before one of them takes its place.
  auto result = AtomicFile::create(output);
  if (!result)
    return result.takeError();
  if (llvm::Error error = result->write(llvm::StringRef(out)))
    return error;
  if (data)
    if (llvm::Error error = data->commit())
      return error;
  return result->commit();
}

std::string ax::import::dataFileOf(const std::string &output) {
  return behindLinks(output) + ".data";
}

llvm::Error ax::import::exportModel(llvm::StringRef model,
                                    const std::string &output,
                                    ExportWeights weights) {
  return Exporter(model, output, std::move(weights)).run();
}
