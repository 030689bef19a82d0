//===- Safetensors.cpp - Tensors in one file ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Safetensors.h"

#include "ax/Support/Error.h"
#include "ax/Support/Flags.h"
#include "ax/Support/MappedFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"

namespace ax::rt {

static constexpr llvm::StringLiteral metadataKey = "__metadata__";

static llvm::Error badFile(const llvm::Twine &path,
                           const llvm::Twine &message) {
  return makeError(ExitCode::BadInput, "weights '" + path + "': " + message);
}

/// What the library calls f8E4M3FN and f8E5M2.
static constexpr std::pair<const char *, const char *> float8Names = {
    "F8_E4M3", "F8_E5M2"};

static std::optional<DType> float8Type(llvm::StringRef name) {
  if (name == float8Names.first)
    return DType::F8E4M3FN;
  if (name == float8Names.second)
    return DType::F8E5M2;
  return std::nullopt;
}

std::optional<DType> safetensorsType(llvm::StringRef name) {
  if (std::optional<DType> type = float8Type(name))
    return type;
  if (name != name.upper())
    return std::nullopt;
  return parseDType(name.lower());
}

std::string safetensorsName(DType type) {
  if (isFloat8(type))
    return type == DType::F8E5M2 ? float8Names.second : float8Names.first;
  return llvm::StringRef(toString(type)).upper();
}

/// One entry of the header; the tensor's bytes stay in the file. `ranges` gets
/// where they are.
static llvm::Expected<PiecedTensor>
readEntry(const llvm::json::Object &entry, const std::string &path,
          llvm::StringRef name, const std::shared_ptr<MappedFile> &file,
          int64_t dataStart, std::vector<std::pair<int64_t, int64_t>> &ranges) {
  auto malformed = [&] {
    return badFile(path, "the entry of '" + name + "' is malformed");
  };
  std::optional<llvm::StringRef> typeName = entry.getString("dtype");
  const llvm::json::Array *sizes = entry.getArray("shape");
  const llvm::json::Array *offsets = entry.getArray("data_offsets");
  if (!typeName || !sizes || !offsets || offsets->size() != 2 ||
      sizes->size() > mostDims)
    return malformed();
  std::optional<DType> type = safetensorsType(*typeName);
  if (!type)
    return badFile(path,
                   "'" + name + "' has the unknown element type " + *typeName);
  Shape shape;
  for (const llvm::json::Value &size : *sizes) {
    if (!size.getAsInteger() || *size.getAsInteger() < 0)
      return malformed();
    shape.push_back(*size.getAsInteger());
  }
  auto begin = (*offsets)[0].getAsInteger(), end = (*offsets)[1].getAsInteger();
  auto elements = checkedNumElements(shape, byteSize(*type));
  if (!begin || !end || !elements || *begin < 0 || *end < *begin ||
      *end - *begin != *elements * byteSize(*type) ||
      *begin > file->getSize() - dataStart)
    return malformed();
  auto bytes = file->range(dataStart + *begin, *end - *begin);
  if (!bytes) {
    llvm::consumeError(bytes.takeError());
    return malformed();
  }
  ranges.emplace_back(*begin, *end);
  bool isAligned =
      reinterpret_cast<uintptr_t>(bytes->data()) % byteSize(*type) == 0;
  if (!isAligned || *type == DType::Bool) {
    auto copied = HostTensor::fromBytes(*type, shape, *bytes);
    if (!copied)
      return copied.takeError();
    return PiecedTensor::of(std::move(*copied));
  }
  return PiecedTensor::of(HostTensor::borrow(*type, shape, bytes->data(), file),
                          file);
}

/// Others than texts there may be, though the format has none.
static void readMetadata(const llvm::json::Value &entry,
                         SafetensorsMetadata &metadata) {
  if (const llvm::json::Object *texts = entry.getAsObject())
    for (const auto &[key, value] : *texts)
      if (auto text = value.getAsString())
        metadata[llvm::StringRef(key).str()] = text->str();
}

llvm::Expected<NamedPieces> readSafetensors(const std::string &path,
                                            SafetensorsMetadata *metadata) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  llvm::ArrayRef<uint8_t> bytes = (*file)->bytes();
  uint64_t headerBytes = 0;
  if (bytes.size() >= 8)
    headerBytes = llvm::support::endian::read64le(bytes.data());
  if (bytes.size() < 8 || headerBytes > bytes.size() - 8)
    return badFile(path, "no safetensors header");
  llvm::StringRef text(reinterpret_cast<const char *>(bytes.data()) + 8,
                       headerBytes);
  // The format says so; and entries have lists, and nothing deeper.
  constexpr uint64_t longestHeader = 100'000'000;
  constexpr int deepest = 3;
  if (headerBytes > longestHeader || nestsDeeper(text, deepest))
    return badFile(path, "the header is too long or nested too deeply");
  auto header = llvm::json::parse(text);
  if (!header) {
    llvm::consumeError(header.takeError());
    return badFile(path, "the header is no JSON");
  }
  const llvm::json::Object *entries = header->getAsObject();
  if (!entries)
    return badFile(path, "the header is no JSON object");
  NamedPieces tensors;
  auto dataStart = static_cast<int64_t>(headerBytes) + 8;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const auto &[key, value] : *entries) {
    llvm::StringRef name = key;
    if (name == metadataKey) {
      if (metadata)
        readMetadata(value, *metadata);
      continue;
    }
    const llvm::json::Object *entry = value.getAsObject();
    if (!entry)
      return badFile(path, "the entry of '" + name + "' is malformed");
    auto tensor = readEntry(*entry, path, name, *file, dataStart, ranges);
    if (!tensor)
      return tensor.takeError();
    tensors.emplace_back(name.str(), std::move(*tensor));
  }
  // The format says so: who copies tensors takes no more than the file has.
  llvm::sort(ranges);
  int64_t at = 0;
  for (auto [begin, end] : ranges)
    if (std::exchange(at, end) != begin)
      return badFile(path, "its tensors overlap, or leave bytes between them");
  if (at != (*file)->getSize() - dataStart)
    return badFile(path, "there are bytes behind its tensors");
  return tensors;
}

