//===- RankContext.cpp - What one rank works on and with ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RankContext.h"

#include <algorithm>

namespace ax::rt {

RankContext::RankContext(const Program &program, int32_t rank, Device &device,
                         Communicator &communicator, Device *host)
    : program(program), rank(rank), device(device), communicator(communicator),
      host(host) {
  for (size_t s = 0; s < program.stages.size(); ++s) {
    const std::vector<int32_t> &ranks = program.stages[s].ranks;
    auto found = std::find(ranks.begin(), ranks.end(), rank);
    if (found == ranks.end())
      continue;
    stageIndex = static_cast<int32_t>(s);
    stage = &program.stages[s];
    position = static_cast<size_t>(found - ranks.begin());
  }
}

} // namespace ax::rt
