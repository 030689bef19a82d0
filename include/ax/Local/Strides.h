//===- Strides.h - Values in memory, seen with strides ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LOCAL_STRIDES_H
#define AX_LOCAL_STRIDES_H

#include "ax/Local/Local.h"

#include <optional>

namespace ax {

/// Element (i...) of the value is element offset + sum(i * strides) of the
/// dense row-major `base`. Strides are >= 0.
struct StridedView {
  mlir::Value base;
  int64_t offset = 0;
  llvm::SmallVector<int64_t> sizes, strides;

  /// All of `value`, as it lies in memory of its own.
  static StridedView whole(mlir::Value value);
  bool isDense() const;
};

/// Where `made` lies in the whole to which transposes, reshapes and
/// concatenations, each the only reader of what it reads, move it. Nothing when
/// strides cannot express it, or none of these has what `isWhole`.
std::optional<StridedView>
whereMoved(mlir::Value made, llvm::function_ref<bool(mlir::Value)> isWhole);

/// Strides under which `sizes` have the same elements in the same order as
/// `newSizes`; nothing when there are none.
std::optional<llvm::SmallVector<int64_t>>
reshapeStrides(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides,
               llvm::ArrayRef<int64_t> newSizes);

} // namespace ax

#endif // AX_LOCAL_STRIDES_H
