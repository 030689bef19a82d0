//===- Calls.h - What the simulated NCCL's functions begin with -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMNCCL_CALLS_H
#define AX_TEST_SIMNCCL_CALLS_H

#include "../LibraryDriver.h"
#include "Comm.h"

#define SIMNCCL_ENTRY extern "C" __attribute__((visibility("default")))

namespace simnccl {

/// The error with which the call is to fail. `context` becomes the thread's.
inline ncclResult_t enter(const char *call, uint64_t *context = nullptr) {
  return static_cast<ncclResult_t>(
      simgpu::enterLibraryCall(call, ncclSystemError, context));
}

/// Not while globalMutex() is held: the driver asks streams for what they have
/// to do, which take it, under a mutex of its own that this wants.
inline ncclResult_t refuse(ncclResult_t result, const std::string &why) {
  simgpu::refuseLibraryCall(why);
  return result;
}

} // namespace simnccl

#endif // AX_TEST_SIMNCCL_CALLS_H
