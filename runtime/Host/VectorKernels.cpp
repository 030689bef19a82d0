//===- VectorKernels.cpp - Choice of the loops for this machine -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/VectorKernels.h"

namespace ax::rt {

extern const VectorKernels vectorKernelsBaseline;
#ifdef AX_X86_VECTOR_KERNELS
extern const VectorKernels vectorKernelsAvx2;
extern const VectorKernels vectorKernelsAvx512;
#endif

std::vector<const VectorKernels *> runnableVectorKernels() {
  std::vector<const VectorKernels *> kernels;
#ifdef AX_X86_VECTOR_KERNELS
  if (__builtin_cpu_supports("x86-64-v4"))
    kernels.push_back(&vectorKernelsAvx512);
  if (__builtin_cpu_supports("x86-64-v3"))
    kernels.push_back(&vectorKernelsAvx2);
#endif
  kernels.push_back(&vectorKernelsBaseline);
  return kernels;
}

const VectorKernels &vectorKernels() {
  static const VectorKernels &chosen = *runnableVectorKernels().front();
  return chosen;
}

} // namespace ax::rt
