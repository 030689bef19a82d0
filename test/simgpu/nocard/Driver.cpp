//===- Driver.cpp - CUDA's driver where there is no card ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Enough for cuDNN to make plans for a card that is described: kernels that it
// has compiled can be loaded, but not run. All other functions do nothing.
//
//===----------------------------------------------------------------------===//

#include <cuda.h>

/// What handles point to.
static char thing[64];

template <typename Handle>
static CUresult give(Handle *handle) {
  *handle = reinterpret_cast<Handle>(thing);
  return CUDA_SUCCESS;
}

extern "C" {

CUresult cuInit(unsigned) { return CUDA_ERROR_NO_DEVICE; }

CUresult cuDeviceGetCount(int *count) {
  *count = 0;
  return CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *, void **function, int, cuuint64_t,
                          CUdriverProcAddressQueryResult *result) {
  *function = nullptr;
  if (result)
    *result = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *, CUjit_option *,
                           void **, unsigned, CUlibraryOption *, void **,
                           unsigned) {
  return give(library);
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary, const char *) {
  return give(kernel);
}

} // extern "C"
