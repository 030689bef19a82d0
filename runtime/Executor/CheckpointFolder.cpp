//===- CheckpointFolder.cpp - States into a folder ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/CheckpointFolder.h"

#include "ax/Runtime/Checkpoint.h"
#include "ax/Runtime/Safetensors.h"
#include "ax/Support/Checksum.h"
#include "ax/Support/Error.h"
#include "ax/Support/GivenWeights.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cstdio>
#include <fcntl.h>
#include <map>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ax::rt {

namespace json = llvm::json;
namespace fs = llvm::sys::fs;

using checkpoint::stepPrefix;
using checkpoint::unfinishedPrefix;

/// The name of each rank's file begins so.
constexpr llvm::StringLiteral rankPrefix = "rank-";

namespace {

std::string inFolder(llvm::StringRef folder, const llvm::Twine &name) {
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

llvm::Error cannotWrite(llvm::StringRef path, std::error_code code) {
  return makeError(ExitCode::InputOutput,
                   "cannot write '" + path + "': " + code.message());
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

class Writer {
public:
  Writer(const Executor &executor, const CheckpointOptions &options,
         std::map<std::string, std::string> &frozen)
      : executor(executor), program(executor.getProgram()), options(options),
        frozen(frozen) {}

  /// Writes the checkpoint into an empty folder.
  llvm::Error write(const std::string &folder);

private:
  struct Piece {
    int32_t state;
    HeldPart part;
  };
  llvm::Error collect();
  llvm::Error describeFrozen(int32_t index);
  llvm::Error writeFile(const std::string &folder, int32_t rank,
                        const std::vector<Piece> &pieces);
  llvm::Error writeManifest(const std::string &folder);

  const Executor &executor;
  const Program &program;
  const CheckpointOptions &options;
  std::map<int32_t, std::vector<Piece>> byRank;
  json::Object states;
  /// Fingerprints of the model's own, which no step changes.
  std::map<std::string, std::string> &frozen;
};

json::Array toArray(llvm::ArrayRef<int64_t> values) {
  return json::Array(values);
}

/// Weights that never change are found in the model again, if they are from
/// there.
llvm::Error Writer::describeFrozen(int32_t index) {
  const State &state = program.states[static_cast<size_t>(index)];
  if (state.file.empty()) {
    HeldPart whole;
    whole.sizes = {*checkedNumElements(state.shape)};
    whole.strides = {1};
    byRank[whole.rank].push_back({index, std::move(whole)});
    return llvm::Error::success();
  }
  if (frozen.count(state.name))
    return llvm::Error::success();
  auto tensor = executor.readState(index);
  if (!tensor)
    return tensor.takeError();
  frozen[state.name] = fingerprintOf(*tensor);
  return llvm::Error::success();
}

llvm::Error Writer::collect() {
  for (size_t i = 0; i < program.states.size(); ++i) {
    auto index = static_cast<int32_t>(i);
    const State &state = program.states[i];
    if (!state.isMutable && !state.isWeight)
      continue;
    if (!state.isMutable)
      if (llvm::Error error = describeFrozen(index))
        return error;
    if (!state.isMutable && !state.file.empty())
      continue;
    llvm::StringRef role = !state.isMutable ? checkpoint::frozenRole
                           : state.isWeight ? checkpoint::weightRole
                                            : checkpoint::optimizerRole;
    states[state.name] = json::Object{{"dtype", safetensorsName(state.dtype)},
                                      {"shape", toArray(state.shape)},
                                      {"role", role},
                                      {"parts", json::Array()}};
    if (state.isMutable)
      for (HeldPart &part : executor.getParts(index))
        byRank[part.rank].push_back({index, std::move(part)});
  }
  return llvm::Error::success();
}

llvm::Error Writer::writeFile(const std::string &folder, int32_t rank,
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
    states.getObject(state.name)
        ->getArray("parts")
        ->push_back(json::Object{{"file", name},
                                 {"offset", piece.part.offset},
                                 {"sizes", toArray(piece.part.sizes)},
                                 {"strides", toArray(piece.part.strides)},
                                 {"checksum", checksumOf(tensor->rawBytes())}});
  }
  return file->commit();
}

llvm::Error Writer::writeManifest(const std::string &folder) {
  json::Object fingerprints;
  for (const auto &[name, fingerprint] : program.folded)
    if (!states.get(name))
      fingerprints[name] = fingerprint;
  for (const auto &[name, fingerprint] : frozen)
    fingerprints[name] = fingerprint;
  json::Value content =
      json::Object{{"format", checkpoint::format},
                   {"version", checkpoint::version},
                   {"step", options.step},
                   {"program", program.name},
                   {"progress", json::Object(options.progress)},
                   {"frozen", std::move(fingerprints)},
                   {"states", std::move(states)}};
  std::string checksum = checkpoint::checksumOf(content);
  json::Value manifest =
      json::Object{{"checksum", checksum}, {"content", std::move(content)}};
  return writeFileAtomically(
      inFolder(folder, checkpoint::manifestName),
      llvm::StringRef(llvm::formatv("{0:2}\n", manifest).str()));
}

llvm::Error Writer::write(const std::string &folder) {
  if (llvm::Error error = collect())
    return error;
  for (const auto &[rank, pieces] : byRank)
    if (llvm::Error error = writeFile(folder, rank, pieces))
      return error;
  if (llvm::Error error = writeManifest(folder))
    return error;
  return syncFolder(folder);
}

/// A file or a folder. A link goes, what it names stays.
void remove(const std::string &path) {
  if (!fs::is_symlink_file(path) && fs::is_directory(path))
    fs::remove_directories(path);
  else
    fs::remove(path);
}

/// Makes a folder that is empty, and of a name that the next run knows.
int makeUnfinished(const std::string &folder, std::string &path) {
  return makeWithNewName(inFolder(folder, unfinishedPrefix), path,
                         [](const char *name) { return ::mkdir(name, 0777); });
}

/// Removes a checkpoint by moving it in the place of an unfinished one first,
/// so that a run that dies leaves either a checkpoint or what the next one
/// removes.
void removeCheckpoint(const std::string &folder, const std::string &path) {
  std::string aside;
  if (fs::is_symlink_file(path))
    fs::remove(path);
  else if (makeUnfinished(folder, aside) == 0) {
    fs::rename(path, aside);
    remove(aside);
  }
}

/// `fresh` at `path`, and what was there at `fresh`. At one moment, so that a
/// run that dies leaves the one or the other; file systems that cannot do so
/// take three steps.
std::error_code putInPlace(const std::string &fresh, const std::string &path) {
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, path.c_str(),
                  RENAME_EXCHANGE) == 0)
    return {};
  if (errno == ENOENT)
    return fs::rename(fresh, path);
  if (errno != EINVAL && errno != ENOSYS)
    return std::error_code(errno, std::generic_category());
  std::string aside = fresh + "-replaced";
  if (std::error_code code = fs::rename(path, aside))
    return code;
  if (std::error_code code = fs::rename(fresh, path)) {
    fs::rename(aside, path);
    return code;
  }
  return fs::rename(aside, fresh);
}

