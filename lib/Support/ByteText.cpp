//===- ByteText.cpp - Numbers of bytes for people -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Support/ByteText.h"

#include "llvm/Support/FormatVariadic.h"

std::string ax::bytesText(int64_t bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit)
    value /= 1024;
  return llvm::formatv(unit == 0 ? "{0:F0} {1}" : "{0:F1} {1}", value,
                       units[unit]);
}
