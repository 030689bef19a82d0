//===- Checkpoint.cpp - Global tensors from a checkpoint ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Checkpoint.h"

#include "CheckpointParts.h"
#include "ReadShards.h"

#include "ax/Runtime/Npy.h"
#include "ax/Runtime/Safetensors.h"
#include "ax/Support/Checksum.h"
#include "ax/Support/Error.h"
#include "ax/Support/Escape.h"
#include "ax/Support/Flags.h"
#include "ax/Support/GivenWeights.h"
#include "ax/Support/MappedFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <algorithm>

namespace ax::rt {

namespace json = llvm::json;
namespace fs = llvm::sys::fs;

std::string checkpoint::checksumOf(const json::Value &value) {
  // Keys are sorted.
  std::string text = llvm::formatv("{0}", value);
  return ax::checksumOf(llvm::ArrayRef(
      reinterpret_cast<const uint8_t *>(text.data()), text.size()));
}

std::vector<std::pair<int64_t, std::string>>
checkpoint::list(const std::string &folder) {
  std::vector<std::pair<int64_t, std::string>> found;
  std::error_code code;
  for (fs::directory_iterator it(folder, code), end; !code && it != end;
       it.increment(code)) {
    llvm::StringRef name = llvm::sys::path::filename(it->path());
    int64_t step;
    if (name.consume_front(stepPrefix) && !name.getAsInteger(10, step))
      found.emplace_back(step, it->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

namespace {

std::string inFolder(llvm::StringRef folder, llvm::StringRef name) {
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

llvm::Error bad(const llvm::Twine &message) {
  return makeError(ExitCode::BadInput, message);
}

/// A small file. Not a pipe, which would be waited for.
llvm::Expected<std::shared_ptr<MappedFile>> openText(const std::string &path,
                                                     int64_t mostBytes) {
  auto file = MappedFile::open(path);
  if (!file)
    return bad(describeError(file.takeError()).message);
  if ((*file)->getSize() > mostBytes)
    return bad("'" + path + "' has more than " + llvm::Twine(mostBytes) +
               " bytes");
  return file;
}

llvm::StringRef textOf(const MappedFile &file) {
  return llvm::toStringRef(file.bytes());
}

struct Part : TensorPiece {
  std::string name, checksum;
};

/// The tensors of one of the checkpoint's files.
using OpenFile = llvm::StringMap<PiecedTensor>;

class Reader {
public:
  Reader(std::string folder, const CheckpointReading &reading)
      : reading(reading) {
    result.path = std::move(folder);
  }

  llvm::Expected<Checkpoint> read() {
    auto content = readManifest();
    if (!content)
      return content.takeError();
    const json::Object *object = content->getAsObject();
    const json::Object *states = object ? object->getObject("states") : nullptr;
    const json::Object *frozen = object ? object->getObject("frozen") : nullptr;
    const json::Object *progress =
        object ? object->getObject("progress") : nullptr;
    std::optional<int64_t> step =
        object ? object->getInteger("step") : std::nullopt;
    if (!states || !frozen || !progress || !step || *step < 0 ||
        *step > checkpoint::mostSteps)
      return malformed();
    const json::Value *count = progress->get("skipped");
    int64_t skipped = count ? count->getAsInteger().value_or(-1) : 0;
    if (skipped < 0 || skipped > *step)
      return malformed();
    const json::Object *data = progress->getObject("data");
    if (const json::Value *seed = data ? data->get("seed") : nullptr)
      if (!seed->getAsUINT64())
        return malformed();
    result.step = *step;
    result.progress = *progress;
    for (const auto &[name, fingerprint] : *frozen) {
      auto text = fingerprint.getAsString();
      if (!text || !typeOfFingerprint(*text))
        return malformed();
      result.frozen[llvm::StringRef(name).str()] = text->str();
    }
    for (const auto &[name, state] : *states)
      if (llvm::Error error = readState(llvm::StringRef(name), state))
        return error;
    return std::move(result);
  }

private:
  llvm::Error malformed() {
    return bad(checkpoint::manifestName + " is malformed");
  }

  /// What is inside of the checksum.
  llvm::Expected<json::Value> readManifest() {
    std::string path = inFolder(result.path, checkpoint::manifestName);
    auto file = openText(path, checkpoint::mostManifestBytes);
    if (!file)
      return file.takeError();
    constexpr int deepest = 8;
    if (nestsDeeper(textOf(**file), deepest))
      return malformed();
    auto manifest = json::parse(textOf(**file));
    if (!manifest) {
      llvm::consumeError(manifest.takeError());
      return malformed();
    }
    const json::Object *object = manifest->getAsObject();
    const json::Value *content = object ? object->get("content") : nullptr;
    auto checksum = object ? object->getString("checksum") : std::nullopt;
    const json::Object *inside = content ? content->getAsObject() : nullptr;
    if (!inside || !checksum ||
        inside->getString("format") != checkpoint::format)
      return malformed();
    auto version = inside->getInteger("version");
    if (version != checkpoint::version && version != checkpoint::dealtVersion)
      return bad(checkpoint::manifestName + " has a version other than " +
                 llvm::Twine(checkpoint::version) + " and " +
                 llvm::Twine(checkpoint::dealtVersion));
    if (checkpoint::checksumOf(*content) != *checksum)
      return bad(checkpoint::manifestName +
                 " is damaged: its checksum is another");
    return *content;
  }

  /// One of the checkpoint's files.
  llvm::Expected<const OpenFile *> open(llvm::StringRef name) {
    auto [it, isNew] = files.try_emplace(name);
    if (isNew) {
      if (std::string why = findEscape(result.path, name); !why.empty())
        return bad("'" + name + "' " + why);
      auto tensors = readSafetensors(inFolder(result.path, name));
      if (!tensors)
        return bad(describeError(tensors.takeError()).message);
      for (auto &[key, tensor] : *tensors)
        it->second.try_emplace(key, std::move(tensor));
    }
    return &it->second;
  }

  llvm::Error readState(llvm::StringRef name, const json::Value &value) {
    const json::Object *state = value.getAsObject();
    const json::Array *parts = state ? state->getArray("parts") : nullptr;
    auto shape = state ? numbersIn(*state, "shape") : std::nullopt;
    auto role = state ? state->getString("role") : std::nullopt;
    auto type = state ? state->getString("dtype") : std::nullopt;
    if (!parts || !shape || !role || !type || !checkedNumElements(*shape, 8))
      return malformed();
    bool isAsked = *role != checkpoint::frozenRole || reading.needsGiven;
    PiecedTensor tensor{DType::F32, std::move(*shape), {}};
    if (const json::Value *dealt = state->get("dealt"))
      if (!(tensor.given = readDealt(*dealt, tensor.shape)))
        return malformed();
    auto whole = readParts(name, *parts, std::move(tensor), *type, isAsked);
    if (!whole)
      return whole.takeError();
    if (*role == checkpoint::weightRole)
      result.weights.push_back(name.str());
    else if (*role == checkpoint::frozenRole)
      result.given.insert(name.str());
    else if (*role != checkpoint::optimizerRole)
      return malformed();
    result.tensors.emplace_back(name.str(), std::move(*whole));
    return llvm::Error::success();
  }

  /// One that is there, and as large as it says.
  llvm::Expected<Part> readPart(llvm::StringRef name, const json::Value &value,
                                int64_t total, llvm::StringRef type) {
    const json::Object *object = value.getAsObject();
    auto file = object ? object->getString("file") : std::nullopt;
    auto checksum = object ? object->getString("checksum") : std::nullopt;
    auto box = object ? readBox(*object, total) : std::nullopt;
    if (!file || !checksum || !box)
      return malformed();
    auto opened = open(*file);
    if (!opened)
      return opened.takeError();
    auto found = (*opened)->find(name);
    if (found == (*opened)->end())
      return bad(*file + " does not have '" + name + "'");
    const TensorPiece &there = found->second.pieces.front();
    const HostTensor &tensor = there.tensor;
    if (tensor.numElements() != box->count ||
        safetensorsName(tensor.getType()) != type)
      return bad(*file + ": '" + name + "' is " + tensor.typeToString() +
                 ", but not in " + checkpoint::manifestName);
    Part part;
    part.name = file->str();
    part.checksum = checksum->str();
    part.box = std::move(*box);
    part.tensor = tensor;
    part.file = there.file;
    return part;
  }

  /// Puts them into `whole`. Room is made only for as many elements as there
  /// are in files.
  llvm::Expected<PiecedTensor>
  readParts(llvm::StringRef name, const json::Array &entries,
            PiecedTensor whole, llvm::StringRef typeName, bool isAsked) {
    int64_t total = *checkedNumElements(whole.shape), count = 0;
    std::optional<DType> type = safetensorsType(typeName);
    if (!type)
      return malformed();
    auto overlap = [&] { return bad("parts of '" + name + "' overlap"); };
    std::vector<Part> parts;
    llvm::StringSet<> seen;
    for (const json::Value &entry : entries) {
      auto part = readPart(name, entry, total, typeName);
      if (!part)
        return part.takeError();
      if (!seen.insert(part->name).second)
        return bad(part->name + " has two parts of '" + name + "'");
      count += part->box.count;
      if (count > total)
        return overlap();
      parts.push_back(std::move(*part));
    }
    if (count != total)
      return bad("parts of '" + name + "' are missing");
    whole.type = *type;
    Taken taken(parts.size() > 1 ? total : 0);
    for (Part &part : parts) {
      if (parts.size() > 1 && !taken.take(part.box))
        return overlap();
      if (llvm::Error error = verify(name, whole, part, isAsked))
        return error;
      whole.pieces.push_back(std::move(part));
    }
    return whole;
  }

  /// Looks at the bytes that this process reads.
  llvm::Error verify(llvm::StringRef name, const PiecedTensor &whole,
                     const Part &part, bool isAsked) {
    if (isAsked && reading.needs && !needs(name, whole, part.box))
      return llvm::Error::success();
    if (checksumOf(part.tensor.rawBytes()) != part.checksum)
      return bad(part.name + " is damaged: the checksum of '" + name +
                 "' is another");
    part.release();
    return llvm::Error::success();
  }

  /// Asks of elements where the model has them.
  bool needs(llvm::StringRef name, const PiecedTensor &whole,
             const ElementBox &box) {
    if (!whole.given)
      return reading.needs(name, box);
    return !whole.forEachRun(box, [&](int64_t at, int64_t count, int64_t) {
      return !reading.needs(name, {at, {count}, {1}, count});
    });
  }

  const CheckpointReading &reading;
  Checkpoint result;
  llvm::StringMap<OpenFile> files;
};

llvm::Expected<Checkpoint> readOne(const std::string &path,
                                   const CheckpointReading &reading) {
  auto result = Reader(path, reading).read();
  llvm::Error error =
      addContext(result.takeError(), "checkpoint '" + path + "'");
  if (reading.agree)
    error = reading.agree(std::move(error));
  if (error)
    return error;
  return result;
}

} // namespace

std::vector<std::pair<int64_t, std::string>>
checkpoint::newestFirst(const std::string &folder) {
  auto all = list(folder);
  constexpr int64_t mostBytes = 4096;
  auto latest = openText(inFolder(folder, latestName), mostBytes);
  if (!latest) {
    llvm::consumeError(latest.takeError());
  } else {
    llvm::StringRef name = textOf(**latest).trim();
    auto isLatest = [&](const auto &entry) {
      return llvm::sys::path::filename(entry.second) == name;
    };
    if (llvm::any_of(all, isLatest))
      while (!isLatest(all.back()))
        all.pop_back();
  }
  std::reverse(all.begin(), all.end());
  return all;
}

llvm::Expected<Checkpoint> readCheckpoint(const std::string &path,
                                          const CheckpointReading &reading) {
  std::vector<std::string> candidates;
  if (fs::exists(inFolder(path, checkpoint::manifestName)))
    candidates.push_back(path);
  else
    for (auto &[step, candidate] : checkpoint::newestFirst(path))
      candidates.push_back(candidate);
  if (reading.choose) {
    auto chosen = reading.choose(std::move(candidates));
    if (!chosen)
      return chosen.takeError();
    candidates = std::move(*chosen);
  }
  std::string faults;
  std::vector<std::string> damaged;
  for (const std::string &candidate : candidates) {
    auto result = readOne(candidate, reading);
    if (result) {
      if (!faults.empty() && reading.warn)
        reading.warn(faults + ": '" + candidate + "' is taken instead");
      result->damaged = std::move(damaged);
      return result;
    }
    damaged.push_back(candidate);
    faults += (faults.empty() ? "" : "; ") +
              describeError(result.takeError()).message;
  }
  return bad(faults.empty() ? "there is no checkpoint in '" + path + "'"
                            : faults);
}

/// The key of a frozen weight begins so, in front of its name; its fingerprint
/// is the text.
static constexpr llvm::StringLiteral frozenPrefix = "axopt.frozen:";

bool isCheckpoint(const std::string &path) {
  return fs::exists(inFolder(path, checkpoint::manifestName)) ||
         !checkpoint::list(path).empty();
}

/// Of an archive all is read.
static llvm::Expected<NamedPieces> readArchive(const std::string &path) {
  auto tensors = readNpz(path);
  if (!tensors)
    return tensors.takeError();
  NamedPieces result;
  for (auto &[name, tensor] : *tensors)
    result.emplace_back(name, PiecedTensor::of(std::move(tensor)));
  return result;
}

llvm::Expected<Checkpoint> readWeights(const std::string &path,
                                       const CheckpointReading &reading) {
  llvm::StringRef name = path;
  if (isCheckpoint(path))
    return readCheckpoint(path, reading);
  std::string pretrained = findPretrained(path);
  if (pretrained.empty() && fs::is_directory(path))
    return bad("weights: " + describeLack(path));
  for (const char *ending : {".pt", ".pth", ".ckpt", "pytorch_model.bin"})
    if (pretrained.empty() && name.ends_with(ending))
      return makeError(ExitCode::Usage,
                       "--weights=" + path +
                           ": a pickle, which may run code, is not read: "
                           "safetensors.torch.save_file(model.state_dict(), "
                           "'weights.safetensors') writes the same tensors");
  bool isArchive = name.ends_with(".npz") || name.ends_with(".safetensors");
  if (pretrained.empty() && !isArchive && !fs::exists(path))
    return makeError(ExitCode::InputOutput,
                     "--weights=" + path + ": there is no such file or folder");
  if (pretrained.empty() && !isArchive)
    return makeError(ExitCode::Usage,
                     "--weights=" + path +
                         ": expected a .safetensors or .npz file, a folder "
                         "with model.safetensors, or a checkpoint's");
  SafetensorsMetadata metadata;
  auto tensors = !pretrained.empty()      ? readPretrained(pretrained)
                 : name.ends_with(".npz") ? readArchive(path)
                                          : readSafetensors(path, &metadata);
  if (!tensors)
    return tensors.takeError();
  Checkpoint result;
  result.path = path;
  result.tensors = std::move(*tensors);
  for (const auto &[key, fingerprint] : metadata)
    if (llvm::StringRef weight = key;
        weight.consume_front(frozenPrefix) && typeOfFingerprint(fingerprint))
      result.frozen[weight.str()] = fingerprint;
  return result;
}

SafetensorsMetadata
describeFrozen(const std::map<std::string, std::string> &frozen) {
  SafetensorsMetadata metadata;
  for (const auto &[weight, fingerprint] : frozen)
    metadata[(frozenPrefix + weight).str()] = fingerprint;
  return metadata;
}

/// The checkpoints that `path` is, or has.
static std::vector<std::string> checkpointsAt(const std::string &path) {
  std::vector<std::string> folders;
  auto add = [&](const std::string &folder) {
    if (fs::exists(inFolder(folder, checkpoint::manifestName)))
      folders.push_back(folder);
  };
  if (!fs::is_directory(path))
    return folders;
  add(path);
  for (auto &[step, folder] : checkpoint::list(path))
    add(folder);
  return folders;
}

/// But for what checkpoints have.
static std::vector<std::string> filesBeside(const std::string &path) {
  std::vector<std::string> files;
  if (std::string file = findPretrained(path);
      !file.empty() && !isCheckpoint(path))
    files = filesOfPretrained(file);
  if (fs::is_directory(path))
    files.push_back(inFolder(path, checkpoint::latestName));
  else if (!path.empty())
    files.push_back(path);
  return files;
}

std::vector<std::string> filesOfWeights(const std::string &path) {
  std::vector<std::string> files = filesBeside(path);
  for (const std::string &folder : checkpointsAt(path)) {
    std::error_code code;
    for (fs::directory_iterator it(folder, code), end; !code && it != end;
         it.increment(code))
      files.push_back(it->path());
  }
  return files;
}

std::vector<std::string> filesToCompare(const std::string &path) {
  std::vector<std::string> files = filesBeside(path);
  for (const std::string &folder : checkpointsAt(path))
    files.push_back(inFolder(folder, checkpoint::manifestName));
  return files;
}

} // namespace ax::rt
