//===- PoorCublas.cpp - A cuBLASLt with less than is called ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <cublasLt.h>

extern "C" __attribute__((visibility("default"))) cublasStatus_t
cublasLtCreate(cublasLtHandle_t *) {
  return CUBLAS_STATUS_NOT_INITIALIZED;
}
