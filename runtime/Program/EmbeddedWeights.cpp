//===- EmbeddedWeights.cpp - Weights in a compiled plan -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "EmbeddedWeights.h"

#include "ax/Support/Checksum.h"
#include "ax/Support/Error.h"
#include "ax/Support/WireFormat.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Alignment.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

#include <atomic>
#include <system_error>
#include <thread>
#include <tuple>

namespace ax::rt {

/// The field of CompiledPlan.proto that holds the weights.
static constexpr uint32_t weightsField = 9;
static constexpr uint64_t alignment = EmbeddedWeights::alignment;
/// What states come from, in the message.
static constexpr llvm::StringLiteral ownFile = ".";

/// Those of all targets.
static std::vector<std::shared_ptr<Program> *> allPrograms(CompiledPlan &plan) {
  std::vector<std::shared_ptr<Program> *> all;
  for (TargetPrograms &target : plan.targets)
    for (std::shared_ptr<Program> &program : target.programs)
      all.push_back(&program);
  return all;
}

llvm::Expected<EmbeddedWeights>
EmbeddedWeights::take(CompiledPlan &plan, const std::string &folder) {
  EmbeddedWeights result;
  StateFiles files(folder);
  std::map<std::tuple<std::string, int64_t, int64_t>, int64_t> places;
  for (std::shared_ptr<Program> *program : allPrograms(plan)) {
    *program = std::make_shared<Program>(**program);
    for (State &state : (*program)->states) {
      if (state.file.empty())
        continue;
      auto found = files.find(state);
      if (!found)
        return found.takeError();
      auto [place, isNew] = places.try_emplace(
          {state.file, state.offset, bytesInFile(state)}, result.bytes);
      if (isNew) {
        plan.embedded.push_back({static_cast<int64_t>(found->bytes.size()),
                                 checksumOf(found->bytes)});
        result.bytes += llvm::alignTo(found->bytes.size(), alignment);
        result.pieces.push_back(std::move(*found));
      }
      state.file = ownFile.str();
      state.fingerprint.clear();
      state.offset = place->second;
    }
  }
  plan.files = {};
  return result;
}

std::string EmbeddedWeights::header(int64_t bytes) {
  std::string header;
  if (bytes == 0)
    return header;
  appendVarint(header,
               weightsField << 3 | static_cast<uint32_t>(WireType::Bytes));
  appendVarint(header, static_cast<uint64_t>(bytes));
  return header;
}

llvm::Error EmbeddedWeights::write(AtomicFile &file) const {
  const std::string zeros(alignment, '\0');
  for (const StateFiles::Range &piece : pieces) {
    if (llvm::Error error = file.write(piece.bytes))
      return error;
    uint64_t rest =
        llvm::offsetToAlignment(piece.bytes.size(), llvm::Align(alignment));
    if (llvm::Error error = file.write(llvm::StringRef(zeros).take_front(rest)))
      return error;
  }
  return llvm::Error::success();
}

/// Gigabytes are looked at by all processors.
static bool areWhole(const std::vector<EmbeddedPiece> &pieces,
                     llvm::ArrayRef<uint8_t> contents) {
  std::vector<llvm::ArrayRef<uint8_t>> parts;
  for (const EmbeddedPiece &piece : pieces) {
    size_t padded =
        llvm::alignTo(static_cast<uint64_t>(piece.bytes), alignment);
    parts.push_back(contents.take_front(padded));
    contents = contents.drop_front(padded);
  }
  std::atomic<size_t> next{0};
  std::atomic<bool> isWhole{true};
  auto look = [&] {
    for (size_t i; (i = next++) < parts.size() && isWhole;) {
      auto bytes = static_cast<size_t>(pieces[i].bytes);
      if (checksumOf(parts[i].take_front(bytes)) != pieces[i].checksum ||
          llvm::any_of(parts[i].drop_front(bytes),
                       [](uint8_t byte) { return byte != 0; }))
        isWhole = false;
    }
  };
  std::vector<std::thread> others;
  for (size_t i = 1;
       i < std::min<size_t>(std::thread::hardware_concurrency(), parts.size());
       ++i)
    try {
      others.emplace_back(look);
    } catch (const std::system_error &) {
      // Those that there are do it.
      break;
    }
  look();
  for (std::thread &other : others)
    other.join();
  return isWhole;
}

/// False where a state is not in so many bytes of weights.
static bool comeFrom(CompiledPlan &plan, int64_t numBytes, int64_t offset,
                     llvm::StringRef name,
                     const std::shared_ptr<MappedFile> &file) {
  for (std::shared_ptr<Program> *program : allPrograms(plan))
    for (State &state : (*program)->states) {
      if (state.file.empty())
        continue;
      int64_t size = bytesInFile(state);
      if (state.file != ownFile || size < 0 || state.offset < 0 ||
          state.offset > numBytes || numBytes - state.offset < size)
        return false;
      state.file = name.str();
      state.openFile = file;
      state.offset += offset;
    }
  return true;
}

llvm::Error placeEmbedded(CompiledPlan &plan, llvm::ArrayRef<uint8_t> rest,
                          const std::shared_ptr<MappedFile> &file) {
  auto damaged = [&] {
    return makeError(ExitCode::BadPlan, "compiled plan '" + file->getPath() +
                                            "' is damaged: its weights are "
                                            "not those that it had");
  };
  uint64_t numBytes = 0;
  for (const EmbeddedPiece &piece : plan.embedded) {
    auto bytes = static_cast<uint64_t>(piece.bytes);
    if (bytes > rest.size() || numBytes > rest.size())
      return damaged();
    numBytes += llvm::alignTo(bytes, alignment);
  }
  std::string header = EmbeddedWeights::header(static_cast<int64_t>(numBytes));
  if (rest.size() != header.size() + numBytes ||
      !llvm::toStringRef(rest).starts_with(header) ||
      !areWhole(plan.embedded, rest.drop_front(header.size())))
    return damaged();
  if (numBytes == 0)
    return llvm::Error::success();
  llvm::SmallString<256> path;
  if (std::error_code code = llvm::sys::fs::real_path(file->getPath(), path))
    return makeError(ExitCode::InputOutput, "cannot find '" + file->getPath() +
                                                "': " + code.message());
  if (!comeFrom(plan, static_cast<int64_t>(numBytes),
                file->getSize() - static_cast<int64_t>(numBytes),
                llvm::sys::path::filename(path), file))
    return damaged();
  plan.files.folder = llvm::sys::path::parent_path(path).str();
  return llvm::Error::success();
}

} // namespace ax::rt
