//===- Process.cpp - What surrounds a tool --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/Process.h"

#include "ax/Support/ExitCode.h"
#include "ax/Support/MappedFile.h"

#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace ax {

static const char *toolName = "";
constexpr int failed = static_cast<int>(ExitCode::InputOutput);

/// Reading from it ends at once, and writing to it fails.
static void keepClosed(int stream) {
  if (::fcntl(stream, F_GETFD) != -1 || errno != EBADF)
    return;
  // The lowest number that is free: this one, when those before it are taken.
  [[maybe_unused]] int fd = ::open("/dev/null", O_RDONLY);
}

/// LLVM's streams end the process when they are destroyed after a failure.
static void finishStreams(int code, void *) {
  llvm::outs().flush();
  std::error_code fault = llvm::outs().error();
  llvm::outs().clear_error();
  if (fault)
    llvm::errs() << toolName
                 << ": error: cannot write standard output: " << fault.message()
                 << '\n';
  llvm::errs().clear_error();
  if (fault && code == static_cast<int>(ExitCode::Success))
    ::_exit(failed);
}

/// Calls nothing but what signal handlers may call.
static void tell(const char *text) {
  // There is nobody to tell when it fails.
  [[maybe_unused]] ssize_t written = ::write(2, text, std::strlen(text));
}

static void onBusError(int number, siginfo_t *info, void *) {
  const char *path = MappedFile::findPath(info->si_addr);
  if (!path) {
    // Again, without us.
    std::signal(number, SIG_DFL);
    return;
  }
  tell(toolName);
  tell(": error: cannot read '");
  tell(path);
  tell("': it has become shorter since it was opened, or its disk fails\n");
  ::_exit(failed);
}

void setUpProcess(const char *tool) {
  toolName = tool;
  for (int stream : {0, 1, 2})
    keepClosed(stream);
  // The streams are made before the handler is registered, and so destroyed
  // after it has run.
  llvm::outs();
  llvm::errs();
  ::on_exit(finishStreams, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  struct sigaction action = {};
  action.sa_sigaction = onBusError;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

} // namespace ax
