//===- OutputCheck.cpp - Outputs that would destroy something -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/OutputCheck.h"

#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <map>
#include <optional>
#include <sys/stat.h>
#include <tuple>

namespace ax {

namespace {
/// Device and inode of a file that is there; of another one those of the
/// nearest folder that is, and the rest of the path.
using Identity = std::tuple<dev_t, ino_t, std::string>;
} // namespace

/// Returns which file or folder it is; nothing for what is neither.
static std::optional<Identity> identityOf(const std::string &path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
      return std::nullopt;
    return Identity(info.st_dev, info.st_ino, "");
  }
  llvm::SmallString<256> absolute(behindLinks(path));
  llvm::sys::fs::make_absolute(absolute);
  llvm::StringRef folder = absolute;
  while (!folder.empty()) {
    folder = llvm::sys::path::parent_path(folder);
    if (::stat(folder.str().c_str(), &info) == 0)
      break;
  }
  llvm::SmallString<256> rest(absolute.str().drop_front(folder.size()));
  llvm::sys::path::remove_dots(rest, /*remove_dot_dot=*/true);
  return Identity(info.st_dev, info.st_ino, rest.str().ltrim('/').str());
}

/// Returns the path without links, dots and doubled slashes, whether it is
/// there or not.
static std::string canonical(const std::string &path) {
  llvm::SmallString<256> absolute(behindLinks(path));
  llvm::sys::fs::make_absolute(absolute);
  llvm::StringRef there = absolute;
  llvm::SmallString<256> result;
  while (!there.empty() && llvm::sys::fs::real_path(there, result))
    there = llvm::sys::path::parent_path(there);
  llvm::sys::path::append(result, absolute.str().drop_front(there.size()));
  llvm::sys::path::remove_dots(result, /*remove_dot_dot=*/true);
  return result.str().str();
}

/// The rest of the path of a file that is somewhere below `folder`; empty for
/// others.
static llvm::StringRef pathInside(llvm::StringRef file,
                                  llvm::StringRef folder) {
  return file.consume_front(folder) && file.starts_with("/")
             ? file.ltrim('/')
             : llvm::StringRef();
}

/// Whether `file` is somewhere below `folder`.
static bool isInside(const std::string &file, const std::string &folder) {
  return !pathInside(canonical(file), canonical(folder)).empty();
}

void OutputCheck::reads(std::string path, llvm::StringRef replacedBy) {
  if (!path.empty())
    read.push_back({std::move(path), replacedBy.str()});
}

void OutputCheck::writes(llvm::StringRef flag, std::string path) {
  if (path == "-")
    path = "/dev/stdout";
  if (!path.empty())
    written.push_back({std::move(path), flag.str()});
}

void OutputCheck::replaces(llvm::StringRef flag, std::string folder) {
  replaced.push_back({std::move(folder), flag.str()});
}

void OutputCheck::reserves(llvm::StringRef flag, std::string folder,
                           llvm::StringRef prefix) {
  reserved.push_back({std::move(folder), flag.str(), prefix.str()});
}

static llvm::Error wouldDestroy(const std::string &flag,
                                const std::string &output,
                                const std::string &input) {
  return makeErrorf(ExitCode::Usage,
                    "to write '{0}' would destroy '{1}': give {2} another "
                    "name",
                    output, input, flag);
}

llvm::Error OutputCheck::check() const {
  std::map<Identity, const File *> known;
  for (const File &output : written) {
    std::optional<Identity> identity = identityOf(output.path);
    if (!identity)
      continue;
    auto [other, isNew] = known.try_emplace(*identity, &output);
    if (!isNew)
      return makeErrorf(ExitCode::Usage,
                        "{0} and {1} would both write '{2}': give one of them "
                        "another name",
                        other->second->flag, output.flag, output.path);
  }
  for (const File &input : read) {
    std::optional<Identity> identity = identityOf(input.path);
    auto found = identity ? known.find(*identity) : known.end();
    if (found != known.end() && found->second->flag != input.flag)
      return wouldDestroy(found->second->flag, found->second->path, input.path);
    for (const File &folder : replaced)
      if (folder.flag != input.flag && isInside(input.path, folder.path))
        return wouldDestroy(folder.flag, folder.path, input.path);
  }
  for (const File &output : written)
    for (const File &folder : replaced)
      if (folder.flag != output.flag && isInside(output.path, folder.path))
        return wouldDestroy(folder.flag, folder.path, output.path);
  for (const File &output : written) {
    std::string path = canonical(output.path);
    for (const Reserved &own : reserved)
      if (own.flag != output.flag &&
          pathInside(path, canonical(own.folder)).starts_with(own.prefix))
        return makeErrorf(ExitCode::Usage,
                          "'{0}' is where {1} puts and removes what is its "
                          "own: give {2} another name",
                          output.path, own.flag, output.flag);
  }
  return llvm::Error::success();
}

} // namespace ax
