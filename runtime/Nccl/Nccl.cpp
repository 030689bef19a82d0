//===- Nccl.cpp - NCCL, found at run time ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Nccl.h"

#include "ax/Runtime/CudaHandles.h"
#include "ax/Support/Error.h"

namespace ax::rt::nccl {

/// `2.28.9`, of NCCL's number.
static std::string nameVersion(int version) {
  return llvm::formatv("{0}.{1}.{2}", version / 10000, version / 100 % 100,
                       version % 100);
}

llvm::Expected<std::shared_ptr<const Nccl>> Nccl::load() {
  std::string why;
  void *opened = cuda::openCudaLibrary({"libnccl.so.2"}, why);
  if (!opened)
    return makeErrorf(ExitCode::Usage,
                      "--comm=nccl: there is no NCCL in the folders of "
                      "AXRUN_CUDA_PATH, or where the system has libraries: {0}",
                      why);
  auto library = std::make_shared<Nccl>();
  int version = 0;
  if (bindFunction(opened, "ncclGetVersion", library->ncclGetVersion))
    if (llvm::Error error = library->call(&Nccl::ncclGetVersion, &version))
      return error;
  if (version < oldestVersion)
    return makeErrorf(ExitCode::Usage,
                      "--comm=nccl: the NCCL that is there is {0}, and this "
                      "needs {1}: install a newer one, or name its folder in "
                      "AXRUN_CUDA_PATH",
                      nameVersion(version), nameVersion(oldestVersion));
#define AX_NCCL_FUNCTION(NAME)                                                 \
  if (!bindFunction(opened, #NAME, library->NAME))                             \
    return makeErrorf(ExitCode::Usage,                                         \
                      "--comm=nccl: the NCCL that is there has no function "   \
                      "{0}",                                                   \
                      #NAME);
#include "NcclFunctions.def"
  return library;
}

llvm::Error Nccl::describe(const char *name, ncclResult_t result) const {
  // Of no communicator: what went wrong last on this thread.
  const char *last = ncclGetLastError.function(nullptr);
  std::string detail = last && *last ? std::string(": ") + last : "";
  return makeErrorf(ExitCode::RunFailed, "{0}: {1} ({2}){3}", name,
                    ncclGetErrorString.function(result),
                    static_cast<int>(result), detail);
}

} // namespace ax::rt::nccl
