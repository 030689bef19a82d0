//===- main.cpp - ax-analyze-flight: which rank fell out ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Analysis.h"
#include "Options.h"
#include "Report.h"

#include "ax/Support/Error.h"
#include "ax/Support/Process.h"

#include "llvm/Support/raw_ostream.h"

using namespace ax;

constexpr const char *tool = "ax-analyze-flight";

int main(int argc, char **argv) {
  setUpProcess(tool);
  auto folder = parseFlightOptions(argc, argv);
  if (!folder)
    return reportError(tool, folder.takeError());
  auto records = flight::readRecords(
      *folder, [](const std::string &text) { tell(tool, "warning: " + text); });
  if (!records)
    return reportError(tool, records.takeError());
  flight::printReport(*records, flight::analyze(*records), llvm::outs());
  return static_cast<int>(ExitCode::Success);
}
