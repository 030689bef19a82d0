//===- IndexFault.cpp - Indices out of range ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/IndexFault.h"

#include "llvm/Support/raw_ostream.h"

namespace ax::rt {

char IndexFault::ID;

void IndexFault::log(llvm::raw_ostream &os) const {
  os << "index " << entries.front().index
     << " is out of range of a dimension of " << entries.front().size;
}
std::error_code IndexFault::convertToErrorCode() const {
  return llvm::inconvertibleErrorCode();
}

} // namespace ax::rt
