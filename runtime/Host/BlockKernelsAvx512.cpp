//===- BlockKernelsAvx512.cpp - Rows of few bits for AVX-512 VNNI ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#define AX_BLOCK_NAME blockKernelsAvx512
#include "BlockKernels.inc"
