//===- Processors.h - What computes, and how much at once -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_PROCESSORS_H
#define AX_SUPPORT_PROCESSORS_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ax {

/// Returns how many threads of this process are worth computing with: the cores
/// it may run on, of whose hardware threads one counts; fewer where its control
/// group has less time of them. At least 1.
int32_t countProcessors();

/// What OMP_NUM_THREADS says of the outermost level (`8`, `8,4`); nothing where
/// it is not set, or no number of threads.
std::optional<int32_t> askedThreads();

/// Processors' time that `cpu.max` of a control group (version 2) allows:
/// `250000 100000` is 2.5, `max 100000` as much as there is. Nothing of that,
/// and of what is no such text.
std::optional<double> parseQuota(llvm::StringRef text);

/// Returns what people call the processor: its model as /proc/cpuinfo has it,
/// and as LLVM does (`neoverse-v2`) where that has none.
std::string findProcessorModel();

/// Returns the model of the first processor of a /proc/cpuinfo; empty where
/// that has none.
std::string parseProcessorModel(llvm::StringRef text);

} // namespace ax

#endif // AX_SUPPORT_PROCESSORS_H
