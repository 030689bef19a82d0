//===- Buffers.cpp - The simulated NCCL's memory --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Calls.h"

#include <cuda.h>

using namespace simnccl;

/// Sizes by address; guarded by globalMutex().
static std::map<uintptr_t, size_t> &buffers() {
  static auto *all = new std::map<uintptr_t, size_t>;
  return *all;
}

static uintptr_t numberOf(const void *address) {
  return reinterpret_cast<uintptr_t>(address);
}

SIMNCCL_ENTRY ncclResult_t ncclMemAlloc(void **address, size_t size) {
  if (ncclResult_t result = enter("ncclMemAlloc"))
    return result;
  static auto *allocate =
      simgpu::findDriverFunction<decltype(cuMemAlloc)>("cuMemAlloc_v2");
  CUdeviceptr memory = 0;
  if (allocate(&memory, size))
    return ncclUnhandledCudaError;
  *address = reinterpret_cast<void *>(memory);
  std::lock_guard<std::mutex> lock(globalMutex());
  buffers()[memory] = size;
  return ncclSuccess;
}

SIMNCCL_ENTRY ncclResult_t ncclMemFree(void *address) {
  if (ncclResult_t result = enter("ncclMemFree"))
    return result;
  bool wasThere = false, isKnown = false;
  {
    std::lock_guard<std::mutex> lock(globalMutex());
    wasThere = buffers().erase(numberOf(address)) > 0;
    for (const auto &[handle, comm] : comms())
      for (const auto &[known, memory] : comm->registered)
        isKnown |= memory == numberOf(address);
  }
  if (!wasThere)
    return refuse(ncclInvalidArgument, "ncclMemAlloc did not give it");
  if (isKnown)
    return refuse(ncclInvalidUsage, "a communicator knows it still");
  static auto *free =
      simgpu::findDriverFunction<decltype(cuMemFree)>("cuMemFree_v2");
  return free(numberOf(address)) ? ncclUnhandledCudaError : ncclSuccess;
}

/// More than NCCL asks for: memory of its own kind, as switches want it.
SIMNCCL_ENTRY ncclResult_t ncclCommRegister(const ncclComm_t handle,
                                            void *address, size_t size,
                                            void **known) {
  if (ncclResult_t result = enter("ncclCommRegister"))
    return result;
  std::shared_ptr<Comm> comm = findComm(handle);
  if (!comm)
    return refuse(ncclInvalidArgument, "there is no such communicator");
  std::unique_lock<std::mutex> lock(globalMutex());
  auto buffer = buffers().find(numberOf(address));
  if (buffer == buffers().end() || size > buffer->second) {
    lock.unlock();
    return refuse(ncclInvalidArgument, "it is not in memory of ncclMemAlloc");
  }
  comm->registered[++comm->numRegistered] = buffer->first;
  *known = reinterpret_cast<void *>(comm->numRegistered);
  return ncclSuccess;
}

SIMNCCL_ENTRY ncclResult_t ncclCommDeregister(const ncclComm_t handle,
                                              void *known) {
  if (ncclResult_t result = enter("ncclCommDeregister"))
    return result;
  std::shared_ptr<Comm> comm = findComm(handle);
  if (!comm)
    return refuse(ncclInvalidArgument, "there is no such communicator");
  std::unique_lock<std::mutex> lock(globalMutex());
  bool wasKnown = comm->registered.erase(numberOf(known)) > 0;
  lock.unlock();
  return wasKnown ? ncclSuccess
                  : refuse(ncclInvalidUsage, "it gave no such handle");
}
