//===- EventFile.h - What TensorBoard reads ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SESSION_EVENTFILE_H
#define AX_LIB_SESSION_EVENTFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace ax {

/// CRC-32 of Castagnoli's polynomial, as iSCSI has it (RFC 3720).
uint32_t crc32c(llvm::StringRef bytes);

/// A new file in a folder that TensorBoard shows: records of TFRecord's format,
/// each an Event of tensorflow/core/util/event.proto.
class EventFile {
public:
  using Scalars = llvm::ArrayRef<std::pair<std::string, double>>;

  /// Makes the folder, too. A run that goes on after step `resumed` takes back
  /// what other files of the folder tell of later steps.
  static llvm::Expected<EventFile> create(const std::string &folder,
                                          std::optional<int64_t> resumed);
  llvm::Error write(int64_t step, Scalars scalars);

private:
  llvm::Error writeRecord(llvm::StringRef event);

  std::string path;
  std::unique_ptr<llvm::raw_fd_ostream> os;
};

} // namespace ax

#endif // AX_LIB_SESSION_EVENTFILE_H
