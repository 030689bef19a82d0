//===- Weights.cpp - Where the tensors of a model lie ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Weights.h"

#include "ax/Support/Error.h"
#include "ax/Support/Escape.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <sys/stat.h>

using namespace ax;
using namespace ax::import;

Shape FourBits::ofBytes() const {
  Shape bytes = shape;
  if (!shape.empty() && shape.back() % 2 == 0)
    bytes.back() /= 2;
  else if (std::optional<int64_t> count = checkedNumElements(shape))
    bytes = {(*count + 1) / 2};
  return bytes;
}

/// The model may be reached by symbolic links; what it names may not.
ModelFolder::ModelFolder(llvm::StringRef modelPath, bool mayLackData)
    : mayLackData(mayLackData) {
  llvm::SmallString<128> file;
  if (llvm::sys::fs::is_symlink_file(modelPath) &&
      !llvm::sys::fs::real_path(modelPath, file))
    modelPath = file;
  path = llvm::sys::path::parent_path(modelPath);
  modelFile = llvm::sys::path::filename(modelPath);
  if (path.empty())
    path = ".";
}

bool ModelFolder::lacks(llvm::StringRef location) const {
  return mayLackData && findEscape(path, location).empty() &&
         !llvm::sys::fs::exists(path + "/" + location);
}

llvm::Expected<std::shared_ptr<MappedFile>> ModelFolder::openModel() {
  std::shared_ptr<MappedFile> &file = files[modelFile];
  if (!file) {
    auto opened = MappedFile::open(path + "/" + modelFile);
    if (!opened)
      return opened.takeError();
    file = std::move(*opened);
  }
  return file;
}

static llvm::Error refuse(llvm::StringRef location, const llvm::Twine &why) {
  return makeErrorf(ExitCode::BadModel,
                    "external data '{0}' {1}: it must be a file inside the "
                    "model's folder",
                    location, why.str());
}

static llvm::Error checkLocation(const std::string &folder,
                                 llvm::StringRef location) {
  if (std::string why = findEscape(folder, location); !why.empty())
    return refuse(location.take_until([](char c) { return c == '\0'; }), why);
  std::string file = folder + "/" + location.str();
  struct stat status;
  if (lstat(file.c_str(), &status) != 0)
    return makeErrnoError("cannot open external data '" + file + "'", errno);
  if (!S_ISREG(status.st_mode))
    return refuse(location, "is not a regular file");
  if (status.st_nlink > 1)
    return refuse(location, "is a hard link to a file with other names");
  return llvm::Error::success();
}

llvm::Expected<std::shared_ptr<MappedFile>>
ModelFolder::open(llvm::StringRef location) {
  if (auto known = files.find(location); known != files.end())
    return known->second;
  if (llvm::Error error = checkLocation(path, location))
    return error;
  auto opened = MappedFile::open(path + "/" + location.str());
  if (!opened)
    return opened.takeError();
  return files[location] = std::move(*opened);
}

llvm::Expected<std::shared_ptr<MappedFile>>
ModelFolder::openEither(llvm::StringRef file) {
  return file == modelFile ? openModel() : open(file);
}

llvm::Expected<llvm::ArrayRef<uint8_t>>
ModelFolder::bytesOf(const Weight &weight) {
  auto file = openEither(weight.file);
  if (!file)
    return file.takeError();
  return (*file)->range(weight.offset, weight.length);
}

llvm::Expected<HostTensor> ModelFolder::read(const Weight &weight) {
  auto bytes = bytesOf(weight);
  if (!bytes)
    return bytes.takeError();
  return HostTensor::fromBytes(weight.type, weight.shape, *bytes);
}
