//===- Reduction.h - Sums as NCCL makes them --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMNCCL_REDUCTION_H
#define AX_TEST_SIMNCCL_REDUCTION_H

#include <cstddef>
#include <nccl.h>

namespace simnccl {

/// 0 for no type.
size_t bytesOf(ncclDataType_t type);

/// Combines `count` elements of `into` with those of `from`. Sums are rounded
/// to the type at each step, and a maximum or minimum forgets NaN.
void combine(ncclDataType_t type, ncclRedOp_t reduction, unsigned char *into,
             const unsigned char *from, size_t count);

} // namespace simnccl

#endif // AX_TEST_SIMNCCL_REDUCTION_H
