//===- Options.h - The command line of ax-collectives -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXCOLLECTIVES_OPTIONS_H
#define AX_TOOLS_AXCOLLECTIVES_OPTIONS_H

#include "Measure.h"

namespace ax {

struct CollectivesOptions {
  MeasureOptions measure;
  /// That are threads, where no launcher has started the process.
  int32_t numRanks = 2;
  bool withPeer = false;
};

/// `--help` and `--version` end the process.
llvm::Expected<CollectivesOptions> parseCollectivesOptions(int argc,
                                                           char **argv);

} // namespace ax

#endif // AX_TOOLS_AXCOLLECTIVES_OPTIONS_H
