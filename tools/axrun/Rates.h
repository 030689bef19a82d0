//===- Rates.h - What the time of commands is held against ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXRUN_RATES_H
#define AX_TOOLS_AXRUN_RATES_H

#include "Options.h"

#include "ax/Runtime/DeviceRates.h"

namespace ax {

/// Measures the device of rank 0, for --profile: products of the types that
/// its program multiplies, and copies. All processes make the call, before they
/// have executors; nothing at others than process 0, and without --profile.
llvm::Expected<std::optional<rt::DeviceRates>>
measureRates(const RunOptions &options, const Session &session);

} // namespace ax

#endif // AX_TOOLS_AXRUN_RATES_H
