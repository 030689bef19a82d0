//===- OutputCheck.h - Outputs that would destroy something -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_OUTPUTCHECK_H
#define AX_SUPPORT_OUTPUTCHECK_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace ax {

/// What a run reads and what it writes, before it does either. Files are
/// compared by device and inode, behind links; those that are not there yet by
/// the folder that they would be in. Devices and pipes are nobody's loss.
class OutputCheck {
public:
  /// A file that is read, or that what is read was made from. The output of
  /// the flag `replacedBy` may replace it.
  void reads(std::string path, llvm::StringRef replacedBy = "");
  /// A file that the output of `flag` (`--json`) goes to; `-` is standard
  /// output. An empty path is none.
  void writes(llvm::StringRef flag, std::string path);
  /// A folder that goes, with all that is in it.
  void replaces(llvm::StringRef flag, std::string folder);

  /// What begins with `prefix` in `folder`, there or not, is the flag's own.
  void reserves(llvm::StringRef flag, std::string folder,
                llvm::StringRef prefix);

  /// A Usage error when an output is a file that is read, or another output,
  /// or where another flag's will be.
  llvm::Error check() const;

private:
  struct File {
    std::string path, flag;
  };
  struct Reserved {
    std::string folder, flag, prefix;
  };
  std::vector<File> read, written, replaced;
  std::vector<Reserved> reserved;
};

} // namespace ax

#endif // AX_SUPPORT_OUTPUTCHECK_H
