//===- CountingMark.cpp - A mark whose numbers go on in graphs ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/CountingMark.h"

namespace ax::rt {

llvm::Error CountingMark::create(Device &device) {
  llvm::Expected<std::unique_ptr<Mark>> made = device.createMark();
  if (!made)
    return made.takeError();
  mark = std::move(*made);
  return llvm::Error::success();
}

} // namespace ax::rt
