//===- TimeText.cpp - Seconds for people ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Support/TimeText.h"

#include "llvm/Support/FormatVariadic.h"

std::string ax::timeText(double seconds) {
  if (seconds >= 1)
    return llvm::formatv("{0:F2} s", seconds);
  if (seconds >= 1e-3)
    return llvm::formatv("{0:F2} ms", seconds * 1e3);
  return llvm::formatv(seconds >= 1e-6 ? "{0:F0} us" : "{0:F2} us",
                       seconds * 1e6);
}
