//===- Staying.h - Elements in place that stay as they are ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A result in place of an operand may choose, element by element, between what
// is there and something new:
//
//   %new = select %condition, %old, %x          in_place: %new where %old is
//
// Where the old element is chosen nothing need be read or written: of a cache
// with room for thousands of rows, a step writes one.
//
//===----------------------------------------------------------------------===//
#ifndef AX_CODEGEN_KERNELS_STAYING_H
#define AX_CODEGEN_KERNELS_STAYING_H

#include "ax/Local/Local.h"
#include "llvm/ADT/SetVector.h"

#include <optional>

namespace ax::codegen {

/// What a result in place chooses from.
struct Staying {
  mlir::BlockArgument old;
  /// Operations that choose between the old element and others, one of which
  /// makes the result.
  llvm::SetVector<mlir::Operation *> choices;
  /// So many neighbouring elements, from a multiple of that on, are chosen
  /// alike: no condition varies within them.
  int64_t row = 0;

  /// Whether `value` is the old one, or a choice that it takes part in.
  bool choosesOld(mlir::Value value) const {
    return value == old || choices.contains(value.getDefiningOp());
  }
};

/// Nothing where the old elements are read for anything else, or where rows are
/// shorter than a cache line. Of these a branch for each element would leave no
/// loop to vectorise, and a line that has one new element is read and written
/// all the same: so they are all made, as of any other kernel.
std::optional<Staying> findStaying(FusionOp fusion, unsigned result);

/// Whether two values stay at the same elements, by the same conditions.
bool stayAlike(const Staying &one, mlir::Value value, const Staying &two,
               mlir::Value other);

/// Operands of the fusion that new elements are made of.
llvm::SmallVector<mlir::BlockArgument> operandsOfNew(const Staying &staying);

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_STAYING_H
