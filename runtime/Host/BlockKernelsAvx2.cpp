//===- BlockKernelsAvx2.cpp - Rows of few bits for AVX2 -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#define AX_BLOCK_NAME blockKernelsAvx2
#include "BlockKernels.inc"
