//===- HostStates.h - States as the host has them ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_HOSTSTATES_H
#define AX_RUNTIME_HOSTSTATES_H

#include "ax/Runtime/Program.h"

#include "llvm/Support/Error.h"

namespace ax::rt {

/// The global tensor of a state at first, row-major: in a file that is mapped,
/// or in the program, which must live longer.
struct HostState {
  /// The bytes; null where there are nothing but zeros, or pieces, or it is
  /// prepared.
  const uint8_t *data = nullptr;
  /// Not null where it lies in several places.
  std::shared_ptr<const PiecedTensor> pieces;
  /// Null when it is in the program.
  std::shared_ptr<MappedFile> file;
  /// Where the tensor begins in the file.
  int64_t fileOffset = 0;

  /// The host's memory need not hold these bytes of it any more; who reads them
  /// again reads the file again.
  void release(int64_t offset, int64_t bytes) const;
};

/// Opens the files, and returns states by number; an error when one is not
/// wholly inside its file.
llvm::Expected<std::vector<HostState>>
openHostStates(const Program &program, const std::string &folder);

} // namespace ax::rt

#endif // AX_RUNTIME_HOSTSTATES_H
