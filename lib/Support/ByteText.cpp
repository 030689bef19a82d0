//===- ByteText.cpp - Large numbers for people ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Support/ByteText.h"

#include "ax/Support/Flags.h"

#include "llvm/ADT/StringSwitch.h"
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

std::string ax::countText(double n, const char *unit) {
  const char *prefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t p = 0;
  for (; n >= 1000 && p + 1 < std::size(prefixes); ++p)
    n /= 1000;
  return llvm::formatv(p == 0 ? "{0:F0} {1}{2}" : "{0:F2} {1}{2}", n,
                       prefixes[p], unit);
}

std::optional<int64_t> ax::parseBytes(llvm::StringRef text) {
  size_t end = text.find_first_not_of("0123456789.");
  std::optional<double> number = parseNumber(text.take_front(end));
  double unit = llvm::StringSwitch<double>(end == llvm::StringRef::npos
                                               ? ""
                                               : text.drop_front(end).trim())
                    .Cases({"", "B"}, 1)
                    .Cases({"kB", "KB"}, 1e3)
                    .Case("MB", 1e6)
                    .Case("GB", 1e9)
                    .Case("TB", 1e12)
                    .Case("KiB", 0x1p10)
                    .Case("MiB", 0x1p20)
                    .Case("GiB", 0x1p30)
                    .Case("TiB", 0x1p40)
                    .Default(0);
  double bytes = number.value_or(0) * unit;
  if (!(bytes >= 1 && bytes < 1e18))
    return std::nullopt;
  return static_cast<int64_t>(bytes);
}
