//===- IndexRange.h - Between which numbers integers lie --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_INDEXRANGE_H
#define AX_DIALECT_INDEXRANGE_H

#include "ax/Dialect/Ax.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <limits>

namespace ax {

/// The numbers that an index can be, both ends included.
struct IndexRange {
  int64_t low = std::numeric_limits<int64_t>::min();
  int64_t high = std::numeric_limits<int64_t>::max();
};

/// Of a constant's elements.
IndexRange rangeOf(ConstantOp constant);

/// What follows for the elements of an integer tensor from how it is made;
/// padding may hold anything else. `ofConstant`: where constants do not hold
/// their elements yet.
IndexRange
findRange(mlir::Value value,
          llvm::function_ref<IndexRange(ConstantOp)> ofConstant = rangeOf);

} // namespace ax

#endif // AX_DIALECT_INDEXRANGE_H