static std::string
headerOf(const std::vector<SafetensorsWriter::Entry> &entries,
         const SafetensorsMetadata &metadata) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  int64_t at = 0;
  json.object([&] {
    if (!metadata.empty())
      json.attributeObject(metadataKey, [&] {
        for (const auto &[key, value] : metadata)
          json.attribute(key, value);
      });
    for (const SafetensorsWriter::Entry &entry : entries)
      json.attributeObject(entry.name, [&] {
        int64_t bytes = *checkedNumElements(entry.shape) * byteSize(entry.type);
        json.attribute("dtype", safetensorsName(entry.type));
        json.attributeArray("shape", [&] {
          for (int64_t size : entry.shape)
            json.value(size);
        });
        json.attributeArray("data_offsets", [&] {
          json.value(at);
          json.value(at + bytes);
        });
        at += bytes;
      });
  });
  // Tensors start at multiples of 8.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

llvm::Expected<SafetensorsWriter>
SafetensorsWriter::create(const std::string &path,
                          const std::vector<Entry> &entries,
                          const SafetensorsMetadata &metadata) {
  auto file = AtomicFile::create(path);
  if (!file)
    return file.takeError();
  std::string header = headerOf(entries, metadata);
  uint8_t length[8];
  llvm::support::endian::write64le(length, header.size());
  if (llvm::Error error = file->write(llvm::ArrayRef<uint8_t>(length)))
    return error;
  if (llvm::Error error = file->write(llvm::StringRef(header)))
    return error;
  return SafetensorsWriter(std::move(*file));
}

llvm::Error SafetensorsWriter::write(const HostTensor &tensor) {
  return file.write(tensor.rawBytes());
}

} // namespace ax::rt
