//===- Driver.h - CUDA's driver, found at run time --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_DRIVER_H
#define AX_RUNTIME_CUDA_DRIVER_H

#include "ax/Runtime/CudaHandles.h"
#include "ax/Support/SharedLibrary.h"

#include "llvm/Support/Error.h"

#include <cuda.h>
#include <memory>

namespace ax::rt::cuda {

/// The functions of libcuda.so.1. The library stays in the process.
class Driver {
public:
  /// The oldest one that has all of them.
  static constexpr int oldestVersion = 12000;

  /// Looks in the folders that AXRUN_CUDA_PATH lists, then where the loader
  /// does, and starts the driver. A Usage error where there is none, or it is
  /// too old, or sees no card.
  static llvm::Expected<std::shared_ptr<const Driver>> load();

  /// `call(&Driver::cuMemFree, address)`: a RunFailed error with the function's
  /// name, and the error's name and text.
  template <typename... Params, typename... Args>
  llvm::Error call(LibraryFunction<CUresult(Params...)> Driver::*member,
                   Args... args) const {
    return check(member, (this->*member).function(args...));
  }
  /// Likewise, of a function that says whether all is done.
  template <typename Handle>
  llvm::Expected<bool> ask(LibraryFunction<CUresult(Handle)> Driver::*member,
                           Handle handle) const {
    CUresult result = (this->*member).function(handle);
    if (result == CUDA_ERROR_NOT_READY)
      return false;
    if (llvm::Error error = check(member, result))
      return error;
    return true;
  }

// Where the header renames a function, it renames the member everywhere.
#define AX_CUDA_FUNCTION(NAME, SYMBOL)                                         \
  LibraryFunction<decltype(::NAME)> NAME{#NAME};
#include "DriverFunctions.def"
  LibraryFunction<CUresult(int *)> getVersion{"cuDriverGetVersion"};

private:
  template <typename Signature>
  llvm::Error check(LibraryFunction<Signature> Driver::*member,
                    CUresult result) const {
    if (result == CUDA_SUCCESS)
      return llvm::Error::success();
    return describe((this->*member).name, result);
  }
  llvm::Error describe(const char *name, CUresult result) const;
  llvm::Error bind(void *library);
};

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_DRIVER_H
