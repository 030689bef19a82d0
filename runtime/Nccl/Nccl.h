//===- Nccl.h - NCCL, found at run time -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_NCCL_NCCL_H
#define AX_RUNTIME_NCCL_NCCL_H

#include "ax/Support/SharedLibrary.h"

#include "llvm/Support/Error.h"

#include <memory>
#include <nccl.h>

namespace ax::rt::nccl {

/// The functions of libnccl.so.2. The library stays in the process.
class Nccl {
public:
  /// The oldest one that is known to do all that is asked of it.
  static constexpr int oldestVersion = NCCL_VERSION(2, 28, 0);

  /// Looks in the folders that AXRUN_CUDA_PATH lists, then where the loader
  /// does. A Usage error where there is none, or it is too old.
  static llvm::Expected<std::shared_ptr<const Nccl>> load();

  /// `call(&Nccl::ncclGetUniqueId, &id)`: a RunFailed error with the function's
  /// name, what the result means, and what NCCL said last.
  template <typename... Params, typename... Args>
  llvm::Error call(LibraryFunction<ncclResult_t(Params...)> Nccl::*member,
                   Args... args) const {
    const auto &called = this->*member;
    ncclResult_t result = called.function(args...);
    if (result == ncclSuccess)
      return llvm::Error::success();
    return describe(called.name, result);
  }
  llvm::Error describe(const char *name, ncclResult_t result) const;

#define AX_NCCL_FUNCTION(NAME) LibraryFunction<decltype(::NAME)> NAME{#NAME};
#include "NcclFunctions.def"
};

/// `2.28.9`, of NCCL's number.
std::string nameVersion(int version);

} // namespace ax::rt::nccl

#endif // AX_RUNTIME_NCCL_NCCL_H
