//===- Checksum.cpp - Whether bytes are what they were --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Support/Checksum.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

std::string ax::checksumOf(llvm::ArrayRef<uint8_t> bytes) {
  return llvm::utohexstr(llvm::xxh3_64bits(bytes), /*LowerCase=*/true, 16);
}
