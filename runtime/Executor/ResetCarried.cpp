//===- ResetCarried.cpp - What is carried from step to step begins anew ---===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "LocalCluster.h"
#include "RankThreads.h"

#include "ax/Runtime/HostMemory.h"

namespace ax::rt {

llvm::Error RankExecutor::resetCarried() {
  for (const auto &[number, own] : ownState) {
    if (program.states[static_cast<size_t>(number)].isWeight)
      continue;
    // Fresh pages are.
    auto zeros = HostMemory::allocate(own->getSize());
    if (!zeros)
      return zeros.takeError();
    if (llvm::Error error = transfer->upload(zeros->getData(),
                                             own->getAddress(), own->getSize()))
      return error;
    if (llvm::Error error = transfer->getStream().synchronize())
      return error;
  }
  return llvm::Error::success();
}

llvm::Error LocalCluster::resetCarried() {
  for (const auto &rank : shared->ranks)
    if (llvm::Error error = rank->executor.resetCarried())
      return error;
  return llvm::Error::success();
}

} // namespace ax::rt
