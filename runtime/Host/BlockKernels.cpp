//===- BlockKernels.cpp - Choice of rows of few bits for this machine -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/BlockKernels.h"

namespace ax::rt {

extern const BlockKernels blockKernelsBaseline;
#ifdef AX_X86_VECTOR_KERNELS
extern const BlockKernels blockKernelsAvx2;
extern const BlockKernels blockKernelsAvx512;
#endif

std::vector<const BlockKernels *> runnableBlockKernels() {
  std::vector<const BlockKernels *> kernels;
#ifdef AX_X86_VECTOR_KERNELS
  if (__builtin_cpu_supports("x86-64-v4") &&
      __builtin_cpu_supports("avx512vnni"))
    kernels.push_back(&blockKernelsAvx512);
  if (__builtin_cpu_supports("x86-64-v3"))
    kernels.push_back(&blockKernelsAvx2);
#endif
  kernels.push_back(&blockKernelsBaseline);
  return kernels;
}

const BlockKernels &blockKernels() {
  static const BlockKernels &chosen = *runnableBlockKernels().front();
  return chosen;
}

} // namespace ax::rt
