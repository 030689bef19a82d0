//===- PoorDriver.cpp - A driver with less than its version has -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <cuda.h>

extern "C" __attribute__((visibility("default"))) CUresult
cuDriverGetVersion(int *version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
