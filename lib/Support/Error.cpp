//===- Error.cpp - llvm::Error with an exit code --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/Error.h"

#include "llvm/Support/Errno.h"
#include "llvm/Support/raw_ostream.h"

namespace ax {

char AxError::ID = 0;

const char *toString(ExitCode code) {
  switch (code) {
  case ExitCode::Success:
    return "success";
  case ExitCode::Differs:
    return "outputs differ";
  case ExitCode::Usage:
    return "usage";
  case ExitCode::BadModel:
    return "bad model";
  case ExitCode::Unsupported:
    return "unsupported";
  case ExitCode::BadPlan:
    return "bad plan";
  case ExitCode::BadInput:
    return "bad input";
  case ExitCode::InputOutput:
    return "input/output";
  case ExitCode::RunFailed:
    return "run failed";
  case ExitCode::NotFinite:
    return "loss or gradient not finite";
  case ExitCode::Internal:
    return "internal";
  case ExitCode::Interrupted:
    return "interrupted";
  case ExitCode::Terminated:
    return "terminated";
  }
  __builtin_unreachable();
}

void AxError::log(llvm::raw_ostream &os) const { os << message; }

std::error_code AxError::convertToErrorCode() const {
  return llvm::inconvertibleErrorCode();
}

llvm::Error makeError(ExitCode code, const llvm::Twine &message) {
  return llvm::make_error<AxError>(code, message.str());
}

llvm::Error makeErrnoError(const llvm::Twine &action, int errnoValue) {
  return makeError(ExitCode::InputOutput,
                   action + ": " + llvm::sys::StrError(errnoValue));
}

llvm::Error addContext(llvm::Error error, const llvm::Twine &context) {
  if (!error)
    return error;
  ErrorDescription description = describeError(std::move(error));
  return makeError(description.code, context + ": " + description.message);
}

std::string shorten(llvm::StringRef text, size_t most) {
  if (text.size() <= most)
    return text.str();
  return (text.take_front(most) + "... (" + llvm::Twine(text.size()) +
          " letters)")
      .str();
}

ErrorDescription describeError(llvm::Error error) {
  ErrorDescription result;
  auto add = [&](ExitCode code, llvm::StringRef message) {
    if (result.code == ExitCode::Success)
      result.code = code;
    else
      result.message += '\n';
    result.message += message;
  };
  llvm::handleAllErrors(
      std::move(error),
      [&](const AxError &e) { add(e.getCode(), e.getMessage()); },
      [&](const llvm::ErrorInfoBase &e) {
        add(ExitCode::Internal, e.message());
      });
  return result;
}

void tell(llvm::StringRef tool, const llvm::Twine &text) {
  // The stream has no buffer: each string is written at once.
  llvm::errs() << (tool + ": " + text + "\n").str();
}

int reportError(llvm::StringRef tool, llvm::Error error) {
  ErrorDescription description = describeError(std::move(error));
  if (description.code != ExitCode::Success)
    tell(tool, "error: " + description.message);
  return static_cast<int>(description.code);
}

} // namespace ax
