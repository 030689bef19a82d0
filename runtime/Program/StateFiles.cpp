//===- StateFiles.cpp - Files that states come from -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Runtime/StateFiles.h"

#include "ax/Support/Error.h"
#include "ax/Support/Escape.h"

namespace ax::rt {

static int64_t bytesAs(DType type, const State &state) {
  std::optional<int64_t> count =
      checkedNumElements(state.shape, byteSize(type));
  return count ? *count * byteSize(type) : -1;
}

int64_t bytesOf(const State &state) { return bytesAs(state.dtype, state); }

int64_t bytesInFile(const State &state) {
  return bytesAs(state.getTypeInFile(), state);
}

llvm::Expected<std::shared_ptr<MappedFile>>
StateFiles::open(const State &state) {
  if (state.openFile)
    return state.openFile;
  // Plans name relative ones only.
  bool absolute = state.file.front() == '/';
  if (!absolute)
    if (std::string why = findEscape(folder, state.file); !why.empty())
      return makeErrorf(ExitCode::BadPlan,
                        "state '{0}': '{1}' {2}: it must be a file inside "
                        "the model's folder '{3}'",
                        state.name, state.file, why, folder);
  std::string path = absolute ? state.file : folder + "/" + state.file;
  std::shared_ptr<MappedFile> &file = files[path];
  if (file)
    return file;
  auto opened = MappedFile::open(path);
  if (!opened)
    return addContext(opened.takeError(), "state '" + state.name + "'");
  if (!state.fingerprint.empty() &&
      (*opened)->fingerprint() != state.fingerprint)
    return makeErrorf(ExitCode::BadInput,
                      "'{0}' is not the file that this plan was compiled "
                      "from: compile it again",
                      path);
  file = std::move(*opened);
  return file;
}

llvm::Expected<StateFiles::Range> StateFiles::find(const State &state) {
  auto file = open(state);
  if (!file)
    return file.takeError();
  auto bytes = (*file)->range(state.offset, bytesInFile(state));
  if (!bytes)
    return addContext(bytes.takeError(), "state '" + state.name + "'");
  return Range{std::move(*file), *bytes};
}

} // namespace ax::rt
