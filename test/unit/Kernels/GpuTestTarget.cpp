//===- GpuTestTarget.cpp - Kernels are tested on a simulated GPU ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelTestSupport.h"

namespace ax::codegen {

const Target &testTarget() {
  static const Target target(*GpuTarget::find("sm_90+sim"));
  return target;
}

} // namespace ax::codegen
