//===- PtxText.h - What a text for GPUs says of itself ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMGPU_PTXTEXT_H
#define AX_TEST_SIMGPU_PTXTEXT_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace simgpu {

struct PtxParameter {
  uint64_t bytes = 0;
  bool isPointer = false;
  /// Of what a pointer points to.
  uint64_t alignment = 1;
};

struct PtxEntry {
  std::string name;
  std::vector<PtxParameter> parameters;
};

struct PtxText {
  /// 80 is version 8.0.
  unsigned version = 0;
  /// 90 is sm_90.
  unsigned capability = 0;
  /// As sm_90a is for sm_90 alone.
  bool isForOneCard = false;
  std::vector<PtxEntry> entries;

  /// Returns why it is none; empty: it is one. Code is not looked at.
  std::string read(llvm::StringRef text);
};

} // namespace simgpu

#endif // AX_TEST_SIMGPU_PTXTEXT_H