bool hasManifest(const std::string &path) {
  return fs::is_regular_file(inFolder(path, checkpoint::manifestName));
}

llvm::Error inTheWay(llvm::StringRef path) {
  return makeError(ExitCode::InputOutput,
                   "'" + path +
                       "' is no checkpoint, but where one would be: move it "
                       "away, or save to another folder");
}

/// Whether a folder has nothing but what a checkpoint is written as.
bool isUnfinished(const std::string &path) {
  if (fs::is_symlink_file(path) || !fs::is_directory(path))
    return false;
  std::error_code code;
  for (fs::directory_iterator it(path, code), end; !code && it != end;
       it.increment(code)) {
    llvm::StringRef name = llvm::sys::path::filename(it->path());
    if (!name.starts_with(rankPrefix) &&
        !name.starts_with(checkpoint::manifestName))
      return false;
  }
  return !code;
}

/// Whether a file is called as AtomicFile names what becomes the file `latest`.
bool isUnfinishedLatest(const std::string &path) {
  constexpr size_t numDigits = 8;
  llvm::StringRef name = llvm::sys::path::filename(path);
  return name.consume_front(checkpoint::latestName) &&
         name.consume_front(".") && name.size() == numDigits &&
         llvm::all_of(name, llvm::isHexDigit) && !fs::is_symlink_file(path) &&
         fs::is_regular_file(path);
}

