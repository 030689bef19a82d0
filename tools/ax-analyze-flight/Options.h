//===- Options.h - The command line of ax-analyze-flight --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXANALYZEFLIGHT_OPTIONS_H
#define AX_TOOLS_AXANALYZEFLIGHT_OPTIONS_H

#include "llvm/Support/Error.h"

#include <string>

namespace ax {

/// Returns the folder of the records. `--help` and `--version` end the process.
llvm::Expected<std::string> parseFlightOptions(int argc, char **argv);

} // namespace ax

#endif // AX_TOOLS_AXANALYZEFLIGHT_OPTIONS_H
