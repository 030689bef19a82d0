//===- SharedLibrary.h - Libraries of CUDA, found at run time ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_SHAREDLIBRARY_H
#define AX_RUNTIME_CUDA_SHAREDLIBRARY_H

#include "llvm/ADT/ArrayRef.h"

#include <string>

namespace ax::rt::cuda {

/// A function of a library that was not linked.
template <typename Signature>
struct LibraryFunction;
template <typename Result, typename... Params>
struct LibraryFunction<Result(Params...)> {
  /// As CUDA's pages and our messages call it.
  const char *name;
  Result (*function)(Params...) = nullptr;
};

/// Opens the first library that one of `names` names in a folder of
/// AXRUN_CUDA_PATH, or else where the loader looks; it stays in the process.
/// Null where there is none: then `why` says what was wrong with each.
void *openLibrary(llvm::ArrayRef<const char *> names, std::string &why);

/// Null where the library has no such symbol.
void *findSymbol(void *library, const char *symbol);

/// Returns false where the library has no such symbol.
template <typename Signature>
bool bindFunction(void *library, const char *symbol,
                  LibraryFunction<Signature> &function) {
  function.function =
      reinterpret_cast<Signature *>(findSymbol(library, symbol));
  return function.function;
}

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_SHAREDLIBRARY_H