/// What runs that died have left.
void removeUnfinished(const std::string &folder) {
  std::vector<std::string> found;
  std::error_code code;
  for (fs::directory_iterator it(folder, code), end; !code && it != end;
       it.increment(code)) {
    llvm::StringRef name = llvm::sys::path::filename(it->path());
    if (name.starts_with(unfinishedPrefix) ? isUnfinished(it->path())
                                           : isUnfinishedLatest(it->path()))
      found.push_back(it->path());
  }
  for (const std::string &path : found)
    remove(path);
}

} // namespace

CheckpointFolder::~CheckpointFolder() {
  if (lock >= 0)
    ::close(lock);
}

llvm::Expected<CheckpointFolder>
CheckpointFolder::open(const std::string &path,
                       const std::function<void(const std::string &)> &warn) {
  CheckpointFolder folder(path, warn);
  if (llvm::Error error = folder.acquire())
    return error;
  for (const auto &[step, there] : checkpoint::list(path))
    if (!hasManifest(there))
      return inTheWay(there);
  return folder;
}

/// Locks the folder; again when it is not the one that is locked, but one of
/// its name.
llvm::Error CheckpointFolder::acquire() {
  if (std::error_code code = makeFolder(path))
    return cannotWrite(path, code);
  // Not the folder itself: NFS locks what is open for writing.
  std::string file = inFolder(path, checkpoint::lockName);
  struct stat held, there;
  if (lock >= 0 && ::fstat(lock, &held) == 0 &&
      ::stat(file.c_str(), &there) == 0 && held.st_dev == there.st_dev &&
      held.st_ino == there.st_ino)
    return llvm::Error::success();
  if (lock >= 0)
    ::close(lock);
  lock = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (lock < 0)
    return makeErrnoError("cannot write '" + file + "'", errno);
  return takeLock();
}

llvm::Error CheckpointFolder::takeLock() {
  int result;
  do
    result = ::flock(lock, LOCK_EX | LOCK_NB);
  while (result != 0 && errno == EINTR);
  int fault = errno;
  isLocked = result == 0;
  if (isLocked)
    return llvm::Error::success();
  if (fault == EWOULDBLOCK)
    return makeError(ExitCode::InputOutput,
                     "another run saves to '" + path +
                         "': give this one a folder of its own");
  if (fault != ENOTSUP && fault != ENOSYS && fault != ENOLCK)
    return makeErrnoError("cannot lock '" + path + "'", fault);
  if (auto tell = std::exchange(warn, nullptr))
    tell("the file system of '" + path +
         "' has no locks: let no other run save there");
  return llvm::Error::success();
}

llvm::Expected<std::string>
CheckpointFolder::write(const Executor &executor,
                        const CheckpointOptions &options) {
  if (llvm::Error error = acquire())
    return error;
  const std::string &folder = path;
  if (isLocked)
    removeUnfinished(folder);
  std::string unfinished;
  if (makeUnfinished(folder, unfinished) < 0)
    return makeErrnoError("cannot write '" + folder + "'", errno);
  std::string made = inFolder(folder, stepPrefix + llvm::Twine(options.step));
  llvm::Error error = Writer(executor, options, frozen).write(unfinished);
  // There may be one of a run that went this way before.
  if (!error && fs::exists(made) && !hasManifest(made))
    error = inTheWay(made);
  if (!error)
    if (std::error_code code = putInPlace(unfinished, made))
      error = cannotWrite(made, code);
  if (!error)
    error = syncFolder(folder);
  if (error) {
    remove(unfinished);
    return error;
  }
  if (llvm::Error failed =
          writeFileAtomically(inFolder(folder, checkpoint::latestName),
                              (llvm::sys::path::filename(made) + "\n").str()))
    return failed;
  // What was in its place, if anything.
  remove(unfinished);
  auto all = checkpoint::list(folder);
  // Those of later steps are of a run that was given up.
  while (!all.empty() && all.back().first > options.step)
    all.pop_back();
  for (int64_t i = 0, e = static_cast<int64_t>(all.size()) - options.keep;
       options.keep > 0 && i < e; ++i)
    if (const std::string &old = all[static_cast<size_t>(i)].second;
        hasManifest(old))
      removeCheckpoint(folder, old);
  return made;
}

} // namespace ax::rt
