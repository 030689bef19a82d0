//===- Version.cpp - What a tool is made of -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/Commit.inc"
#include "ax/Support/FlagTable.h"

#include "llvm/Config/llvm-config.h"

std::string ax::describeVersion(llvm::StringRef tool) {
  return (tool + " " AX_VERSION " (" AX_COMMIT ", LLVM " LLVM_VERSION_STRING
                 ")\n")
      .str();
}
