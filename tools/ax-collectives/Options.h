//===- Options.h - The command line of ax-collectives -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXCOLLECTIVES_OPTIONS_H
#define AX_TOOLS_AXCOLLECTIVES_OPTIONS_H

#include "Calibrate.h"
#include "Measure.h"

#include "ax/Runtime/Backends.h"

namespace ax {

struct CollectivesOptions {
  MeasureOptions measure;
  CalibrateOptions calibration;
  /// What ranks work with, but for the place of this process.
  rt::BackendOptions backends;
  /// That are threads, where no launcher has started the process.
  int32_t numRanks = 2;
  bool withPeer = false;
};

/// `isProcess`: a launcher has started several, of which this is one. `--help`
/// and `--version` end the process.
llvm::Expected<CollectivesOptions>
parseCollectivesOptions(int argc, char **argv, bool isProcess);

/// A Usage error where --devices has not one for each rank.
llvm::Error checkCards(const CollectivesOptions &options, int32_t numRanks);

} // namespace ax

#endif // AX_TOOLS_AXCOLLECTIVES_OPTIONS_H
