//===- IndexRange.h - Between which numbers integers lie --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_INDEXRANGE_H
#define AX_DIALECT_INDEXRANGE_H

#include "ax/Dialect/Ax.h"

#include <limits>

namespace ax {

/// The numbers that an index can be, both ends included.
struct IndexRange {
  int64_t low = std::numeric_limits<int64_t>::min();
  int64_t high = std::numeric_limits<int64_t>::max();
};

/// What follows for the elements of an integer tensor from how it is made;
/// padding may hold anything else.
IndexRange findRange(mlir::Value value);

} // namespace ax

#endif // AX_DIALECT_INDEXRANGE_H
