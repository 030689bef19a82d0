//===- ByteText.h - Large numbers for people --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_BYTETEXT_H
#define AX_SUPPORT_BYTETEXT_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ax {

/// `1.5 MiB`: with one digit behind the point, from KiB on.
std::string bytesText(int64_t bytes);

/// `1.50 GFLOP`: with two digits behind the point, from thousands on.
std::string countText(double n, const char *unit);

/// `2GiB`, `1.5 GB`, `500MB`, `4096`: at least one byte and less than 10^18;
/// nothing where `text` is no such size.
std::optional<int64_t> parseBytes(llvm::StringRef text);

/// The units that `parseBytes` knows, for messages.
inline constexpr const char *byteUnits =
    "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB";

} // namespace ax

#endif // AX_SUPPORT_BYTETEXT_H
