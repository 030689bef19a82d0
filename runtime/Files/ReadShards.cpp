//===- ReadShards.cpp - Weights as save_pretrained writes them ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// FOLDER/model.safetensors, or several files of which
// FOLDER/model.safetensors.index.json says what is in which.
//
//===----------------------------------------------------------------------===//

#include "ReadShards.h"

#include "ax/Runtime/Safetensors.h"
#include "ax/Support/Error.h"
#include "ax/Support/Flags.h"
#include "ax/Support/GivenWeights.h"
#include "ax/Support/MappedFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

#include <map>
#include <set>

namespace ax::rt {

namespace json = llvm::json;

constexpr llvm::StringLiteral wholeName = "model.safetensors";
constexpr llvm::StringLiteral indexEnding = ".safetensors.index.json";

static llvm::Error bad(const std::string &path, const llvm::Twine &message) {
  return makeError(ExitCode::BadInput, "weights '" + path + "': " + message);
}

static std::string beside(llvm::StringRef path, llvm::StringRef name) {
  llvm::SmallString<256> file(llvm::sys::path::parent_path(path));
  llvm::sys::path::append(file, name);
  return file.str().str();
}

std::string findPretrained(const std::string &path) {
  if (llvm::StringRef(path).ends_with(indexEnding))
    return path;
  if (path.empty())
    return "";
  for (const std::string &name :
       {"model" + indexEnding.str(), wholeName.str()}) {
    std::string file = beside(path + "/.", name);
    if (llvm::sys::fs::exists(file))
      return file;
  }
  return "";
}

std::string describeLack(const std::string &folder) {
  std::string text = "'" + folder + "' has neither a checkpoint, nor " +
                     wholeName.str() + ", nor model" + indexEnding.str();
  std::error_code code;
  // The first by name, so that it is the same each time.
  std::string other;
  for (llvm::sys::fs::directory_iterator it(folder, code), end;
       !code && it != end; it.increment(code)) {
    llvm::StringRef path = it->path();
    bool isWeights = path.ends_with(indexEnding) ||
                     path.ends_with(".safetensors") || path.ends_with(".npz");
    if (isWeights && (other.empty() || path < other))
      other = path.str();
  }
  return other.empty() ? text : text + ": give the file, as --weights=" + other;
}

/// The names of the tensors in each file.
using Shards = std::map<std::string, std::set<std::string>>;

static llvm::Expected<Shards> readIndex(const std::string &path) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  llvm::StringRef text = llvm::toStringRef((*file)->bytes());
  constexpr size_t longest = 100'000'000;
  constexpr int deepest = 8;
  if (text.size() > longest || nestsDeeper(text, deepest))
    return bad(path, "is too long or nested too deeply");
  auto index = json::parse(text);
  if (!index) {
    llvm::consumeError(index.takeError());
    return bad(path, "is no JSON");
  }
  const json::Object *object = index->getAsObject();
  const json::Object *map = object ? object->getObject("weight_map") : nullptr;
  if (!map || map->empty())
    return bad(path, "has no weight_map");
  Shards shards;
  for (const auto &[name, value] : *map) {
    auto shard = value.getAsString();
    // Links there may be: of what is downloaded there are often some.
    if (!shard || shard->contains('/') || shard->contains('\0') ||
        !shard->ends_with(".safetensors"))
      return bad(path, "'" + llvm::StringRef(name) +
                           "' is in no .safetensors file of the same folder");
    shards[shard->str()].insert(llvm::StringRef(name).str());
  }
  return shards;
}

llvm::Expected<NamedPieces> readPretrained(const std::string &path) {
  if (!llvm::StringRef(path).ends_with(indexEnding))
    return readSafetensors(path);
  auto shards = readIndex(path);
  if (!shards)
    return shards.takeError();
  NamedPieces all;
  for (auto &[name, wanted] : *shards) {
    auto tensors = readSafetensors(beside(path, name));
    if (!tensors)
      return tensors.takeError();
    std::vector<std::string> unnamed;
    for (auto &[key, tensor] : *tensors)
      if (wanted.erase(key))
        all.emplace_back(key, std::move(tensor));
      else
        unnamed.push_back(key);
    if (!unnamed.empty())
      return bad(path, name + " has " + listSome(unnamed) +
                           ", which weight_map does not name: it is not the "
                           "index of these files");
    if (!wanted.empty())
      return bad(path, "'" + *wanted.begin() + "' is not in " + name);
  }
  return all;
}

std::vector<std::string> filesOfPretrained(const std::string &path) {
  std::vector<std::string> files{path};
  if (!llvm::StringRef(path).ends_with(indexEnding))
    return files;
  auto shards = readIndex(path);
  if (!shards) {
    llvm::consumeError(shards.takeError());
    return files;
  }
  for (auto &[name, wanted] : *shards)
    files.push_back(beside(path, name));
  return files;
}

} // namespace ax::rt
