//===- IndexFault.h - Indices out of range ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A run with a bad index goes on, with 0 in its place, and fails at its end:
// other ranks may find one that comes before it, and the same one is to be
// reported on every layout.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_INDEXFAULT_H
#define AX_RUNTIME_INDEXFAULT_H

#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace ax::rt {

/// What an index check finds among its rank's indices.
class IndexFault : public llvm::ErrorInfo<IndexFault> {
public:
  static char ID;
  struct Entry {
    /// Which element of the rank's part it is, row-major.
    int64_t place;
    int64_t index, size;
  };

  explicit IndexFault(std::vector<Entry> entries)
      : entries(std::move(entries)) {}
  const std::vector<Entry> &getEntries() const { return entries; }

  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override;

private:
  std::vector<Entry> entries;
};

/// One of them, and where it is in the whole program.
struct FirstFault {
  int64_t order = 0, position = 0;
  std::string message;

  bool isBefore(const FirstFault &o) const {
    return std::tie(order, position) < std::tie(o.order, o.position);
  }
};

} // namespace ax::rt

#endif // AX_RUNTIME_INDEXFAULT_H
