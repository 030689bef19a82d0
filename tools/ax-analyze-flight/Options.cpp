//===- Options.cpp - The command line of ax-analyze-flight ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Options.h"

#include "ax/Support/FlagTable.h"

using namespace ax;

namespace {
#define AX_FLAGS_INC "ax-analyze-flightFlags.inc"
#include "ax/Support/FlagTable.def"
} // namespace

llvm::Expected<std::string> ax::parseFlightOptions(int argc, char **argv) {
  FlagTable table("ax-analyze-flight",
                  "says from axrun's flight records which rank fell out", "DIR",
                  AX_FLAG_TABLE);
  auto flags = table.parse(argc, argv);
  if (!flags)
    return flags.takeError();
  return flags->onlyInput("DIR");
}
