//===- FaultGuard.h - Touching memory that is not there ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMGPU_FAULTGUARD_H
#define AX_TEST_SIMGPU_FAULTGUARD_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <optional>

namespace simgpu {

/// Does the work, which has nothing to destroy where it touches memory: when
/// that is not there, or may not be touched so, the work ends, and its address
/// is returned. Other threads' faults go to who had them before. Only one
/// thread of a process calls this at a time.
std::optional<uintptr_t> catchFault(llvm::function_ref<void()> work);

} // namespace simgpu

#endif // AX_TEST_SIMGPU_FAULTGUARD_H
