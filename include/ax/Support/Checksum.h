//===- Checksum.h - Whether bytes are what they were ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_CHECKSUM_H
#define AX_SUPPORT_CHECKSUM_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <string>

namespace ax {

/// 16 hexadecimal digits (XXH3, 64 bits): tells damage and mistakes, not
/// forgery.
std::string checksumOf(llvm::ArrayRef<uint8_t> bytes);

} // namespace ax

#endif // AX_SUPPORT_CHECKSUM_H
