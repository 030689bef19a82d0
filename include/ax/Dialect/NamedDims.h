//===- NamedDims.h - What dimensions of an operation are called -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_NAMEDDIMS_H
#define AX_DIALECT_NAMEDDIMS_H

#include "mlir/IR/Value.h"

namespace ax {

/// Dimensions of an operand or of the result that have one name: `k`, `rows`.
struct NamedDims {
  llvm::StringRef name;
  mlir::Value value;
  llvm::SmallVector<int64_t> dims;
  /// Causes of layouts call it so, too: what tensor parallelism splits.
  bool inCauses = false;
};

} // namespace ax

#endif // AX_DIALECT_NAMEDDIMS_H
