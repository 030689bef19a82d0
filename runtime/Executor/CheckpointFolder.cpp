//===- CheckpointFolder.cpp - States into a folder ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/CheckpointFolder.h"

#include "CheckpointWriter.h"

#include "ax/Runtime/Agreement.h"
#include "ax/Runtime/Checkpoint.h"
#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <map>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ax::rt {

namespace fs = llvm::sys::fs;

using checkpoint::stepPrefix;
using checkpoint::unfinishedPrefix;

namespace {

llvm::Error cannotWrite(llvm::StringRef path, std::error_code code) {
  return makeError(ExitCode::InputOutput,
                   "cannot write '" + path + "': " + code.message());
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

/// What the name of a checkpoint has in front while another takes its place.
constexpr llvm::StringLiteral replacedPrefix = ".unfinished-replaced-";

/// `fresh` at `path`, and what was there at `fresh`. At one moment, so that a
/// run that dies leaves the one or the other; file systems that cannot do so
/// take three steps.
std::error_code exchangeFolders(const std::string &fresh,
                                const std::string &path) {
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, path.c_str(),
                  RENAME_EXCHANGE) == 0)
    return {};
  if (errno == ENOENT)
    return fs::rename(fresh, path);
  if (errno != EINVAL && errno != ENOSYS)
    return std::error_code(errno, std::generic_category());
  std::string aside =
      inFolder(llvm::sys::path::parent_path(path),
               replacedPrefix + llvm::sys::path::filename(path));
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

/// A run that died between the steps of `exchangeFolders` has left none in the
/// place of a checkpoint.
void restoreReplaced(const std::string &folder) {
  std::error_code code;
  std::vector<std::string> names;
  for (fs::directory_iterator it(folder, code), end; !code && it != end;
       it.increment(code))
    if (llvm::StringRef name = llvm::sys::path::filename(it->path());
        name.consume_front(replacedPrefix))
      names.push_back(name.str());
  for (const std::string &name : names)
    if (std::string path = inFolder(folder, name); !fs::exists(path))
      fs::rename(inFolder(folder, replacedPrefix + name), path);
}

/// What runs that died have left.
void removeUnfinished(const std::string &folder) {
  restoreReplaced(folder);
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
                       const std::function<void(const std::string &)> &warn,
                       std::shared_ptr<World> world) {
  if (!world)
    world = makeLoneWorld();
  CheckpointFolder folder(path, warn, world);
  auto opened = share(*world, "folder of checkpoints",
                      [&]() -> llvm::Expected<std::string> {
                        if (llvm::Error error = folder.acquire())
                          return error;
                        if (folder.isLocked)
                          restoreReplaced(path);
                        for (const auto &[step, there] : checkpoint::list(path))
                          if (!hasManifest(there))
                            return inTheWay(there);
                        return "";
                      });
  if (!opened)
    return opened.takeError();
  if (llvm::Error error = folder.checkShared())
    return error;
  return folder;
}

/// What process 0 makes there all have to see.
llvm::Error CheckpointFolder::checkShared() const {
  if (world->isAlone())
    return llvm::Error::success();
  auto made = share(
      *world, "a folder that all see", [&]() -> llvm::Expected<std::string> {
        std::string folder;
        if (makeUnfinished(path, folder) < 0)
          return makeErrnoError("cannot write '" + path + "'", errno);
        return folder;
      });
  if (!made)
    return made.takeError();
  llvm::Error mine = llvm::Error::success();
  if (!fs::is_directory(inFolder(path, llvm::sys::path::filename(*made))))
    mine = makeError(ExitCode::Usage,
                     "'" + path +
                         "' is not the folder that rank 0 has under this "
                         "name: save to a file system that all hosts share");
  llvm::Error error = agree(*world, "who sees the folder", std::move(mine));
  if (world->isFirst())
    remove(*made);
  return error;
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

llvm::Expected<std::string> CheckpointFolder::begin() {
  if (llvm::Error error = acquire())
    return error;
  if (isLocked)
    removeUnfinished(path);
  std::string unfinished;
  if (makeUnfinished(path, unfinished) < 0)
    return makeErrnoError("cannot write '" + path + "'", errno);
  return unfinished;
}

llvm::Expected<std::string>
CheckpointFolder::putInPlace(const std::string &unfinished, int64_t step,
                             std::string &spare) const {
  if (llvm::Error error = syncFolder(unfinished))
    return error;
  std::string made = inFolder(path, stepPrefix + llvm::Twine(step));
  // There may be one of a run that went this way before.
  if (fs::exists(made) && !hasManifest(made))
    return inTheWay(made);
  if (std::error_code code = exchangeFolders(unfinished, made))
    return cannotWrite(made, code);
  llvm::Error error = syncFolder(path);
  if (!error)
    return made;
  // What is on disk nobody knows; what was there is not given up for it.
  if (!exchangeFolders(made, unfinished) || !hasManifest(unfinished))
    return error;
  // Where it does not get back to its place, it stays: under a name that no run
  // removes, if it can be.
  spare.clear();
  std::string kept =
      inFolder(path, ("before-" + stepPrefix + llvm::Twine(step)).str());
  if (fs::rename(unfinished, kept))
    kept = unfinished;
  ErrorDescription why = describeError(std::move(error));
  return makeErrorf(why.code, "{0}; the checkpoint that was there is '{1}' now",
                    why.message, kept);
}

void CheckpointFolder::setDamaged(llvm::ArrayRef<std::string> checkpoints) {
  damaged.clear();
  for (const auto &[step, there] : checkpoint::list(path))
    for (const std::string &known : checkpoints)
      if (fs::equivalent(known, there))
        damaged.insert(step);
}

void CheckpointFolder::removeOld(const CheckpointOptions &options) const {
  auto all = checkpoint::list(path);
  auto isDamaged = [&](const auto &entry) {
    return damaged.count(entry.first) != 0;
  };
  // Those of later steps are of a run that was given up.
  llvm::erase_if(all, [&](const auto &entry) {
    return entry.first > options.step && !isDamaged(entry);
  });
  std::stable_partition(all.begin(), all.end(), isDamaged);
  for (int64_t i = 0, e = static_cast<int64_t>(all.size()) - options.keep;
       options.keep > 0 && i < e; ++i)
    if (const std::string &old = all[static_cast<size_t>(i)].second;
        hasManifest(old))
      removeCheckpoint(path, old);
}

llvm::Expected<std::string> CheckpointFolder::finish(
    CheckpointWriter &writer, const std::string &unfinished,
    llvm::ArrayRef<std::string> written, const CheckpointOptions &options) {
  std::string spare = unfinished;
  auto complete = [&]() -> llvm::Expected<std::string> {
    std::vector<std::string> files;
    for (const std::string &each : written) {
      auto text = decode(each);
      if (!text)
        return text.takeError();
      files.push_back(std::move(*text));
    }
    if (llvm::Error error = writer.writeManifest(unfinished, files))
      return error;
    return putInPlace(unfinished, options.step, spare);
  };
  auto made = complete();
  if (!made) {
    if (!spare.empty())
      remove(spare);
    return made;
  }
  damaged.erase(options.step);
  if (llvm::Error failed =
          writeFileAtomically(inFolder(path, checkpoint::latestName),
                              (llvm::sys::path::filename(*made) + "\n").str()))
    return failed;
  // What was in its place, if anything.
  remove(unfinished);
  removeOld(options);
  return made;
}

llvm::Expected<std::string>
CheckpointFolder::write(const Executor &executor,
                        const CheckpointOptions &options) {
  auto unfinished = share(*world, "a new checkpoint", [&] { return begin(); });
  if (!unfinished)
    return unfinished.takeError();
  CheckpointWriter writer(executor, options, frozen);
  auto files = writer.writeFiles(*unfinished);
  if (!files && !world->isAlone())
    files = addContext(files.takeError(), describePlace(world->getPlace()));
  // When process 0 has this, nobody writes any more.
  auto written =
      world->gather("files of a checkpoint", encode(std::move(files)));
  if (!written) {
    if (world->isFirst())
      remove(*unfinished);
    return written.takeError();
  }
  return share(*world, "a checkpoint's end",
               [&] { return finish(writer, *unfinished, *written, options); });
}

} // namespace ax::rt
