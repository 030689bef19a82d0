//===- CheckpointWriter.cpp - The files of one checkpoint -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CheckpointWriter.h"

#include "ax/Runtime/Checkpoint.h"
#include "ax/Runtime/Safetensors.h"
#include "ax/Support/Checksum.h"
#include "ax/Support/Error.h"
#include "ax/Support/GivenWeights.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"

#include <fcntl.h>
#include <unistd.h>

namespace ax::rt {

namespace json = llvm::json;

std::string inFolder(llvm::StringRef folder, const llvm::Twine &name) {
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

llvm::Error syncFolder(const std::string &path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool done = fd >= 0 && ::fsync(fd) == 0;
  int fault = errno;
  if (fd >= 0)
    ::close(fd);
  return done ? llvm::Error::success()
              : makeErrnoError("cannot write '" + path + "'", fault);
}

static json::Array toArray(llvm::ArrayRef<int64_t> values) {
  return json::Array(values);
}

static json::Object toJson(const Dealt &dealt) {
  return json::Object{{"dim", dealt.dim},
                      {"parts", toArray(dealt.parts)},
                      {"hands", dealt.hands}};
}

bool CheckpointWriter::isHere(int32_t rank) const {
  return llvm::is_contained(executor.getRanks(), rank);
}

/// States that a checkpoint has: what a run changes, and weights that it was
/// given in place of the model's, which are in no file.
std::vector<int32_t> CheckpointWriter::findSaved() const {
  std::vector<int32_t> saved;
  for (size_t i = 0; i < program.states.size(); ++i)
    if (const State &state = program.states[i];
        state.isMutable || (state.isWeight && state.file.empty()))
      saved.push_back(static_cast<int32_t>(i));
  return saved;
}

llvm::Error CheckpointWriter::collect() {
  for (int32_t index : findSaved()) {
    const State &state = program.states[static_cast<size_t>(index)];
    std::vector<HeldPart> held;
    if (state.isMutable) {
      held = executor.getParts(index);
    } else {
      // Every process has it; the first writes it.
      HeldPart &whole = held.emplace_back();
      whole.sizes = {*checkedNumElements(state.shape)};
      whole.strides = {1};
    }
    for (HeldPart &part : held)
      if (isHere(part.rank))
        byRank[part.rank].push_back({index, std::move(part)});
  }
  return llvm::Error::success();
}

llvm::Error CheckpointWriter::writeFile(const std::string &folder, int32_t rank,
                                        const std::vector<Piece> &pieces) {
  std::string name = rankPrefix.str() + std::to_string(rank) + ".safetensors";
  std::vector<SafetensorsWriter::Entry> entries;
  for (const Piece &piece : pieces) {
    const State &state = program.states[static_cast<size_t>(piece.state)];
    bool isWhole =
        checkedNumElements(piece.part.sizes) == checkedNumElements(state.shape);
    entries.push_back(
        {state.name, state.dtype, isWhole ? state.shape : piece.part.sizes});
  }
  auto file = SafetensorsWriter::create(inFolder(folder, name), entries);
  if (!file)
    return file.takeError();
  for (const Piece &piece : pieces) {
    const State &state = program.states[static_cast<size_t>(piece.state)];
    auto tensor = state.isMutable ? executor.readPart(piece.state, piece.part)
                                  : executor.readState(piece.state);
    if (!tensor)
      return tensor.takeError();
    if (llvm::Error error = file->write(*tensor))
      return error;
    json::Value &known = parts[state.name];
    if (!known.getAsArray())
      known = json::Array();
    known.getAsArray()->push_back(
        json::Object{{"file", name},
                     {"offset", piece.part.offset},
                     {"sizes", toArray(piece.part.sizes)},
                     {"strides", toArray(piece.part.strides)},
                     {"checksum", checksumOf(tensor->rawBytes())}});
  }
  return file->commit();
}

llvm::Expected<std::string>
CheckpointWriter::writeFiles(const std::string &folder) {
  if (llvm::Error error = collect())
    return error;
  for (const auto &[rank, pieces] : byRank)
    if (llvm::Error error = writeFile(folder, rank, pieces))
      return error;
  if (llvm::Error error = syncFolder(folder))
    return error;
  return llvm::formatv("{0}", json::Value(std::move(parts))).str();
}

/// Weights that never change are found in the model again, if they are from
/// there.
llvm::Error CheckpointWriter::describeFrozen(int32_t index) {
  const State &state = program.states[static_cast<size_t>(index)];
  if (state.isMutable || !state.isWeight || state.file.empty() ||
      frozen.count(state.name))
    return llvm::Error::success();
  auto tensor = executor.readState(index);
  if (!tensor)
    return tensor.takeError();
  frozen[state.name] = fingerprintOf(*tensor);
  return llvm::Error::success();
}

llvm::Error
CheckpointWriter::writeManifest(const std::string &folder,
                                llvm::ArrayRef<std::string> written) {
  json::Object states;
  int64_t version = checkpoint::version;
  for (int32_t index : findSaved()) {
    const State &state = program.states[static_cast<size_t>(index)];
    llvm::StringRef role = !state.isMutable ? checkpoint::frozenRole
                           : state.isWeight ? checkpoint::weightRole
                                            : checkpoint::optimizerRole;
    states[state.name] = json::Object{{"dtype", safetensorsName(state.dtype)},
                                      {"shape", toArray(state.shape)},
                                      {"role", role},
                                      {"parts", json::Array()}};
    // What ranks have is in their order; what was given stays as it was.
    if (state.isMutable && state.dealt) {
      version = checkpoint::dealtVersion;
      states.getObject(state.name)->insert({"dealt", toJson(*state.dealt)});
    }
  }
  for (const std::string &text : written) {
    auto parsed = json::parse(text);
    json::Object *each = parsed ? parsed->getAsObject() : nullptr;
    if (!each) {
      llvm::consumeError(parsed.takeError());
      return makeError(ExitCode::RunFailed,
                       "another process has sent no list of parts");
    }
    for (auto &[name, list] : *each) {
      json::Object *state = states.getObject(name);
      json::Array *added = list.getAsArray();
      if (!state || !added)
        return makeError(ExitCode::RunFailed, "another process has a state '" +
                                                  llvm::StringRef(name) +
                                                  "', which is not here");
      for (json::Value &part : *added)
        state->getArray("parts")->push_back(std::move(part));
    }
  }
  for (size_t i = 0; i < program.states.size(); ++i)
    if (llvm::Error error = describeFrozen(static_cast<int32_t>(i)))
      return error;
  json::Object fingerprints;
  for (const auto &[name, fingerprint] : program.folded)
    if (!states.get(name))
      fingerprints[name] = fingerprint;
  for (const auto &[name, fingerprint] : frozen)
    fingerprints[name] = fingerprint;
  json::Value content =
      json::Object{{"format", checkpoint::format},
                   {"version", version},
                   {"step", options.step},
                   {"program", program.name},
                   {"progress", json::Object(options.progress)},
                   {"frozen", std::move(fingerprints)},
                   {"states", std::move(states)}};
  std::string checksum = checkpoint::checksumOf(content);
  json::Value manifest =
      json::Object{{"checksum", checksum}, {"content", std::move(content)}};
  std::string text = llvm::formatv("{0}\n", manifest).str(),
              path = inFolder(folder, checkpoint::manifestName);
  if (static_cast<int64_t>(text.size()) > options.mostManifestBytes)
    return makeErrorf(ExitCode::InputOutput,
                      "cannot write '{0}': {1} bytes, of which {2} can be "
                      "read: states are in too many parts (a lower --zero, or "
                      "fewer ranks)",
                      path, text.size(), options.mostManifestBytes);
  return writeFileAtomically(path, llvm::StringRef(text));
}

} // namespace ax::rt
