//===- SharedLibrary.h - Libraries that are found at run time ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_SHAREDLIBRARY_H
#define AX_SUPPORT_SHAREDLIBRARY_H

#include "llvm/ADT/ArrayRef.h"

#include <string>

namespace ax {

/// A function of a library that was not linked.
template <typename Signature>
struct LibraryFunction;
template <typename Result, typename... Params>
struct LibraryFunction<Result(Params...)> {
  /// As the library's pages and our messages call it.
  const char *name;
  Result (*function)(Params...) = nullptr;
};

/// Opens the first library that one of `names` names in a folder of `path`, a
/// list with colons that may be null, or else where the loader looks; it stays
/// in the process. Null where there is none: then `why` says what was wrong
/// with each.
void *openLibrary(llvm::ArrayRef<const char *> names, const char *path,
                  std::string &why);

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

} // namespace ax

#endif // AX_SUPPORT_SHAREDLIBRARY_H
