//===- ReadCheckpoint.cpp - Global tensors from a checkpoint --------------===//

#include "ax/Runtime/Checkpoint.h"

#include "ReadShards.h"

#include "ax/Runtime/Safetensors.h"
#include "ax/Support/Error.h"
#include "ax/Support/Escape.h"
#include "ax/Support/Flags.h"
#include "ax/Support/MappedFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cstring>

namespace ax::rt {

namespace json = llvm::json;

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

/// One number for each dimension, none of them negative.
std::optional<std::vector<int64_t>> numbersIn(const json::Object &object,
                                              llvm::StringRef key) {
  const json::Array *array = object.getArray(key);
  if (!array || array->size() > mostDims)
    return std::nullopt;
  std::vector<int64_t> numbers;
  for (const json::Value &value : *array) {
    std::optional<int64_t> number = value.getAsInteger();
    if (!number || *number < 0)
      return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

/// Which elements of a tensor some part has.
class Taken {
public:
  explicit Taken(int64_t elements = 0)
      : words(static_cast<size_t>((elements + wordBits - 1) / wordBits)) {}

  /// False when one of them is taken already.
  bool take(int64_t begin, int64_t count) {
    for (int64_t at = begin, end = begin + count; at < end;) {
      int64_t bit = at % wordBits, length = std::min(wordBits - bit, end - at);
      uint64_t ones = ~uint64_t(0) >> (wordBits - length) << bit;
      uint64_t &word = words[static_cast<size_t>(at / wordBits)];
      if (word & ones)
        return false;
      word |= ones;
      at += length;
    }
    return true;
  }

private:
  static constexpr int64_t wordBits = 64;
  std::vector<uint64_t> words;
};

/// Where a part's elements lie in the global tensor, in elements.
struct Box {
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
  int64_t count = 0;

  static std::optional<Box> read(const json::Object &part, int64_t total) {
    Box box;
    auto offset = part.getInteger("offset");
    auto sizes = numbersIn(part, "sizes"), strides = numbersIn(part, "strides");
    if (!offset || *offset < 0 || !sizes || !strides ||
        sizes->size() != strides->size() || *offset >= total)
      return std::nullopt;
    auto count = checkedNumElements(*sizes);
    if (!count || *count < 1)
      return std::nullopt;
    int64_t last = *offset;
    for (auto [size, stride] : llvm::zip(*sizes, *strides)) {
      if (size > 1 && (stride < 1 || stride > (total - 1 - last) / (size - 1)))
        return std::nullopt;
      last += (size - 1) * stride;
    }
    return Box{*offset, std::move(*sizes), std::move(*strides), *count};
  }

  bool isAll(int64_t total) const {
    return sizes.size() == 1 && sizes[0] == total;
  }
  /// False when one of the elements is taken already.
  bool take(Taken &taken) const { return take(taken, offset, 0); }
  void copy(const uint8_t *from, uint8_t *to, int64_t elementBytes) const {
    visit(from, to + offset * elementBytes, elementBytes, 0);
  }

private:
  bool isRun(size_t dim) const {
    return dim + 1 == sizes.size() && strides[dim] == 1;
  }
  bool take(Taken &taken, int64_t at, size_t dim) const {
    if (dim == sizes.size() || isRun(dim)) {
      return taken.take(at, dim == sizes.size() ? 1 : sizes[dim]);
    }
    for (int64_t i = 0; i < sizes[dim]; ++i)
      if (!take(taken, at + i * strides[dim], dim + 1))
        return false;
    return true;
  }
  void visit(const uint8_t *&from, uint8_t *to, int64_t elementBytes,
             size_t dim) const {
    if (dim == sizes.size() || isRun(dim)) {
      int64_t bytes = elementBytes * (dim == sizes.size() ? 1 : sizes[dim]);
      std::memcpy(to, from, static_cast<size_t>(bytes));
      from += bytes;
      return;
    }
    for (int64_t i = 0; i < sizes[dim]; ++i)
      visit(from, to + i * strides[dim] * elementBytes, elementBytes, dim + 1);
  }
};

class Reader {
public:
  explicit Reader(std::string folder) { result.path = std::move(folder); }

  llvm::Expected<Checkpoint> read() {
    auto content = readManifest();
    if (!content)
      return content.takeError();
    const json::Object *object = content->getAsObject();
    const json::Object *states = object ? object->getObject("states") : nullptr;
    const json::Array *frozen = object ? object->getArray("frozen") : nullptr;
    const json::Object *progress =
        object ? object->getObject("progress") : nullptr;
    std::optional<int64_t> step =
        object ? object->getInteger("step") : std::nullopt;
    if (!states || !frozen || !progress || !step || *step < 0 ||
        *step > checkpoint::mostSteps)
      return malformed();
    int64_t skipped = progress->getInteger("skipped").value_or(0);
    if (skipped < 0 || skipped > *step)
      return malformed();
    result.step = *step;
    result.progress = *progress;
    for (const json::Value &name : *frozen)
      if (auto text = name.getAsString())
        result.frozen.push_back(text->str());
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
    constexpr int64_t mostBytes = int64_t(256) << 20;
    auto file = openText(path, mostBytes);
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
    if (inside->getInteger("version") != checkpoint::version)
      return bad(checkpoint::manifestName + " has a version other than " +
                 llvm::Twine(checkpoint::version));
    if (checkpoint::checksumOf(*content) != *checksum)
      return bad(checkpoint::manifestName +
                 " is damaged: its checksum is another");
    return *content;
  }

  /// The tensor of that name in one of the checkpoint's files.
  llvm::Expected<HostTensor> find(llvm::StringRef file, llvm::StringRef name) {
    auto [it, isNew] = files.try_emplace(file);
    if (isNew) {
      if (std::string why = findEscape(result.path, file); !why.empty())
        return bad("'" + file + "' " + why);
      auto tensors = readSafetensors(inFolder(result.path, file));
      if (!tensors)
        return bad(describeError(tensors.takeError()).message);
      for (auto &[key, tensor] : *tensors)
        it->second.try_emplace(key, tensor);
    }
    auto found = it->second.find(name);
    if (found == it->second.end())
      return bad(file + " does not have '" + name + "'");
    return found->second;
  }

  llvm::Error readState(llvm::StringRef name, const json::Value &value) {
    const json::Object *state = value.getAsObject();
    const json::Array *parts = state ? state->getArray("parts") : nullptr;
    auto shape = state ? numbersIn(*state, "shape") : std::nullopt;
    auto role = state ? state->getString("role") : std::nullopt;
    auto type = state ? state->getString("dtype") : std::nullopt;
    if (!parts || !shape || !role || !type || !checkedNumElements(*shape, 8))
      return malformed();
    int64_t total = *checkedNumElements(*shape), copied = 0;
    std::optional<HostTensor> whole;
    Taken taken;
    auto overlap = [&] { return bad("parts of '" + name + "' overlap"); };
    for (const json::Value &entry : *parts) {
      const json::Object *part = entry.getAsObject();
      auto file = part ? part->getString("file") : std::nullopt;
      auto checksum = part ? part->getString("checksum") : std::nullopt;
      auto box = part ? Box::read(*part, total) : std::nullopt;
      if (!file || !checksum || !box)
        return malformed();
      auto tensor = find(*file, name);
      if (!tensor)
        return tensor.takeError();
      if (tensor->numElements() != box->count ||
          safetensorsName(tensor->getType()) != *type)
        return bad(*file + ": '" + name + "' is " + tensor->typeToString() +
                   ", but not in " + checkpoint::manifestName);
      if (checkpoint::checksumOf(tensor->rawBytes()) != *checksum)
        return bad(*file + " is damaged: the checksum of '" + name +
                   "' is another");
      copied += box->count;
      if (copied > total)
        return overlap();
      if (box->isAll(total)) {
        whole = tensor->reshaped(*shape);
        continue;
      }
      if (!whole) {
        auto made = HostTensor::allocate(tensor->getType(), *shape);
        if (!made)
          return made.takeError();
        whole = std::move(*made);
        taken = Taken(total);
      }
      if (whole->getType() != tensor->getType())
        return malformed();
      if (!box->take(taken))
        return overlap();
      box->copy(tensor->data(), whole->mutableData(),
                byteSize(tensor->getType()));
    }
    if (!whole || copied != total)
      return bad("parts of '" + name + "' are missing");
    if (*role == "weight")
      result.weights.push_back(name.str());
    result.tensors.emplace_back(name.str(), std::move(*whole));
    return llvm::Error::success();
  }

  Checkpoint result;
  llvm::StringMap<llvm::StringMap<HostTensor>> files;
};

llvm::Expected<Checkpoint> readOne(const std::string &path) {
  auto result = Reader(path).read();
  if (!result)
    return addContext(result.takeError(), "checkpoint '" + path + "'");
  return result;
}

/// Newest first: the one written last, and those of steps before it.
std::vector<std::string> candidates(const std::string &folder) {
  auto all = checkpoint::list(folder);
  constexpr int64_t mostBytes = 4096;
  auto latest = openText(inFolder(folder, checkpoint::latestName), mostBytes);
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
  std::vector<std::string> paths;
  for (auto &[step, path] : llvm::reverse(all))
    paths.push_back(path);
  return paths;
}

} // namespace

llvm::Expected<Checkpoint>
readCheckpoint(const std::string &path,
               const std::function<void(const std::string &)> &warn) {
  if (llvm::sys::fs::exists(inFolder(path, checkpoint::manifestName)))
    return readOne(path);
  std::string faults;
  for (const std::string &candidate : candidates(path)) {
    auto result = readOne(candidate);
    if (result) {
      if (!faults.empty() && warn)
        warn(faults + ": '" + candidate + "' is taken instead");
      return result;
    }
    faults += (faults.empty() ? "" : "; ") +
              describeError(result.takeError()).message;
  }
  return bad(faults.empty() ? "there is no checkpoint in '" + path + "'"
                            : faults);
}

/// One, or a folder of them.
static bool isCheckpoint(const std::string &path) {
  return llvm::sys::fs::exists(inFolder(path, checkpoint::manifestName)) ||
         !checkpoint::list(path).empty();
}

llvm::Expected<Checkpoint>
readWeights(const std::string &path,
            const std::function<void(const std::string &)> &warn) {
  llvm::StringRef name = path;
  std::string pretrained = isCheckpoint(path) ? "" : findPretrained(path);
  if (pretrained.empty() && llvm::sys::fs::is_directory(path))
    return readCheckpoint(path, warn);
  if (pretrained.empty() && !name.ends_with(".npz") &&
      !name.ends_with(".safetensors"))
    return makeError(ExitCode::Usage,
                     "--weights=" + path +
                         ": expected a .safetensors or .npz file, a folder "
                         "with model.safetensors, or a checkpoint's");
  auto tensors = !pretrained.empty()      ? readPretrained(pretrained)
                 : name.ends_with(".npz") ? readNpz(path)
                                          : readSafetensors(path);
  if (!tensors)
    return tensors.takeError();
  Checkpoint result;
  result.path = path;
  result.tensors = std::move(*tensors);
  return result;
}

std::vector<std::string> filesOfWeights(const std::string &path) {
  std::vector<std::string> files, folders;
  if (std::string file = findPretrained(path);
      !file.empty() && !isCheckpoint(path))
    files = filesOfPretrained(file);
  if (llvm::sys::fs::is_directory(path)) {
    folders.push_back(path);
    for (auto &[step, folder] : checkpoint::list(path))
      folders.push_back(folder);
    files.push_back(inFolder(path, checkpoint::latestName));
  } else if (!path.empty()) {
    files.push_back(path);
  }
  for (const std::string &folder : folders) {
    if (!llvm::sys::fs::exists(inFolder(folder, checkpoint::manifestName)))
      continue;
    std::error_code code;
    for (llvm::sys::fs::directory_iterator it(folder, code), end;
         !code && it != end; it.increment(code))
      files.push_back(it->path());
  }
  return files;
}

} // namespace ax::rt
