//===- VectorKernelsBaseline.cpp - The loops for all ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#define AX_VECTOR_NAME vectorKernelsBaseline
#include "VectorKernels.inc"
