//===- LibraryDriver.h - The driver, as stand-ins of libraries find it ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_LIBRARYDRIVER_H
#define AX_TEST_LIBRARYDRIVER_H

#include "Simgpu.h"

namespace simgpu {

/// An entry point of the simulated driver beside this library, which is in the
/// process already; null where that is not there.
void *findInDriver(const char *symbol);
template <typename Function>
Function *findDriverFunction(const char *symbol) {
  return reinterpret_cast<Function *>(findInDriver(symbol));
}

/// Begins a call of the library: the error with which it is to fail, `missing`
/// where there is no driver. `context` becomes the calling thread's.
int enterLibraryCall(const char *call, int missing,
                     uint64_t *context = nullptr);
/// Says what is wrong with the call that the thread is in.
void refuseLibraryCall(const std::string &why);

} // namespace simgpu

#endif // AX_TEST_LIBRARYDRIVER_H
