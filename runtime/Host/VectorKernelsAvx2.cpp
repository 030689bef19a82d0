//===- VectorKernelsAvx2.cpp - The loops for AVX2 -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#define AX_VECTOR_NAME vectorKernelsAvx2
#include "VectorKernels.inc"
