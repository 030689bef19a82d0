//===- TimeText.h - Seconds for people --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_TIMETEXT_H
#define AX_SUPPORT_TIMETEXT_H

#include <string>

namespace ax {

/// `1.50 s`, `2.35 ms`, `12 us` or `0.31 us`.
std::string timeText(double seconds);

} // namespace ax

#endif // AX_SUPPORT_TIMETEXT_H
