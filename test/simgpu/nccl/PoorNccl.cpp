//===- PoorNccl.cpp - A NCCL with less than is called ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <nccl.h>

extern "C" __attribute__((visibility("default"))) ncclResult_t
ncclGetVersion(int *version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
