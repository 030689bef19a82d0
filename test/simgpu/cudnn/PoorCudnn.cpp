//===- PoorCudnn.cpp - A cuDNN with less than is called -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <cudnn_graph.h>

extern "C" __attribute__((visibility("default"))) cudnnStatus_t
cudnnCreate(cudnnHandle_t *) {
  return CUDNN_STATUS_NOT_INITIALIZED;
}
