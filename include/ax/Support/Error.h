//===- Error.h - llvm::Error with an exit code ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every error that a user can cause is an AxError: one message, and the exit
// code with which a tool that cannot go on ends.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SUPPORT_ERROR_H
#define AX_SUPPORT_ERROR_H

#include "ax/Support/ExitCode.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"

#include <string>

namespace ax {

class AxError : public llvm::ErrorInfo<AxError> {
public:
  static char ID;

  AxError(ExitCode code, std::string message)
      : code(code), message(std::move(message)) {}

  ExitCode getCode() const { return code; }
  const std::string &getMessage() const { return message; }

  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override;

private:
  ExitCode code;
  std::string message;
};

llvm::Error makeError(ExitCode code, const llvm::Twine &message);

/// `makeErrorf(ExitCode::BadInput, "input {0} has rank {1}", name, rank)`: the
/// format of llvm::formatv.
template <typename... Ts>
llvm::Error makeErrorf(ExitCode code, const char *format, Ts &&...values) {
  return makeError(code,
                   llvm::formatv(format, std::forward<Ts>(values)...).str());
}

/// InputOutput error with the text of `errnoValue`: `cannot open 'x': No such
/// file or directory`.
llvm::Error makeErrnoError(const llvm::Twine &action, int errnoValue);

/// Returns the same error with `context: ` before its message; success stays
/// success.
llvm::Error addContext(llvm::Error error, const llvm::Twine &context);

/// `text`, cut to about `most` letters, which the end then says.
std::string shorten(llvm::StringRef text, size_t most = 200);

/// Code and message of an error, consuming it. Errors that are not AxErrors
/// count as Internal; of several joined errors the first decides the code and
/// the messages are joined by newlines. Success gives Success and no message.
struct ErrorDescription {
  ExitCode code = ExitCode::Success;
  std::string message;
};
ErrorDescription describeError(llvm::Error error);

/// Writes `tool: text` and the line's end to standard error, in one piece: what
/// other processes write there does not come between.
void tell(llvm::StringRef tool, const llvm::Twine &text);

/// Tells `error: message` of the tool and returns the exit code.
int reportError(llvm::StringRef tool, llvm::Error error);

} // namespace ax

#endif // AX_SUPPORT_ERROR_H
