//===- CublasLt.cpp - cuBLASLt, found at run time -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CublasLt.h"

#include "ax/Support/Error.h"

namespace ax::rt::cuda {

llvm::Expected<std::shared_ptr<const CublasLt>> CublasLt::load() {
  std::string why;
  void *opened =
      openCudaLibrary({"libcublasLt.so.13", "libcublasLt.so.12"}, why);
  if (!opened)
    return makeErrorf(ExitCode::Unsupported,
                      "there is no cuBLASLt in the folders of AXRUN_CUDA_PATH, "
                      "or where the system has libraries: {0}",
                      why);
  auto library = std::make_shared<CublasLt>();
#define AX_CUBLASLT_FUNCTION(NAME)                                             \
  if (!bindFunction(opened, #NAME, library->NAME))                             \
    return makeErrorf(ExitCode::Unsupported,                                   \
                      "the cuBLASLt that is there has no function {0}",        \
                      #NAME);
#include "CublasLtFunctions.def"
  return library;
}

llvm::Error CublasLt::describe(const char *name, cublasStatus_t status) const {
  ExitCode code = status == CUBLAS_STATUS_NOT_SUPPORTED ? ExitCode::Unsupported
                                                        : ExitCode::RunFailed;
  return makeErrorf(
      code, "{0}: {1} ({2}): {3}", name, cublasLtGetStatusName.function(status),
      static_cast<int>(status), cublasLtGetStatusString.function(status));
}

llvm::Expected<std::shared_ptr<const CublasHandle>>
CublasHandle::create(const SharedCard &card) {
  llvm::Expected<std::shared_ptr<const CublasLt>> library = CublasLt::load();
  if (!library)
    return library.takeError();
  std::shared_ptr<CublasHandle> made(
      new CublasHandle(card, std::move(*library)));
  if (llvm::Error error = card->enter())
    return error;
  if (llvm::Error error =
          made->library->call(&CublasLt::cublasLtCreate, &made->handle)) {
    made->handle = nullptr;
    // One for another driver, say: the CPU can do what it would have done.
    return makeErrorf(ExitCode::Unsupported,
                      "the cuBLASLt that is there does not start: {0}",
                      llvm::toString(std::move(error)));
  }
  return made;
}

CublasHandle::~CublasHandle() {
  if (handle)
    llvm::consumeError(call(&CublasLt::cublasLtDestroy));
}

} // namespace ax::rt::cuda
