//===- Nccl.cpp - NCCL, found at run time ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Nccl.h"

#include "ax/Runtime/CudaHandles.h"
#include "ax/Support/Error.h"

#include <cstdlib>
#include <cstring>

namespace ax::rt::nccl {

std::string nameVersion(int version) {
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
#define AX_NCCL_FUNCTION(NAME)                                                 \
  if (!bindFunction(opened, #NAME, library->NAME))                             \
    return makeErrorf(ExitCode::Usage,                                         \
                      "--comm=nccl: the NCCL that is there has no function "   \
                      "{0}",                                                   \
                      #NAME);
#include "NcclFunctions.def"
  int version = 0;
  if (llvm::Error error = library->call(&Nccl::ncclGetVersion, &version))
    return error;
  if (version < oldestVersion)
    return makeErrorf(ExitCode::Usage,
                      "--comm=nccl: the NCCL that is there is {0}, and this "
                      "needs {1}: install a newer one, or name its folder in "
                      "AXRUN_CUDA_PATH",
                      nameVersion(version), nameVersion(oldestVersion));
  // With these, calls return before they are done, or wait for ranks that make
  // no such call.
  for (auto [variable, value] : {std::pair("NCCL_COMM_BLOCKING", "0"),
                                 std::pair("NCCL_LAUNCH_MODE", "GROUP")})
    if (const char *set = std::getenv(variable);
        set && !std::strcmp(set, value))
      return makeErrorf(ExitCode::Usage,
                        "--comm=nccl does not work with {0}={1} in the "
                        "environment: unset it",
                        variable, value);
  return library;
}

llvm::Error Nccl::describe(const char *name, ncclResult_t result) const {
  // Of the process: it may be another rank's, or of long ago.
  const char *last = ncclGetLastError.function(nullptr);
  std::string detail =
      last && *last ? std::string("; NCCL's last warning: ") + last : "";
  return makeErrorf(ExitCode::RunFailed, "{0}: {1} ({2}){3}", name,
                    ncclGetErrorString.function(result),
                    static_cast<int>(result), detail);
}

} // namespace ax::rt::nccl
