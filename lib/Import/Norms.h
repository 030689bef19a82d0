//===- Norms.h - Norms that several operators use ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_NORMS_H
#define AX_LIB_IMPORT_NORMS_H

#include "Node.h"

namespace ax::import {

/// x [batch, channels, ..] by the mean and variance of each group of channels
/// of a sample, times `scale`, plus `bias` [channels]; a failure where channels
/// do not divide into groups.
Value normalizeGroups(Node &n, Value x, Value scale, Value bias, int64_t groups,
                      double epsilon);

} // namespace ax::import

#endif // AX_LIB_IMPORT_NORMS_H
