//===- ZipFile.h - Members of a .zip archive --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_ZIPFILE_H
#define AX_RUNTIME_ZIPFILE_H

#include "ax/Support/AtomicFile.h"
#include "ax/Support/HostTensor.h"

#include <string>
#include <vector>

namespace ax::rt {

struct ZipMember {
  std::string name;
  /// The contents, as bytes.
  HostTensor content;
};

/// Members whose names end in `suffix`, checksums verified, in the order of the
/// central directory. Stored and deflated members of one archive without
/// encryption, ZIP64 included; anything else is a BadInput error, and so are
/// members that share bytes: a small archive could name them without end.
llvm::Expected<std::vector<ZipMember>> readZip(llvm::ArrayRef<uint8_t> archive,
                                               llvm::StringRef suffix);

/// Writes an archive of stored members.
class ZipWriter {
public:
  explicit ZipWriter(AtomicFile file) : file(std::move(file)) {}
  /// The member's content is the concatenation of `parts`.
  llvm::Error add(const std::string &name,
                  llvm::ArrayRef<llvm::ArrayRef<uint8_t>> parts);
  /// Writes the directory and makes the file appear.
  llvm::Error finish();

private:
  AtomicFile file;
  std::string directory;
  uint64_t numMembers = 0;
};

} // namespace ax::rt

#endif // AX_RUNTIME_ZIPFILE_H
