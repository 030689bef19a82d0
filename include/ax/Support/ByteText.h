//===- ByteText.h - Numbers of bytes for people -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_BYTETEXT_H
#define AX_SUPPORT_BYTETEXT_H

#include <cstdint>
#include <string>

namespace ax {

/// `1.5 MiB`: with one digit behind the point, from KiB on.
std::string bytesText(int64_t bytes);

} // namespace ax

#endif // AX_SUPPORT_BYTETEXT_H
