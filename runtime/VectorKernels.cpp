//===- VectorKernels.cpp - Choice of the loops for this machine -----------===//

#include "VectorKernels.h"

namespace ax::rt {

extern const VectorKernels vectorKernelsBaseline;
#ifdef AX_X86_VECTOR_KERNELS
extern const VectorKernels vectorKernelsAvx2;
extern const VectorKernels vectorKernelsAvx512;
#endif

namespace {

const VectorKernels &choose() {
#ifdef AX_X86_VECTOR_KERNELS
  if (__builtin_cpu_supports("x86-64-v4"))
    return vectorKernelsAvx512;
  if (__builtin_cpu_supports("x86-64-v3"))
    return vectorKernelsAvx2;
#endif
  return vectorKernelsBaseline;
}

} // namespace

const VectorKernels &vectorKernels() {
  static const VectorKernels &chosen = choose();
  return chosen;
}

} // namespace ax::rt
