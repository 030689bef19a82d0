//===- VectorKernelsAvx512.cpp - The loops for AVX-512 --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#define AX_VECTOR_NAME vectorKernelsAvx512
#include "VectorKernels.inc"
