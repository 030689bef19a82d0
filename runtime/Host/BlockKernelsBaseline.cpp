//===- BlockKernelsBaseline.cpp - Rows of few bits for any processor ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#define AX_BLOCK_NAME blockKernelsBaseline
#include "BlockKernels.inc"
