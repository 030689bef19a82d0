//===- HostStates.cpp - States as the host has them -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "HostStates.h"

#include "ax/Runtime/StateFiles.h"

#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"

namespace ax::rt {

void HostState::release(int64_t offset, int64_t bytes) const {
  if (file)
    file->release(fileOffset + offset, bytes);
}

llvm::Expected<std::vector<HostState>>
openHostStates(const Program &program, const std::string &folder) {
  std::vector<HostState> states;
  StateFiles files(folder);
  for (const State &state : program.states) {
    HostState &host = states.emplace_back();
    if (state.pieces) {
      // One that is whole may be used where it is.
      if (const TensorPiece *whole = state.pieces->getWhole()) {
        host.data = whole->tensor.data();
        host.file = whole->file;
        if (host.file)
          host.fileOffset = host.data - host.file->bytes().data();
      } else {
        host.pieces = state.pieces;
      }
      continue;
    }
    bool isMade = state.isPrepared || state.isZeroAtFirst;
    if (isMade && state.value.numBytes() == 0)
      continue;
    if (state.file.empty()) {
      if (state.value.numBytes() != bytesOf(state))
        return makeErrorf(ExitCode::BadPlan,
                          "state '{0}': its value has the "
                          "wrong size",
                          state.name);
      host.data = state.value.data();
      continue;
    }
    auto found = files.find(state);
    if (!found)
      return found.takeError();
    if (state.fileType || state.dealt) {
      PiecedTensor tensor = PiecedTensor::of(
          HostTensor::borrow(state.getTypeInFile(), state.shape,
                             found->bytes.data(), found->file),
          found->file);
      tensor.type = state.dtype;
      tensor.wanted = state.dealt;
      host.pieces = std::make_shared<const PiecedTensor>(std::move(tensor));
      continue;
    }
    host.file = std::move(found->file);
    host.data = found->bytes.data();
    host.fileOffset = state.offset;
  }
  return states;
}

} // namespace ax::rt
