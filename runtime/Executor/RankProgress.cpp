//===- RankProgress.cpp - How far a rank is -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RankProgress.h"

namespace ax::rt {

llvm::Error RankProgress::create(Device &device) {
  llvm::Expected<std::unique_ptr<Mark>> made = device.createMark();
  if (!made)
    return made.takeError();
  mark = std::move(*made);
  return llvm::Error::success();
}

} // namespace ax::rt
