//===- JoinFirst.h - Lists of names that may be long ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_JOINFIRST_H
#define AX_SUPPORT_JOINFIRST_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <string>

namespace ax {

/// Returns the first eight of `names` between commas, with `, ...` behind where
/// there are more: models have thousands of weights.
template <typename Range>
std::string joinFirst(const Range &names) {
  constexpr size_t most = 8;
  llvm::SmallVector<std::string, most + 1> shown;
  for (const auto &name : names) {
    if (shown.size() == most) {
      shown.push_back("...");
      break;
    }
    shown.push_back(llvm::StringRef(name).str());
  }
  return llvm::join(shown, ", ");
}

} // namespace ax

#endif // AX_SUPPORT_JOINFIRST_H
