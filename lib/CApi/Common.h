//===- Common.h - What functions of the C interface share -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CAPI_COMMON_H
#define AX_LIB_CAPI_COMMON_H

#include "ax-c/axrun.h"
#include "ax/Session/Session.h"
#include "ax/Support/Error.h"

#include <cstring>

namespace ax::capi {

using Tell = std::function<void(const std::string &)>;

/// Keeps what axLastError gives, and returns the exit code.
int fail(llvm::Error error);

/// Texts up to the null behind the last; null: none.
std::vector<std::string> listFrom(const char *const *texts);

/// Tells the caller; where it gave no function, standard error.
Tell teller(void (*warn)(const char *, void *), void *context);

/// Puts what the caller has into `given`, which has the defaults. Callers that
/// were compiled when there were fewer fields have shorter ones; null: none.
template <typename T>
llvm::Error copyOptions(const T *options, T &given, const char *type,
                        const char *initial) {
  if (!options)
    return llvm::Error::success();
  if (options->size <= sizeof(size_t) || options->size % alignof(T) != 0)
    return makeErrorf(ExitCode::Usage, "{0} of size {1}: start with {2}", type,
                      options->size, initial);
  if (options->size > sizeof(T))
    return makeErrorf(ExitCode::Usage,
                      "{0} of size {1}: start with {2}; or this library, where "
                      "it has {3} bytes, is older than the header",
                      type, options->size, initial, sizeof(T));
  std::memcpy(&given, options, options->size);
  return llvm::Error::success();
}

int loadSession(const std::string &planPath, const AxOptions *options,
                const PlanCompiler &compiler, AxSession **session);

} // namespace ax::capi

#endif // AX_LIB_CAPI_COMMON_H
