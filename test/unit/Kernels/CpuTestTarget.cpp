//===- CpuTestTarget.cpp - Kernels are tested on this machine -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelTestSupport.h"

namespace ax::codegen {

const Target &testTarget() { return Target::native(); }

} // namespace ax::codegen
