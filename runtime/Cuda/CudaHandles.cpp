//===- CudaHandles.cpp - What libraries of CUDA take ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/CudaHandles.h"

#include "ax/Support/SharedLibrary.h"

#include <cstdlib>

namespace ax::rt::cuda {

void *openCudaLibrary(llvm::ArrayRef<const char *> names, std::string &why) {
  return openLibrary(names, std::getenv("AXRUN_CUDA_PATH"), why);
}

} // namespace ax::rt::cuda
