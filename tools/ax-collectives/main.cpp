//===- main.cpp - ax-collectives: how fast collectives are ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of nccl-tests, for ranks that are threads or, started by mpirun,
// processes, of what is in memory of the host or of cards. Beside it, with
// --peer, what threads do that need not wait for each other, and MPI's own
// calls.
//
//===----------------------------------------------------------------------===//

#include "Run.h"

#include "ax/Runtime/MpiProcess.h"
#include "ax/Support/Error.h"
#include "ax/Support/Process.h"

using namespace ax;

int main(int argc, char **argv) {
  constexpr const char *tool = "ax-collectives";
  setUpProcess(tool);
  bool isProcess = rt::isStartedByMpi();
  auto options = parseCollectivesOptions(argc, argv, isProcess);
  if (!options)
    return reportError(tool, options.takeError());
  return reportError(tool, isProcess ? runProcess(std::move(*options))
                                     : runThreads(std::move(*options)));
}
