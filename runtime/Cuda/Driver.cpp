//===- Driver.cpp - CUDA's driver, found at run time ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Driver.h"

#include "ax/Support/Error.h"

#include <cstdlib>

namespace ax::rt::cuda {

template <typename Signature>
static llvm::Error require(void *library, const char *symbol,
                           LibraryFunction<Signature> &function) {
  if (bindFunction(library, symbol, function))
    return llvm::Error::success();
  return makeErrorf(ExitCode::Usage,
                    "device cuda: CUDA's driver has no function {0}", symbol);
}

llvm::Error Driver::bind(void *library) {
  if (llvm::Error error = require(library, getVersion.name, getVersion))
    return error;
  int version = 0;
  if (CUresult result = getVersion.function(&version))
    return makeErrorf(ExitCode::Usage,
                      "device cuda: CUDA's driver does not tell its version: "
                      "error {0}",
                      static_cast<int>(result));
  if (version < oldestVersion)
    return makeErrorf(ExitCode::Usage,
                      "device cuda: CUDA's driver is of version {0}.{1}, and "
                      "{2}.{3} is needed",
                      version / 1000, version % 1000 / 10, oldestVersion / 1000,
                      oldestVersion % 1000 / 10);
#define AX_CUDA_FUNCTION(NAME, SYMBOL)                                         \
  if (llvm::Error error = require(library, SYMBOL, NAME))                      \
    return error;
#include "DriverFunctions.def"
  return llvm::Error::success();
}

llvm::Expected<std::shared_ptr<const Driver>> Driver::load() {
  std::string why;
  void *library = openCudaLibrary("libcuda.so.1", why);
  if (!library)
    return makeErrorf(ExitCode::Usage,
                      "device cuda: there is no driver of CUDA in the folders "
                      "of AXRUN_CUDA_PATH, or where the system has libraries: "
                      "{0}",
                      why);
  auto driver = std::make_shared<Driver>();
  if (llvm::Error error = driver->bind(library))
    return error;
  CUresult result = driver->cuInit.function(0);
  if (result == CUDA_ERROR_NO_DEVICE)
    return makeError(ExitCode::Usage,
                     "device cuda: CUDA's driver sees no card");
  if (llvm::Error error = driver->check(&Driver::cuInit, result))
    return addContext(std::move(error), "device cuda");
  return driver;
}

/// Whose fault an error is.
static ExitCode exitCodeOf(CUresult result) {
  switch (result) {
  case CUDA_ERROR_INVALID_PTX:
  case CUDA_ERROR_INVALID_IMAGE:
  case CUDA_ERROR_NOT_FOUND:
    return ExitCode::BadPlan;
  case CUDA_ERROR_NO_BINARY_FOR_GPU:
  case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    return ExitCode::Unsupported;
  default:
    return ExitCode::RunFailed;
  }
}

llvm::Error Driver::describe(const char *name, CUresult result) const {
  const char *error = nullptr, *text = nullptr;
  cuGetErrorName.function(result, &error);
  cuGetErrorString.function(result, &text);
  return makeErrorf(exitCodeOf(result), "{0}: {1}: {2}", name,
                    error ? error : "an error without a name",
                    text ? text : std::to_string(result));
}

} // namespace ax::rt::cuda
