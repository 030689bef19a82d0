//===- Options.h - The command line of axlaunch -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXLAUNCH_OPTIONS_H
#define AX_TOOLS_AXLAUNCH_OPTIONS_H

#include "Command.h"

#include <chrono>

namespace ax {

struct LaunchOptions {
  Command command;
  uint64_t maxRestarts = 3;
  /// The same command for fewer and fewer ranks.
  std::vector<Command> fallbacks = {};
  std::chrono::seconds grace{5};
};

/// Parses the command line, and reads from plans how many ranks they are for
/// where there are fallbacks. `--help` and `--version` end the process.
llvm::Expected<LaunchOptions> parseLaunchOptions(int argc, char **argv);

} // namespace ax

#endif // AX_TOOLS_AXLAUNCH_OPTIONS_H
